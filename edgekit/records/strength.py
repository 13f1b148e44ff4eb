"""How strong golden cases are: of many faulty models, how many they would have caught. It travels in the bundle."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekit.records.jsonable import jsonable
from edgekit.records.validate import validated

FORMAT = 1
NAME = "cases/strength.json"

FaultKind = Literal["weight", "bias", "axis", "attribute", "zeroed"]
KINDS: tuple[FaultKind, ...] = ("weight", "bias", "axis", "attribute", "zeroed")


@dataclass(frozen=True)
class KindCount:
    """Faults of one kind that ran, and how many of them a case caught."""

    kind: FaultKind
    ran: int
    caught: int


@dataclass(frozen=True)
class Missed:
    """A fault that no case caught. ``share``: the largest error that it made, in tolerances; 0: it changed nothing."""

    kind: FaultKind
    node: str
    op_type: str
    what: str
    share: float


@dataclass(frozen=True)
class Unwatched:
    """A node of which no fault that ran was caught."""

    node: str
    op_type: str
    faults: int


@dataclass(frozen=True)
class Strength:
    """What ``edgekit.strength`` found, with the tolerances that are in the case set.

    ``possible``: faults that the model can be given; ``tried`` of them were, chosen by ``seed``. Those that the runtime
    ``refused`` are no silent faults and count neither way. ``kinds`` hold the rest. ``missed`` and ``unwatched`` name
    the first hundred at most; ``unwatched_nodes`` of ``watched_nodes + unwatched_nodes`` count all. ``problem``: why
    nothing was measured; None: it was.
    """

    model_sha256: str
    seed: int
    possible: int
    tried: int
    refused: int
    kinds: tuple[KindCount, ...]
    watched_nodes: int
    unwatched_nodes: int
    unwatched: tuple[Unwatched, ...]
    missed: tuple[Missed, ...]
    problem: str | None = None

    @property
    def ran(self) -> int:
        """How many faulty models ran."""
        return sum(count.ran for count in self.kinds)

    @property
    def caught(self) -> int:
        """How many of them a case caught."""
        return sum(count.caught for count in self.kinds)


def unmeasured(model_sha256: str, seed: int, problem: str) -> Strength:
    """Return the strength of cases of which nothing is known, and why."""
    return Strength(model_sha256, seed, 0, 0, 0, (), 0, 0, (), (), problem)


def to_json(strength: Strength) -> dict[str, Any]:
    """Return ``strength.json`` as a JSON value."""
    document: dict[str, Any] = jsonable({"format": FORMAT, **asdict(strength)})
    return document


def from_json(document: Any) -> Strength:
    """Undo ``to_json``. Raises UsageError when the document does not fit its schema."""
    found: Mapping[str, Any] = validated(document, "strength", "strength.json")
    return Strength(
        **{
            **{key: value for key, value in found.items() if key != "format"},
            "kinds": tuple(KindCount(**count) for count in found["kinds"]),
            "unwatched": tuple(Unwatched(**node) for node in found["unwatched"]),
            "missed": tuple(Missed(**{**one, "share": float(one["share"])}) for one in found["missed"]),
        }
    )
