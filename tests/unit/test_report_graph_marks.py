"""What a run record says of a drawing's nodes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import entry, sample

from edgekit.errors import UsageError
from edgekit.files import sha256_bytes
from edgekit.records.run_record import RunRecord
from edgekit.records.store import Conditions, SavedRun
from edgekit.report.graph_marks import marks_of
from edgekit.report.graph_panels import Marks

DATA = b"the model"


def saved(
    folder: Path, shift: Callable[[int, str], float], change: Callable[[RunRecord], RunRecord] = lambda record: record
) -> tuple[SavedRun, Path]:
    model = folder / "model.onnx"
    model.write_bytes(DATA)
    case_set, record = sample(("y", "z"), 2, shift)
    digest = sha256_bytes(DATA)
    record = change(replace(record, hashes=replace(record.hashes, model=digest)))
    conditions = Conditions("m", "webgpu", manifest_sha256=record.hashes.manifest)
    assert entry(replace(case_set, model_sha256=digest), record).verdict.compared  # the sample is a real one
    return SavedRun(folder, record, replace(case_set, model_sha256=digest), None, conditions), model


def test_an_output_that_is_wrong_in_any_case_is_wrong(tmp_path: Path) -> None:
    run, model = saved(tmp_path, lambda i, name: 0.5 if (i, name) == (1, "z") else 0.0)
    assert marks_of(run, model) == Marks(wrong=frozenset({"z"}), right=frozenset({"y"}))


def test_outputs_that_all_match_are_right(tmp_path: Path) -> None:
    run, model = saved(tmp_path, lambda i, name: 0.0)
    assert marks_of(run, model) == Marks(right=frozenset({"y", "z"}))


def test_a_record_of_another_model_is_refused(tmp_path: Path) -> None:
    run, model = saved(tmp_path, lambda i, name: 0.0)
    model.write_bytes(b"another")
    with pytest.raises(UsageError, match="is of another model"):
        marks_of(run, model)


def test_a_record_that_did_not_come_back_or_has_no_cases_is_refused(tmp_path: Path) -> None:
    run, model = saved(tmp_path, lambda i, name: 0.0)
    with pytest.raises(UsageError, match="no record came back"):
        marks_of(replace(run, record=None), model)
    with pytest.raises(UsageError, match="no golden cases"):
        marks_of(replace(run, case_set=None), model)
