"""Verdicts: what ``edgekit.compare`` concludes from golden cases and a run record."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgekit.records.cases import Reference, Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.records.run_record import Attempt, Environment
from edgekit.records.strength import Strength

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
class SoakResult:
    """What many runs of one case came to. ``drift``: the largest difference of the last run that differed, of scale.

    Times: the median of the first quarter of the runs and of the last. Bytes: after the first quarter, and at the end;
    None where the browser does not say. ``grew``: the runtime's memory grew in between.
    """

    case: str
    asked: int
    runs: int
    different: int
    first_different: int | None
    drift: float
    early_ms: float | None
    late_ms: float | None
    early_bytes: int | None
    late_bytes: int | None
    early_heap_bytes: int | None
    late_heap_bytes: int | None
    grew: bool


@dataclass(frozen=True)
class Steadiness:
    """Whether the device said the same twice. Cases run again in one session, in a new one, and equal in every bit.

    ``furthest``: the largest difference between two runs of a case, relative to the scale of the output, and in
    ``furthest_case`` which that was. ``soak``: None where it was not asked for.
    """

    same_session: int
    same_session_equal: int
    new_session: int
    new_session_equal: int
    furthest: float
    furthest_case: str | None
    soak: SoakResult | None = None


@dataclass(frozen=True)
class LabelChange:
    """A sample (row ``row`` of the output in a case) to which desktop and device give other labels."""

    case: str
    row: int
    label: str
    desktop: str
    device: str


@dataclass(frozen=True)
class LabelResult:
    """The task's own result for one output: how many of ``labelled`` samples desktop and device get right.

    ``changed``: where they differ, whoever is right. ``not_computed``: labelled samples that the device gave nothing
    for; to the device they count as wrong.
    """

    output: str
    labelled: int
    desktop_right: int
    device_right: int
    not_computed: int
    changed: tuple[LabelChange, ...]


@dataclass(frozen=True)
class Verdict:
    """``passed`` needs compared == expected, more than 0, every output a match, and the execution provider asked for.

    ``variant``: the variant that the verdict is of, where that does not run on the execution provider of the target's
    first variant (it was forced, or a fallback was allowed); None: the verdict is of the target itself. In
    ``verdict.json`` a warning says it.
    ``expected`` and ``compared`` count outputs (of every case), without those that no device can give as tensors.
    ``refused``: the runtime did not take the model on the execution provider asked for, whether the outputs are of one
    that it fell back to, or there are none. ``not_run``: nothing was compared, for another reason. ``warnings`` do not
    change the status but must be shown.
    ``steadiness``: whether the device said the same twice; None where nothing ran. ``labels``: the task's own result,
    by output. ``strength``: what the cases are worth; None where nobody measured it.
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
    steadiness: Steadiness | None = None
    labels: tuple[LabelResult, ...] = ()
    strength: Strength | None = None

    @property
    def has_nothing(self) -> bool:
        """Whether nothing ran that could be compared: there is no record, or the runtime refused the model."""
        return self.status == "not_run" or (self.status == "refused" and not self.compared)

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Return ``verdict.json`` as a JSON value. NaN and infinities become the strings "NaN", "Infinity", "-Infinity"."""
    said = asdict(verdict)
    del said["variant"]
    strength = verdict.strength
    said["strength"] = strength and {
        "tried": strength.tried,
        "refused": strength.refused,
        "ran": strength.ran,
        "caught": strength.caught,
        "watched_nodes": strength.watched_nodes,
        "unwatched_nodes": strength.unwatched_nodes,
        "problem": strength.problem,
    }
    document: dict[str, Any] = jsonable({"format": FORMAT, **said})
    return document
