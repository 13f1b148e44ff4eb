from pathlib import Path

import numpy as np
import pytest

from edgekit.errors import UsageError
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.manifest import Manifest, ModelEntry, RuntimeEntry
from edgekit.records.run_record import CaseRun, Environment, Hashes, RunRecord, Timings
from edgekit.records.store import Conditions, load_run, save_run
from edgekit.records.tensors import same_bits, value_of
from edgekit.records.verdict import Verdict

NAME = 'a/b "<script>\n é'
REFERENCE = Reference("desktop", "onnxruntime", "1.32.0", "disabled")
OUTPUT = value_of(NAME, np.array([1.0, np.nan, -0.0], np.float16))
CASES = CaseSet("0" * 64, REFERENCE, {}, {}, (GoldenCase("c0", "random", (), (OUTPUT,)),))
RECORD = RunRecord(
    "run",
    Hashes(None, "0" * 64, None),
    Environment("local", "onnxruntime", "1.32.0", None, "cpu", "cpu", 1, None, None, None, None),
    (),
    Timings(create_ms=1.0, later_run_ms=(2.0, 3.0)),
    (CaseRun("c0", "done", (OUTPUT,)),),
)
VERDICT = Verdict("not_run", NAME, None, REFERENCE, None, (), 1, 0, ())
CONDITIONS = Conditions(
    NAME, "webgpu", ("c0",), {NAME: Tolerance(0.1, 0.0)}, True, "0" * 64, None, ("edgekit", "parity", "b")
)


def save(folder: Path, record: RunRecord | None = RECORD, desktop: RunRecord | None = RECORD) -> None:
    save_run(folder, conditions=CONDITIONS, case_set=CASES, record=record, verdict=VERDICT, desktop=desktop)


@pytest.mark.parametrize("name", ["", "record.json"])
def test_a_saved_run_comes_back_whole(tmp_path: Path, name: str) -> None:
    save(tmp_path / "run")
    loaded = load_run(tmp_path / "run" / name)
    assert loaded.conditions == CONDITIONS
    assert loaded.record is not None and loaded.desktop is not None and loaded.case_set is not None
    assert same_bits(loaded.record.cases[0].outputs[0], OUTPUT)
    assert same_bits(loaded.case_set.cases[0].outputs[0], OUTPUT)
    assert loaded.desktop.timings == RECORD.timings
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "cases.json", "cases.safetensors", "conditions.json", "desktop_record.json", "desktop_record.safetensors",
        "record.json", "record.safetensors", "verdict.json",
    ]  # fmt: skip


def test_the_manifest_of_the_bundle_is_kept_where_it_is_given(tmp_path: Path) -> None:
    runtime = RuntimeEntry("onnxruntime-web", "1.30.0", ("jspi", "wasm"))
    manifest = Manifest("0.1.0", "web", "webgpu", NAME, ModelEntry("model/model.onnx", "0" * 64), runtime, ())
    save_run(tmp_path / "run", conditions=CONDITIONS, case_set=CASES, record=RECORD, verdict=VERDICT, manifest=manifest)
    assert load_run(tmp_path / "run").manifest == manifest
    (tmp_path / "run" / "bundle.json").write_text("{}")
    with pytest.raises(UsageError, match=r"bundle\.json is malformed"):
        load_run(tmp_path / "run")


def test_a_run_from_which_no_record_came_back_is_still_a_run(tmp_path: Path) -> None:
    save(tmp_path / "run", record=None, desktop=None)
    loaded = load_run(tmp_path / "run")
    assert loaded.record is None and loaded.case_set is not None


def test_saving_again_replaces_the_run_and_leaves_no_old_file(tmp_path: Path) -> None:
    save(tmp_path / "run")
    save(tmp_path / "run", desktop=None)
    assert load_run(tmp_path / "run").desktop is None
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds no run"):
        save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="is a file"):
        save(tmp_path / "thesis.txt")


def test_a_record_alone_in_files_of_any_name_is_read(tmp_path: Path) -> None:
    save(tmp_path / "run")
    for suffix in ("json", "safetensors"):
        (tmp_path / "run" / f"record.{suffix}").rename(tmp_path / f"phone.{suffix}")
    loaded = load_run(tmp_path / "phone.json")
    assert loaded.record is not None and loaded.record.run == "run"
    assert loaded.case_set is None and loaded.conditions is None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "record.json").unlink() or (run / "cases.json").unlink(), "holds no run record"),
        (lambda run: (run / "record.safetensors").unlink(), "has no record.safetensors beside it"),
        (lambda run: (run / "record.json").write_text("{"), "record.json is not a JSON file"),
        (lambda run: (run / "record.json").write_bytes(b"\xff\xfe"), "record.json is not a JSON file"),
        (lambda run: (run / "record.json").write_text("[" * 100_000), "record.json is not a JSON file"),
        (lambda run: (run / "record.json").write_text('{"run": NaN}'), "NaN is not JSON"),
        (lambda run: (run / "record.json").write_text(r'{"run": "\uD800"}'), "surrogates not allowed"),
        (lambda run: (run / "record.json").write_text("{}"), "record.json is malformed"),
        (lambda run: (run / "record.safetensors").write_bytes(b"no"), "record.json is malformed.*not a safetensors"),
        (lambda run: (run / "cases.safetensors").write_bytes(b""), "cases.json is malformed"),
        (lambda run: (run / "conditions.json").write_text('{"format": 1}'), "conditions.json is malformed"),
    ],
)
def test_a_damaged_run_is_refused_by_the_name_of_the_file(tmp_path: Path, damage: object, message: str) -> None:
    save(tmp_path / "run")
    assert callable(damage)
    damage(tmp_path / "run")
    with pytest.raises(UsageError, match=message):
        load_run(tmp_path / "run")


def test_a_path_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no record at"):
        load_run(tmp_path / "nothing")
