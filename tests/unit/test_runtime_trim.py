"""A variant's runtime is cut, proven on the bundle's golden cases in a real Chromium, and given up where it must be."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import ort_in_node
import pytest
import web_bundle
from models_text import LINEAR, write
from ort_in_node import CPU

from edgekit import runtime_record, runtime_trim
from edgekit.bundle.runtime_files import CutRuntimes
from edgekit.errors import UsageError
from edgekit.facts.operators import Operator
from edgekit.model import io as model_io
from edgekit.records import run_record
from edgekit.records.run_record import Environment, Hashes, Miss, RunRecord, Timings
from edgekit.runners import recording
from edgekit.runners.recording import Job, RecordedRun
from edgekit.runtime import fetch
from edgekit.runtime import profile as profiles
from edgekit.runtime.profile import Profile
from edgekit.runtime.recording import recording_dist
from edgekit.runtime_record import Recorded
from edgekit.runtime_trim import Missed, TrimmedVariant, trim
from edgekit.wasm import sections
from edgekit.wasm.layout import segment_ranges
from edgekit.wasm.module import parse

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("recording")]

# Its answer rests on a table of powers of two in the data, which begins so.
POWER = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2] x) => (float[N, 2] y) <float e = {1.7}> { y = Pow(x, e) }"""
POWERS = np.array([0x3FF0000000000000, 0x3FEFD9B0D3158574], np.uint64).tobytes()
# No kernel of any build takes it.
REFUSED = '<ir_version: 8, opset_import: ["" : 17]> g (double[N, 2] x) => (double[N, 2] y) { y = Acosh(x) }'


@dataclass(frozen=True)
class Draft:
    """A bundle as ``build`` has it when it cuts the runtime, and the model in it."""

    folder: Path
    model: Path

    def trim(self, work: Path, **options: Any) -> TrimmedVariant:
        work.mkdir()
        (found,) = trim(self.folder, model_io.load(self.model), fetch.fetch(), [CPU], work, **options)
        return found


def draft(text: str, folder: Path, dtype: type = np.float32) -> Draft:
    model = write(text, folder)
    cases = web_bundle.cases_for(model)
    if text != LINEAR:
        given = tuple(
            replace(value, array=value.array.astype(dtype), dtype=np.dtype(dtype).name)
            for value in cases.cases[0].inputs
        )
        cases = replace(cases, cases=(replace(cases.cases[0], inputs=given),))
    web_bundle.build(model, folder / "bundle", cases=cases, copies=False)
    return Draft(folder / "bundle", model)


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Draft:
    return draft(LINEAR, tmp_path_factory.mktemp("linear"))


@pytest.fixture(scope="module")
def profile() -> Profile:
    found = profiles.find(fetch.fetch().files[CPU.wasm])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def recorded(linear: Draft) -> tuple[RecordedRun, ...]:
    recorder = recording_dist(fetch.fetch(), CPU)
    return recording.record_all(linear.folder, [Job(CPU, *recorder, threads=threads) for threads in (1, 4)])


@pytest.fixture(scope="module")
def small(linear: Draft, tmp_path_factory: pytest.TempPathFactory) -> TrimmedVariant:
    return linear.trim(tmp_path_factory.mktemp("small") / "work")


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Profile | bytes | None], Path]:
    """Put another profile in the place of the one that edgekit comes with; None: there is none."""
    monkeypatch.setattr(profiles, "PACKAGED", tmp_path / "packaged")
    monkeypatch.setattr(profiles, "cached", lambda: tmp_path / "none")
    (tmp_path / "packaged").mkdir()

    def put(what: Profile | bytes | None) -> Path:
        path = tmp_path / "packaged" / profiles.file_name(fetch.fetch().files[CPU.wasm])
        if what is not None:
            path.write_bytes(profiles.to_bytes(what) if isinstance(what, Profile) else what)
        return path

    return put


def answers(wasm: bytes, of: Draft, folder: Path) -> dict[str, Any]:
    return ort_in_node.answer(wasm, of.model, {"x": np.array([[1, 2]], np.float32)}, folder)


def test_the_runtime_is_cut_by_profile_and_recording_and_proven_with_one_thread_and_several(
    small: TrimmedVariant, profile: Profile, linear: Draft, tmp_path: Path
) -> None:
    assert (small.variant, small.reason, small.note, small.refused) == ("wasm", "", "", False)
    assert (small.sources, small.proven) == (("profile", "recording"), (1, 4))
    assert small.stock_sha256 == fetch.fetch().files[CPU.wasm]
    assert small.wasm is not None
    assert len(small.wasm) == small.steps[-1].bytes < small.stock_bytes / 2
    assert small.functions == profile.count
    assert small.kept == sum(count for _, count in small.added) < profile.count / 3
    assert [name for name, _ in small.added] == [
        "start-up and sessions", "the model's operators", "the model, recorded",
    ]  # fmt: skip
    assert answers(small.wasm, linear, tmp_path) == {"y": [2.5, 0, 0]}


@pytest.fixture
def threadless(profile: Profile, recorded: tuple[RecordedRun, ...], monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The profile without what several threads alone enter, which no recording tells either."""
    one, four = (run.functions for run in recorded)
    record = runtime_record.record

    def forgetful(*arguments: Any) -> Recorded:
        runs = tuple(
            run
            if run.threads == 1
            else replace(run, steps=tuple(replace(step, functions=step.functions & one) for step in run.steps))
            for run in record(*arguments).runs
        )
        return Recorded(runs)

    monkeypatch.setattr(runtime_trim, "record", forgetful)
    return replace(
        profile,
        start=profile.start - (four - one),
        threads=frozenset(),
        operators=tuple(replace(each, functions=each.functions - (four - one)) for each in profile.operators),
    )


def test_what_the_first_proof_misses_is_kept_in_the_next_round(
    linear: Draft, threadless: Profile, recorded: tuple[RecordedRun, ...], packaged: Any, tmp_path: Path
) -> None:
    one, four = (run.functions for run in recorded)
    # All is known but for one group, and so one more round is enough.
    lost = max(sorted(four - one), key=lambda k: sum(profiles.group_of(k) == profiles.group_of(j) for j in four - one))
    others = {k for k in four - one if profiles.group_of(k) != profiles.group_of(lost)}
    packaged(replace(threadless, threads=frozenset(others)))
    found = linear.trim(tmp_path / "work")
    assert found.added[-1][0] == "reported misses"
    assert (found.reason, found.proven) == ("", (1, 4))
    assert found.wasm is not None and found.sources == ("profile", "recording")


@pytest.mark.sweep
def test_the_twin_a_runtime_that_lacks_more_than_the_rounds_tell_is_shipped_as_published(
    linear: Draft, threadless: Profile, packaged: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged(threadless)
    monkeypatch.setattr(runtime_trim, "_ROUNDS", 1)
    found = linear.trim(tmp_path / "work")
    assert found.wasm is None
    assert found.reason == "after 1 rounds it still lacks functions that the model enters"


def place_of(content: bytes, size: int) -> profiles.TextPlace:
    """Where the data of the runtime have ``size`` bytes that begin so, said to be a text that nobody reads."""
    module = parse((fetch.fetch().folder / CPU.wasm).read_bytes())
    (address,) = (
        addresses.start + sections.segments(module)[number].data.index(content)
        for number, addresses in segment_ranges(module).items()
        if content in sections.segments(module)[number].data
    )
    return profiles.TextPlace(address, size, frozenset(), frozenset(), True)


def test_a_runtime_that_answers_otherwise_is_shipped_as_published(
    profile: Profile, packaged: Any, tmp_path: Path
) -> None:
    power = draft(POWER, tmp_path)
    packaged(replace(profile, texts=(place_of(POWERS, 256),)))
    found = power.trim(tmp_path / "work")
    assert found.wasm is None
    assert found.reason == "cut, it does not answer the same with 1 threads"


@pytest.mark.sweep
def test_a_runtime_that_refuses_in_other_words_is_shipped_as_published(
    linear: Draft, profile: Profile, packaged: Any, tmp_path: Path
) -> None:
    packaged(replace(profile, texts=(place_of(b"Invalid rank for ", 17),)))
    found = linear.trim(tmp_path / "work")
    assert found.wasm is None
    assert found.reason == "cut, it does not fail in the same words with 1 threads"


def test_without_a_browser_the_profile_alone_must_do_and_the_runtime_is_larger(
    linear: Draft, small: TrimmedVariant, tmp_path: Path
) -> None:
    found = linear.trim(tmp_path / "work", browser_path=tmp_path / "none")
    assert (found.sources, found.proven, found.reason) == (("profile",), (), "")
    assert found.note.startswith("not proven here: ") and str(tmp_path / "none") in found.note
    assert found.wasm is not None and small.wasm is not None
    assert len(small.wasm) < len(found.wasm) < found.stock_bytes / 1.5
    assert answers(found.wasm, linear, tmp_path) == {"y": [2.5, 0, 0]}


def test_where_golden_cases_fail_the_profile_keeps_its_margin_and_nothing_is_said_to_be_proven(tmp_path: Path) -> None:
    failing = draft(POWER, tmp_path, np.int64)  # of another dtype than the model takes
    found = failing.trim(tmp_path / "work")
    assert (found.reason, found.proven, found.refused) == ("", (), False)
    assert found.note.startswith("not proven here, where golden cases fail: Unexpected input data type")
    assert found.wasm is not None
    assert ort_in_node.answer(found.wasm, failing.model, {"x": np.array([[1, 4]], np.float32)}, tmp_path)


@pytest.mark.sweep
def test_a_build_that_refuses_the_model_is_cut_and_said_to_refuse(tmp_path: Path) -> None:
    found = draft(REFUSED, tmp_path, np.float64).trim(tmp_path / "work")
    assert (found.refused, found.reason, found.proven) == (True, "", (1, 4))


def test_a_build_without_a_profile_is_shipped_as_published_and_no_browser_starts(
    linear: Draft, packaged: Any, tmp_path: Path
) -> None:
    packaged(None)
    said: list[str] = []
    found = linear.trim(tmp_path / "work", progress=lambda message, done=None: said.append(message))
    assert found.wasm is None
    assert "no profile of this build is at hand ('edgekit runtime profile --variant wasm' measures one)" in found.reason
    assert found.stock_bytes == (fetch.fetch().folder / CPU.wasm).stat().st_size
    assert said == []


def test_a_damaged_profile_is_an_error_that_names_it(linear: Draft, packaged: Any, tmp_path: Path) -> None:
    path = packaged(b"damaged")
    with pytest.raises(UsageError, match="is not a runtime profile, or is damaged") as caught:
        linear.trim(tmp_path / "work")
    assert str(path) in caught.value.message


def test_what_devices_missed_is_kept_functions_and_kernels(
    linear: Draft, small: TrimmedVariant, profile: Profile, tmp_path: Path
) -> None:
    acosh = Operator("ai.onnx", "Acosh", 1, since=9)
    reported = {"wasm": Missed(frozenset({50}), frozenset({acosh})), "jspi": Missed(frozenset({1}))}
    found = linear.trim(tmp_path / "work", reported=reported, browser_path=tmp_path / "none")
    assert dict(found.added)["reported misses"] > 100
    assert found.wasm is not None and small.wasm is not None
    model = write('<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Acosh(x) }', tmp_path)
    feeds = {"x": np.array([1, 2], np.float32)}
    assert ort_in_node.answer(found.wasm, model, feeds, tmp_path)["y"] == pytest.approx([0, 1.3169579])
    assert "Acosh" in ort_in_node.answer(small.wasm, model, feeds, tmp_path)["error"]


@pytest.mark.parametrize("number", [0, 10_000])
def test_a_miss_that_this_runtime_cannot_have_is_refused(number: int, linear: Draft, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"No function of the runtime has the number {number}: a miss of another"):
        linear.trim(tmp_path / "work", reported={"wasm": Missed(frozenset({number}))}, browser_path=tmp_path / "none")


def record(path: Path, *misses: Miss) -> Path:
    environment = Environment("page", "ort", "0", "wasm", "wasm", "wasm", 1, True, None, None, None)
    made = RunRecord("r", Hashes(None, "0" * 64, None), environment, (), Timings(), (), misses=misses)
    document, tensors = run_record.to_files(made)
    path.mkdir()
    (path / "record.json").write_text(json.dumps(document))
    (path / "record.safetensors").write_bytes(tensors)
    return path


def miss(variant: str, *functions: int, reason: Any = "trap", message: str = "") -> Miss:
    return Miss(variant, functions, "run", "wasm", reason, message)


def test_the_misses_of_a_record_are_told_by_variant(tmp_path: Path) -> None:
    kernels = (
        "Could not find an implementation for Acosh(9) node with name ''",
        "Could not find an implementation for com.microsoft.Gelu(1) node with name 'a b'",
    )
    made = record(
        tmp_path / "run",
        miss("wasm", 3),
        miss("wasm", 5, 3, reason="silence"),
        miss("jspi", 0),
        *(miss("asyncify", reason="kernel", message=message) for message in kernels),
        miss("other"),
    )
    expected = {
        "wasm": Missed(frozenset({4, 6})),
        "jspi": Missed(frozenset({1})),
        "asyncify": Missed(
            frozenset(),
            frozenset({Operator("ai.onnx", "Acosh", 1, since=9), Operator("com.microsoft", "Gelu", 1, since=1)}),
        ),
    }
    told = runtime_trim.reported(made)
    assert told == runtime_trim.reported(made / "record.json")
    assert (told.misses, told.versions, told.models) == (expected, {"0"}, {"0" * 64})


def test_the_folder_of_several_combinations_tells_what_all_of_them_missed(tmp_path: Path) -> None:
    record(tmp_path / "chromium-1", miss("wasm", 3))
    record(tmp_path / "firefox-1")
    record(tmp_path / "firefox-4", miss("wasm", 5))
    (tmp_path / "notes").mkdir()
    assert runtime_trim.reported(tmp_path).misses == {"wasm": Missed(frozenset({4, 6}))}


def test_a_record_without_misses_that_are_known_is_refused(tmp_path: Path) -> None:
    for name, misses in (("none", ()), ("no trace", (miss("wasm"),))):
        with pytest.raises(UsageError, match="tells of no function that a trimmed runtime missed") as caught:
            runtime_trim.reported(record(tmp_path / name, *misses))
        assert caught.value.hint is not None and "--output" in caught.value.hint
    with pytest.raises(UsageError):
        runtime_trim.reported(tmp_path / "nowhere")


def test_the_plan_tells_all_but_the_bytes_of_the_runtime(small: TrimmedVariant) -> None:
    document = runtime_trim.plan([small], "same")
    assert json.loads(json.dumps(document)) == document
    assert (document["format"], document["net"], document["group"]) == (1, "same", profiles.GROUP)
    (row,) = document["runtimes"]
    assert "wasm" not in row
    assert (row["variant"], row["proven"], row["kept"]) == ("wasm", [1, 4], small.kept)
    assert row["steps"][0]["name"] == "stock"


def test_the_sizes_are_those_of_the_bundle_beside_the_stock_ones(
    small: TrimmedVariant, linear: Draft, tmp_path: Path
) -> None:
    runtime = fetch.fetch()
    assert small.wasm is not None
    manifest = web_bundle.build(
        linear.model,
        tmp_path / "cut",
        copies=False,
        cut=CutRuntimes({"wasm": small.wasm}, "cpu", {}),
    )
    (row,) = runtime_trim.sizes(manifest, runtime, [CPU], [small])
    assert (row.stock_bytes, row.bytes, row.brotli_bytes) == (small.stock_bytes, len(small.wasm), None)
    assert (row.kept, row.functions, row.proven) == (small.kept, small.functions, (1, 4))
    stock = replace(small, wasm=None, reason="why")
    (row,) = runtime_trim.sizes(
        web_bundle.build(linear.model, tmp_path / "stock", copies=False), runtime, [CPU], [stock]
    )
    assert (row.bytes, row.reason) == (row.stock_bytes, "why")
