from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from report_samples import DESKTOP, entry, failed, many, nothing_ran, passed, sample

from edgekit.records.cases import Tolerance
from edgekit.records.run_record import CaseRun, SoakRun, Timings
from edgekit.records.tensors import Array, value_of
from edgekit.report.entry import Entry
from edgekit.report.page import ErrorPlot
from edgekit.report.plots import error_plots, latency_rows, points_each, spans


def of(reference: Array, given: Array, **tolerance: Tolerance) -> Entry:
    """Return what is known of one output of one case."""
    case_set, record = sample(cases=1)
    case = replace(case_set.cases[0], outputs=(value_of("y", reference),))
    return entry(
        replace(case_set, cases=(case,), tolerance=tolerance),
        replace(record, cases=(CaseRun(case.id, "done", (value_of("y", given),)),)),
    )


def plots(made: Entry, points: int = 400) -> tuple[ErrorPlot, ...]:
    return error_plots(made, made.verdict.outputs, points)


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def test_errors_are_multiples_of_what_is_allowed_in_the_order_of_the_reference() -> None:
    reference = np.array([4.0, 1.0, 2.0], np.float32)
    given = reference + np.array([0.0, 0.02, 0.004], np.float32)
    (plot,) = plots(of(reference, given, float32=Tolerance(1e-3, 0.004)))  # 0.008 are allowed
    assert numbers(plot.x) == [1, 2, 4]
    assert numbers(plot.y) == pytest.approx([2.5, 0.5, 1e-6], rel=1e-3) and plot.relative
    assert plot.said == (
        "3 values in 1 case, 1 exactly equal; of what is allowed, half take up to 50 %, 99 % up to 250 %, "
        "the worst 250 %"
    )


def test_the_worst_element_is_drawn_of_however_many() -> None:
    rng = np.random.default_rng(3)
    reference = rng.normal(size=5000).astype(np.float32)
    given = reference.copy()
    given[1234] += 1
    (plot,) = plots(of(reference, given, float32=Tolerance(1e-3, 0.0)), points=60)
    x, y = numbers(plot.x), numbers(plot.y)
    assert 30 <= len(x) == len(y) <= 60 and x == sorted(x)
    allowed = 1e-3 * np.abs(reference).max()
    assert max(y) == pytest.approx(1 / allowed, rel=1e-3)
    assert sum(error > 1 for error in y) == 1


def test_what_must_be_equal_shows_only_what_is_not() -> None:
    reference = np.arange(6)
    (equal,) = plots(of(reference, reference))
    assert (equal.x, equal.relative, equal.said) == ("", False, "6 values in 1 case, all exactly equal")
    (other,) = plots(of(reference, np.where(reference == 4, 7, reference)))
    assert (other.x, other.y, other.relative) == ("4", "3", False)
    assert other.said.endswith("5 exactly equal; any error is too much, and the largest is 3")


def test_errors_without_measure_stay_numbers() -> None:
    reference, given = np.array([1.5e308, 1.0]), np.array([-1.5e308, 1.0])
    (plot,) = plots(of(reference, given, float64=Tolerance(0.0, 1e-300)))
    assert numbers(plot.y) == [1e-6, 1e9] and plot.said.endswith("the worst ∞×")
    (exact,) = plots(of(reference, given, float64=Tolerance(0.0, 0.0)))
    assert numbers(exact.y) == [1e300]


def test_what_cannot_be_drawn_is_counted() -> None:
    reference = np.array([1.0, np.nan, np.inf, 2.0], np.float32)
    (plot,) = plots(of(reference, reference, float32=Tolerance(1e-3, 0.0)))
    assert numbers(plot.x) == [1, 2] and plot.said.endswith("; 2 are NaN or infinite and not drawn")


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.bool_, np.uint8, ml_dtypes.bfloat16])
def test_any_real_dtype_can_be_drawn(dtype: type) -> None:
    values = np.array([0, 1, 1], dtype)
    assert len(plots(of(values, values))) == 1


def test_texts_and_what_was_not_compared_have_no_figure() -> None:
    texts = np.array(["a"], object)
    assert plots(of(texts, texts)) == ()
    assert plots(of(np.zeros(2, np.float32), np.zeros(3, np.float32))) == ()
    assert plots(nothing_ran()) == plots(Entry(passed().verdict)) == ()


def test_an_empty_output_has_no_figure() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert plots(of(empty, empty, float32=Tolerance(1e-3, 0.0))) == ()


def test_points_are_fewer_where_figures_are_many() -> None:
    assert points_each([passed()]) == 400
    assert points_each([many()] * 20) == 16_000 // 60
    assert points_each([many()] * 1000) == 60


def test_each_output_has_a_figure_over_all_its_cases() -> None:
    found = plots(failed())
    assert [plot.output for plot in found] == ["output", "stateN"]
    assert all("12 values in 3 cases" in plot.said for plot in found)
    assert max(numbers(found[0].y)) > 1 and max(numbers(found[1].y)) < 1


def test_latencies_of_each_series_are_told_sorted() -> None:
    record = passed().record
    assert record is not None
    soak = SoakRun("case-0", 4, 0, None, (4.0, 1.0, 3.0, 2.0), ())
    browser, many_runs = latency_rows(replace(record, soak=soak), DESKTOP)  # the desktop has one run: no distribution
    assert (browser.count, browser.middle, browser.slowest) == ("3", "8.00 ms", "9.00 ms")
    assert (many_runs.ms, many_runs.fastest, many_runs.middle) == ("1 2 3 4", "1.00 ms", "2.50 ms")
    assert "case-0" in many_runs.name
    desktop = replace(DESKTOP, timings=Timings(later_run_ms=(0.5, 0.7)))
    assert [row.ms for row in latency_rows(record, desktop)] == ["8 8 9", "0.5 0.7"]


def test_very_many_latencies_are_thinned_and_keep_their_ends() -> None:
    record = passed().record
    assert record is not None
    times = tuple(float(n) for n in range(1, 5001))
    (row,) = latency_rows(replace(record, timings=Timings(later_run_ms=times)), None)
    shown = numbers(row.ms)
    assert (row.count, len(shown), shown[0], shown[-1]) == ("5,000", 200, 1, 5000)


def test_one_run_or_none_is_no_distribution() -> None:
    record = passed().record
    assert record is not None
    for times in ((), (3.0,)):
        assert latency_rows(replace(record, timings=Timings(later_run_ms=times)), DESKTOP) == ()
    assert latency_rows(None, DESKTOP) == ()


def test_the_steps_of_a_start_follow_one_another() -> None:
    found, total = spans(Timings(10.0, 20.0, 30.0, 40.0, (9.0,)))
    assert total == 100 and list(found) == ["fetch", "compile", "create session", "first run"]
    assert [(span.start, span.length) for span in found.values()] == [(0, 10), (10, 20), (30, 30), (60, 40)]
    assert found["compile"].label == "compile: from 10 ms to 30 ms"


def test_a_step_that_was_not_measured_has_no_place_and_a_short_one_can_be_seen() -> None:
    found, total = spans(Timings(None, 0.001, 30.0, None))
    assert list(found) == ["compile", "create session"] and total == pytest.approx(30.001)
    assert found["compile"].length == 0.5
    assert all(span.start + span.length <= 100 for span in found.values())
    assert spans(Timings()) == ({}, 0.0)
