"""Where in a model something is: a node, the graph it stands in."""

from collections.abc import Iterator
from dataclasses import dataclass

import onnx


@dataclass(frozen=True)
class NodePlace:
    """A node. ``node``: its name, or "→ output" where it has none. ``graph``: "" for the main one, else its path."""

    op_type: str
    node: str
    graph: str


def place(node: onnx.NodeProto, graph: str) -> NodePlace:
    """Say where a node is."""
    return NodePlace(node.op_type, label(node), graph)


def label(node: onnx.NodeProto) -> str:
    """Name a node for a person: by its name, or by what it gives."""
    return node.name or f"→ {next(filter(None, node.output), 'nothing')}"


def inner_graphs(node: onnx.NodeProto, path: str) -> Iterator[tuple[str, str, onnx.GraphProto]]:
    """Yield the graphs that a node holds: the attribute, the graph's path, the graph."""
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.HasField("g") else []
        for graph in (*graphs, *attribute.graphs):
            own = f"{label(node).removeprefix('→ ')}.{attribute.name}"
            yield attribute.name, f"{path}/{own}" if path else own, graph


def all_graphs(proto: onnx.ModelProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Yield every graph with its path: the main one as "", nested ones, those in function bodies."""
    yield from _from("", proto.graph)
    for function in proto.functions:
        for node in function.node:
            for _, path, graph in inner_graphs(node, function.name):
                yield from _from(path, graph)


def all_nodes(proto: onnx.ModelProto) -> Iterator[tuple[str, onnx.NodeProto]]:
    """Yield every node with the path of its graph; those of a function's body once, under the function's name."""
    for path, graph in all_graphs(proto):
        for node in graph.node:
            yield path, node
    for function in proto.functions:
        for node in function.node:
            yield function.name, node


def _from(path: str, graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    yield path, graph
    for node in graph.node:
        if node.attribute:
            for _, inner, subgraph in inner_graphs(node, path):
                yield from _from(inner, subgraph)
