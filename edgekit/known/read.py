"""Read the facts of nodes out of a model: attributes with their defaults, shapes and dtypes where they are known."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.defs import OpSchema

from edgekit.known.features import Attribute, Given, NodeFacts
from edgekit.model import walk

_MOST_VALUES = 16
_HOPS = 4
_INTEGERS = (TensorProto.INT64, TensorProto.INT32)


def model_nodes(model: ModelProto) -> tuple[NodeFacts, ...]:
    """Return the facts of the main graph's nodes, by onnx's own shape inference. For small models of edgekit's own."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = inferred.graph
    known = {info.name: _given(info) for info in (*graph.input, *graph.value_info, *graph.output)}
    known |= constants(graph)
    opsets = {walk.domain_name(entry.domain): entry.version for entry in model.opset_import}
    return graph_nodes(graph, opsets, lambda name: known.get(name, Given()))


def graph_nodes(graph: GraphProto, opsets: Mapping[str, int], look: Callable[[str], Given]) -> tuple[NodeFacts, ...]:
    """Return the facts of one graph's nodes. ``look`` says what is known of a value."""
    followers = followers_of(graph.node)
    return tuple(node_facts(node, opsets, look, followers) for node in graph.node)


def node_facts(
    node: NodeProto,
    opsets: Mapping[str, int],
    look: Callable[[str], Given],
    followers: Mapping[str, frozenset[str]] | None = None,
) -> NodeFacts:
    """Return the facts of one node. ``followers``: of its outputs, the operators up to four nodes on."""
    domain = walk.domain_name(node.domain)
    schema = _schema(node.op_type, opsets.get(domain, 1), "" if domain == walk.DEFAULT_DOMAIN else domain)
    names = [_parameter(schema, place) for place in range(len(node.input))]
    then = [(followers or {}).get(name, frozenset()) for name in node.output]
    return NodeFacts(
        node.name or next((name for name in node.output if name), node.op_type),
        node.op_type if domain == walk.DEFAULT_DOMAIN else f"{domain}::{node.op_type}",
        _attributes(node, schema),
        (
            *((name, look(value) if value else None) for name, value in zip(names, node.input, strict=True)),
            *((name, None) for name in _left_out(schema, len(node.input))),
        ),
        tuple(look(value) for value in node.output if value),
        frozenset().union(*then),
    )


def constants(graph: GraphProto) -> dict[str, Given]:
    """Return what is known of a graph's initializers and of what its Constant nodes hold."""
    found = {tensor.name: constant(tensor) for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value" and node.output:
                found[node.output[0]] = constant(attribute.t)
    return found


def constant(tensor: TensorProto) -> Given:
    """Return what is known of a stored tensor: the values too, where they are a few whole numbers inside the model."""
    shape = tuple(tensor.dims)
    few = tensor.data_type in _INTEGERS and len(shape) <= 1 and int(np.prod(shape)) <= _MOST_VALUES
    values = None
    if few and tensor.data_location != TensorProto.EXTERNAL:
        try:
            values = tuple(int(value) for value in numpy_helper.to_array(tensor).ravel())
        except (ValueError, TypeError):
            values = None
    return Given(_dtype(tensor.data_type), shape, True, values)


def followers_of(nodes: Sequence[NodeProto]) -> dict[str, frozenset[str]]:
    """Return, by value, the operators that take it or what is made of it, up to four nodes on."""
    takers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in nodes:
        for name in set(node.input) - {""}:
            takers[name].append(node)
    found: dict[str, frozenset[str]] = {name: frozenset() for node in nodes for name in node.output}
    for _ in range(_HOPS):
        found = {
            name: frozenset(
                op
                for node in takers.get(name, ())[:_MOST_VALUES]
                for op in (node.op_type, *(o for out in node.output for o in found.get(out, ())))
            )
            for name in found
        }
    return found


@lru_cache(maxsize=1024)
def _schema(op_type: str, opset: int, domain: str) -> OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except (onnx.defs.SchemaError, TypeError, OverflowError):
        return None


def _parameter(schema: OpSchema | None, place: int) -> str:
    if schema is None or not schema.inputs:
        return f"input {place}"
    last = len(schema.inputs) - 1
    return schema.inputs[place].name if place < last or place == last else f"{schema.inputs[last].name} {place - last}"


def _left_out(schema: OpSchema | None, count: int) -> list[str]:
    """Return the names of inputs after those that a node states."""
    optional = OpSchema.FormalParameterOption.Optional
    return [formal.name for formal in schema.inputs[count:] if formal.option == optional] if schema is not None else []


def _attributes(node: NodeProto, schema: OpSchema | None) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for name, formal in (schema.attributes if schema is not None else {}).items():
        default = _attribute(formal.default_value) if formal.default_value.name else None
        if default is not None:
            found[name] = default
    for attribute in node.attribute:
        value = _attribute(attribute)
        if value is not None:
            found[attribute.name] = value
    return found


def _attribute(attribute: AttributeProto) -> Attribute | None:
    kind = attribute.type
    if kind == AttributeProto.INT:
        return int(attribute.i)
    if kind == AttributeProto.FLOAT:
        return round(float(attribute.f), 6)
    if kind == AttributeProto.STRING:
        return attribute.s.decode(errors="replace")[:80]
    if kind == AttributeProto.INTS and len(attribute.ints) <= _MOST_VALUES:
        return tuple(attribute.ints)
    if kind == AttributeProto.FLOATS and len(attribute.floats) <= _MOST_VALUES:
        return tuple(round(float(value), 6) for value in attribute.floats)
    return None


def _given(info: onnx.ValueInfoProto) -> Given:
    kind = info.type.tensor_type
    if not kind.elem_type:
        return Given()
    shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
    return Given(_dtype(kind.elem_type), shape if kind.HasField("shape") else None)


def _dtype(number: int) -> str | None:
    try:
        return str(helper.tensor_dtype_to_np_dtype(number).name)
    except (KeyError, TypeError, ValueError):
        return None
