"""A model as panels to draw: one for the main graph, one for each branch, body and local function.

Weights are not drawn as nodes: they stand in the description of the node that reads them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import onnx

from edgekit.facts.graph import domain_kind
from edgekit.facts.places import label
from edgekit.facts.shapes import Scope, ShapeTable, nested
from edgekit.facts.strip import reads
from edgekit.facts.types import ValueType, value_type
from edgekit.model.walk import DEFAULT_DOMAIN, domain_name, graphs
from edgekit.records.run_record import PlacedNode
from edgekit.report.placement import Matched, Placement, provider_name

Status = Literal["wrong", "right", "suspect", "idle"]

_FAMILIES: dict[str, tuple[str, ...]] = {
    "convolution": ("Conv", "ConvTranspose", "ConvInteger", "DeformConv", "FusedConv", "QLinearConv"),
    "matrix product": ("MatMul", "Gemm", "Einsum", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "MatMulNBits"),
    "recurrent": ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"),
    "attention": ("Attention", "MultiHeadAttention", "GroupQueryAttention", "RotaryEmbedding"),
    "activation": (
        "Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "Gelu",
        "HardSigmoid", "HardSwish", "Softplus", "Softsign", "Mish", "Swish", "Clip", "ThresholdedRelu", "Hardmax",
        "FastGelu", "QuickGelu", "BiasGelu",
    ),
    "normalization": (
        "BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization",
        "LRN", "LpNormalization", "MeanVarianceNormalization", "SkipLayerNormalization",
        "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization", "Normalizer",
    ),
    "pooling and sums": (
        "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "GlobalLpPool", "ReduceMean",
        "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
        "ReduceSumSquare", "ArgMax", "ArgMin", "CumSum", "TopK", "MaxRoiPool", "RoiAlign",
    ),
    "shape and movement": (
        "Reshape", "Transpose", "Concat", "Split", "Slice", "Gather", "GatherElements", "GatherND", "ScatterElements",
        "ScatterND", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "Pad", "Shape", "Size", "Identity", "Resize",
        "Upsample", "DepthToSpace", "SpaceToDepth", "Range", "ConstantOfShape", "NonZero", "Compress", "Where",
        "OneHot", "Trilu", "GridSample", "EyeLike", "ReverseSequence", "Dropout", "Constant",
    ),
    "quantization and casts": (
        "Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "BitCast",
    ),
    "control flow": ("If", "Loop", "Scan"),
}  # fmt: skip
_FAMILY_OF = {op_type: family for family, op_types in _FAMILIES.items() for op_type in op_types}
ARITHMETIC, CUSTOM = "arithmetic and logic", "custom or function"
FAMILIES = (*_FAMILIES, ARITHMETIC, CUSTOM)

_FUNCTION: Scope = ("\0function",)  # where the body of a local function is
_MOST_LISTED = 16  # numbers of an attribute, in the description of a node


@dataclass(frozen=True)
class Box:
    """A node, an input or an output to be drawn. ``family``: "" for inputs and outputs. ``about``: lines to read.

    ``opens``: numbers of the panels with the graphs that it holds. ``provider``: where a record says that it ran.
    """

    kind: Literal["node", "input", "output"]
    title: str
    name: str
    shape: str
    family: str
    status: Status
    about: tuple[tuple[str, str], ...]
    opens: tuple[int, ...] = ()
    provider: str | None = None


@dataclass(frozen=True)
class Panel:
    """One graph to draw. ``edges`` join the places of boxes. ``parent``: number of the panel that holds it."""

    number: int
    title: str
    parent: int | None
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Marks:
    """What a run record says of the main graph's outputs: the names of those that are wrong, and right.

    ``placement``: what it says of where nodes ran; None: nothing.
    """

    wrong: frozenset[str] = frozenset()
    right: frozenset[str] = frozenset()
    placement: Placement | None = None

    def __bool__(self) -> bool:
        return bool(self.wrong or self.right)

    def status(self, output: str) -> Status:
        """Return what is said of one output."""
        return "wrong" if output in self.wrong else "right" if output in self.right else "idle"


def panels(proto: onnx.ModelProto, table: ShapeTable | None, marks: Marks) -> tuple[Panel, ...]:
    """Lay a model out in panels, the main graph first. ``table``: types to show, where shape inference found them."""
    maker = _Maker(proto, table, marks)
    maker.graph(proto.graph, (), "main graph", None, statuses(proto.graph, marks))
    bodies = {(domain_name(function.domain), function.name): function for function in proto.functions}
    for key, number in maker.functions.items():
        maker.function(bodies[key], number)
    return tuple(sorted(maker.done, key=lambda panel: panel.number))


def match_placement(proto: onnx.ModelProto, marks: Marks) -> Matched:
    """Find out where the nodes of the main graph and of those nested in it ran.

    The runtime puts the bodies of local functions in place of their calls, under names of its own.
    """
    if marks.placement is None:
        return Matched({}, ())
    return marks.placement.match([_placed(node) for graph in graphs(proto.graph) for node in graph.node])


def _placed(node: onnx.NodeProto) -> PlacedNode:
    return PlacedNode(node.name, node.op_type)


def statuses(graph: onnx.GraphProto, marks: Marks) -> dict[int, Status]:
    """Give nodes, by their place, a status: they give a wrong output, or a right one, or lead to wrong ones only."""
    if not marks:
        return {}
    found: dict[int, Status] = {}
    leads: dict[str, set[str]] = {info.name: {info.name} for info in graph.output}
    for index, node in reversed(list(enumerate(graph.node))):
        reached = set().union(*(leads.get(name, set()) for name in node.output))
        own = set(node.output) & {info.name for info in graph.output}
        if own & marks.wrong:
            found[index] = "wrong"
        elif own & marks.right:
            found[index] = "right"
        elif reached & marks.wrong and not reached & marks.right:
            found[index] = "suspect"
        for name in reads(node):
            leads.setdefault(name, set()).update(reached)
    return found


@dataclass
class _Drawn:
    """The boxes and edges of one graph as they come."""

    boxes: list[Box] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    made_by: dict[str, int] = field(default_factory=dict)


class _Maker:
    def __init__(self, proto: onnx.ModelProto, table: ShapeTable | None, marks: Marks) -> None:
        self.table = table
        self.marks = marks
        self.providers = match_placement(proto, marks).providers
        self.done: list[Panel] = []
        self.count = 0
        self.local = {domain_name(function.domain) for function in proto.functions}
        keys = dict.fromkeys((domain_name(f.domain), f.name) for f in proto.functions)
        self.functions: dict[tuple[str, str], int] = {}
        self.main = self.number()
        for key in keys:
            self.functions[key] = self.number()

    def number(self) -> int:
        self.count += 1
        return self.count

    def graph(
        self, graph: onnx.GraphProto, scope: Scope, title: str, parent: int | None, marked: Mapping[int, Status]
    ) -> int:
        number = self.main if parent is None else self.number()
        stored = {t.name: f"{_dtype(t)} {_axes(t.dims)}, stored" for t in graph.initializer}
        declared = {i.name: value_type(i.type) for i in (*graph.value_info, *graph.input, *graph.output)}
        drawn = _Drawn()
        for info in graph.input:
            if info.name not in stored:
                drawn.made_by[info.name] = len(drawn.boxes)
                drawn.boxes.append(Box("input", info.name, "input", _text(declared[info.name]), "", "idle", ()))
        self.nodes(graph.node, scope, number, drawn, stored, declared, marked)
        for info in graph.output:
            status = self.marks.status(info.name) if parent is None else "idle"
            drawn.boxes.append(Box("output", info.name, "output", _text(declared[info.name]), "", status, ()))
            if info.name in drawn.made_by:
                drawn.edges.append((drawn.made_by[info.name], len(drawn.boxes) - 1))
        self.done.append(Panel(number, title, parent, tuple(drawn.boxes), tuple(dict.fromkeys(drawn.edges))))
        return number

    def function(self, function: onnx.FunctionProto, number: int) -> None:
        drawn = _Drawn()
        for name in function.input:
            drawn.made_by[name] = len(drawn.boxes)
            drawn.boxes.append(Box("input", name, "input", "", "", "idle", ()))
        self.nodes(function.node, _FUNCTION, number, drawn, {}, {}, {})
        for name in function.output:
            drawn.boxes.append(Box("output", name, "output", "", "", "idle", ()))
            if name in drawn.made_by:
                drawn.edges.append((drawn.made_by[name], len(drawn.boxes) - 1))
        title = f"function {domain_name(function.domain)}:{function.name}"
        self.done.append(Panel(number, title, self.main, tuple(drawn.boxes), tuple(dict.fromkeys(drawn.edges))))

    def nodes(
        self,
        nodes: Sequence[onnx.NodeProto],
        scope: Scope,
        number: int,
        drawn: _Drawn,
        stored: dict[str, str],
        declared: Mapping[str, ValueType],
        marked: Mapping[int, Status],
    ) -> None:
        places: list[tuple[onnx.NodeProto, int]] = []
        for index, node in enumerate(nodes):
            if node.op_type == "Constant" and domain_name(node.domain) == DEFAULT_DOMAIN and node.output:
                stored[node.output[0]] = f"{_constant(node)}, stored"
                continue
            opens = [
                self.graph(graph, inner, f"{label(node)} · {inner[-1]}", number, {})
                for _, inner, graph in nested([node], scope)
            ]
            called = self.functions.get((domain_name(node.domain), node.op_type))
            types = _Types(self.table, scope, declared, stored)
            place = len(drawn.boxes)
            ran = self.providers.get(_placed(node)) if scope[:1] != _FUNCTION else None
            placed = (("placed on", provider_name(ran)),) if ran else ()
            drawn.boxes.append(
                Box(
                    "node",
                    node.op_type,
                    label(node),
                    types.say(next(filter(None, node.output), "")),
                    self.family(node),
                    marked.get(index, "idle"),
                    (*_about(node, types), *placed),
                    tuple(opens if called is None else [*opens, called]),
                    ran,
                )
            )
            drawn.made_by.update(dict.fromkeys(filter(None, node.output), place))
            places.append((node, place))
        for node, place in places:  # the nodes may be out of order
            sources = (drawn.made_by.get(name) for name in reads(node))
            drawn.edges += [(source, place) for source in sources if source is not None and source != place]

    def family(self, node: onnx.NodeProto) -> str:
        if (domain_name(node.domain), node.op_type) in self.functions:
            return CUSTOM
        kind = domain_kind(domain_name(node.domain), self.local)
        return _FAMILY_OF.get(node.op_type, CUSTOM if kind in ("custom", "contrib") else ARITHMETIC)


@dataclass(frozen=True)
class _Types:
    """What can be said of a value, as a node in ``scope`` sees it."""

    table: ShapeTable | None
    scope: Scope
    declared: Mapping[str, ValueType]
    stored: Mapping[str, str]

    def say(self, name: str) -> str:
        if name in self.stored:
            return self.stored[name]
        found = self.table.look(name, self.scope) if self.table is not None and self.scope[:1] != _FUNCTION else None
        found = found or self.declared.get(name)
        return "" if found is None else _text(found)


def _about(node: onnx.NodeProto, types: _Types) -> Iterator[tuple[str, str]]:
    domain = domain_name(node.domain)
    yield "operator", node.op_type if domain == DEFAULT_DOMAIN else f"{node.op_type} of {domain}"
    if node.name:
        yield "name", node.name
    for attribute in node.attribute:
        yield attribute.name, attribute_text(attribute)
    for name in node.input:
        yield "input", f"{name}  {types.say(name)}".rstrip() if name else "left out"
    for name in node.output:
        yield "output", f"{name}  {types.say(name)}".rstrip() if name else "left out"


def attribute_text(attribute: onnx.AttributeProto) -> str:
    """Write an attribute's value for a person, shortened."""
    if attribute.ref_attr_name:
        return f"the caller's {attribute.ref_attr_name}"
    if attribute.HasField("t"):
        return f"{_dtype(attribute.t)} {_axes(attribute.t.dims)}"
    if attribute.HasField("g") or attribute.graphs:
        return "a graph"
    for name in ("ints", "floats", "strings"):
        if values := getattr(attribute, name):
            shown = [_value(value) for value in values[:_MOST_LISTED]]
            return "[" + ", ".join(shown) + (f", … {len(values):,} in all]" if len(values) > _MOST_LISTED else "]")
    kinds = onnx.AttributeProto
    scalars = {kinds.INT: attribute.i, kinds.FLOAT: attribute.f, kinds.STRING: attribute.s}
    return _value(scalars[attribute.type]) if attribute.type in scalars else "[]"


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return value[:80].decode(errors="replace")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _constant(node: onnx.NodeProto) -> str:
    return next((attribute_text(attribute) for attribute in node.attribute), "")


def _text(kind: ValueType) -> str:
    if kind.dtype is None:
        return kind.type
    return kind.dtype if kind.shape is None else f"{kind.dtype} {_axes(kind.shape)}"


def _axes(shape: Iterable[int | str | None]) -> str:
    return "[" + ", ".join("?" if size is None or str(size).startswith("unk__") else str(size) for size in shape) + "]"


def _dtype(tensor: onnx.TensorProto) -> str:
    return value_type(onnx.helper.make_tensor_type_proto(tensor.data_type, None)).dtype or "unknown"
