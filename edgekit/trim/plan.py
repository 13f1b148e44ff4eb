"""What trimming did: each pass, what it changed, and how that was proven."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekit.records.jsonable import jsonable

FORMAT = 1

# identical: every output of every case has the same bits. rounding: outputs differ, by what ``difference`` says.
# structural: nothing could be run, and the pass cannot change an answer. undone: outputs differed, or the runtime
# refused the result; the pass is not in the output. failed: the pass itself could not be done.
Proof = Literal["identical", "rounding", "structural", "undone", "failed"]


@dataclass(frozen=True)
class PassRecord:
    """One pass that changed the model, or was tried and undone.

    ``bytes``: graph and weights. ``difference``: the largest change of any output, relative to that output's scale.
    ``reason``: why the pass was undone or failed.
    """

    name: str
    nodes_before: int
    nodes_after: int
    bytes_before: int
    bytes_after: int
    proof: Proof
    difference: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ProofCase:
    """A golden case that passes were proven with. ``weak``: why it proves little; empty for a strong one."""

    id: str
    origin: str
    weak: tuple[str, ...]


@dataclass(frozen=True)
class OutputFile:
    """A file that was written: its name, bytes and hash."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Plan:
    """What one run of ``trim`` did.

    ``bytes_before`` and ``bytes_after``: of all files, weights included. ``proof``: of the output as a whole;
    "structural" when nothing could be run. ``difference``: see ``PassRecord``. ``notes``: what a user should know.
    """

    model: str
    model_sha256: str
    files: tuple[OutputFile, ...]
    nodes_before: int
    nodes_after: int
    bytes_before: int
    bytes_after: int
    proof: Proof
    difference: float | None
    runtime: str
    passes: tuple[PassRecord, ...]
    cases: tuple[ProofCase, ...]
    notes: tuple[str, ...]


def to_json(plan: Plan) -> Mapping[str, Any]:
    """Return the plan as a JSON value."""
    document: Mapping[str, Any] = jsonable({"format": FORMAT, **asdict(plan)})
    return document
