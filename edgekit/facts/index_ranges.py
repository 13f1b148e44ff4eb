"""Which whole numbers an input may hold: an index into a table of ten rows must stay below ten.

The input is followed through the graph, into branches, loop bodies and local functions, as far as its values stay as
they are (Cast, Reshape, Concat) or move by a constant (Add, Sub), to the operators that use it as an index.
"""

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import onnx

from edgekit.errors import ModelError
from edgekit.model import walk
from edgekit.model.io import LoadedModel, to_array
from edgekit.model.walk import domain_name

# Operators whose output holds the values of these inputs, moved about but unchanged. None: of every input.
_CARRIERS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        (
            "Cast", "CastLike", "Compress", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
            "Identity", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
        ),
        (0,),
    ),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (0, 2)),
    "Pad": (0, 2),
    "Where": (1, 2),
    "Concat": None,
}  # fmt: skip

# Operators whose output has the shape of their first input; Transpose is treated apart.
_SAME_SHAPE = {"Identity", "Cast", "CastLike", "DequantizeLinear", "QuantizeLinear"}

_ELEMENTWISE = {"Add", "Sub", "Mul", "Div"}

# Fused embeddings: index input -> the input that holds the table.
_EMBEDDINGS: dict[tuple[str, str], dict[int, int]] = {
    ("com.microsoft", "EmbedLayerNormalization"): {0: 2, 1: 4, 8: 3},
    ("com.microsoft", "QEmbedLayerNormalization"): {0: 2, 1: 4},
    ("com.microsoft", "RotaryEmbedding"): {1: 2},
    ("ai.onnx", "RotaryEmbedding"): {3: 1},
}

_BOUNDARIES = {"Loop": 2, "Scan": 0}  # the node's inputs from here on become those of the body, at the same places

# Functions that call each other twice a level unfold without end. This many nodes take two seconds.
_MOST_NODES = 100_000

_MOST_CALLS = 100

Shape = tuple[int | None, ...]
T = TypeVar("T")


@dataclass
class _Scope:
    """What is known of the names in one graph or function body, those of the graphs around it included.

    ``moved``: for each value that carries the input, the largest constant that was added to it on the way.
    """

    moved: ChainMap[str, int] = field(default_factory=ChainMap)
    shapes: ChainMap[str, Shape] = field(default_factory=ChainMap)
    constants: ChainMap[str, onnx.TensorProto] = field(default_factory=ChainMap)

    def inside(self) -> "_Scope":
        return _Scope(self.moved.new_child(), self.shapes.new_child(), self.constants.new_child())


def index_limit(model: LoadedModel, input_name: str) -> int | None:
    """Return the exclusive upper bound of the values that ``input_name`` may hold as an index.

    The smallest over all its uses whose table has a known size. None: it is not used as an index, or no size is known.
    """
    follower = _Follower(model)
    scope = _Scope(moved=ChainMap({input_name: 0}))
    follower.graph(model.proto.graph, scope)
    return min((limit for limit in follower.limits if limit > 0), default=None)


class _Follower:
    """Follows one input; collects the limits that it meets."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.functions = {(domain_name(f.domain), f.name): f for f in model.proto.functions}
        self.limits: list[int] = []
        self.visited = 0
        self.calls: set[tuple[str, str]] = set()

    def graph(self, graph: onnx.GraphProto, scope: _Scope) -> None:
        for info in (*graph.input, *graph.value_info):
            if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
                dims = info.type.tensor_type.shape.dim
                scope.shapes[info.name] = tuple(d.dim_value if d.dim_value > 0 else None for d in dims)
        for tensor in graph.initializer:
            _learn(scope, tensor.name, tensor)
        self.body(graph.node, scope)

    def body(self, nodes: Sequence[onnx.NodeProto], scope: _Scope) -> None:
        for node in nodes:
            self.visited += 1
            if self.visited > _MOST_NODES:
                return
            self.node(node, scope)

    def node(self, node: onnx.NodeProto, scope: _Scope) -> None:
        domain = domain_name(node.domain)
        function = self.functions.get((domain, node.op_type))
        if function is not None:
            self.call(node, function, scope)
            return
        if domain == walk.DEFAULT_DOMAIN:
            _learn_shape(node, scope)
            self.carry(node, scope)
        self.use(node, domain, scope)
        for subgraph in walk.subgraphs(node):
            self.enter(node, subgraph, scope)

    def use(self, node: onnx.NodeProto, domain: str, scope: _Scope) -> None:
        """Note the limit where the node takes the input as an index."""
        if (domain, node.op_type) == (walk.DEFAULT_DOMAIN, "OneHot"):
            if (moved := scope.moved.get(_input(node, 0))) is not None:
                self.limits += [depth - moved for depth in self.values(_input(node, 1), scope)]
            return
        for index, table, axes in _index_uses(node, domain, scope):
            moved = scope.moved.get(_input(node, index))
            sizes = [size for size in scope.shapes.get(_input(node, table), ())[axes] if size is not None]
            if moved is not None and sizes:
                self.limits.append(min(sizes) - moved)

    def carry(self, node: onnx.NodeProto, scope: _Scope) -> None:
        """Mark the node's outputs where they hold the input's values."""
        if node.op_type in ("Add", "Sub"):
            self.shift(node, scope)
            return
        if node.op_type not in _CARRIERS:
            return
        places = _CARRIERS[node.op_type]
        names = list(node.input) if places is None else [_input(node, place) for place in places]
        moved = [scope.moved[name] for name in names if name in scope.moved]
        if moved:
            # Where(x < 0, x + rows, x) makes negative indices count from the end: the part that was not moved counts.
            most = min(moved) if node.op_type == "Where" else max(moved)
            scope.moved.update(dict.fromkeys(filter(None, node.output), most))

    def shift(self, node: onnx.NodeProto, scope: _Scope) -> None:
        first, second = _input(node, 0), _input(node, 1)
        if node.op_type == "Add" and second in scope.moved:
            first, second = second, first
        constant = self.values(second, scope)
        if first in scope.moved and constant and node.output:
            by = max(constant) if node.op_type == "Add" else -min(constant)
            scope.moved[node.output[0]] = scope.moved[first] + by

    def values(self, name: str, scope: _Scope) -> list[int]:
        """The whole numbers of a constant; none where it is unknown or has fractions."""
        tensor = scope.constants.get(name)
        if tensor is None:
            return []
        try:
            array = to_array(self.model, tensor)
        except ModelError:
            return []
        return [int(x) for x in array.ravel()] if np.issubdtype(array.dtype, np.integer) else []

    def enter(self, node: onnx.NodeProto, subgraph: onnx.GraphProto, scope: _Scope) -> None:
        inner = scope.inside()
        start = _BOUNDARIES.get(node.op_type)
        if start is not None:
            _hand_over(node.input[start:], [info.name for info in subgraph.input][start:], scope, inner)
        self.graph(subgraph, inner)
        if node.op_type == "If":
            _hand_over([info.name for info in subgraph.output], node.output, inner, scope)

    def call(self, node: onnx.NodeProto, function: onnx.FunctionProto, scope: _Scope) -> None:
        key = (domain_name(function.domain), function.name)
        carries = any(name in scope.moved for name in node.input)
        # A function that calls itself is not allowed, and would not end; nor are a thousand in a line followed.
        if not carries or key in self.calls or len(self.calls) >= _MOST_CALLS:
            return
        self.calls.add(key)
        inner = _Scope()
        _hand_over(node.input, function.input, scope, inner)
        self.body(function.node, inner)
        _hand_over(function.output, node.output, inner, scope)
        self.calls.remove(key)


def _hand_over(names: Sequence[str], others: Sequence[str], source: _Scope, target: _Scope) -> None:
    """Make what is known of ``names`` known of ``others``, place by place."""
    pairs = [(name, other) for name, other in zip(names, others, strict=False) if name and other]
    _copy(pairs, source.moved, target.moved)
    _copy(pairs, source.shapes, target.shapes)
    _copy(pairs, source.constants, target.constants)


def _copy(pairs: Sequence[tuple[str, str]], source: Mapping[str, T], target: MutableMapping[str, T]) -> None:
    for name, other in pairs:
        if name in source:
            target[other] = source[name]


def _learn(scope: _Scope, name: str, tensor: onnx.TensorProto) -> None:
    scope.constants[name] = tensor
    scope.shapes[name] = tuple(tensor.dims)


def _learn_shape(node: onnx.NodeProto, scope: _Scope) -> None:
    """Know the shape of a node's output where that needs no arithmetic."""
    if not node.output or not node.output[0]:
        return
    if node.op_type == "Constant":
        for attribute in node.attribute:
            if attribute.name == "value":
                _learn(scope, node.output[0], attribute.t)
            elif attribute.name in ("value_int", "value_ints"):
                values = [attribute.i] if attribute.name == "value_int" else list(attribute.ints)
                _learn(
                    scope, node.output[0], onnx.helper.make_tensor("", onnx.TensorProto.INT64, [len(values)], values)
                )
    shape = scope.shapes.get(_input(node, 0))
    if shape is None:
        return
    if node.op_type in _ELEMENTWISE:
        other = scope.shapes.get(_input(node, 1))
        if other is not None and (broadcast := _broadcast(shape, other)) is not None:
            scope.shapes[node.output[0]] = broadcast
    elif node.op_type in _SAME_SHAPE:
        scope.shapes[node.output[0]] = shape
    elif node.op_type == "Transpose":
        order = next((list(a.ints) for a in node.attribute if a.name == "perm"), list(range(len(shape)))[::-1])
        if sorted(order) == list(range(len(shape))):
            scope.shapes[node.output[0]] = tuple(shape[axis] for axis in order)


def _broadcast(first: Shape, second: Shape) -> Shape | None:
    """The shape of two operands together; None where it is not known throughout, or they do not fit."""
    if None in first or None in second:
        return None
    try:
        return np.broadcast_shapes(first, second)  # type: ignore[arg-type]  # no None: tested above
    except ValueError:
        return None


def _index_uses(node: onnx.NodeProto, domain: str, scope: _Scope) -> list[tuple[int, int, slice]]:
    """Where a node takes an index: (the input that is the index, the input that is the table, the table's axes)."""
    op_type = node.op_type
    if (domain, op_type) in _EMBEDDINGS:
        return [(index, table, slice(0, 1)) for index, table in _EMBEDDINGS[domain, op_type].items()]
    if domain == walk.DEFAULT_DOMAIN and op_type in ("Gather", "GatherElements", "ScatterElements", "Scatter"):
        return [(1, 0, _one(_integer(node, "axis", 0)))]
    if domain == "com.microsoft" and op_type == "GatherBlockQuantized":
        return [(1, 0, _one(_integer(node, "gather_axis", 0)))]
    if domain == walk.DEFAULT_DOMAIN and op_type in ("GatherND", "ScatterND"):
        first = _integer(node, "batch_dims", 0)
        depth = (scope.shapes.get(_input(node, 1)) or (None,))[-1]
        return [(1, 0, slice(first, None if depth is None else first + depth))]
    if domain == "ai.onnx.ml" and op_type == "ArrayFeatureExtractor":
        return [(1, 0, _one(-1))]
    return []


def _one(axis: int) -> slice:
    return slice(axis, axis + 1 or None)


def _input(node: onnx.NodeProto, place: int) -> str:
    """The name of one input; "" where it is left out, which is the name of nothing."""
    return node.input[place] if place < len(node.input) else ""


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)
