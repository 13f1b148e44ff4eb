"""Rules on weights in files beside the model."""

from collections.abc import Iterator

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import ExternalKind, Subject


def _hits(subject: Subject, kind: ExternalKind) -> Iterator[Hit]:
    for problem in subject.evidence.external:
        if problem.kind == kind:
            yield Hit(problem.message, tensor=problem.tensor, fix=problem.fix)


@rule("external-data-missing", "error")
def missing(subject: Subject) -> Iterator[Hit]:
    """A file of weights is not there."""
    yield from _hits(subject, "missing")


@rule("external-data-short", "error")
def short(subject: Subject) -> Iterator[Hit]:
    """A file of weights is too short."""
    yield from _hits(subject, "short")


@rule("external-data-outside", "error")
def outside(subject: Subject) -> Iterator[Hit]:
    """Weights lie outside the model's folder."""
    yield from _hits(subject, "outside")


@rule("external-data-malformed", "error")
def malformed(subject: Subject) -> Iterator[Hit]:
    """The entries that say where weights lie make no sense."""
    yield from _hits(subject, "malformed")
