"""Names in a graph: what a node reads, what a graph defines, and a node under other names."""

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx

from edgekit.model import walk


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield each name that a node takes from the scope around it, those that only the graphs in it read too."""
    yield from (name for name in node.input if name)
    for graph in walk.subgraphs(node):
        own = set(defined(graph))
        yield from (info.name for info in graph.output if info.name not in own)
        for inner in graph.node:
            yield from (name for name in reads(inner) if name not in own)


def defined(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield each value name that a graph itself defines, not those of the graphs in it."""
    yield from (info.name for info in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    for node in graph.node:
        yield from (name for name in node.output if name)


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return a copy of ``node`` that reads and gives values by other names, where ``names`` has them."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    _rename(copy, names)
    return copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    for field in (node.input, node.output):
        field[:] = [names.get(name, name) for name in field]
    for graph in walk.subgraphs(node):
        own = set(defined(graph))
        inner = {old: new for old, new in names.items() if old not in own}
        for info in graph.output:
            info.name = inner.get(info.name, info.name)
        for each in graph.node:
            _rename(each, inner)


class Namer:
    """Gives names that no value (or node) of a model has."""

    def __init__(self, taken: Iterator[str]) -> None:
        self._count = Counter(taken)

    def fresh(self, base: str) -> str:
        """Return a name that nothing has: ``base`` itself, or with a number."""
        name, number = base, 2
        while self._count[name]:
            name, number = f"{base}__{number}", number + 1
        self._count[name] = 1
        return name

    def moved(self, name: str) -> str:
        """Return the name for a value that leaves its graph: its own where no other had it and none took it before."""
        if self._count[name] == 1:
            self._count[name] = 2
            return name
        return self.fresh(name)


def value_names(proto: onnx.ModelProto) -> Namer:
    """Return what names new values of a model."""
    return Namer(name for graph in walk.all_graphs(proto) for name in defined(graph))


def node_names(proto: onnx.ModelProto) -> Namer:
    """Return what names new nodes of a model."""
    return Namer(node.name for node in walk.all_nodes(proto) if node.name)
