"""Look for what is known to be answered wrongly in the nodes of a model."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edgekit.known import entries, patterns
from edgekit.known.entries import Cure, Entry, Knowledge
from edgekit.known.features import NodeFacts, features


@dataclass(frozen=True)
class Match:
    """A node that a known pattern fits."""

    node: NodeFacts
    entry: Entry

    @property
    def cures(self) -> tuple[Cure, ...]:
        """The changes that were measured to make such nodes right."""
        return tuple(cure for cure in self.entry.cures if cure.cures)


def matches(nodes: Iterable[NodeFacts], package: str, version: str, variant: str) -> tuple[Match, ...]:
    """Return which nodes a build is known to answer wrongly; none where nobody looked.

    A condition on what is not known of a node (a shape) does not hold.
    """
    known = entries.load(package, version, variant)
    return () if known is None else tuple(of_knowledge(nodes, known))


def of_knowledge(nodes: Iterable[NodeFacts], known: Knowledge) -> Iterator[Match]:
    """Yield what of one build's knowledge fits the nodes."""
    for node in nodes:
        found = None
        for entry in known.entries:
            if fits(node, entry.operators):
                found = features(node) if found is None else found
                if patterns.holds(entry.conditions, found):
                    yield Match(node, entry)


def fits(node: NodeFacts, operators: tuple[str, ...]) -> bool:
    """Whether a node is the first of ``operators``, and the others follow it."""
    return node.operator == operators[0] and set(operators[1:]) <= node.then
