"""Verdicts: what ``edgekit.compare`` concludes from golden cases and a run record."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekit.records.cases import Reference, Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.records.run_record import Attempt, Environment

FORMAT = 1

OutputStatus = Literal["match", "mismatch", "missing", "wrong_shape", "wrong_dtype", "case_failed", "not_comparable"]
VerdictStatus = Literal["passed", "failed", "refused", "not_run"]


@dataclass(frozen=True)
class Metrics:
    """How far an output is from its reference; arithmetic in float64, over the positions where both are finite.

    ``scale``: the largest magnitude of the reference. ``max_rel``: ``max_abs`` relative to the scale. ``snr_db``:
    infinite for equal outputs. ``first_nonfinite``: the index (row-major) of the first position where one side is NaN
    or infinite and the other is not the same. ``worst_index``: that position, or else that of ``max_abs``.
    ``passing_relative``: the smallest relative tolerance that would have passed (infinite where none would).
    ``top1_agrees``: for outputs that look like scores (last axis 2 or more), the fraction of rows whose largest entry
    is at the same place; ``top1_margin``: the smallest gap between the two largest entries of a reference row,
    relative to the scale: near 0 is near to a tie.
    """

    max_abs: float
    max_rel: float
    rmse: float
    cosine: float
    snr_db: float
    scale: float
    nan_count: int
    inf_count: int
    reference_nan_count: int
    reference_inf_count: int
    first_nonfinite: int | None
    worst_index: tuple[int, ...] | None
    worst_value: float | None
    worst_reference: float | None
    passing_relative: float
    top1_agrees: float | None
    top1_margin: float | None


@dataclass(frozen=True)
class OutputVerdict:
    """One output of one case. ``metrics`` is None where nothing could be compared; ``reason``: why it is no match."""

    case: str
    output: str
    dtype: str
    status: OutputStatus
    tolerance: Tolerance | None = None
    metrics: Metrics | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Verdict:
    """``passed`` needs compared == expected, more than 0, every output a match, and the execution provider asked for.

    ``variant``: the variant that the verdict is of, where that does not run on the execution provider of the target's
    first variant (it was forced, or a fallback was allowed); None: the verdict is of the target itself. In
    ``verdict.json`` a warning says it.
    ``expected`` and ``compared`` count outputs (of every case), without those that no device can give as tensors.
    ``refused``: the runtime could not run the model on the execution provider asked for (the outputs are of the one it
    fell back to). ``not_run``: nothing was compared. ``warnings`` do not change the status but must be shown.
    """

    status: VerdictStatus
    title: str
    target: str | None
    reference: Reference
    environment: Environment | None
    attempts: tuple[Attempt, ...]
    expected: int
    compared: int
    outputs: tuple[OutputVerdict, ...]
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    variant: str | None = None

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Return ``verdict.json`` as a JSON value. NaN and infinities become the strings "NaN", "Infinity", "-Infinity"."""
    said = asdict(verdict)
    del said["variant"]
    document: dict[str, Any] = jsonable({"format": FORMAT, **said})
    return document
