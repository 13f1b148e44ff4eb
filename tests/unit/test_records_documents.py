"""Cases, run records, manifests and verdicts as files: what is written can be read, and fits its schema."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgekit.errors import UsageError
from edgekit.records import cases, manifest, run_record, verdict
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Grade, Reference, Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.records.run_record import (
    Adapter,
    Attempt,
    CaseRun,
    Environment,
    Hashes,
    Miss,
    Placed,
    PlacedNode,
    RunRecord,
    Timings,
)
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import Value, same_bits, value_of
from edgekit.records.validate import validated
from edgekit.records.verdict import Metrics, OutputVerdict, Verdict

SHA = "0123456789abcdef" * 4
HOSTILE = "<script>'\"/\n\x1bné"
REFERENCE = Reference("desktop", "onnxruntime", "1.32.0", "disabled")
VALUES = (
    value_of(HOSTILE, np.array([np.nan, -0.0, np.inf], np.float32)),
    value_of("i", np.array(2**63 - 1)),
    value_of("s", np.array([["a", "né"]])),
    Value("m", "seq(tensor(float))", None, note="not a tensor"),
)
CASES = CaseSet(
    model_sha256=SHA,
    reference=REFERENCE,
    tolerance={"float32": Tolerance(1e-3, 1e-6)},
    output_tolerance={HOSTILE: Tolerance(0.0, 0.5)},
    cases=(
        GoldenCase("random-1", "random, seed 0", VALUES, VALUES[:1], Grade(1e-7, 0.01)),
        GoldenCase(
            "loop", "sample", VALUES[:1], VALUES, Grade(weak=("constant output",)), FeedBack(4, {"state": "out"})
        ),
    ),
    left_out=("batch=3: refused",),
)
ENVIRONMENT = Environment(
    runner="chromium",
    runtime="onnxruntime-web",
    runtime_version="1.30.0",
    variant="jspi",
    execution_provider_asked="webgpu",
    execution_provider="webgpu",
    threads=2,
    cross_origin_isolated=True,
    adapter=Adapter("google", "swiftshader", "", "SwiftShader", True, ("subgroups",)),
    user_agent=HOSTILE,
    device=None,
)
RECORD = RunRecord(
    run="run-1",
    hashes=Hashes(SHA, SHA, None),
    environment=ENVIRONMENT,
    attempts=(Attempt("jspi", "webgpu", "created"), Attempt("wasm", "wasm", "unavailable", HOSTILE)),
    timings=Timings(1.0, None, 2.5, 3.0, (1.0, 2.0)),
    cases=(CaseRun("random-1", "done", VALUES, run_ms=1.5), CaseRun("loop", "failed", error=HOSTILE)),
    misses=(Miss("jspi", (7, 4711), "run", "cpu", "flag", HOSTILE), Miss("jspi", (), "create", None, "trap", "")),
    placement=(
        Placed("WebGpuExecutionProvider", 87, 6, (PlacedNode(HOSTILE, "Conv"),)),
        Placed("CPUExecutionProvider", 1, 0, (PlacedNode("", "If"),)),
    ),
)
MANIFEST = Manifest(
    edgekit_version="0.1.0",
    kind="web",
    target="t",
    title=HOSTILE,
    model=ModelEntry("model/model.onnx", SHA),
    runtime=RuntimeEntry("onnxruntime-web", "1.30.0", ("jspi", "wasm")),
    files=(FileEntry("index.html", SHA, 12),),
)
METRICS = Metrics(
    max_abs=0.5,
    max_rel=math.inf,
    rmse=0.1,
    cosine=math.nan,
    snr_db=math.inf,
    scale=1.0,
    nan_count=0,
    inf_count=1,
    reference_nan_count=0,
    reference_inf_count=0,
    first_nonfinite=3,
    worst_index=(0, 1),
    worst_value=-math.inf,
    worst_reference=1.0,
    passing_relative=math.inf,
    top1_agrees=1.0,
    top1_margin=0.25,
)
VERDICT = Verdict(
    status="failed",
    title=HOSTILE,
    target=None,
    reference=REFERENCE,
    environment=ENVIRONMENT,
    attempts=RECORD.attempts,
    expected=2,
    compared=1,
    outputs=(
        OutputVerdict("random-1", "y", "float32", "mismatch", Tolerance(1e-3, 0.0), METRICS, "too far"),
        OutputVerdict("loop", "y", "float32", "case_failed"),
    ),
    reasons=("one output differs",),
)


def through_json(document: dict[str, Any]) -> dict[str, Any]:
    """Write and read strict JSON, as another program would."""
    back: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return back


def assert_same_values(a: tuple[Value, ...], b: tuple[Value, ...]) -> None:
    assert [(x.name, x.dtype, x.note) for x in a] == [(y.name, y.dtype, y.note) for y in b]
    assert all(same_bits(x, y) for x, y in zip(a, b, strict=True))


def test_cases_survive_their_files() -> None:
    document, data = cases.to_files(CASES)
    back = cases.from_files(through_json(document), data)
    assert replace(back, cases=()) != back
    assert (back.model_sha256, back.reference, back.left_out) == (SHA, REFERENCE, CASES.left_out)
    assert (back.tolerance, back.output_tolerance) == (CASES.tolerance, CASES.output_tolerance)
    for mine, other in zip(CASES.cases, back.cases, strict=True):
        assert (mine.id, mine.origin, mine.grade, mine.feed_back) == (
            other.id,
            other.origin,
            other.grade,
            other.feed_back,
        )
        assert_same_values(mine.inputs, other.inputs)
        assert_same_values(mine.outputs, other.outputs)


def test_a_case_without_a_reason_to_be_weak_is_strong() -> None:
    assert [case.grade.strong for case in CASES.cases] == [True, False]


def test_the_same_cases_give_the_same_bytes() -> None:
    assert cases.to_files(CASES) == cases.to_files(CASES)


def test_a_run_record_survives_its_files() -> None:
    document, data = run_record.to_files(RECORD)
    back = run_record.from_files(through_json(document), data)
    for name in ("run", "hashes", "environment", "attempts", "timings", "error", "misses", "placement"):
        assert getattr(back, name) == getattr(RECORD, name)
    for mine, other in zip(RECORD.cases, back.cases, strict=True):
        assert (mine.id, mine.status, mine.error, mine.run_ms) == (other.id, other.status, other.error, other.run_ms)
        assert_same_values(mine.outputs, other.outputs)


def test_only_a_device_that_was_emulated_says_so() -> None:
    document, data = run_record.to_files(RECORD)
    assert "emulated" not in document["environment"]
    played = replace(RECORD, environment=replace(RECORD.environment, emulated=True))
    document, data = run_record.to_files(played)
    assert document["environment"]["emulated"] is True
    assert run_record.from_files(document, data).environment == played.environment


def test_a_record_of_a_page_that_failed_early_survives() -> None:
    nowhere = replace(ENVIRONMENT, variant=None, execution_provider=None, adapter=None, cross_origin_isolated=None)
    early = replace(RECORD, environment=nowhere, error="no runtime", cases=(CaseRun("random-1", "skipped"),))
    document, data = run_record.to_files(early)
    back = run_record.from_files(through_json(document), data)
    assert (back.environment, back.error) == (nowhere, "no runtime")
    assert [case.status for case in back.cases] == ["skipped"]


def test_a_record_from_before_runtimes_were_trimmed_has_no_misses() -> None:
    document, data = run_record.to_files(RECORD)
    del document["misses"]
    assert run_record.from_files(through_json(document), data).misses == ()


def test_a_record_from_before_placements_were_asked_for_has_none() -> None:
    document, data = run_record.to_files(RECORD)
    for old in ({k: v for k, v in document.items() if k != "placement"}, document | {"placement": None}):
        assert run_record.from_files(old, data).placement is None
    assert run_record.from_files(document | {"placement": []}, data).placement == ()


def test_a_manifest_survives_its_file() -> None:
    assert manifest.from_json(through_json(manifest.to_json(MANIFEST))) == MANIFEST
    assert "sessions" not in manifest.to_json(MANIFEST)  # its bytes are those of before there were settings


def test_settings_of_a_session_survive_in_a_manifest_and_in_a_record() -> None:
    settings = SessionSettings("basic", "NCHW", (HOSTILE.replace("\n", ""),))
    told = replace(MANIFEST, sessions={"jspi": settings})
    assert manifest.from_json(through_json(manifest.to_json(told))) == told
    document, data = run_record.to_files(replace(RECORD, environment=replace(ENVIRONMENT, session=settings)))
    assert run_record.from_files(through_json(document), data).environment.session == settings
    del document["environment"]["session"]  # as pages wrote it that knew no settings
    assert run_record.from_files(through_json(document), data).environment.session is None


@pytest.mark.parametrize("wrong", [{"layout": "NCWH"}, {"optimization": "most"}, {"cpu_nodes": ["a\nb"]}])
def test_settings_that_no_runtime_has_are_refused(wrong: dict[str, Any]) -> None:
    document = manifest.to_json(replace(MANIFEST, sessions={"jspi": SessionSettings()}))
    document["sessions"]["jspi"] |= wrong
    with pytest.raises(UsageError, match=r"manifest\.json"):
        manifest.from_json(through_json(document))


def test_a_verdict_fits_its_schema() -> None:
    document = validated(through_json(verdict.to_json(VERDICT)), "verdict", "verdict.json")
    metrics = document["outputs"][0]["metrics"]
    assert (metrics["cosine"], metrics["snr_db"], metrics["worst_value"]) == ("NaN", "Infinity", "-Infinity")


def test_only_the_status_passed_has_passed() -> None:
    statuses = ("passed", "failed", "refused", "not_run")
    assert [replace(VERDICT, status=status).passed for status in statuses] == [True, False, False, False]  # type: ignore[arg-type]


def documents() -> dict[str, tuple[dict[str, Any], Any]]:
    """Each kind of document with the function that reads it."""
    case_document, case_data = cases.to_files(CASES)
    record_document, record_data = run_record.to_files(RECORD)
    return {
        "cases": (case_document, lambda d: cases.from_files(d, case_data)),
        "record": (record_document, lambda d: run_record.from_files(d, record_data)),
        "manifest": (manifest.to_json(MANIFEST), manifest.from_json),
        "verdict": (verdict.to_json(VERDICT), lambda d: validated(d, "verdict", "verdict.json")),
    }


@pytest.mark.parametrize("kind", ["cases", "record", "manifest", "verdict"])
def test_a_missing_or_unknown_key_is_refused_anywhere_at_the_top(kind: str) -> None:
    document, read = documents()[kind]
    read(document)
    for key in document.keys() - {
        "misses",
        "placement",
        "again",
        "soak",
        "steadiness",
        "labels",
        "strength",
    }:  # older records lack them
        with pytest.raises(UsageError, match="does not fit the contract"):
            read({k: v for k, v in document.items() if k != key})
    with pytest.raises(UsageError, match="does not fit the contract"):
        read(document | {"extra": 1})
    with pytest.raises(UsageError, match="at format"):
        read(document | {"format": 2})


@pytest.mark.parametrize("kind", ["cases", "record", "manifest"])
@pytest.mark.parametrize("wrong", [None, [], "text", 3, {}, {"format": 1}])
def test_another_document_is_refused(kind: str, wrong: Any) -> None:
    with pytest.raises(UsageError, match="does not fit the contract"):
        documents()[kind][1](wrong)


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("record", ("hashes", "model"), "not a hash"),
        ("record", ("timings", "create_ms"), -1),
        ("record", ("timings", "later_run_ms"), ["1"]),
        ("record", ("cases", 0, "status"), "passed"),
        ("record", ("cases", 0, "outputs", 0, "shape"), [-1]),
        ("record", ("environment", "threads"), 1.5),
        ("record", ("placement", 0, "node_count"), -1),
        ("record", ("placement", 1, "nodes", 0, "name"), "x" * 501),
        ("record", ("environment", "adapter", "software"), "no"),
        ("cases", ("cases", 0, "grade", "weak"), "text"),
        ("cases", ("tolerance", "float32", "relative"), -1),
        ("manifest", ("files", 0, "bytes"), -1),
        ("manifest", ("model", "sha256"), SHA.upper()),
    ],
)
def test_a_wrong_value_is_named_with_its_place(kind: str, place: tuple[Any, ...], value: Any) -> None:
    document, read = documents()[kind]
    document = copy.deepcopy(document)
    inner: Any = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(UsageError, match=f"at {'/'.join(str(p) for p in place)}"):
        read(document)


def test_a_message_about_a_huge_value_stays_short() -> None:
    document, read = documents()["manifest"]
    with pytest.raises(UsageError) as caught:
        read(document | {"title": ["x" * 100_000]})
    assert len(caught.value.message) < 500


def test_numbers_that_json_lacks_are_spelled_out() -> None:
    value = {"a": (1.5, math.nan, [math.inf, -math.inf]), "b": {"c": (True, None, 2)}}
    assert jsonable(value) == {"a": [1.5, "NaN", ["Infinity", "-Infinity"]], "b": {"c": [True, None, 2]}}
