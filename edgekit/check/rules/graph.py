"""Rules on the structure of graphs: names, order, what is missing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import onnx

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Subject, node_name
from edgekit.model import walk

_TRIM = "'edgekit trim MODEL -o OUT' repairs it."
_EXPORT = "The file is damaged, or its exporter is broken. Export the model again."

# A graph, or a function's body: what it is called, the names it is given, its nodes, whether it is the main graph.
_Body = tuple[str, frozenset[str], Sequence[onnx.NodeProto], bool]


def _own(graph: onnx.GraphProto) -> frozenset[str]:
    return frozenset(
        [info.name for info in graph.input]
        + [tensor.name for tensor in graph.initializer]
        + [sparse.values.name for sparse in graph.sparse_initializer]
    )


def _bodies(proto: onnx.ModelProto) -> Iterator[tuple[_Body, frozenset[str]]]:
    """Yield every body, and every name of the bodies around it, those that come later too."""

    def inside(body: _Body, outer: frozenset[str]) -> Iterator[tuple[_Body, frozenset[str]]]:
        yield body, outer
        visible = outer | body[1] | {output for node in body[2] for output in node.output if output}
        for node in body[2]:
            for graph in walk.subgraphs(node):
                what = f"the graph '{graph.name}' inside node '{node_name(node)}'"
                yield from inside((what, _own(graph), graph.node, False), visible)

    yield from inside(("the main graph", _own(proto.graph), proto.graph.node, True), frozenset())
    for function in proto.functions:
        yield from inside(
            (f"the function '{function.name}'", frozenset(function.input), function.node, False), frozenset()
        )


def _captured(node: onnx.NodeProto) -> set[str]:
    """Names that the graphs inside a node take from around it."""
    found: set[str] = set()
    for graph in walk.subgraphs(node):
        made = set(_own(graph)) | {output for inner in graph.node for output in inner.output}
        used = {info.name for info in graph.output}
        for inner in graph.node:
            used |= set(inner.input) | _captured(inner)
        found |= used - made
    return found - {""}


def _needs(node: onnx.NodeProto) -> set[str]:
    return ({*node.input} | _captured(node)) - {""}


def _stuck(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes that can never run: those on a cycle, and those behind it."""
    made_by = {output: place for place, node in enumerate(nodes) for output in node.output if output}
    waits = [{made_by[name] for name in _needs(node) if name in made_by} for node in nodes]
    followers: dict[int, list[int]] = {}
    for place, before in enumerate(waits):
        for each in before:
            followers.setdefault(each, []).append(place)
    ready = [place for place, before in enumerate(waits) if not before]
    done = 0
    left = [len(before) for before in waits]
    while ready:
        place = ready.pop()
        done += 1
        for follower in followers.get(place, ()):
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    return [node for place, node in enumerate(nodes) if left[place]] if done < len(nodes) else []


@rule("cyclic-graph", "error")
def cyclic_graph(subject: Subject) -> Iterator[Hit]:
    """Nodes wait for each other's outputs."""
    for (what, _, nodes, _), _ in _bodies(subject.proto):
        if stuck := _stuck(nodes):
            listed = ", ".join(f"'{node_name(node)}'" for node in stuck[:5])
            yield Hit(f"In {what}, {len(stuck)} nodes wait for each other: {listed}.", node_name(stuck[0]), fix=_EXPORT)


@rule("unsorted-graph", "warning")
def unsorted_graph(subject: Subject) -> Iterator[Hit]:
    """A node stands before one whose output it takes."""
    for (what, given, nodes, main), _ in _bodies(subject.proto):
        if _stuck(nodes):
            continue
        made = {output for node in nodes for output in node.output if output} - given
        seen: set[str] = set()
        for node in nodes:
            if early := sorted(name for name in _needs(node) if name in made and name not in seen):
                consequence = (
                    "onnxruntime sorts the main graph, onnx's checker and other tools refuse it"
                    if main
                    else "onnxruntime sorts only the main graph, and refuses this one"
                )
                yield Hit(
                    f"In {what}, the node takes '{early[0]}' before it is computed: {consequence}.",
                    node_name(node),
                    early[0],
                    _TRIM,
                    None if main else "error",
                )
                break
            seen |= set(node.output)


@rule("missing-value", "error")
def missing_value(subject: Subject) -> Iterator[Hit]:
    """A node takes a value that nothing gives."""
    for (what, given, nodes, _), outer in _bodies(subject.proto):
        known = given | outer | {output for node in nodes for output in node.output}
        for node in nodes:
            for name in sorted({*node.input} - known - {""}):
                yield Hit(
                    f"In {what}, the node takes '{name}', which is no input, no initializer and no node's output.",
                    node_name(node),
                    name,
                    "Where it is a weight, it was lost: export the model again.",
                )


@rule("missing-output", "error")
def missing_output(subject: Subject) -> Iterator[Hit]:
    """A graph's output that nothing gives."""
    graph = subject.proto.graph
    known = _own(graph) | {output for node in graph.node for output in node.output}
    for info in graph.output:
        if info.name not in known:
            yield Hit(f"The model's output '{info.name}' is computed by no node.", tensor=info.name, fix=_EXPORT)


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1 and name]


@rule("duplicate-node-name", "error")
def duplicate_node_name(subject: Subject) -> Iterator[Hit]:
    """Two nodes of a graph share a name."""
    for (what, _, nodes, _), _ in _bodies(subject.proto):
        for name in _twice(node.name for node in nodes):
            yield Hit(f"In {what}, several nodes are named '{name}': onnxruntime refuses that.", name, fix=_TRIM)


@rule("duplicate-value", "error")
def duplicate_value(subject: Subject) -> Iterator[Hit]:
    """Two nodes write the same value."""
    for (what, given, nodes, _), _ in _bodies(subject.proto):
        made = [output for node in nodes for output in node.output if output]
        for name in dict.fromkeys(_twice(made) + [name for name in made if name in given]):
            writer = next(node for node in reversed(nodes) if name in node.output)
            yield Hit(f"In {what}, '{name}' is given more than once.", node_name(writer), name, _EXPORT)
    for name in _twice(tensor.name for tensor in subject.proto.graph.initializer):
        yield Hit(f"Two initializers are named '{name}'.", tensor=name, fix=_EXPORT)


@rule("shadowed-name", "warning")
def shadowed_name(subject: Subject) -> Iterator[Hit]:
    """A nested graph gives a name of the graph around it to another value."""
    for (what, given, nodes, main), outer in _bodies(subject.proto):
        if main:
            continue
        for name in sorted((given | {output for node in nodes for output in node.output if output}) & outer):
            yield Hit(
                f"In {what}, '{name}' hides a value of the same name outside: ONNX does not allow that, and runtimes "
                "differ in which of the two they take.",
                tensor=name,
                fix="Export the model again, or rename one of the two.",
            )


@rule("empty-name", "error")
def empty_name(subject: Subject) -> Iterator[Hit]:
    """Something that needs a name has none."""
    graph = subject.proto.graph
    for kind, names in (
        ("an input", [info.name for info in graph.input]),
        ("an output", [info.name for info in graph.output]),
        ("an initializer", [tensor.name for tensor in graph.initializer]),
    ):
        for place, name in enumerate(names):
            if not name:
                yield Hit(f"The model has {kind} without a name (number {place + 1}).", fix=_EXPORT)
    for node in walk.all_nodes(subject.proto):
        if not node.op_type:
            yield Hit("A node does not say which operator it is.", node_name(node), fix=_EXPORT)


@rule("initializer-is-input", "note")
def initializer_is_input(subject: Subject) -> Iterator[Hit]:
    """A weight is also an input."""
    graph = subject.proto.graph
    stored = {tensor.name for tensor in graph.initializer}
    both = [info.name for info in graph.input if info.name in stored]
    if both:
        yield Hit(
            f"{len(both)} of the model's weights are also inputs ('{both[0]}', ...): a caller may replace them, so "
            "runtimes do not fold or prepack them.",
            tensor=both[0],
            fix=_TRIM.replace("repairs it", "takes them out of the inputs"),
        )
