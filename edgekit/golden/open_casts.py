"""A copy of a graph in which a new input says what casts give where the standard leaves their result open."""

from collections.abc import Iterator, Sequence

import onnx
from onnx import TensorProto, helper

from edgekit.facts import shapes
from edgekit.facts.casts import CASTS, bounds
from edgekit.facts.shapes import Scope, ShapeTable
from edgekit.model import walk
from edgekit.records.tensors import NUMPY_DTYPES

_LEAST_OPSET = 9  # Where
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = {
    TensorProto.INT8: "int8", TensorProto.UINT8: "uint8", TensorProto.INT16: "int16", TensorProto.UINT16: "uint16",
    TensorProto.INT32: "int32", TensorProto.UINT32: "uint32", TensorProto.INT64: "int64", TensorProto.UINT64: "uint64",
}  # fmt: skip
_OF_DTYPE = {dtype: number for number, dtype in _INTEGERS.items()}


def may_be_open(proto: onnx.ModelProto) -> bool:
    """Whether a graph has casts to integers that ``open_casts`` can change; those of local functions it cannot."""
    opset = max((i.version for i in proto.opset_import if walk.domain_name(i.domain) == walk.DEFAULT_DOMAIN), default=0)
    return opset >= _LEAST_OPSET and any(
        _is_cast(node) and (node.op_type != "Cast" or _to(node) is not None)
        for graph in walk.graphs(proto.graph)
        for node in graph.node
    )


def open_casts(proto: onnx.ModelProto, table: ShapeTable) -> str | None:
    """Change a graph in place, and return the name of its new input: one int64; None where no cast is of floats.

    Elsewhere, and where the standard does define it, every result stays the runtime's own.
    """
    taken = _names(proto)
    prefix = "left_open"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    count = 0
    # All of them first: the scope of a graph is named after outputs that are renamed.
    for graph, scope in list(_graphs(proto.graph, ())):
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            dtype = _result(node, scope, table)
            if dtype is None:
                nodes.append(node)
            else:
                nodes += _chosen(node, dtype, f"{prefix}.{count}", prefix)
                count += 1
        changed = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        if len(changed) > len(graph.node):
            del graph.node[:]
            graph.node.extend(changed)
    if not count:
        return None
    proto.graph.input.append(helper.make_tensor_value_info(prefix, TensorProto.INT64, []))
    return prefix


def _graphs(graph: onnx.GraphProto, scope: Scope) -> Iterator[tuple[onnx.GraphProto, Scope]]:
    """Yield every graph with its scope, the inner ones first: what holds them is written anew after them."""
    for _, inner_scope, inner in shapes.nested(graph.node, scope):
        yield from _graphs(inner, inner_scope)
    yield graph, scope


def _names(proto: onnx.ModelProto) -> set[str]:
    found = {info.name for info in proto.graph.input}
    for graph in walk.all_graphs(proto):
        found.update(tensor.name for tensor in graph.initializer)
        for node in graph.node:
            found.update((*node.input, *node.output))
    return found


def _is_cast(node: onnx.NodeProto) -> bool:
    return walk.domain_name(node.domain) == walk.DEFAULT_DOMAIN and node.op_type in CASTS


def _to(node: onnx.NodeProto) -> str | None:
    return next((_INTEGERS.get(a.i) for a in node.attribute if a.name == "to"), None)


def _result(node: onnx.NodeProto, scope: Scope, table: ShapeTable) -> str | None:
    """Return the integer dtype that a node casts floats to; None for every other node."""
    if not _is_cast(node) or not node.input or not node.output:
        return None
    source = table.look(node.input[0], scope)
    if source is None or source.dtype not in _FLOATS:
        return None
    if node.op_type == "Cast":
        return _to(node)
    like = table.look(node.input[1], scope) if len(node.input) > 1 else None
    return like.dtype if like is not None and like.dtype in _OF_DTYPE else None


def _chosen(node: onnx.NodeProto, dtype: str, name: str, fill: str) -> Sequence[onnx.NodeProto]:
    """Return the cast, and after it what takes ``fill`` for its result where that is open.

    In int64, for Where takes no other integers of every runtime; what does not fit turns round, and back again.
    """
    below, above = bounds(NUMPY_DTYPES[dtype])
    cast = onnx.NodeProto()
    cast.CopyFrom(node)
    cast.output[0] = f"{name}.cast"
    limits = [
        helper.make_node("Constant", [], [f"{name}.{side}"], value=helper.make_tensor("", TensorProto.DOUBLE, [], [at]))
        for side, at in (("below", below), ("above", above))
    ]
    return [
        cast,
        *limits,
        helper.make_node("Cast", [node.input[0]], [f"{name}.wide"], to=TensorProto.DOUBLE),
        helper.make_node("Greater", [f"{name}.wide", f"{name}.below"], [f"{name}.high"]),
        helper.make_node("Less", [f"{name}.wide", f"{name}.above"], [f"{name}.low"]),
        helper.make_node("And", [f"{name}.high", f"{name}.low"], [f"{name}.defined"]),
        helper.make_node("Cast", [f"{name}.cast"], [f"{name}.int64"], to=TensorProto.INT64),
        helper.make_node("Where", [f"{name}.defined", f"{name}.int64", fill], [f"{name}.chosen"]),
        helper.make_node("Cast", [f"{name}.chosen"], [node.output[0]], to=_OF_DTYPE[dtype]),
    ]
