import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from report_samples import EVERY, HOSTILE, entry, failed, hostile, many, not_run, nothing_ran, passed, refused, sample

from edgekit.records.run_record import Timings
from edgekit.records.tensors import value_of
from edgekit.report.entry import Entry
from edgekit.report.html import report_html, report_page, visible
from edgekit.report.page import Fact

_VOID = {"meta", "rect", "line", "link", "br"}


class Reader(HTMLParser):
    """The text of a page, its elements, and whether they nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags, self.attributes, self.stack = "", [], [], []  # type: ignore[var-annotated]
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in _VOID or self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] == "script":
            self.scripts.append(data)
        else:
            self.text += data


def read(*entries: Entry) -> Reader:
    reader = Reader(report_html(entries))
    assert reader.stack == []
    return reader


def allowed(text: str) -> str:
    """Return the source expression that lets an inline element of this text be used."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("name", EVERY)
def test_every_report_is_well_formed_the_same_each_time_and_fetches_nothing(name: str) -> None:
    page = report_html([EVERY[name]()])
    assert page == report_html([EVERY[name]()])
    reader = read(EVERY[name]())
    assert "link" not in reader.tags and "img" not in reader.tags
    assert not [name for name, _ in reader.attributes if name in ("src", "style") or name.startswith("on")]
    assert {value for name, value in reader.attributes if name == "href"} == set()
    css = page.partition("<style>")[2].partition("</style>")[0]
    policy = next(str(value) for name, value in reader.attributes if str(value).startswith("default-src 'none'; "))
    assert f"style-src {allowed(css)};" in policy
    assert len(reader.scripts) == ("script-src" in policy) == ("data-kind" in page)
    assert all(f"script-src {allowed(script)};" in policy for script in reader.scripts)
    assert "url(" not in css and "@import" not in css


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            passed(),
            ["Passed", "2 of 2 outputs match the reference.", "case-1", "3.00×", "16×", "zeros: refused", "weak"],
        ),
        (failed(), ["Failed", "3 of 6 outputs do not match.", "The largest error is 0.87", "rel 2.18", "stateN"]),
        (refused(), ["Refused", "webgpu did not run this model; wasm did", "no kernel for CumSum(14)", "fallback"]),
        (not_run(), ["Not run", "Nothing was compared.", "No run record came back."]),
        (nothing_ran(), ["Refused", "nothing was compared", "no adapter", "no memory", "did not run"]),
        (many(), ["2 of 120 outputs do not match", "What does not match (2)", "All 120 outputs", "38 of 40"]),
    ],
)
def test_a_report_says_what_was_concluded_and_why(entry: Entry, words: list[str]) -> None:
    text = read(entry).text
    for word in words:
        assert word in text


def test_only_a_pass_says_passed() -> None:
    assert {name for name in EVERY if "Passed" in read(EVERY[name]()).text} == {"passed"}


def test_hostile_names_are_text_and_nothing_else() -> None:
    page = report_html([hostile()])
    assert (
        page.count("<script") == 1 == len(read(hostile()).scripts)
        and "\x1b" not in page
        and "\x00" not in page
        and "\u202e" not in page
    )
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\x00", "\\x00")
    shown = shown.replace("\ufffe", "\\ufffe").replace("\u202e", "\\u202e")
    assert read(hostile()).text.count(shown) >= 8


def test_the_command_can_be_pasted_into_a_shell() -> None:
    assert "edgekit parity 'my bundle' --repeats 5" in read(passed()).text
    assert "Repeat it" not in read(replace(passed(), command=())).text


def test_several_records_stand_side_by_side() -> None:
    case_set = passed().case_set
    assert case_set is not None
    page = report_page([passed(), not_run()], "")
    assert [[cell.text for cell in row.cells] for row in page.matrices[0].rows] == [["0", "not run"]] * 2
    reader = read(passed(), not_run())
    assert {value for name, value in reader.attributes if name == "href"} == {"#run-1", "#run-2"}
    assert {value for name, value in reader.attributes if name == "id"} == {"run-1", "run-2"}
    assert report_page([passed()], "").matrices == ()


def test_several_records_say_which_is_which() -> None:
    second = replace(passed(), verdict=replace(passed().verdict, title="other title", target="wasm"))
    page = report_page([passed(), second], "")
    assert page.matrices[0].columns == ("1 · model.onnx · webgpu", "2 · other title · wasm")
    text = read(passed(), second).text
    assert text.count("2 · other title · wasm") == 3  # line, column, and the run's own heading


def test_runs_of_different_models_are_never_put_side_by_side() -> None:
    def of(model: str) -> Entry:
        case_set, record = sample()
        return entry(
            replace(case_set, model_sha256=model), replace(record, hashes=replace(record.hashes, model=model)), model[0]
        )

    page = report_page([of("a" * 64), of("b" * 64), of("a" * 64), of("c" * 64)], "")
    assert [matrix.columns for matrix in page.matrices] == [("1 · a · webgpu", "3 · a · webgpu")]
    assert read(of("a" * 64), of("b" * 64)).text.count("Side by side") == 0


def test_cases_of_one_name_and_different_inputs_have_rows_of_their_own() -> None:
    def fed(value: float) -> Entry:
        case_set, record = sample(cases=1)
        inputs = (value_of("x", np.array([value], np.float32)),)
        cases = tuple(replace(case, inputs=inputs) for case in case_set.cases)
        return entry(replace(case_set, cases=cases), record)

    (matrix,) = report_page([fed(1), fed(1), fed(2)], "").matrices
    assert [[cell.text for cell in row.cells] for row in matrix.rows] == [
        ["0", "0", "not asked"],
        ["not asked", "not asked", "0"],
    ]


def test_a_verdict_of_one_variant_says_so() -> None:
    made = passed()
    text = read(replace(made, verdict=replace(made.verdict, variant="wasm", warnings=("webgpu was not tried.",)))).text
    assert "Passed webgpu's variant wasm" in " ".join(text.split()) and "webgpu was not tried." in text
    assert "variant wasm" not in read(made).text


def test_an_output_that_one_record_was_not_asked_for_is_said_so() -> None:
    page = report_page([passed(), failed()], "")
    assert [cell.text for cell in page.matrices[0].rows[0].cells] == ["0", "not asked"]


def test_the_bar_crosses_its_limit_exactly_when_the_output_is_wrong() -> None:
    for made in (passed(), failed(), many()):
        page = report_page([made], "")
        for row in page.runs[0].rows:
            assert row.bar is not None
            assert (row.bar.length > page.limit) == (row.kind == "bad")


def test_a_nan_fills_the_bar_and_equal_outputs_leave_it_empty() -> None:
    verdict = failed().verdict
    metrics = verdict.outputs[0].metrics
    assert metrics is not None
    nan = replace(verdict.outputs[0], metrics=replace(metrics, first_nonfinite=0))
    exact = replace(verdict.outputs[0], tolerance=None)
    page = report_page([Entry(replace(verdict, outputs=(nan, exact)))], "")
    assert [row.bar and row.bar.length for row in page.runs[0].rows] == [100.0, 100.0]
    assert report_page([passed()], "").runs[0].rows[0].bar == replace(
        page.runs[0].rows[0].bar, length=0.0, label="no error"
    )  # type: ignore[type-var]


def test_a_verdict_alone_is_enough_for_a_page() -> None:
    text = read(Entry(passed().verdict)).text
    assert "Passed" in text and "Golden cases" not in text and "Times" not in text


def test_very_many_rows_are_counted_and_not_shown() -> None:
    verdict = many().verdict
    page = report_page([Entry(replace(verdict, outputs=verdict.outputs * 10))], "")
    assert len(page.runs[0].rows) == 1000 and page.runs[0].rows_left_out == 200


def test_visible_reaches_every_string_and_leaves_ordinary_text_alone() -> None:
    assert visible(Fact("a\x1b", "é\n", None)) == Fact("a\\x1b", "é\n", None)
    assert visible(("\u202e", ("\x00",))) == ("\\u202e", ("\\x00",))


def test_the_style_is_readable_when_printed_and_in_the_dark() -> None:
    css = report_html([passed()]).partition("<style>")[2].partition("</style>")[0]
    assert re.search(r"@media \(prefers-color-scheme: dark\)", css) and "@media print" in css


def test_a_page_is_small_and_brings_the_licence_of_what_draws_on_it() -> None:
    page = report_html([passed()])
    assert len(page.encode()) < 150_000
    (script,) = read(passed()).scripts
    assert "Permission is hereby granted" in script and "uPlot" in script
    assert "The MIT License" in script and script.index("Permission") < script.index("var uPlot=")


def test_a_page_without_figures_has_no_script_and_no_empty_figure() -> None:
    for made in (not_run(), nothing_ran(), Entry(passed().verdict)):
        page = report_html([made])
        assert "<script" not in page and "script-src" not in page and "<figure" not in page
        assert not {"Latencies", "Start and runs", "Error against the reference", "Sizes"} & set(headings(page))


def test_a_record_without_timings_gives_neither_times_nor_their_figures() -> None:
    made = passed()
    assert made.record is not None
    for timings in (Timings(), Timings(create_ms=3.0), Timings(later_run_ms=(2.0,))):
        page = report_html([replace(made, record=replace(made.record, timings=timings))])
        assert "Latencies" not in headings(page) and 'data-kind="latency"' not in page
        assert ("Start and runs" in headings(page)) == (timings != Timings())
    assert {"Latencies", "Start and runs"} <= set(headings(report_html([made])))


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_the_combinations_stand_first_each_with_its_worst_output_and_its_times() -> None:
    page = report_page([passed(), failed(), not_run()], "")
    assert [(line.number, line.words, line.share, line.later) for line in page.combinations] == [
        (1, "Passed", "0 %", "8.00 ms"),
        (2, "Failed", page.combinations[1].share, "8.00 ms"),
        (3, "Not run", "–", "–"),
    ]
    assert page.combinations[1].worst == "output" and page.combinations[0].software
    assert headings(report_html([passed(), failed()]))[0] == "Combinations"
    assert report_page([passed()], "").combinations == ()


def test_combinations_of_one_bundle_have_its_title() -> None:
    made = [replace(passed(), verdict=replace(passed().verdict, title=f"digits · firefox {n}")) for n in (1, 2)]
    assert report_page(made, "").title == "digits: 2 combinations"
    assert report_page([passed(), made[0]], "").title == "model.onnx, digits · firefox 1"
