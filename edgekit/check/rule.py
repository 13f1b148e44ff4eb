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
    """``id`` is the name of its page; ``title``, with which the function's docstring begins, says what it finds."""

    id: str
    severity: Severity
    title: str
    find: Find


def rule(rule_id: str, severity: Severity) -> Callable[[Find], Rule]:
    """Make a rule of the function below, whose docstring begins with the rule's title."""

    def made(find: Find) -> Rule:
        title = (find.__doc__ or "").strip().partition("\n")[0]
        return Rule(rule_id, severity, title.removesuffix("."), find)

    return made
