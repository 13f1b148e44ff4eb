"""Patterns over the features of a node: conditions that must all hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from edgekit.known.features import Scalar

Test = Literal["is", "is not", "multiple of", "no multiple of", "above", "below"]


@dataclass(frozen=True, order=True)
class Condition:
    """One condition on a feature: ``Condition("input channels", "multiple of", 3)``."""

    feature: str
    test: Test
    value: Scalar

    def holds(self, features: Mapping[str, Scalar]) -> bool:
        """Whether it holds; False where the feature is not known."""
        found = features.get(self.feature)
        if found is None:
            return False
        if self.test in ("is", "is not"):
            return (found == self.value and isinstance(found, bool) == isinstance(self.value, bool)) == (
                self.test == "is"
            )
        if isinstance(found, (str, bool)) or isinstance(self.value, (str, bool)):
            return False
        if self.test == "above":
            return found > self.value
        if self.test == "below":
            return found < self.value
        return (found % self.value == 0) == (self.test == "multiple of")

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            is_true = self.value == (self.test == "is")
            return self.feature if is_true else f"not {self.feature}"
        words = {"is": "", "is not": "not ", "multiple of": "a multiple of ", "no multiple of": "no multiple of "}
        return f"{self.feature} {words.get(self.test, f'{self.test} ')}{self.value}"


def holds(conditions: Sequence[Condition], features: Mapping[str, Scalar]) -> bool:
    """Whether every condition holds of a node's features."""
    return all(condition.holds(features) for condition in conditions)


def text(conditions: Sequence[Condition]) -> str:
    """Say a pattern in one line."""
    return "; ".join(map(str, conditions)) or "always"


def to_json(conditions: Sequence[Condition]) -> list[list[Any]]:
    """Return the conditions as a JSON value."""
    return [[each.feature, each.test, each.value] for each in conditions]


def from_json(document: Sequence[Sequence[Any]]) -> tuple[Condition, ...]:
    """Undo ``to_json``."""
    return tuple(Condition(*each) for each in document)
