"""What came of a repair: what was tried, what passed, how long it took, what was chosen. It stays in the bundle."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from edgekit.check.providers import GPU
from edgekit.matrix import MatrixRow
from edgekit.records.jsonable import jsonable
from edgekit.records.run_record import RunRecord
from edgekit.records.settings import SessionSettings
from edgekit.records.verdict import VerdictStatus
from edgekit.repair.candidates import Family
from edgekit.runtime_trim import RuntimeSize

FORMAT = 1
WEBGPU = "WebGpuExecutionProvider"  # as onnxruntime spells it


@dataclass(frozen=True)
class Proof:
    """A run of all golden cases in one combination. ``share``: the worst output's error as a share of its tolerance.

    ``later_ms``: the median of its later runs. ``software``: the adapter is, so its times say nothing about a GPU.
    ``elsewhere``: how many nodes WebGPU did not get; None where it is not known, or WebGPU was not used.
    """

    browser: str | None
    variant: str | None
    status: VerdictStatus
    share: float | None
    later_ms: float | None
    software: bool
    note: str | None = None
    elsewhere: int | None = None


@dataclass(frozen=True)
class Tried:
    """A candidate. ``sieved``: whether it passed on single cases; None where it was not tried so.

    ``error``: the largest there, of the output's scale. ``proofs``: of runs on all cases. ``times_ms``: by browser, the
    median of each round. ``failed_cases``: of each combination that failed, one. ``later_ms``: the sum over browsers of
    their medians, by which candidates are compared.
    """

    name: str
    family: Family
    sieved: bool | None
    error: float | None
    sessions: dict[str, SessionSettings]
    variants: tuple[str, ...] | None = None
    proofs: tuple[Proof, ...] = ()
    times_ms: tuple[tuple[str, tuple[float, ...]], ...] = ()
    reason: str | None = None
    failed_cases: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every run of all cases passed, and there was one."""
        return bool(self.proofs) and all(proof.status == "passed" for proof in self.proofs)

    @property
    def elsewhere(self) -> int:
        """How many nodes WebGPU did not get, in the worst proof; those that it was told to leave, where not known."""
        known = [proof.elsewhere for proof in self.proofs if proof.elsewhere is not None]
        return max(known) if known else max((len(one.cpu_nodes) for one in self.sessions.values()), default=0)

    @property
    def later_ms(self) -> float | None:
        return sum(median(times) for _, times in self.times_ms) if self.times_ms else None


@dataclass(frozen=True)
class Repair:
    """``status``: "nothing", all passed as it was; "repaired"; "failed": nothing that was tried passes.

    ``before``, ``after``: the combinations that were asked for, before and after. ``software``: an adapter was, so that
    the times say nothing about a GPU. ``chosen_by``: why this one of what passes.
    ``runtimes``: what became of the runtimes of the repaired bundle, where they are cut; the bundle's own report is
    written before that is known.
    """

    status: Literal["nothing", "repaired", "failed"]
    edgekit_version: str
    bundle_manifest_sha256: str
    before: tuple[Proof, ...]
    tried: tuple[Tried, ...] = ()
    chosen: str | None = None
    after: tuple[Proof, ...] = ()
    runtimes: tuple[RuntimeSize, ...] = ()
    chosen_by: str | None = None

    @property
    def software(self) -> bool:
        return any(proof.software for proof in (*self.before, *self.after))


def to_json(repair: Repair) -> dict[str, Any]:
    """Return it as a JSON value, as the bundle's ``repair.json`` holds it."""
    document: dict[str, Any] = jsonable({"format": FORMAT, **asdict(repair), "software": repair.software})
    for one, said in zip(repair.tried, document["tried"], strict=True):
        said |= {"passed": one.passed, "later_ms": one.later_ms, "elsewhere": one.elsewhere}
    if not repair.runtimes:
        del document["runtimes"]
    return document


def proofs(rows: Sequence[MatrixRow]) -> tuple[Proof, ...]:
    """Return what runs in several combinations proved."""
    return tuple(_proof(row) for row in rows)


def _proof(row: MatrixRow) -> Proof:
    verdict, record = row.result.verdict, row.result.record
    shares = [
        one.metrics.passing_relative / one.tolerance.relative
        for one in verdict.outputs
        if one.metrics is not None and one.tolerance is not None and one.tolerance.relative
    ]
    return Proof(
        row.combination.browser,
        row.combination.variant,
        verdict.status,
        max(shares, default=None),
        later_ms(record),
        is_software(record),
        row.note,
        elsewhere(record),
    )


def later_ms(record: RunRecord | None) -> float | None:
    """Return the median of a record's later runs; None where there are none."""
    return median(record.timings.later_run_ms) if record is not None and record.timings.later_run_ms else None


def elsewhere(record: RunRecord | None) -> int | None:
    """Return how many nodes another execution provider got than WebGPU, where that ran and said so."""
    if record is None or record.placement is None or record.environment.execution_provider != GPU:
        return None
    return sum(placed.node_count for placed in record.placement if placed.execution_provider != WEBGPU)


def is_software(record: RunRecord | None) -> bool:
    """Whether a record's times were taken on the CPU in place of a GPU."""
    if record is None or record.environment.execution_provider != GPU:
        return False
    adapter = record.environment.adapter
    return adapter is not None and adapter.software
