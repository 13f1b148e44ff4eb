"""The plain Java core of Android projects on a desktop's JVM: the same files and records as Python and JavaScript."""

import json
import random
import struct
from pathlib import Path

import jvm
import numpy as np
from android_bundle import needs

from edgekit import compare
from edgekit.errors import UsageError
from edgekit.files import json_bytes
from edgekit.records import cases as case_files
from edgekit.records import run_record, tensors
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Reference, Tolerance
from edgekit.records.run_record import RunRecord
from edgekit.records.tensors import NUMPY_DTYPES, Value
from edgekit.records.verdict import Verdict

pytestmark = needs("apk", "tests")

SAMPLES = Path(__file__).parents[1] / "models" / "records" / "valid"
MODEL, MANIFEST = "a" * 64, "b" * 64


def case_set() -> CaseSet:
    """Cases with every dtype, names that mean something elsewhere, strings, and a loop."""
    everything = tuple(
        Value(f"{name} <b>\"é☃😀'\\n", name, np.arange(6).reshape(2, 3).astype(NUMPY_DTYPES[name]))
        for name in NUMPY_DTYPES
    )
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    nothing = Value("e", "float32", np.zeros((0, 3), np.float32))
    strings = Value("s", "string", np.array([["a", 'é"\\'], ["", "\u2028😀"]], dtype=object))
    # Run twice, each time doubled: the model of the drive gives back what the case with those inputs says.
    one, two, four = (Value("x", "int64", np.array([n])) for n in (1, 2, 4))
    state = [Value("state", "int64", value.array) for value in (one, two, four)]
    cases = (
        GoldenCase("every-dtype", "by hand", everything, everything),
        GoldenCase("odd", "by hand", (Value("x", "float32", odd),), (Value("y", "float32", odd), strings)),
        GoldenCase("first-step", "by hand", (one,), (state[1],)),
        GoldenCase("second-step", "by hand", (two,), (state[2],)),
        GoldenCase("loop", "by hand", (one,), (state[2],), feed_back=FeedBack(2, {"x": "state"})),
        GoldenCase("empty", "by hand", (nothing,), (Value("y", "float32", np.float32(7)),)),
    )  # fmt: skip
    tolerance = {"float32": Tolerance(1e-6, 1e-6)}
    return CaseSet(MODEL, Reference("by hand", "none", "0", "disabled"), tolerance, {}, cases)


def replay(core_classes: Path, folder: Path, given: CaseSet, *cases: str, how: str = "echo") -> RunRecord:
    (folder / "out").mkdir(parents=True)
    document, data = case_files.to_files(given)
    (folder / "cases.json").write_bytes(json_bytes(document))
    (folder / "cases.safetensors").write_bytes(data)
    jvm.run_java(core_classes, "replay", folder, folder / "out", how, MANIFEST, MODEL, "r1", "1.29.0", *cases)
    written = json.loads((folder / "out" / "record.json").read_bytes())
    return run_record.from_files(written, (folder / "out" / "record.safetensors").read_bytes())


def judge(given: CaseSet, record: RunRecord, cases: tuple[str, ...] | None = None) -> Verdict:
    return compare.judge(
        given, record, title="t", target=None, cases=cases, manifest_sha256=MANIFEST, runtime_version="1.29.0"
    )


def test_a_record_that_java_writes_is_read_and_judged_here(core_classes: Path, tmp_path: Path) -> None:
    given = case_set()
    record = replay(core_classes, tmp_path, given)
    verdict = judge(given, record)
    # The drive's model has an output more, which is no tensor.
    assert verdict.reasons and all("no tensor" in reason for reason in verdict.reasons)
    assert {output.status for output in verdict.outputs} == {"match"}
    assert verdict.compared == verdict.expected == sum(len(case.outputs) for case in given.cases)
    assert (record.run, record.hashes.manifest, record.hashes.model) == ("r1", MANIFEST, MODEL)
    assert [(a.variant, a.status) for a in record.attempts] == [("xnnpack", "refused"), ("cpu", "created")]
    assert record.environment.emulated
    assert all(run.equal for run in record.again)
    assert record.timings.create_ms == 1.5
    assert len(record.timings.later_run_ms) == 2


def test_the_twin_a_model_that_refuses_is_told_with_its_words(core_classes: Path, tmp_path: Path) -> None:
    given = case_set()
    record = replay(core_classes, tmp_path, given, how="refuse")
    assert judge(given, record).status == "failed"
    assert {case.status for case in record.cases} == {"failed"}
    assert record.cases[0].error == 'It refuses "everything" \u2028 😀.'


def test_cases_that_were_not_asked_for_are_skipped_and_unknown_ones_are_said(
    core_classes: Path, tmp_path: Path
) -> None:
    given = case_set()
    record = replay(core_classes, tmp_path / "some", given, "odd", "empty")
    assert {run.id: run.status for run in record.cases if run.status != "skipped"} == {"odd": "done", "empty": "done"}
    wrong = replay(core_classes, tmp_path / "none", given, "gone")
    assert wrong.error == "There is no golden case 'gone'."
    assert judge(given, wrong).status != "passed"


def test_tensor_files_have_the_bytes_that_python_writes(core_classes: Path, tmp_path: Path) -> None:
    """Whatever is in them: drawn at random, with a seed."""
    draw = random.Random(5)  # noqa: S311  no secret
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    names = ["a", "b/c", "é☃", "😀", "\ufffd", '"\\\n\x01', "zz" * 50, "A", ""]
    for number in range(20):
        arrays = {}
        for name in draw.sample(names, draw.randint(0, len(names))):
            dtype = NUMPY_DTYPES[draw.choice(list(NUMPY_DTYPES))]
            shape = tuple(draw.randint(0, 3) for _ in range(draw.randint(0, 3)))
            count = int(np.prod(shape, dtype=int)) * dtype.itemsize
            data = bytes(draw.randrange(2 if dtype.kind == "b" else 256) for _ in range(count))
            arrays[name] = np.frombuffer(data, dtype).reshape(shape)
        (tmp_path / "in" / f"{number:02}.safetensors").write_bytes(tensors.encode(arrays))
    said = jvm.read_files(core_classes, tmp_path / "in", tmp_path / "out")
    assert len(said) == 20
    assert set(said.values()) == {"read"}
    for name in said:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "in" / name).read_bytes(), name


def test_what_python_refuses_java_refuses_too(core_classes: Path, tmp_path: Path) -> None:
    """Files of tensors that lie, and noise."""
    good = tensors.encode({"x": np.arange(4, dtype=np.int32), "y": np.float64([1.5])})
    draw = random.Random(7)  # noqa: S311  no secret
    files = {"cut": good[:-1], "longer": good + b"\0", "empty": b"", "short": good[:20], "noise": bytes(range(64))}
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    for name, header in {
        "overlap": {"a": entry, "b": entry},
        "gap": {"a": {**entry, "data_offsets": [4, 12]}},
        "type": {"a": {**entry, "dtype": "F8"}},
        "shape": {"a": {**entry, "shape": [-2]}},
        "huge": {"a": {**entry, "shape": [1 << 40, 1 << 40]}},
        "text": {"a": {**entry, "shape": ["2"]}},
        "real": {"a": {**entry, "shape": [2.0]}},
        "more": {"a": {**entry, "more": 1}},
        "list": [1],
        "backwards": {"a": {**entry, "data_offsets": [8, 0]}},
    }.items():
        text = json.dumps(header).encode()
        files[name] = struct.pack("<Q", len(text)) + text + bytes(8)
    text = (
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    )
    files["twice"] = struct.pack("<Q", len(text)) + text + bytes(8)
    deep = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    files["deep"] = struct.pack("<Q", len(deep)) + deep
    files["latin"] = struct.pack("<Q", 3) + b'{"\xff'
    for number in range(100):
        at = draw.randrange(len(good))
        files[f"bent-{number}"] = good[:at] + bytes([draw.randrange(256)]) + good[at + 1 :]
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for name, data in files.items():
        (tmp_path / "in" / f"{name}.safetensors").write_bytes(data)
    said = jvm.read_files(core_classes, tmp_path / "in", tmp_path / "out")
    for name, data in files.items():
        try:
            tensors.decode(data, "it")
            fine = True
        except UsageError:
            fine = False
        assert (said[f"{name}.safetensors"] == "read") == fine, (name, said[f"{name}.safetensors"])


def test_the_shared_records_are_the_same_documents_in_java(core_classes: Path, tmp_path: Path) -> None:
    """The samples that pytest and node --test judge, and JSON that is none."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    samples = sorted(SAMPLES.glob("*.json"))
    for sample in samples:
        (tmp_path / "in" / sample.name).write_bytes(sample.read_bytes())
    bad = ["{", "[1,]", "{'a':1}", "01", "1.", "-", "+1", "NaN", '"\t"', '"\\x"', '"\\u12g4"', "tru", "1 2",
           '{"a":1,"a":2}', "", "[" * 5000, '{"a"}', "\ufeff1", "1e", ".5", '"open', "nulll"]  # fmt: skip
    for number, text in enumerate(bad):
        (tmp_path / "in" / f"bad-{number:02}.json").write_text(text, encoding="utf-8")
    said = jvm.read_files(core_classes, tmp_path / "in", tmp_path / "out")
    for sample in samples:
        assert said[sample.name] == "read"
        assert json.loads((tmp_path / "out" / sample.name).read_bytes()) == json.loads(sample.read_bytes())
    for number, text in enumerate(bad):
        assert said[f"bad-{number:02}.json"].startswith("This is not JSON"), text
