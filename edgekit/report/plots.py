"""The numbers behind a report's figures: errors against the reference, latencies, and the start of a session.

Figures get few numbers, chosen so that nothing bad is lost; what they show is also said in words and in tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.records.run_record import RunRecord, Timings
from edgekit.records.tensors import Value
from edgekit.records.verdict import OutputVerdict
from edgekit.report import words
from edgekit.report.entry import Entry
from edgekit.report.page import ErrorPlot, LatencyRow, Span
from edgekit.steadiness import first_outputs

_MOST_PLOTS = 8  # of one run; further outputs have their rows in the tables
_POINTS, _LEAST, _MOST = 16_000, 60, 400  # on a page, and in one figure
_LATENCIES = 200
_LARGEST = 1e300  # a larger error is drawn as this: an axis needs numbers
# Of what is allowed. Errors beyond these, and none at all, are drawn here.
_FLOOR, _CEILING = 1e-6, 1e9

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Errors:
    """Elements of one output over all cases. ``allowed``: 0 where they had to be equal."""

    reference: Floats
    error: Floats
    allowed: Floats
    cases: int
    not_finite: int


def points_each(entries: Sequence[Entry]) -> int:
    """Return how many points a figure may have, so that a page of many figures stays small."""
    figures = sum(min(_MOST_PLOTS, len({output.output for output in entry.verdict.outputs})) for entry in entries)
    return max(_LEAST, min(_MOST, _POINTS // max(1, figures)))


def error_plots(entry: Entry, outputs: Sequence[OutputVerdict], points: int) -> tuple[ErrorPlot, ...]:
    """Return a figure for each output (the first of ``outputs`` first) of which numbers were compared."""
    golden = {} if entry.case_set is None else {case.id: case for case in entry.case_set.cases}
    given = first_outputs(entry.record)
    by_name: dict[str, list[OutputVerdict]] = {}
    for output in outputs:
        by_name.setdefault(output.output, []).append(output)
    found: list[ErrorPlot] = []
    for name, members in by_name.items():
        compared = []
        for output in members:
            case, value = golden.get(output.case), given.get(output.case, {}).get(name)
            reference = next((value for value in case.outputs if value.name == name), None) if case else None
            if output.metrics is not None and case is not None and reference is not None and value is not None:
                compared.append((output, case.defined(reference), case.defined(value)))
        if compared and (errors := _errors(compared)) is not None and len(found) < _MOST_PLOTS:
            found.append(_error_plot(name, members[0].dtype, errors, points))
    return tuple(found)


def _errors(compared: Sequence[tuple[OutputVerdict, Value, Value]]) -> _Errors | None:
    """Gather the elements; None where they are no numbers."""
    references, errors, allowances, total = [], [], [], 0
    for output, reference, value in compared:
        if reference.array is None or value.array is None or reference.array.shape != value.array.shape:
            continue
        if "string" in (reference.dtype, value.dtype):
            return None
        there, here = (array.ravel().astype(np.float64) for array in (reference.array, value.array))
        finite = np.isfinite(there) & np.isfinite(here)
        total += there.size
        there, here = there[finite], here[finite]
        scale = output.metrics.scale if output.metrics else 0.0
        allowed = output.tolerance.absolute + output.tolerance.relative * scale if output.tolerance else 0.0
        references.append(there)
        with np.errstate(over="ignore"):
            errors.append(np.minimum(np.abs(here - there), _LARGEST))
        allowances.append(np.full(there.size, allowed))
    if not total:
        return None
    joined = np.concatenate(references), np.concatenate(errors), np.concatenate(allowances)
    return _Errors(*joined, cases=len(references), not_finite=total - joined[0].size)


def _error_plot(name: str, dtype: str, errors: _Errors, points: int) -> ErrorPlot:
    """Draw errors as multiples of what is allowed; where nothing is, as they are, and only those that are not 0."""
    relative = bool((errors.allowed > 0).any())
    shown = errors.allowed > 0 if relative else errors.error > 0
    x, y = errors.reference[shown], errors.error[shown]
    if relative:
        with np.errstate(over="ignore"):
            y = np.clip(y / errors.allowed[shown], _FLOOR, _CEILING)
    chosen = _chosen(x, y, points)
    said = _counted(errors) + (_shares(errors) if relative else _differences(errors))
    if errors.not_finite:
        said += f"; {errors.not_finite:,} are NaN or infinite and not drawn"
    return ErrorPlot(name, dtype, _text(x[chosen]), _text(y[chosen]), relative, said)


def _chosen(x: Floats, y: Floats, points: int) -> NDArray[np.intp]:
    """Choose elements in the order of ``x``: of each of many stretches the largest and the middle ``y``."""
    order = np.argsort(x, kind="stable")
    if order.size <= points:
        return order
    kept = []
    for stretch in np.array_split(order, points // 2):
        ranked = stretch[np.argsort(y[stretch], kind="stable")]
        kept += [ranked[len(ranked) // 2], ranked[-1]]
    found = np.unique(np.array(kept))
    return found[np.argsort(x[found], kind="stable")]


def _counted(errors: _Errors) -> str:
    count, exact = errors.error.size + errors.not_finite, int((errors.error == 0).sum())
    values = f"{count:,} value{'s' if count != 1 else ''} in {errors.cases} case{'s' if errors.cases != 1 else ''}"
    return f"{values}, {'all' if exact == count else f'{exact:,}'} exactly equal"


def _shares(errors: _Errors) -> str:
    if not (errors.error > 0).any():
        return ""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = np.where(errors.error == 0, 0.0, errors.error / errors.allowed)
    half, most, worst = (words.multiple(float(v)) for v in np.quantile(shares, (0.5, 0.99, 1.0), method="higher"))
    return f"; of what is allowed, half take up to {half}, 99 % up to {most}, the worst {worst}"


def _differences(errors: _Errors) -> str:
    differ = errors.error > 0
    return f"; any error is too much, and the largest is {words.number(float(errors.error.max()))}" * bool(differ.any())


def _text(numbers: Floats) -> str:
    return " ".join(f"{number:.4g}" for number in numbers)


def latency_rows(record: RunRecord | None, desktop: RunRecord | None) -> tuple[LatencyRow, ...]:
    """Return the times of runs, a row for each series of them; empty where fewer than two were timed."""
    if record is None:
        return ()
    named = [("Browser, after the first run", record.timings.later_run_ms)]
    if record.soak is not None:
        named.append((f"Browser, many runs of case {record.soak.id}", record.soak.run_ms))
    if not any(len(times) > 1 for _, times in named):
        return ()
    if desktop is not None:
        named.append(("Desktop, after the first run", desktop.timings.later_run_ms))
    return tuple(_latency_row(name, times) for name, times in named if len(times) > 1)


def _latency_row(name: str, times: Sequence[float]) -> LatencyRow:
    ordered = np.sort(np.asarray(times, np.float64))
    fastest, middle, late, slowest = (
        words.milliseconds(float(value)) for value in np.quantile(ordered, (0.0, 0.5, 0.95, 1.0))
    )
    count = ordered.size
    if count > _LATENCIES:
        ordered = np.quantile(ordered, np.linspace(0, 1, _LATENCIES), method="nearest")
    return LatencyRow(name, f"{count:,}", fastest, middle, late, slowest, _text(ordered))


def spans(timings: Timings) -> tuple[dict[str, Span], float]:
    """Return when each step of a start begins and how long it takes, by its name in ``timing_rows``, and their sum.

    Places are in per cent of the sum, which is in milliseconds and 0 where nothing was measured.
    """
    steps = {
        "fetch": timings.fetch_ms,
        "compile": timings.compile_ms,
        "create session": timings.create_ms,
        "first run": timings.first_run_ms,
    }
    total = sum(time for time in steps.values() if time is not None)
    if total <= 0:
        return {}, 0.0
    found, before = {}, 0.0
    for name, time in steps.items():
        if time is not None:
            label = f"{name}: from {words.milliseconds(before)} to {words.milliseconds(before + time)}"
            length = max(0.5, 100 * time / total)
            found[name] = Span(round(min(100 - length, 100 * before / total), 2), round(length, 2), label)
            before += time
    return found, total
