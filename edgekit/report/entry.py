"""One verdict and all that is known beside it: what a report page is made from."""

from dataclasses import dataclass

from edgekit.records.cases import CaseSet
from edgekit.records.manifest import Manifest
from edgekit.records.run_record import RunRecord
from edgekit.records.verdict import Verdict
from edgekit.report import words


@dataclass(frozen=True, eq=False)
class Entry:
    """One verdict and all that is known beside it; ``command`` repeats the run, ``manifest`` is of the bundle."""

    verdict: Verdict
    record: RunRecord | None = None
    desktop: RunRecord | None = None
    case_set: CaseSet | None = None
    command: tuple[str, ...] = ()
    manifest: Manifest | None = None


def label(verdict: Verdict) -> str:
    """Say in a word or two what a verdict is of."""
    return words.subject(verdict) or (verdict.environment.runner if verdict.environment else "no record")
