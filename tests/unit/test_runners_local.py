from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from edgekit.bundle.open import Bundle
from edgekit.child.process import ChildLimits
from edgekit.errors import UsageError
from edgekit.files import json_bytes
from edgekit.records import cases as case_files
from edgekit.records import run_record
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Reference, Tolerance
from edgekit.records.manifest import Manifest, ModelEntry, RuntimeEntry
from edgekit.records.tensors import value_of
from edgekit.runners import local

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x, float[N] s) => (float[N] y, float[N] t) { t = Add(x, s) y = Neg(t) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    return path


def case(name: str, x: Any, feed_back: FeedBack | None = None) -> GoldenCase:
    inputs = (value_of("x", np.array(x, np.float32)), value_of("s", np.ones(1, np.float32)))
    return GoldenCase(name, "by hand", inputs, (), feed_back=feed_back)


def case_set(*cases: GoldenCase) -> CaseSet:
    tolerance = {"float32": Tolerance(1e-4, 1e-6)}
    return CaseSet("0" * 64, Reference("r", "onnxruntime", "1", "disabled"), tolerance, {}, cases)


LOOP = case("loop", [2], FeedBack(3, {"s": "t"}))
PLAIN = case("plain", [3])
BROKEN = case("broken", [[1]])


def test_cases_are_replayed_and_the_first_without_a_loop_is_timed(model: Path) -> None:
    record = local.replay(model, case_set(LOOP, BROKEN, PLAIN), repeats=4)

    assert [run.status for run in record.cases] == ["done", "failed", "done"]
    assert [value.array for value in record.cases[0].outputs] == [np.array([-7]), np.array([7])]
    assert "x" in str(record.cases[1].error)
    assert record.error is None
    assert record.timings.create_ms
    environment = record.environment
    assert (environment.runner, environment.execution_provider, environment.execution_provider_asked) == (
        "local",
        "cpu",
        "cpu",
    )
    assert environment.threads >= 1


def test_timings_have_the_first_run_and_the_later_ones(model: Path) -> None:
    timings = local.replay(model, case_set(LOOP, PLAIN), repeats=4).timings
    steps = local.replay(model, case_set(LOOP), repeats=4).timings

    assert timings.first_run_ms
    assert len(timings.later_run_ms) == 4
    assert len(steps.later_run_ms) == 2


def test_cases_that_were_not_asked_for_are_skipped(model: Path) -> None:
    record = local.replay(model, case_set(LOOP, PLAIN), cases=["plain"])

    assert [(run.id, run.status) for run in record.cases] == [("loop", "skipped"), ("plain", "done")]


def test_unknown_case_is_refused(model: Path) -> None:
    with pytest.raises(UsageError, match="no golden case '<b>'") as caught:
        local.replay(model, case_set(PLAIN), cases=["<b>"])

    assert caught.value.hint == "There are: plain."


@pytest.mark.parametrize("fault", ["model", "limit"])
def test_what_ends_the_run_is_an_error_in_the_record(model: Path, fault: str) -> None:
    if fault == "model":
        model.write_bytes(b"no model")
    limits = ChildLimits(seconds=0.01 if fault == "limit" else 60)

    record = local.replay(model, case_set(PLAIN), limits=limits)

    assert record.error
    assert record.cases[0].status == "skipped"
    assert record.timings.create_ms is None
    assert record.environment.execution_provider is None
    assert record.environment.runtime_version


def test_record_survives_its_files(model: Path) -> None:
    for broken in (False, True):
        if broken:
            model.write_bytes(b"")
        record = local.replay(model, case_set(LOOP, PLAIN))
        document, data = run_record.to_files(record)

        assert json_bytes(run_record.to_files(run_record.from_files(document, data))[0]) == json_bytes(document)


def test_cases_and_model_of_a_bundle_are_used(tmp_path: Path, model: Path) -> None:
    document, data = case_files.to_files(case_set(PLAIN))
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "cases.json").write_bytes(json_bytes(document))
    (tmp_path / "cases" / "cases.safetensors").write_bytes(data)
    manifest = Manifest(
        "0", "web", "wasm", "t", ModelEntry("model/model.onnx", "0" * 64), RuntimeEntry("r", "1", ()), ()
    )

    record = local.run(Bundle(tmp_path, manifest, "1" * 64), repeats=2)

    assert record.cases[0].status == "done"
    assert record.hashes.manifest == "1" * 64
