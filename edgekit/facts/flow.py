"""Where values come from: are they constants, computed from shapes alone, or do they depend on what is fed in?

One pass over the nodes as they stand, into branches and bodies. What a model reads before it is computed counts as
data.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import onnx

from edgekit.facts.places import NodePlace, inner_graphs, place
from edgekit.model import walk

Source = Literal["constant", "shapes", "data"]

_ORDER: tuple[Source, ...] = ("constant", "shapes", "data")

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

# The size of what they give depends on the values of these inputs. None: of any input, whatever they hold.
_SIZES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("NonZero", "Compress", "Unique", "NonMaxSuppression", "StringSplit"), None),
    **dict.fromkeys(("Expand", "Tile", "Reshape", "Pad", "TopK", "OneHot", "CenterCropPad", "AffineGrid"), (1,)),
    **dict.fromkeys(("Split", "DFT"), (1,)),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow", "ConstantOfShape"), (0,)),
    "Range": (0, 1, 2),
    "Upsample": (1,),
    "Resize": (2, 3),
    "Slice": (1, 2, 4),
    "STFT": (1, 3),
}


@dataclass(frozen=True)
class ControlFlow:
    """An If, Loop or Scan, and what decides which branch is taken or how often the body runs."""

    at: NodePlace
    op_type: str
    on: Source


@dataclass(frozen=True)
class Flow:
    """``data_sized``: nodes whose output has a size that depends on values; runtimes cannot plan its memory."""

    control_flow: tuple[ControlFlow, ...]
    data_sized: tuple[NodePlace, ...]


def follow(proto: onnx.ModelProto) -> Flow:
    """Follow all values through the main graph, and through function bodies with every argument as data."""
    walker = _Walker()
    walker.graph(proto.graph, "", ChainMap())
    for function in proto.functions:
        sources: ChainMap[str, Source] = ChainMap(dict.fromkeys(function.input, "data"))
        walker.nodes(function.node, function.name, sources)
    return Flow(tuple(walker.control_flow), tuple(walker.data_sized))


def worst(sources: Iterable[Source]) -> Source:
    """Return the source that makes a value depend on most: data over shapes over constants."""
    sources = tuple(sources)
    if "data" in sources:  # mostly
        return "data"
    return max(sources, key=_ORDER.index, default="constant")


@dataclass
class _Walker:
    control_flow: list[ControlFlow] = field(default_factory=list)
    data_sized: list[NodePlace] = field(default_factory=list)

    def graph(
        self, graph: onnx.GraphProto, path: str, outer: ChainMap[str, Source], given: Sequence[Source] = ()
    ) -> list[Source]:
        """Follow one graph; return the sources of its outputs. ``given``: of its inputs, data where there is none."""
        sources = outer.new_child()
        for index, info in enumerate(graph.input):
            sources[info.name] = given[index] if index < len(given) else "data"
        stored = [tensor.name for tensor in graph.initializer] + [s.values.name for s in graph.sparse_initializer]
        sources.update(dict.fromkeys(stored, "constant"))
        self.nodes(graph.node, path, sources)
        return [sources.get(info.name, "data") for info in graph.output]

    def nodes(self, nodes: Iterable[onnx.NodeProto], path: str, sources: ChainMap[str, Source]) -> None:
        for node in nodes:
            inputs = [sources.get(name, "data") if name else "constant" for name in node.input]
            found = self.node(node, path, sources, inputs)
            sources.update(dict.fromkeys(filter(None, node.output), found))

    def node(self, node: onnx.NodeProto, path: str, sources: ChainMap[str, Source], inputs: list[Source]) -> Source:
        if walk.domain_name(node.domain) != walk.DEFAULT_DOMAIN:
            return worst(inputs)
        if any(walk.subgraphs(node)):
            return self.holder(node, path, sources, inputs)
        if node.op_type in RANDOM:
            return "data"
        if node.op_type in ("Shape", "Size"):
            return "constant" if inputs[:1] == ["constant"] else "shapes"
        sizes = _SIZES.get(node.op_type, ())
        if worst(inputs if sizes is None else [inputs[i] for i in sizes if i < len(inputs)]) == "data":
            self.data_sized.append(place(node, path))
        return worst(inputs)

    def holder(self, node: onnx.NodeProto, path: str, sources: ChainMap[str, Source], inputs: list[Source]) -> Source:
        """A node with graphs in it. The states of a loop are data unless nothing is."""
        inner = list(inner_graphs(node, path))
        if node.op_type == "If":
            outputs = [s for _, inner_path, graph in inner for s in self.graph(graph, inner_path, sources)]
            self.control_flow.append(ControlFlow(place(node, path), "If", worst(inputs[:1])))
            return worst([*inputs[:1], *outputs])
        bodies = [self.graph(graph, inner_path, sources) for _, inner_path, graph in inner]
        if node.op_type == "Loop":
            self.control_flow.append(ControlFlow(place(node, path), "Loop", self.trips(node, inputs, bodies)))
        elif node.op_type == "Scan":
            self.control_flow.append(ControlFlow(place(node, path), "Scan", "shapes"))
        return worst([*inputs, *(source for outputs in bodies for source in outputs)])

    def trips(self, node: onnx.NodeProto, inputs: list[Source], bodies: list[list[Source]]) -> Source:
        """What decides how often a Loop runs: the count, the first condition, and the one that the body gives."""
        condition = bodies[0][:1] if bodies else ["data"]
        body = next(walk.subgraphs(node), onnx.GraphProto())
        passed_on = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity" and n.input and n.output}
        told = body.output[0].name if body.output else ""
        if len(body.input) > 1 and body.input[1].name in (told, passed_on.get(told)):
            condition = inputs[1:2]  # it only hands on the condition it was given
        count = inputs[:1] if node.input and node.input[0] else []
        return worst([*count, *inputs[1:2], *condition])


def producers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Map each value of a graph to the node that gives it."""
    return {name: node for node in graph.node for name in node.output if name}


def ancestors(name: str, made_by: dict[str, onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that a value depends on, the nearest first, each once."""
    seen: set[str] = set()
    names = [name]
    while names:
        following: list[str] = []
        for each in names:
            node = made_by.get(each)
            if node is None or node.output[0] in seen:
                continue
            seen.add(node.output[0])
            yield node
            following.extend(node.input)
        names = following
