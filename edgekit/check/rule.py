"""What a rule is: an id, a severity, a title, and a pure function from a subject to what it found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edgekit.check.finding import Severity
from edgekit.check.subject import Subject


@dataclass(frozen=True)
class Hit:
    """What a rule found. ``severity`` None: the rule's own."""

    message: str
    node: str | None = None
    tensor: str | None = None
    fix: str | None = None
    severity: Severity | None = None


Find = Callable[[Subject], Iterator[Hit]]


@dataclass(frozen=True)
class Rule:
    """``id`` is the name of its page; ``title`` says in a line what it finds."""

    id: str
    severity: Severity
    title: str
    find: Find


def rule(rule_id: str, severity: Severity, title: str) -> Callable[[Find], Rule]:
    """Make a rule of the function below."""

    def made(find: Find) -> Rule:
        return Rule(rule_id, severity, title, find)

    return made
