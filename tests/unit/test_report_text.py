import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import EVERY, entry, failed, many, not_run, passed, refused, sample

from edgekit.records.cases import Reference, Tolerance
from edgekit.records.run_record import Environment
from edgekit.records.settings import SessionSettings
from edgekit.report import words
from edgekit.report.text import output_table, summary, timing_table
from edgekit.timing import TimingRow


def test_each_output_of_each_case_has_a_row_with_its_numbers() -> None:
    table = output_table(failed().verdict)
    assert table.title == "model.onnx: failed for webgpu" and len(table.rows) == 6
    assert [column.title for column in table.columns][:3] == ["case", "output", "verdict"]
    wrong, right = table.rows[0], table.rows[1]
    assert wrong[:5] == ("case-0", "output", "✗ mismatch", "0.87", "2.18")
    assert wrong[7:] == ("100 %", "rel 0.001, abs 1e-06", "rel 2.18")
    assert right == ("case-0", "stateN", "✓ match", "0", "0", "∞", "1", "100 %", "rel 0.001, abs 1e-06", "rel 0")


def test_what_must_be_equal_is_given_no_tolerance_as_advice() -> None:
    output = failed().verdict.outputs[0]
    assert words.would_pass(output) == "rel 2.18"
    assert words.would_pass(replace(output, tolerance=None)) == "–"
    assert words.measures(replace(output, tolerance=None)).allowed == "equal"


@pytest.mark.parametrize("name", EVERY)
def test_every_row_has_a_cell_for_every_column(name: str) -> None:
    table = output_table(EVERY[name]().verdict)
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_very_many_rows_are_grouped_and_what_is_wrong_stays_alone() -> None:
    rows = output_table(many().verdict).rows
    assert [row[:3] for row in rows] == [
        ("worst: case-0", "boxes", "✓ match ×40"),
        ("worst: case-0", "scores", "✓ match ×40"),
        ("worst: case-0", "mask", "✓ match ×38"),
        ("case-9", "mask", "✗ mismatch"),
        ("case-7", "mask", "✗ mismatch"),
    ]


def test_matches_share_a_row_sooner_where_nothing_is_wrong() -> None:
    case_set, record = sample(("a", "b"), cases=5)
    assert [row[:3] for row in output_table(entry(case_set, record).verdict).rows] == [
        ("worst: case-0", "a", "✓ match ×5"),
        ("worst: case-0", "b", "✓ match ×5"),
    ]
    wrong = sample(("a", "b"), 5, lambda i, name: float(i == 0))
    assert len(output_table(entry(*wrong).verdict).rows) == 10


def test_no_wrong_output_is_lost_in_a_group() -> None:
    verdict = many().verdict
    wrong = tuple(replace(output, status="mismatch", reason="off") for output in verdict.outputs)
    rows = output_table(replace(verdict, outputs=wrong)).rows
    counted = sum(int(row[2].partition("×")[2] or 1) for row in rows)
    assert counted == 120 and all(row[2].startswith("✗") for row in rows)


def test_of_hundreds_of_wrong_outputs_the_worst_are_shown_and_the_others_counted() -> None:
    verdict = passed().verdict
    one = verdict.outputs[0]
    assert one.metrics is not None
    outputs = tuple(
        replace(one, output=f"y{i}", status="mismatch", metrics=replace(one.metrics, passing_relative=float(i)))
        for i in range(199)
    )
    reasons = tuple(f"Output 'y{i}' does not match in 1 of 1 cases" for i in range(199))
    many_names = replace(verdict, outputs=outputs, reasons=(*reasons, "The device gave up."), status="failed")
    rows = output_table(many_names).rows
    assert [row[1] for row in rows[:2]] == ["y198", "y197"] and len(rows) == 11
    assert rows[-1][:3] == ("and 189 more", "worst: y188", "✗ mismatch ×189")
    lines = summary(many_names)
    assert sum("does not match" in line for line in lines) == 10
    assert "  - and 189 more outputs like these" in lines and "  - The device gave up." in lines


def test_the_summary_says_the_verdict_the_place_the_reasons_and_the_warnings() -> None:
    lines = summary(passed().verdict)
    assert lines[0] == "✓ Passed for webgpu: 2 of 2 outputs match, 2 were compared."
    assert lines[1] == "  on chromium · onnxruntime-web 1.30.0 · webgpu (jspi) · SwiftShader, software · 2 threads"
    assert lines[2].startswith("  warning: The GPU adapter is software")
    assert summary(refused().verdict)[0].startswith("✗ Refused for webgpu: 2 of 2 outputs match")
    assert any("no kernel for CumSum(14)" in line for line in summary(refused().verdict))
    assert summary(not_run().verdict) == (
        "✗ Not run for webgpu: 0 of 2 outputs match, 0 were compared.",
        "  - No run record came back.",
    )


def test_a_verdict_of_one_variant_says_so_and_several_verdicts_say_their_titles() -> None:
    verdict = replace(passed().verdict, variant="wasm")
    assert summary(verdict)[0].startswith("✓ Passed for webgpu's variant wasm: 2 of 2")
    assert output_table(verdict).title == "model.onnx: passed for webgpu's variant wasm"
    assert summary(verdict, titled=True)[0].startswith("✓ model.onnx: Passed for webgpu's variant wasm: 2 of 2")
    assert words.subject(replace(verdict, target=None)) == "variant wasm"


def test_only_onnxruntime_has_an_optimization_level() -> None:
    assert words.reference(Reference("desktop", "onnxruntime", "1.32.0", "disabled")) == (
        "desktop (onnxruntime 1.32.0, graph optimization disabled)"
    )
    assert words.reference(Reference("cnn_ref.npz", "recorded outputs", "", "none")) == "cnn_ref.npz (recorded outputs)"


def test_times_have_units_and_ratios() -> None:
    rows = (TimingRow("create session", 12_345.0, 93.4, 132.2), TimingRow("fetch", 1.234, None, None))
    assert timing_table(rows).rows == (
        ("create session", "12.3 s", "93 ms", "132×"),
        ("fetch", "1.23 ms", "–", "–"),
    )


@given(st.floats(1e-300, 1e300))
def test_the_tolerance_that_is_shown_does_pass(passing: float) -> None:
    output = passed().verdict.outputs[0]
    assert output.metrics is not None
    output = replace(output, metrics=replace(output.metrics, passing_relative=passing))
    shown = words.would_pass(output).removeprefix("rel ")
    assert passing <= float(shown) <= passing * 1.02


def test_numbers_that_are_none_read_as_words() -> None:
    output = passed().verdict.outputs[0]
    metrics = output.metrics
    assert metrics is not None
    assert words.would_pass(replace(output, metrics=replace(metrics, passing_relative=math.inf))) == "none"
    assert words.top1(replace(metrics, top1_agrees=0.9999)) == "99.9 %"  # never rounded up to all
    assert [words.number(x) for x in (None, math.nan, -math.inf, 1234567.0)] == ["–", "NaN", "-∞", "1,234,567"]
    assert words.tolerance(replace(output, tolerance=Tolerance(0.0, 0.0))) == "equal"
    assert words.tolerance(replace(output, tolerance=None, status="missing")) == "–"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0", "Firefox 153"),
        ("Mozilla/5.0 (X11) AppleWebKit/537.36 HeadlessChrome/156.0.0.0 Safari/537.36", "Chrome 156"),
        ("Mozilla/5.0 (Windows) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0", "Edge 156"),
        ("Mozilla/5.0 (iPhone; CPU) AppleWebKit/605.1.15 Version/26.1 Mobile/15E148 Safari/604.1", "Safari 26"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 Version/60.5 Safari/605.1.15", "WebKit 605"),
        ("curl/8", None),
        (None, None),
    ],
)
def test_the_browser_of_a_record_is_named_by_what_it_says_of_itself(agent: str | None, name: str | None) -> None:
    environment = Environment("page", "ort", "1", "wasm", "wasm", "wasm", 1, True, None, agent, None)
    assert words.browser(environment) == name
    assert words.where(environment).startswith(f"{name or 'page'} · ort 1")


def test_a_verdict_says_how_its_session_was_created() -> None:
    def where(session: SessionSettings | None) -> str:
        return words.where(
            Environment("page", "ort", "1", "jspi", "webgpu", "webgpu", 1, True, None, None, None, session)
        )

    assert where(None) == where(SessionSettings())
    said = where(SessionSettings("basic", "NCHW", tuple("abcdef")))
    assert said.endswith(" · layout NCHW, optimization basic, on the CPU: a, b, c, d and 2 more")
