from dataclasses import replace

from edgekit.records.run_record import Environment, Hashes, RunRecord, Timings
from edgekit.timing import TimingRow, timing_rows

ENVIRONMENT = Environment("chromium", "onnxruntime-web", "1.30.0", "wasm", "wasm", "wasm", 1, True, None, None, None)
BROWSER = RunRecord(
    "run",
    Hashes(None, "0" * 64, None),
    ENVIRONMENT,
    (),
    Timings(fetch_ms=5.0, create_ms=30.0, first_run_ms=4.0, later_run_ms=(3.0, 100.0, 2.0)),
    (),
)


def test_rows_come_in_the_order_of_the_steps_with_the_ratio_to_the_desktop() -> None:
    desktop = replace(BROWSER, timings=Timings(create_ms=10.0, first_run_ms=2.0, later_run_ms=(1.0, 2.0)))
    assert timing_rows(BROWSER, desktop) == (
        TimingRow("fetch", 5.0, None, None),
        TimingRow("create session", 30.0, 10.0, 3.0),
        TimingRow("first run", 4.0, 2.0, 2.0),
        TimingRow("later run (median)", 3.0, 1.5, 2.0),
    )


def test_without_a_desktop_run_there_is_no_ratio() -> None:
    assert [row.ratio for row in timing_rows(BROWSER, None)] == [None] * 4


def test_a_desktop_time_of_zero_gives_no_ratio() -> None:
    desktop = replace(BROWSER, timings=Timings(create_ms=0.0))
    assert timing_rows(BROWSER, desktop)[1] == TimingRow("create session", 30.0, 0.0, None)
