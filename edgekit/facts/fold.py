"""Compute the small values that shapes depend on, so that shape inference can go on where it would stop.

onnx's own data propagation knows a few operators, and no graph but the one it is in. Here every node whose inputs are
small constants is computed with onnx's reference implementation, in branches and bodies too, and a Shape of a value
whose sizes are all known becomes a constant. Runs in the child process of ``edgekit.facts.shapes`` alone.
"""

import math
import warnings
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.numpy_helper

from edgekit.model import walk

Array = npt.NDArray[Any]
Constants = ChainMap[str, Array]
Sizes = Mapping[str, tuple[int, ...]]

_MOST_ELEMENTS = 4096

# Their result is never larger than their inputs, and its size is seen only in it.
_SHRINKING = {"NonZero", "Compress", "Unique"}
_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


def fold(graph: onnx.GraphProto, inferred: onnx.GraphProto, opsets: Sequence[onnx.OperatorSetIdProto]) -> bool:
    """Replace nodes of ``graph`` by constants where their values can be told; return whether there was one.

    ``inferred``: the same graph as shape inference left it. Types of what an If gives, where its condition is a
    constant, are declared as those of the branch that is taken.
    """
    return _Folder(opsets).graph(graph, inferred, ChainMap())


def all_known(graph: onnx.GraphProto) -> bool:
    """Whether every value that a node computes has a size on each axis, in nested graphs too."""
    sizes = _static_sizes(graph)
    names = (name for node in graph.node if node.op_type != "Constant" for name in node.output if name)
    return all(name in sizes for name in names) and all(
        all_known(inner) for node in graph.node for inner in walk.subgraphs(node)
    )


class _Folder:
    def __init__(self, opsets: Sequence[onnx.OperatorSetIdProto]) -> None:
        self.opsets = opsets

    def graph(self, graph: onnx.GraphProto, inferred: onnx.GraphProto, outer: Constants) -> bool:
        constants = outer.new_child()
        changed = _bring_in(graph, outer)
        for tensor in graph.initializer:
            _learn(constants, tensor.name, tensor)
        sizes = _static_sizes(inferred)
        nodes: list[onnx.NodeProto] = []
        folded = False
        for node, known in zip(graph.node, inferred.node, strict=True):
            values = self.values(node, constants, sizes)
            if values is not None:
                constants.update(values)
                nodes += [_constant(name, value) for name, value in values.items()]
                folded = True
                continue
            if node.op_type == "Constant" and len(node.output) == 1:
                for attribute in node.attribute:
                    _learn(constants, node.output[0], _constant_tensor(attribute))
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            for inner, inner_known in zip(walk.subgraphs(copy), walk.subgraphs(known), strict=True):
                changed |= self.graph(inner, inner_known, constants)
            changed |= _declare_taken(graph, copy, known, constants)
            nodes.append(copy)
        del graph.node[:]
        graph.node.extend(nodes)
        return changed or folded

    def values(self, node: onnx.NodeProto, constants: Constants, sizes: Sizes) -> dict[str, Array] | None:
        """The values of a node's outputs; None where they cannot be told."""
        if (
            walk.domain_name(node.domain) != walk.DEFAULT_DOMAIN
            or node.op_type in _RANDOM
            or node.op_type == "Constant"
        ):
            return None
        if node.op_type in ("Shape", "Size"):
            return _shape(node, sizes)
        names = [name for name in node.input if name]
        if not names or any(name not in constants for name in names) or any(walk.subgraphs(node)):
            return None
        outputs = [name for name in node.output if name]
        small = all(math.prod(sizes.get(name, (_MOST_ELEMENTS + 1,))) <= _MOST_ELEMENTS for name in outputs)
        if not small and node.op_type not in _SHRINKING:
            return None
        return self.computed(node, outputs, {name: constants[name] for name in names})

    def computed(
        self, node: onnx.NodeProto, outputs: list[str], inputs: Mapping[str, Array]
    ) -> dict[str, Array] | None:
        graph = onnx.helper.make_graph(
            [node],
            "one node",
            [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in inputs],
            [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        )
        from onnx.reference import ReferenceEvaluator  # half a second, and most models need none of it

        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=self.opsets)).run(
                    None, dict(inputs)
                )
        except Exception:  # an operator without an implementation, or a node that is wrong: its values stay unknown
            return None
        if any(not isinstance(value, np.ndarray | np.generic) for value in found):
            return None
        values = {name: np.asarray(value) for name, value in zip(outputs, found, strict=True)}
        return values if all(value.size <= _MOST_ELEMENTS for value in values.values()) else None


def _bring_in(graph: onnx.GraphProto, outer: Constants) -> bool:
    """Store what a nested graph reads of the constants around it in the graph itself: onnx looks nowhere else."""
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own.update(name for node in graph.node for name in node.output)
    read = dict.fromkeys(name for node in graph.node for name in node.input if name in outer and name not in own)
    graph.initializer.extend(onnx.numpy_helper.from_array(outer[name], name) for name in read)
    return bool(read)


def _shape(node: onnx.NodeProto, sizes: Sizes) -> dict[str, Array] | None:
    size = sizes.get(node.input[0]) if node.input else None
    if size is None or len(node.output) != 1:
        return None
    if node.op_type == "Size":
        return {node.output[0]: np.array(math.prod(size), np.int64)}
    limits = {attribute.name: attribute.i for attribute in node.attribute}
    return {node.output[0]: np.array(size[slice(limits.get("start"), limits.get("end"))], np.int64)}


def _declare_taken(graph: onnx.GraphProto, node: onnx.NodeProto, known: onnx.NodeProto, constants: Constants) -> bool:
    """Where an If's condition is constant, say that its outputs have the types of the branch that is taken."""
    if node.op_type != "If" or not node.input or node.input[0] not in constants:
        return False
    condition = constants[node.input[0]]
    if condition.size != 1:
        return False
    name = "then_branch" if condition.item() else "else_branch"
    branch = next((attribute.g for attribute in known.attribute if attribute.name == name), onnx.GraphProto())
    types = {info.name: info.type for info in (*branch.value_info, *branch.input, *branch.output)}
    declared = {info.name: info for info in (*graph.value_info, *graph.output)}
    changed = False
    for output, inner in zip(node.output, branch.output, strict=False):
        kind = types.get(inner.name)
        if output and kind is not None and (output not in declared or declared[output].type != kind):
            info = declared.get(output) or graph.value_info.add(name=output)
            info.type.CopyFrom(kind)
            changed = True
    return changed


def _static_sizes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    return dict(_sizes(graph))


def _sizes(graph: onnx.GraphProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    for info in (*graph.value_info, *graph.input, *graph.output):
        tensor = info.type.tensor_type
        if tensor.HasField("shape") and all(d.HasField("dim_value") and d.dim_value >= 0 for d in tensor.shape.dim):
            yield info.name, tuple(d.dim_value for d in tensor.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name, tuple(tensor.dims)


def _learn(constants: Constants, name: str, tensor: onnx.TensorProto | None) -> None:
    if tensor is None or math.prod(tensor.dims) > _MOST_ELEMENTS:
        return
    try:
        constants[name] = onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):  # its values do not fit its shape: they stay unknown
        return


def _constant_tensor(attribute: onnx.AttributeProto) -> onnx.TensorProto | None:
    if attribute.name == "value":
        return attribute.t
    if attribute.name in ("value_int", "value_ints"):
        dims = [] if attribute.name == "value_int" else [len(attribute.ints)]
        return onnx.helper.make_tensor("", onnx.TensorProto.INT64, dims, attribute.ints or [attribute.i])
    if attribute.name in ("value_float", "value_floats"):
        dims = [] if attribute.name == "value_float" else [len(attribute.floats)]
        return onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, dims, attribute.floats or [attribute.f])
    return None


def _constant(name: str, value: Array) -> onnx.NodeProto:
    return onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))
