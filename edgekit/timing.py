"""Times in the browser beside times on the desktop of the same machine."""

from dataclasses import dataclass
from statistics import median

from edgekit.records.run_record import RunRecord


@dataclass(frozen=True)
class TimingRow:
    """One line of the timing table, in milliseconds. ``ratio``: browser over desktop. None: not measured."""

    name: str
    browser_ms: float | None
    desktop_ms: float | None
    ratio: float | None


def timing_rows(browser: RunRecord, desktop: RunRecord | None) -> tuple[TimingRow, ...]:
    """Return the steps of ``browser`` that were measured, in the order in which they happen.

    Fetching and compiling the runtime have no counterpart on the desktop. A later run is the median of all of them.
    """
    there, here = _steps(browser), _steps(desktop) if desktop is not None else {}
    return tuple(
        TimingRow(name, there_ms, here.get(name), _ratio(there_ms, here.get(name)))
        for name, there_ms in there.items()
        if there_ms is not None or here.get(name) is not None
    )


def _steps(record: RunRecord) -> dict[str, float | None]:
    timings = record.timings
    later = median(timings.later_run_ms) if timings.later_run_ms else None
    return {
        "fetch": timings.fetch_ms,
        "compile": timings.compile_ms,
        "create session": timings.create_ms,
        "first run": timings.first_run_ms,
        "later run (median)": later,
    }


def _ratio(browser_ms: float | None, desktop_ms: float | None) -> float | None:
    """Return browser over desktop; None where one is missing or the desktop's clock saw nothing."""
    return browser_ms / desktop_ms if browser_ms is not None and desktop_ms else None
