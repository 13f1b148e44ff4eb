"""A copy of a graph in which a new input says what casts give where the standard leaves their result open."""

from collections.abc import Iterator, Sequence

import onnx
from onnx import TensorProto, helper

from edgekit.facts import shapes
from edgekit.facts.casts import bounds, is_cast
from edgekit.facts.shapes import Scope, ShapeTable
from edgekit.isolate.names import Namer, value_names
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
    """Whether a graph may have casts that ``open_casts`` changes, told without the types of what they read."""
    return walk.opset(proto) >= _LEAST_OPSET and any(
        is_cast(node) and (node.op_type != "Cast" or _to(node) is not None)
        for graph in walk.graphs(proto.graph)
        for node in graph.node
    )


def casts_floats(proto: onnx.ModelProto, table: ShapeTable) -> bool:
    """Whether a graph casts floats to integers; what local functions do is not looked at."""
    return any(_result(node, scope, table) for graph, scope in _graphs(proto.graph, ()) for node in graph.node)


def open_casts(proto: onnx.ModelProto, table: ShapeTable) -> str:
    """Change the casts of floats to integers in a graph, in place; return the name of its new input: one int64.

    Elsewhere, and where the standard does define it, every result stays the runtime's own.
    """
    names = value_names(proto)
    fill = names.fresh("left_open")
    # All of them first: what holds a graph is written anew after it.
    for graph, scope in list(_graphs(proto.graph, ())):
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            dtype = _result(node, scope, table)
            nodes += [node] if dtype is None else _chosen(node, dtype, names, fill)
        if len(nodes) > len(graph.node):
            changed = onnx.GraphProto(node=nodes)
            del graph.node[:]
            graph.node.extend(changed.node)
    proto.graph.input.append(helper.make_tensor_value_info(fill, TensorProto.INT64, []))
    return fill


def _graphs(graph: onnx.GraphProto, scope: Scope) -> Iterator[tuple[onnx.GraphProto, Scope]]:
    """Yield every graph with its scope, the inner ones first: what holds them is written anew after them."""
    for _, inner_scope, inner in shapes.nested(graph.node, scope):
        yield from _graphs(inner, inner_scope)
    yield graph, scope


def _to(node: onnx.NodeProto) -> str | None:
    return next((_INTEGERS.get(a.i) for a in node.attribute if a.name == "to"), None)


def _result(node: onnx.NodeProto, scope: Scope, table: ShapeTable) -> str | None:
    """Return the integer dtype that a node casts floats to; None for every other node."""
    if not is_cast(node) or not node.input or not node.output:
        return None
    source = table.look(node.input[0], scope)
    if source is None or source.dtype not in _FLOATS:
        return None
    if node.op_type == "Cast":
        return _to(node)
    like = table.look(node.input[1], scope) if len(node.input) > 1 else None
    return like.dtype if like is not None and like.dtype in _OF_DTYPE else None


def _chosen(node: onnx.NodeProto, dtype: str, names: Namer, fill: str) -> Sequence[onnx.NodeProto]:
    """Return the cast, and after it what takes ``fill`` for its result where that is open.

    In int64, for Where takes no other integers of every runtime; what does not fit turns round, and back again.
    """
    own, below, above, wide, high, low, defined, whole, chosen = (names.fresh(f"{fill}.{n}") for n in range(9))
    cast = onnx.NodeProto()
    cast.CopyFrom(node)
    cast.output[0] = own
    limits = [
        helper.make_node("Constant", [], [name], value=helper.make_tensor("", TensorProto.DOUBLE, [], [limit]))
        for name, limit in zip((below, above), bounds(NUMPY_DTYPES[dtype]), strict=True)
    ]
    return [
        cast,
        *limits,
        helper.make_node("Cast", [node.input[0]], [wide], to=TensorProto.DOUBLE),
        helper.make_node("Greater", [wide, below], [high]),
        helper.make_node("Less", [wide, above], [low]),
        helper.make_node("And", [high, low], [defined]),
        helper.make_node("Cast", [own], [whole], to=TensorProto.INT64),
        helper.make_node("Where", [defined, whole, fill], [chosen]),
        helper.make_node("Cast", [chosen], [node.output[0]], to=_OF_DTYPE[dtype]),
    ]
