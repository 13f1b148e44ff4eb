"""The task's own result: labels in files, what outputs say, and what changed from desktop to device."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgekit import accuracy
from edgekit.accuracy import predictions
from edgekit.compare import judge_under
from edgekit.errors import UsageError
from edgekit.records import labels
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.labels import Label
from edgekit.records.run_record import CaseRun, Environment, Hashes, RunRecord, Timings
from edgekit.records.store import Conditions
from edgekit.records.tensors import Value
from edgekit.records.verdict import LabelChange
from edgekit.report import words


def scores(*rows: tuple[float, ...], name: str = "scores") -> Value:
    return Value(name, "float32", np.array(rows, np.float32))


CASES = CaseSet(
    "0" * 64,
    Reference("r", "onnxruntime", "1", "disabled"),
    {"float32": Tolerance(0.05, 0.0)},
    {},
    (
        GoldenCase("cat", "by hand", (), (scores((0.51, 0.49)),)),
        GoldenCase("dog", "by hand", (), (scores((0.1, 0.9)),)),
        GoldenCase("both", "by hand", (), (scores((0.9, 0.1), (0.2, 0.8)),)),
    ),
)


def record(*runs: CaseRun) -> RunRecord:
    environment = Environment("page", "none", "0", "wasm", "wasm", "wasm", 1, True, None, None, None)
    return RunRecord("r", Hashes(None, "0" * 64, None), environment, (), Timings(), runs)


def done(case: str, value: Value) -> CaseRun:
    return CaseRun(case, "done", (value,))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (scores((0.1, 0.9), (0.8, 0.2)), ("1", "0")),
        (scores((0.1, float("nan"))), ("NaN",)),
        (Value("p", "float32", np.array([[0.2], [0.7]], np.float32)), ("0", "1")),
        (Value("p", "float32", np.array(0.5, np.float32)), ("1",)),
        (Value("n", "int64", np.array([3, -1])), ("3", "-1")),
        (Value("t", "string", np.array(["cat"], object)), ("cat",)),
        (Value("e", "float32", np.zeros((0, 3), np.float32)), ()),
    ],
)
def test_what_an_output_says(value: Value, said: tuple[str, ...]) -> None:
    assert predictions(value) == said


def test_a_device_may_pass_and_cross_the_border_between_two_classes() -> None:
    given = (Label("cat", None, "0"), Label("dog", None, "1"))
    asked = Conditions("t", labels=given, cases=("cat", "dog"))
    crossed = record(done("cat", scores((0.495, 0.505))), done("dog", scores((0.1, 0.9))))
    verdict = judge_under(asked, CASES, crossed)
    assert verdict.passed
    (result,) = verdict.labels
    assert (result.labelled, result.desktop_right, result.device_right) == (2, 2, 1)
    assert result.changed == (LabelChange("cat", 0, "0", "0", "1"),)
    assert "device 1 of 2 right (50 %), desktop 2 of 2 right (100 %)" in words.labels(result)[0]
    assert "cat (label 0: desktop 0, device 1)" in words.labels(result)[1]


def test_the_twin_agreement_with_the_desktop_is_not_correctness() -> None:
    asked = Conditions("t", labels=(Label("dog", None, "0"),), cases=("dog",))
    (result,) = judge_under(asked, CASES, record(done("dog", scores((0.1, 0.9))))).labels
    assert (result.desktop_right, result.device_right, result.changed) == (0, 0, ())


def test_what_the_device_did_not_compute_is_counted_as_wrong() -> None:
    given = (Label("both", "scores", "0"), Label("both", "scores", "1"))
    (result,) = judge_under(Conditions("t", labels=given), CASES, record(CaseRun("both", "failed"))).labels
    assert (result.labelled, result.device_right, result.not_computed) == (2, 0, 2)
    assert len(judge_under(Conditions("t", labels=given), CASES, None).labels) == 1


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (Label("cta", None, "0"), "Did you mean 'cat'"),
        (Label("cat", "score", "0"), "not an output of case 'cat'"),
        (Label("both", None, "0"), "has 1 labels, and output 'scores' gives 2 answers"),
        (Label("cat", None, "cat"), "says numbers, and a label is 'cat'"),
        (Label("cat", None, "2"), "tells 2 classes apart, 0 to 1, and a label is '2'"),
        (Label("cat", None, "-1"), "and a label is '-1'"),
    ],
)
def test_a_label_that_fits_nothing_is_refused(label: Label, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        accuracy.results(CASES, (label,), ("cat",), {})


def test_a_label_must_name_its_output_where_there_are_several() -> None:
    two = replace(CASES.cases[0], outputs=(scores((1, 2)), scores((1, 2), name="others")))
    with pytest.raises(UsageError, match="does not say of which output"):
        accuracy.results(replace(CASES, cases=(two,)), (Label("cat", None, "0"),), ("cat",), {})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("case,label\ncat,0\ndog , 1\n", [Label("cat", None, "0"), Label("dog", None, "1")]),
        ('\ufeffcase,output,label\r\ncat,scores,"0"\r\n', [Label("cat", "scores", "0")]),
        ('{"cat": 0, "both": [1, "0"]}', [Label("cat", None, "0"), Label("both", None, "1"), Label("both", None, "0")]),
        ('{"output": "scores", "labels": {"cat": true}}', [Label("cat", "scores", "1")]),
    ],
)
def test_labels_are_read_from_csv_and_json(text: str, found: list[Label], tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_text(text, encoding="utf-8")
    assert list(labels.load(path)) == found


@pytest.mark.parametrize(
    "text",
    ["", "case,label\n", "case;label\ncat;0\n", "case,label\ncat\n", "case,label\ncat,0,1\n", "{", '{"cat": 0.5}',
     '{"cat": null}', "{}", "case,case,label\na,b,c\n"],
)  # fmt: skip
def test_a_malformed_file_is_refused_by_its_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"labels\.csv"):
        labels.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        labels.load(tmp_path / "none.csv")
