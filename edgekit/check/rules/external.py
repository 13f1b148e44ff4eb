"""Rules on weights in files beside the model."""

from collections.abc import Iterator

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import ExternalKind, Subject


def _hits(subject: Subject, kind: ExternalKind) -> Iterator[Hit]:
    for problem in subject.evidence.external:
        if problem.kind == kind:
            yield Hit(problem.message, tensor=problem.tensor, fix=problem.fix)


@rule("external-data-missing", "error", "A file of weights is not there")
def missing(subject: Subject) -> Iterator[Hit]:
    yield from _hits(subject, "missing")


@rule("external-data-short", "error", "A file of weights is too short")
def short(subject: Subject) -> Iterator[Hit]:
    yield from _hits(subject, "short")


@rule("external-data-outside", "error", "Weights lie outside the model's folder")
def outside(subject: Subject) -> Iterator[Hit]:
    yield from _hits(subject, "outside")


@rule("external-data-malformed", "error", "The entries that say where weights lie make no sense")
def malformed(subject: Subject) -> Iterator[Hit]:
    yield from _hits(subject, "malformed")
