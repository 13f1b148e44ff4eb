"""Cases side by side: counted by operator, and every wrong answer named."""

from dataclasses import replace

import numpy as np
import pytest
from models_text import parse

from edgekit import conformance_run
from edgekit.cli.conformance import print_columns
from edgekit.cli.main import run
from edgekit.conformance import tally
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.conformance.table import Runtime
from edgekit.conformance_run import ConformanceOptions
from edgekit.records.tensors import Value, value_of

NEG = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Neg (x) }'
TWO = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { z = Neg (x) y = Abs (z) }'


def value(number: float, name: str = "y") -> Value:
    return value_of(name, np.array([number], np.float32))


def case(name: str, text: str = NEG) -> Case:
    return Case(name, "standard", parse(text).SerializeToString(), (value(1, "x"),), (value(-1),), None)


CASES = (case("test_a"), case("test_b"), case("test_c"), case("test_d", TWO))
RIGHT, WRONG = Reply("done", (value(-1),)), Reply("done", (value(9),))
DESKTOP = tally.column(Runtime("onnxruntime", "1", "cpu", "cpu"), CASES, [RIGHT] * 4, 1.0)
FIREFOX = tally.column(
    Runtime("onnxruntime-web", "1", "jspi", "webgpu", browser="Firefox 153", adapter="llvmpipe"),
    CASES,
    [RIGHT, WRONG, Reply("refused", error="a|b <kernel>"), Reply("crashed", error="it fell silent")],
    2.0,
)


def test_columns_count_by_status_and_by_operator() -> None:
    assert (DESKTOP.label, FIREFOX.label) == ("desktop", "Firefox jspi")
    counts = {status: count for status, count in FIREFOX.counts.items() if count}
    assert counts == {"passes": 1, "wrong": 1, "refused": 1, "crashed": 1}
    table = FIREFOX.by_operator()
    assert {name: tally.short(counts) for name, counts in table.items()} == {"Neg": "1/1/1", tally.SEVERAL: "0/0/1"}
    assert {tally.short(counts) for counts in DESKTOP.by_operator().values()} == {"3", "1"}


def test_every_wrong_answer_is_named_and_no_refusal_is() -> None:
    assert [one.name for one in FIREFOX.wrong] == ["test_b"]
    page = tally.page([DESKTOP, FIREFOX], "edgekit conformance")
    wrong = page[page.index("## Wrong answers") : page.index("## By operator")]
    assert "| `test_b` | Neg | Firefox jspi | y: 9.0 at [0] and must be -1.0 at [0] |" in wrong
    assert "test_c" not in wrong
    assert "| Neg | 3 | 1/1/1 |" in page


def test_an_operator_without_a_case_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conformance", "--ops", "Convo"]) == 2
    assert "Did you mean 'Conv'?" in capsys.readouterr().err


@pytest.mark.browser
def test_cases_are_measured_in_a_real_browser_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    options = ConformanceOptions(variants=("wasm",), operators=("Neg",))
    columns = conformance_run.compare(options, (*CASES, replace(CASES[0], name="test_e", outputs=(value(5),))))
    assert [one.label for one in columns] == ["desktop", "Chromium wasm"]
    for one in columns:
        assert (one.counts["passes"], [case.name for case in one.wrong]) == (3, ["test_e"])
    print_columns(columns)
    shown = capsys.readouterr().out
    assert "3/1/0" in shown
    assert "-1.0 at [0] and must be 5.0" in shown
