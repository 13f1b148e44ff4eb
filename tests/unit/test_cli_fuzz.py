"""What ``edgekit fuzz`` shows, and the mistakes of its users."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgekit.cli import fuzz
from edgekit.errors import UsageError
from edgekit.fuzz import write
from edgekit.fuzz.report import FuzzReport
from edgekit.known import entries
from edgekit.known.entries import Cure, Entry, Knowledge
from edgekit.known.patterns import Condition

ENTRY = Entry(
    "reducel2-1", ("ReduceL2",), (Condition("axes count", "is", 1),), "browser", 4, 30, "", "y: -2.0 and must be 2.0",
    (Cure("layout", "NCHW", False, 3), Cure("cpu_nodes", "all", True, 3), Cure("variant", "wasm", True, 3)),
    {"generator": "ReduceL2", "choices": {}},
)  # fmt: skip
REPORT = FuzzReport(
    "onnxruntime-web 0.0.0", "jspi", "Chromium 1", "google swiftshader", True, 7, 100, 80, 20.0,
    {"right": 79, "wrong": 1, "invalid": 20}, 5, (ENTRY,), ("Slice: no pattern was found: y",), (), (), (),
)  # fmt: skip


def test_what_is_found_is_shown_with_what_makes_it_right(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz._show(REPORT)
    shown = capsys.readouterr().out
    assert "on google swiftshader (software): 100 cases of 5 kinds in 20 s (5.0 a second), seed 7" in shown
    assert "ReduceL2: axes count 1" in shown
    assert "the node on the CPU, the wasm build" in shown
    assert "Slice: no pattern was found" in shown


def test_a_report_without_findings_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    fuzz._show(FuzzReport(**{**vars(REPORT), "entries": (), "unclear": ()}))
    assert "No wrong answer was found." in capsys.readouterr().out


def test_the_report_as_json_has_the_pattern_in_words() -> None:
    document = REPORT.to_json()
    assert document["entries"][0]["text"] == "ReduceL2: axes count 1"
    assert document["cases_per_second"] == 5.0


@pytest.mark.parametrize("arguments", [["--ops", "Conw"], ["--variant", "nosuch"]])
def test_a_name_that_is_none_is_the_users_mistake(arguments: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(fuzz.command, [*arguments, "-o", str(tmp_path / "run")])
    assert isinstance(result.exception, UsageError)
    assert not (tmp_path / "run").exists()


def test_knowledge_is_not_made_of_a_run_near_a_model() -> None:
    result = CliRunner().invoke(fuzz.command, ["--ops-from", "model.onnx", "--update"])
    assert isinstance(result.exception, UsageError)


def test_an_update_of_some_operators_keeps_what_is_known_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "FINDINGS", tmp_path)
    slices = replace(ENTRY, id="slice-1", operators=("Slice",), drawn={"generator": "Slice", "choices": {}})
    known = Knowledge("onnxruntime-web", "0.0.0", "jspi", {"cases": 9}, (ENTRY, slices))
    again = replace(known, measured={"cases": 3}, entries=(replace(ENTRY, failures=7),))
    path = write.update(known)
    assert write.update(again, {"ReduceL2", "ReduceL2+Add"}) == path
    found = entries.from_json(json.loads(path.read_text(encoding="utf-8")))
    assert [(one.id, one.failures) for one in found.entries] == [("reducel2-1", 7), ("slice-1", 4)]
    assert found.measured == {"cases": 9}
    write.update(again)
    assert len(entries.from_json(json.loads(path.read_text(encoding="utf-8"))).entries) == 1
