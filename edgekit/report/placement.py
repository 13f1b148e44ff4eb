"""Where the nodes of a model ran: in words, and for the nodes of a drawing."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from edgekit.records.run_record import Environment, Placed, PlacedNode, RunRecord
from edgekit.report.page import PlacementRow

UNKNOWN = "placement unknown"
_GRAPH = "of the optimized graph"
_SUFFIX = "ExecutionProvider"
_CPU = f"CPU{_SUFFIX}"
_WORDS = {f"WebGpu{_SUFFIX}": "WebGPU", _CPU: "the CPU"}
_MOST_OPERATORS, _MOST_LETTERS = 6, 40
# onnxruntime makes a name that is taken its own by such an ending, and names the successor of a node after it.
_TOKEN = re.compile(r"(?:_token_\d+)+$")


def provider_name(execution_provider: str) -> str:
    """Name an execution provider for a person: "WebGPU", "the CPU", or as the runtime spells it, without its suffix."""
    return _WORDS.get(execution_provider, execution_provider.removesuffix(_SUFFIX))


def placement_words(record: RunRecord | None) -> str | None:
    """Say where a record's nodes ran: "87 of 90 nodes of the optimized graph on WebGPU; on the CPU: Gather ×2,
    If ×1; 6 copies".

    That graph is the one that the runtime made: it may have fewer nodes than the model, or more, of which some lay
    tensors out anew.
    ``UNKNOWN`` where the runtime did not tell; None where nothing ran, for then there is nothing to tell.
    """
    if record is None or record.environment.execution_provider is None:
        return None
    if record.placement is None:
        return UNKNOWN
    total = sum(placed.node_count for placed in record.placement)
    main, others = _parts(record.placement, record.environment)
    if not total:
        return "no nodes"
    if not others:
        return f"{_counted(total, 'node', every=True)} {_GRAPH} on {provider_name(main.execution_provider)}"
    copies = sum(placed.copies for placed in record.placement)
    elsewhere = (f"on {provider_name(placed.execution_provider)}: {_operators(placed)}" for placed in others)
    head = f"{main.node_count:,} of {_counted(total, 'node')} {_GRAPH} on {provider_name(main.execution_provider)}"
    return "; ".join([head, *elsewhere, _counted(copies, "copy") if copies else "no copies"])


def fallback(record: RunRecord | None) -> bool:
    """Tell whether some nodes are known to have run elsewhere than on the execution provider that ran the model."""
    return record is not None and bool(record.placement) and bool(_parts(record.placement or (), record.environment)[1])


def placement_rows(record: RunRecord | None) -> tuple[PlacementRow, ...]:
    """Return what each execution provider got, the one that was to run the model first; empty where it is not known."""
    if record is None or not record.placement:
        return ()
    main, others = _parts(record.placement, record.environment)
    total = sum(placed.node_count for placed in record.placement)
    return tuple(
        PlacementRow(
            provider_name(placed.execution_provider),
            "good" if placed is main else "caution",
            f"{placed.node_count:,}",
            round(100 * placed.node_count / total, 1) if total else 0.0,
            f"{placed.copies:,}",
            _operators(placed) if placed.nodes else "",
        )
        for placed in (main, *others)
    )


def _parts(placement: Sequence[Placed], environment: Environment) -> tuple[Placed, list[Placed]]:
    """Split off the part of the provider that was to run the model; it may have got nothing."""
    # A record names what was asked of the page; every name but the GPU's stands for the runtime's CPU provider.
    ran = environment.execution_provider
    asked = next((name for name in _WORDS if name.removesuffix(_SUFFIX).lower() == ran), _CPU)
    main = next((placed for placed in placement if placed.execution_provider == asked), Placed(asked, 0, 0))
    return main, [placed for placed in placement if placed is not main and placed.node_count]


def _counted(number: int, noun: str, *, every: bool = False) -> str:
    if number == 1:
        return f"{'the only' if every else 1} {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{'all ' if every else ''}{number:,} {plural}"


def _operators(placed: Placed) -> str:
    """List the operators of a part, the most frequent first."""
    counts = Counter(node.op_type for node in placed.nodes)
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_OPERATORS]
    parts = [f"{op_type[:_MOST_LETTERS]} ×{count}" for op_type, count in shown]
    left = placed.node_count - sum(count for _, count in shown)
    if left > 0:
        parts.append(f"{left:,} more" if parts else _counted(left, "node"))
    return ", ".join(parts)


@dataclass(frozen=True)
class Placement:
    """A record's placement, to be asked for the nodes of a model. ``words``: what it comes to."""

    parts: tuple[Placed, ...]
    words: str

    def match(self, nodes: Sequence[PlacedNode]) -> "Matched":
        """Find out where each of a model's ``nodes`` ran, and what the runtime made that the model does not have."""
        busy = [part for part in self.parts if part.node_count]
        if len(busy) == 1 and not busy[0].nodes:  # the runtime named none: all are in one place
            return Matched(dict.fromkeys(nodes, busy[0].execution_provider), ())
        wanted = Counter(nodes)
        found: dict[PlacedNode, list[str]] = {}
        others = []
        for part in self.parts:
            for node in part.nodes:
                own = node if node in wanted else replace(node, name=_TOKEN.sub("", node.name))
                if own in wanted:
                    found.setdefault(own, []).append(part.execution_provider)
                else:
                    others.append((part.execution_provider, node))
        # Nodes that share operator and name (often none) cannot be told apart: they have a place when all share it.
        told = {node: at[0] for node, at in found.items() if len(set(at)) == 1 and len(at) >= wanted[node]}
        return Matched(told, tuple(others))


@dataclass(frozen=True)
class Matched:
    """``providers``: of the model's nodes; those that the runtime folded, fused or renamed are missing.

    ``others``: the runtime's nodes, each after its execution provider, that are none of the model's.
    """

    providers: Mapping[PlacedNode, str]
    others: tuple[tuple[str, PlacedNode], ...]


def placement_of(record: RunRecord) -> Placement | None:
    """Return a record's placement; None where it is not known."""
    words = placement_words(record)
    return None if record.placement is None or words is None else Placement(record.placement, words)
