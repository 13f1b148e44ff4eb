"""What a graph is made of that counts for running it elsewhere: sizes, domains, chance, training, control flow."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import onnx
import onnx.defs

from edgekit.facts import flow
from edgekit.facts.flow import ControlFlow
from edgekit.facts.places import NodePlace, all_graphs, all_nodes, place
from edgekit.facts.types import value_type
from edgekit.model import walk
from edgekit.model.walk import DEFAULT_DOMAIN, domain_name

DomainKind = Literal["standard", "contrib", "training", "local", "custom"]

_STANDARD = {DEFAULT_DOMAIN, "ai.onnx.ml"}
_TRAINING_DOMAINS = {"ai.onnx.training", "ai.onnx.preview.training"}
# Domains of onnxruntime's own operators (docs/ContribOperators.md, core/graph/constants.h).
_CONTRIB = ("com.microsoft", "com.ms.", "org.pytorch.aten")
_TRAINING_ONLY = {"Gradient", "GraphCall", "Adam", "Adagrad", "Momentum"}
_LOSSES = {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}


@dataclass(frozen=True)
class SymbolicDimension:
    """A dimension without a size. ``name``: its symbol, or ``input[axis]``.

    ``inputs``, ``outputs``: where it stands, as "x[0]". ``from_data``: the nodes that decide its size by values, where
    no input has it and such nodes are known.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    from_data: tuple[NodePlace, ...] = ()


@dataclass(frozen=True)
class Domain:
    """A set of operators. ``opset``: the version that the model imports, None where it imports none."""

    name: str
    kind: DomainKind
    opset: int | None
    nodes: int


@dataclass(frozen=True)
class GraphFacts:
    """``unknown``: nodes whose operator neither ONNX nor the model defines, contrib operators of onnxruntime too.

    ``random``: the answer is not deterministic. ``training``: nodes that only make sense in training.
    ``unsorted``: graphs in which a node stands before one whose output it reads. ``shared_names``: names of more than
    one node.
    """

    dimensions: tuple[SymbolicDimension, ...]
    domains: tuple[Domain, ...]
    unknown: tuple[NodePlace, ...]
    random: tuple[NodePlace, ...]
    training: tuple[NodePlace, ...]
    control_flow: tuple[ControlFlow, ...]
    data_sized: tuple[NodePlace, ...]
    unsorted: tuple[str, ...]
    nameless: int
    shared_names: tuple[str, ...]


def look(proto: onnx.ModelProto, opsets: Mapping[str, int]) -> GraphFacts:
    """Look at the graph and everything in it. ``opsets``: by domain, as the model imports them."""
    followed = flow.follow(proto)
    nodes = list(all_nodes(proto))
    names = Counter(node.name for _, node in nodes if node.name)
    local = {(domain_name(function.domain), function.name) for function in proto.functions}
    off = _constant_false(proto)
    return GraphFacts(
        dimensions=tuple(_dimensions(proto.graph, set(followed.data_sized))),
        domains=_domains([node for _, node in nodes], opsets, {domain for domain, _ in local}),
        unknown=tuple(place(node, path) for path, node in nodes if not _is_known(node, opsets, local)),
        random=tuple(place(node, path) for path, node in nodes if _is_random(node, opsets, off)),
        training=tuple(place(node, path) for path, node in nodes if _is_training(node, opsets, off)),
        control_flow=followed.control_flow,
        data_sized=followed.data_sized,
        unsorted=tuple(path or "main graph" for path, graph in all_graphs(proto) if not _is_sorted(graph)),
        nameless=sum(not node.name for _, node in nodes),
        shared_names=tuple(sorted(name for name, count in names.items() if count > 1)),
    )


@lru_cache(maxsize=4096)  # a look-up that finds nothing takes onnx 50 us
def since_version(domain: str, op_type: str, opset: int | None) -> int | None:
    """Return the opset in which an operator got the meaning that it has at ``opset``; None where ONNX has none."""
    if opset is None:
        return None
    try:
        schema = onnx.defs.get_schema(op_type, opset, "" if domain == DEFAULT_DOMAIN else domain)
    except (onnx.defs.SchemaError, TypeError, OverflowError):  # unknown, or numbers beyond what onnx takes
        return None
    return None if schema.deprecated else int(schema.since_version)


def domain_kind(domain: str, local: Iterable[str] = ()) -> DomainKind:
    """Say whose operators a domain holds. ``local``: domains of the model's own functions."""
    if domain in _STANDARD:
        return "standard"
    if domain in _TRAINING_DOMAINS:
        return "training"
    if domain in local:
        return "local"
    return "contrib" if domain.startswith(_CONTRIB) else "custom"


def _dimensions(graph: onnx.GraphProto, data_sized: set[NodePlace]) -> Iterator[SymbolicDimension]:
    stored = {tensor.name for tensor in graph.initializer}
    inputs = _named((info for info in graph.input if info.name not in stored), nameless=True)
    outputs = _named(graph.output, nameless=False)
    made_by = flow.producers(graph)
    for name in dict.fromkeys((*inputs, *outputs)):
        deciding: list[NodePlace] = []
        if name not in inputs:
            before = flow.ancestors(outputs[name][0].rpartition("[")[0], made_by)
            deciding = [at for at in (place(node, "") for node in before) if at in data_sized]
        yield SymbolicDimension(name, tuple(inputs.get(name, ())), tuple(outputs.get(name, ())), tuple(deciding[:3]))


def _named(infos: Iterable[onnx.ValueInfoProto], *, nameless: bool) -> dict[str, list[str]]:
    """Map each symbol to the places where it stands. ``nameless``: what has no symbol is named by its place."""
    found: dict[str, list[str]] = {}
    for info in infos:
        for axis, size in enumerate(value_type(info.type).shape or ()):
            where = f"{info.name}[{axis}]"
            if isinstance(size, str) or (size is None and nameless):
                found.setdefault(size or where, []).append(where)
    return found


def _domains(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int], local: set[str]) -> tuple[Domain, ...]:
    counts = Counter(domain_name(node.domain) for node in nodes)
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(Domain(name, domain_kind(name, local), opsets.get(name), counts[name]) for name in ordered)


def _is_known(node: onnx.NodeProto, opsets: Mapping[str, int], local: set[tuple[str, str]]) -> bool:
    domain = domain_name(node.domain)
    if (domain, node.op_type) in local:
        return True
    # A function body imports opsets of its own; what is unknown to the model's is looked up in the newest there is.
    return since_version(domain, node.op_type, opsets.get(domain, 1 << 20)) is not None


def _is_random(node: onnx.NodeProto, opsets: Mapping[str, int], off: set[str]) -> bool:
    if domain_name(node.domain) != DEFAULT_DOMAIN:
        return False
    return node.op_type in flow.RANDOM or (node.op_type == "Dropout" and _is_training(node, opsets, off))


def _is_training(node: onnx.NodeProto, opsets: Mapping[str, int], off: set[str]) -> bool:
    """Whether a node only makes sense in training. Rules: the operators' own histories (docs/Changelog.md)."""
    domain = domain_name(node.domain)
    if domain in _TRAINING_DOMAINS or node.op_type.endswith(("Grad", "Gradient")):
        return True
    if domain != DEFAULT_DOMAIN:
        return False
    opset = opsets.get(DEFAULT_DOMAIN, 0)
    if node.op_type == "Dropout":
        # Until 6 the attribute is_test says so (0: training); from 12 on the third input does, False where left out.
        mode = node.input[2] if opset >= 12 and len(node.input) > 2 else ""
        return not _attribute(node, "is_test") if opset < 7 else bool(mode) and mode not in off
    if node.op_type == "BatchNormalization":
        if opset < 7:
            return not _attribute(node, "is_test")
        return bool(_attribute(node, "training_mode")) if opset >= 14 else sum(map(bool, node.output)) > 1
    return node.op_type in _TRAINING_ONLY or node.op_type in _LOSSES


def _constant_false(proto: onnx.ModelProto) -> set[str]:
    """The names of constants that are False, in whatever graph they stand."""
    tensors = [(tensor.name, tensor) for _, graph in all_graphs(proto) for tensor in graph.initializer]
    for _, node in all_nodes(proto):
        if node.op_type == "Constant":
            tensors += [(node.output[0], each.t) for each in node.attribute if each.name == "value" and node.output]
    single = [(name, t) for name, t in tensors if t.data_type == onnx.TensorProto.BOOL and list(t.dims) in ([], [1])]
    return {name for name, t in single if not any(t.raw_data) and not any(t.int32_data)}


def _attribute(node: onnx.NodeProto, name: str) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), 0)


def _is_sorted(graph: onnx.GraphProto) -> bool:
    made = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if any(name in made for name in _reads(node)):
            return False
        made.difference_update(node.output)
    return True


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node reads: its inputs, and what the graphs in it take from around them."""
    yield from node.input
    for inner in walk.subgraphs(node):
        own = {info.name for info in inner.input} | {tensor.name for tensor in inner.initializer}
        own.update(name for each in inner.node for name in each.output)
        yield from (name for each in inner.node for name in _reads(each) if name not in own)
        yield from (info.name for info in inner.output if info.name not in own)
