"""The facts of every node of a user's model, from what shape inference in a child process found out."""

from collections.abc import Iterator
from functools import partial

from onnx import GraphProto

from edgekit.facts import shapes, strip
from edgekit.facts.shapes import Scope, ShapeTable
from edgekit.known import read
from edgekit.known.features import Given, NodeFacts
from edgekit.model import walk
from edgekit.model.io import LoadedModel


def nodes(model: LoadedModel, table: ShapeTable) -> Iterator[NodeFacts]:
    """Yield the facts of each node, of the graphs within nodes too, with local functions inlined as in ``table``."""
    held = {
        tensor.name: read.constant(tensor) for graph in walk.all_graphs(model.proto) for tensor in graph.initializer
    }
    for node in walk.all_nodes(model.proto):
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value" and node.output:
                held[node.output[0]] = read.constant(attribute.t)
    opsets = {walk.domain_name(entry.domain): entry.version for entry in table.inlined.opset_import}
    for graph, scope in _graphs(table.inlined.graph, ()):
        followers = read.followers_of(graph.node)
        for node in graph.node:
            if node.domain == strip.STRIPPED_DOMAIN:  # it stands for a weight
                continue
            yield read.node_facts(node, opsets, partial(_look, table, held, scope), followers)


def _graphs(graph: GraphProto, scope: Scope) -> Iterator[tuple[GraphProto, Scope]]:
    yield graph, scope
    for _, inner, subgraph in shapes.nested(graph.node, scope):
        yield from _graphs(subgraph, inner)


def _look(table: ShapeTable, held: dict[str, Given], scope: Scope, name: str) -> Given:
    if name in held:
        return held[name]
    known = table.look(name, scope)
    if known is None or known.shape is None:
        return Given(None if known is None else known.dtype)
    return Given(known.dtype, tuple(size if isinstance(size, int) else None for size in known.shape))
