"""What passes share: graphs and nodes to walk, constants to read, and one value put in the place of another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from edgekit.records.tensors import Array

# The values of a shape, an axis or a scale. Larger constants are weights, and no rule looks at their numbers.
MOST_ELEMENTS = 1024

# Operators whose result differs from run to run, or depends on a hidden state: never merged, folded or repeated.
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

Dim = int | str | None
Dims = tuple[Dim, ...]


@dataclass(frozen=True)
class Known:
    """What shape inference found. A dimension is a number, a symbol (equal symbols are equal sizes), or None."""

    shapes: Mapping[ir.Value, Dims] = field(default_factory=dict)
    dtypes: Mapping[ir.Value, ir.DataType] = field(default_factory=dict)

    def shape(self, value: ir.Value | None) -> Dims | None:
        """Return the value's dimensions; those of a constant are its own."""
        if value is None:
            return None
        tensor = tensor_of(value)
        if tensor is not None:
            return tuple(int(size) for size in tensor.shape.numpy())
        return self.shapes.get(value)

    def sizes(self, value: ir.Value | None) -> tuple[int, ...] | None:
        """Return the value's dimensions when every one of them is a number."""
        dims = self.shape(value)
        if dims is None or not all(isinstance(size, int) for size in dims):
            return None
        return tuple(size for size in dims if isinstance(size, int))

    def rank(self, value: ir.Value | None) -> int | None:
        """Return the number of the value's dimensions."""
        dims = self.shape(value)
        return None if dims is None else len(dims)

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        """Return the value's element type."""
        if value is None:
            return None
        tensor = tensor_of(value)
        return tensor.dtype if tensor is not None else self.dtypes.get(value)


def bodies(model: ir.Model) -> Iterator[ir.Graph | ir.Function]:
    """Yield the main graph, every nested graph, and the functions with the graphs nested in them."""
    tops: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for top in tops:
        yield top
        yield from top.subgraphs()


def nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Yield every node; a list of each graph's is made first, so that nodes may be removed on the way."""
    for body in list(bodies(model)):
        yield from list(body)


def is_standard(node: ir.Node, *op_types: str) -> bool:
    """Whether the node is of the default domain, and of one of these types where some are given."""
    return node.domain == "" and (not op_types or node.op_type in op_types)


def tensor_of(value: ir.Value | None) -> ir.TensorProtocol | None:
    """Return the tensor of an initializer that is no input, or of a Constant node; None for anything else."""
    if value is None:
        return None
    if value.is_initializer():
        return None if value.is_graph_input() else value.const_value
    node = value.producer()
    if node is None or not is_standard(node, "Constant") or len(node.attributes) != 1:
        return None
    attribute = next(iter(node.attributes.values()))
    if attribute.is_ref() or attribute.value is None:
        return None
    if attribute.name == "value":
        return attribute.as_tensor()
    if attribute.name in ("value_float", "value_floats"):
        return ir.tensor(np.array(attribute.value, np.float32))
    if attribute.name in ("value_int", "value_ints"):
        return ir.tensor(np.array(attribute.value, np.int64))
    return None  # strings are not read by any rule


def is_weight(tensor: ir.TensorProtocol | None) -> bool:
    """Whether a tensor is what kernels multiply with: floats, and more than one."""
    return tensor is not None and tensor.dtype.is_floating_point() and tensor.size > 1


def numbers_of(value: ir.Value | None) -> Array | None:
    """Return the numbers of a small constant; None for what is no constant, is large, or holds text."""
    tensor = tensor_of(value)
    if tensor is None or tensor.size > MOST_ELEMENTS or tensor.dtype == ir.DataType.STRING:
        return None
    try:
        return tensor.numpy()
    except (ValueError, TypeError, OSError):  # a damaged tensor: whoever runs the model says so
        return None


def integers_of(value: ir.Value | None) -> list[int] | None:
    """Return the elements of a small integer constant, flat."""
    array = numbers_of(value)
    if array is None or array.dtype.kind not in "iu":
        return None
    return [int(number) for number in array.ravel()]


def integer(node: ir.Node, name: str, default: int) -> int | None:
    """Return an integer attribute; None where it refers to a function's argument."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    if attribute.is_ref() or attribute.type != ir.AttributeType.INT:
        return None
    return attribute.as_int()


def integers(node: ir.Node, name: str) -> list[int] | None:
    """Return a list of integers from an attribute; None where there is none."""
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref() or attribute.type != ir.AttributeType.INTS:
        return None
    return [int(number) for number in attribute.as_ints()]


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Return an input, None where it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def others_unused(node: ir.Node) -> bool:
    """Whether nothing but the node's first output is used."""
    return not any(output.uses() or output.is_graph_output() for output in node.outputs[1:])


def replace(old: ir.Value, new: ir.Value) -> bool:
    """Let ``new`` stand wherever ``old`` is used; whether that was possible.

    A graph's output keeps its name: ``new`` takes it, which it can only when a node of the same graph makes it and it
    is no output itself. (Inputs, initializers and values of an outer graph may not be a graph's outputs.)
    """
    if old is new:
        return False
    if old.is_graph_output():
        maker, place = new.producer(), old.producer()
        if maker is None or place is None or maker.graph is not place.graph or new.is_graph_output():
            return False
        if maker.graph is None or sum(output is old for output in maker.graph.outputs) != 1:
            return False
        _take_place(old, new)
        return True
    old.replace_all_uses_with(new)
    return True


def _take_place(old: ir.Value, new: ir.Value) -> None:
    name, doc, metadata = old.name, old.doc_string, dict(old.metadata_props)
    new.type, new.shape = old.type or new.type, old.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    old.name = f"{name}__replaced"
    new.name, new.doc_string = name, doc
    new.metadata_props.update(metadata)


def remove(node: ir.Node) -> None:
    """Remove a node whose outputs nothing uses any more, and let go of what its nested graphs used."""
    for attribute in node.attributes.values():
        for graph in _graphs(attribute):
            for inner in reversed(list(graph)):
                release(inner)
    graph_like = node.graph
    if graph_like is not None:
        graph_like.remove(node, safe=True)


def release(node: ir.Node) -> None:
    """Let a node that is thrown away with its graph use nothing any more."""
    for attribute in node.attributes.values():
        for graph in _graphs(attribute):
            for inner in list(graph):
                release(inner)
    for index in range(len(node.inputs)):
        node.replace_input_with(index, None)


def _graphs(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.is_ref():
        return []
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def constant_node(array: Array, like: ir.Value, name: str) -> ir.Node:
    """Make a Constant node with ``array`` as its value, to stand for ``like``."""
    tensor = ir.tensor(array, name=name)
    output = ir.Value(name=name, type=like.type, shape=like.shape if like.is_graph_output() else None)
    return ir.node("Constant", [], {"value": tensor}, outputs=[output])


def insert(place: ir.Node, node: ir.Node) -> None:
    """Put a new node before another one. It has no name: onnx-ir makes one up, which only takes bytes."""
    graph = place.graph
    if graph is not None:
        graph.insert_before(place, node)
    node.name = None


def put_constant(old: ir.Value, array: Array) -> bool:
    """Put a Constant node in the place of ``old``, whose node stays (unused) until unused nodes are removed."""
    place = old.producer()
    if place is None or place.graph is None:
        return False
    node = constant_node(array, old, f"{old.name}__constant")
    insert(place, node)
    if replace(old, node.outputs[0]):
        return True
    place.graph.remove(node, safe=True)
    return False
