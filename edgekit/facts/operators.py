"""The operators that a model uses: how often, in which version, and on which dtypes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx

from edgekit.facts.graph import since_version
from edgekit.facts.shapes import Scope, ShapeTable, nested
from edgekit.facts.strip import STRIPPED_DOMAIN
from edgekit.model import walk
from edgekit.model.walk import DEFAULT_DOMAIN, domain_name


@dataclass(frozen=True)
class OperatorDtypes:
    """The dtypes that some nodes of an operator read and give, each once, in order; "unknown" for what is not told.

    Nodes of local functions count once a call.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: int


@dataclass(frozen=True)
class Operator:
    """How many nodes of one operator the model has.

    ``opset``: the version of the domain that the model imports. ``since``: the version in which the operator got the
    meaning that it has there; None for operators that are not ONNX's. ``local``: the model itself defines it, as a
    function. ``dtypes``: only after shape inference.
    """

    domain: str
    op_type: str
    count: int
    local: bool = False
    opset: int | None = None
    since: int | None = None
    dtypes: tuple[OperatorDtypes, ...] = ()


def operators(proto: onnx.ModelProto, opsets: Mapping[str, int], table: ShapeTable | None) -> tuple[Operator, ...]:
    """List the operators, the most frequent first."""
    counts = Counter((domain_name(node.domain), node.op_type) for node in walk.all_nodes(proto))
    local = {(domain_name(function.domain), function.name) for function in proto.functions}
    dtypes = {} if table is None else _dtypes(table)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Operator(
            domain,
            op_type,
            count,
            local=(domain, op_type) in local,
            opset=opsets.get(domain),
            since=None if (domain, op_type) in local else since_version(domain, op_type, opsets.get(domain)),
            dtypes=dtypes.get((domain, op_type), ()),
        )
        for (domain, op_type), count in ordered
    )


def _dtypes(table: ShapeTable) -> dict[tuple[str, str], tuple[OperatorDtypes, ...]]:
    found: dict[tuple[str, str], Counter[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(Counter)
    for node, scope in _nodes(table.inlined.graph, ()):
        domain = DEFAULT_DOMAIN if node.domain == STRIPPED_DOMAIN else domain_name(node.domain)
        inputs, outputs = _named(table, node.input, scope), _named(table, node.output, scope)
        found[domain, node.op_type][inputs, outputs] += 1
    return {
        key: tuple(OperatorDtypes(inputs, outputs, nodes) for (inputs, outputs), nodes in counts.most_common())
        for key, counts in found.items()
    }


def _nodes(graph: onnx.GraphProto, scope: Scope) -> Iterator[tuple[onnx.NodeProto, Scope]]:
    for node in graph.node:
        yield node, scope
    for _, inner, subgraph in nested(graph.node, scope):
        yield from _nodes(subgraph, inner)


def _named(table: ShapeTable, names: Iterable[str], scope: Scope) -> tuple[str, ...]:
    kinds = [table.look(name, scope) for name in names if name]
    return tuple(dict.fromkeys("unknown" if kind is None else kind.dtype or kind.type for kind in kinds))
