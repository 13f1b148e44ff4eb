"""A bundle's golden cases on a recording runtime in a real Chromium, and on runtimes cut to what was recorded."""

import asyncio
import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import web_bundle

from edgekit import resources
from edgekit.bundle.open import Bundle, open_bundle
from edgekit.conformance.cases import Case
from edgekit.errors import BundleError, ParityError, UsageError
from edgekit.files import sha256_bytes, sha256_file
from edgekit.records.cases import CaseSet, GoldenCase
from edgekit.records.tensors import same_bits, value_of
from edgekit.runners import browsers, chromium, conformance, own_page, recording, tab
from edgekit.runners.recording import Job, RecordedRun
from edgekit.runtime import pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.fetch import fetch
from edgekit.runtime.pins import AdapterName
from edgekit.runtime.recording import THREADS, Recording, entered_by_chance, recording_dist
from edgekit.serve.app import create_static_app
from edgekit.serve.server import serving
from edgekit.wasm.edits import cut
from edgekit.wasm.module import parse

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("recording")]

CPU = pins.load().chosen(["wasm"], "test")[0]
DIGITS = resources.root("examples") / "digits"
MISS_ADDRESS = 16
FAILURES = ("wrong rank", "wrong dtype", "missing input", "wrong dimension", "unknown output")
REFUSALS = ("truncated model", "garbage", "unknown operator")


def digits_cases(model: Path) -> CaseSet:
    """Three of the sample's images, in two batches."""
    images = np.load(DIGITS / "samples.npz")["image"]
    session = onnxruntime.InferenceSession(model)
    cases = []
    for name, batch in (("one", images[:1]), ("two", images[1:3])):
        outputs = zip(("logits", "probabilities"), session.run(None, {"image": batch}), strict=True)
        given = (value_of("image", batch),)
        cases.append(GoldenCase(name, "samples", given, tuple(value_of(key, array) for key, array in outputs)))
    return dataclasses.replace(web_bundle.cases_for(model), cases=tuple(cases))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    model, folder = DIGITS / "digits.onnx", tmp_path_factory.mktemp("recording") / "digits"
    web_bundle.build(model, folder, cases=digits_cases(model))
    return open_bundle(folder)


@pytest.fixture(scope="module")
def recorder() -> tuple[RuntimeDist, Recording]:
    return recording_dist(fetch(), CPU)


@pytest.fixture(scope="module")
def recorded(bundle: Bundle, recorder: tuple[RuntimeDist, Recording]) -> tuple[RecordedRun, RecordedRun, RecordedRun]:
    """Recorded with one thread and with four; and the stock runtime, which records nothing, in the page itself."""
    recordings = [Job(CPU, *recorder, threads=threads) for threads in THREADS]
    one, four, stock = recording.record_all(bundle, [*recordings, Job(CPU, fetch(), worker=False)], at_once=2)
    return one, four, stock


def dist_of(folder: Path, keep: Collection[int]) -> RuntimeDist:
    """The runtime cut to ``keep``."""
    stock = fetch()
    wasm = cut(parse((stock.folder / CPU.wasm).read_bytes()), keep, MISS_ADDRESS).to_bytes()
    folder.mkdir()
    for name in (CPU.api, CPU.mjs):
        (folder / name).write_bytes((stock.folder / name).read_bytes())
    (folder / CPU.wasm).write_bytes(wasm)
    return dataclasses.replace(stock, folder=folder, files={**stock.files, CPU.wasm: sha256_bytes(wasm)}, pinned=False)


def step(run: RecordedRun, name: str) -> recording.Step:
    return next(step for step in run.steps if step.name == name)


def assert_same(run: RecordedRun, other: RecordedRun) -> None:
    """Two runs took the same steps, to the same ends, with the same words and the same bits."""
    assert [(step.name, step.outcome) for step in run.steps] == [(step.name, step.outcome) for step in other.steps]
    assert run.failures == other.failures
    assert list(run.outputs) == list(other.outputs) == ["one", "two"]
    for case_id, outputs in run.outputs.items():
        assert all(same_bits(a, b) for a, b in zip(outputs, other.outputs[case_id], strict=True))


def test_every_step_is_taken_and_says_what_it_entered(recorded: tuple[RecordedRun, ...]) -> None:
    one, four, stock = recorded
    assert (one.end, four.end, stock.end) == ("done", "done", "done")
    assert (one.threads, four.threads) == (1, 4)
    assert (one.execution_provider, one.adapter, one.misses) == ("wasm", None, ())
    assert set(one.failures) == {*FAILURES, *REFUSALS}
    assert "Invalid rank for input: image" in one.failures["wrong rank"]
    assert "NoSuchOperator" in one.failures["unknown operator"]
    assert 2_000 < len(step(one, "create").functions) < len(one.functions) < 6_000
    assert len(step(one, "case one").functions) < 1_000
    assert step(one, "wrong rank").functions - step(one, "case one").functions
    assert not stock.functions


def test_a_recording_runtime_answers_as_the_stock_one(recorded: tuple[RecordedRun, ...]) -> None:
    one, four, stock = recorded
    assert_same(one, stock)
    assert_same(four, stock)
    repeated = step(one, "case one, after failures").outputs
    assert all(same_bits(a, b) for a, b in zip(repeated, one.outputs["one"], strict=True))


def test_what_another_page_records_of_the_same_model_is_among_it(
    bundle: Bundle, recorder: tuple[RuntimeDist, Recording], recorded: tuple[RecordedRun, ...]
) -> None:
    image = next(iter(digits_cases(DIGITS / "digits.onnx").cases)).inputs
    case = Case("digits", "standard", (DIGITS / "digits.onnx").read_bytes(), image, (), None, True)
    (reply,) = conformance.replay([case], CPU, recorder[0], recording=recorder[1]).replies
    assert reply.functions is not None
    bits = np.unpackbits(np.frombuffer(reply.functions, np.uint8), bitorder="little")
    known = frozenset(np.flatnonzero(bits).tolist())
    assert len(known) > 2_000
    assert known <= recorded[0].functions


def test_what_the_runtime_has_for_a_gpu_is_entered_when_the_adapter_goes_by_its_name(bundle: Bundle) -> None:
    (gpu,) = pins.load().chosen(["jspi"], "test")
    recorder = recording_dist(fetch(), gpu)
    known = (AdapterName("intel", "xe-2lpg"), AdapterName("intel", "xe-3lpg"))
    names = ["as intel xe-2lpg", "as intel xe-3lpg"]
    jobs = [Job(gpu, *recorder, posing_as=adapters) for adapters in (known, known[:1], known[1:])]
    both, one, other = recording.record_all(bundle, jobs, gpu="software", at_once=2)
    assert [step.name for step in both.steps] == [
        f"{what} {name}" for name in names for what in ("create", "case one", "release")
    ]
    for run in (both, one, other):
        assert run.end == "done" and not run.failures
        assert run.adapter is not None and run.adapter.software  # what it calls itself to edgekit is what it is
    assert one.functions - other.functions and other.functions - one.functions
    # One page does for all names: each session asks for the adapter anew.
    assert both.functions >= one.functions | other.functions
    profile = profiles.find(fetch().files[gpu.wasm])
    assert profile is not None and (one.functions ^ other.functions) <= profile.start


def test_a_runtime_cut_to_the_recorded_functions_misses_nothing_and_one_cut_to_less_says_what(
    bundle: Bundle, recorded: tuple[RecordedRun, ...], tmp_path: Path
) -> None:
    one, four, stock = recorded
    chance = entered_by_chance(parse((fetch().folder / CPU.wasm).read_bytes()), one.functions, four.functions)
    # Threads that have to wait for each other enter more, which only some runs do: the profile has seen it.
    known = profiles.find(fetch().files[CPU.wasm])
    assert known is not None
    keep = one.functions | four.functions | chance | known.threads
    enough = dist_of(tmp_path / "enough", keep)
    start = step(one, "create").functions
    little = dist_of(tmp_path / "little", start)
    single = dist_of(tmp_path / "single", one.functions)
    runs = recording.record_all(
        bundle,
        [
            Job(CPU, enough, threads=1, miss_address=MISS_ADDRESS),
            Job(CPU, enough, threads=2, miss_address=MISS_ADDRESS),
            Job(CPU, little, threads=1, miss_address=MISS_ADDRESS),
            Job(CPU, little, threads=1, worker=False, miss_address=MISS_ADDRESS),
            Job(CPU, single, threads=2, miss_address=MISS_ADDRESS),
        ],
        at_once=2,
    )
    for run in runs[:2]:
        assert (run.end, run.misses) == ("done", ())
        assert_same(run, stock)
    for run in runs[2:4]:
        assert (run.end, run.steps[-1].name, run.steps[-1].outcome) == ("stopped", "case one", "trapped")
        assert not run.outputs
        (missed,) = run.misses
        assert missed - 1 in step(one, "case one").functions - start
    # More threads than recorded: which of the threads traps, and whether another waits for it, is not always the same.
    assert runs[4].end in ("stopped", "hangs")
    assert runs[4].misses
    assert all(missed - 1 in keep - one.functions for missed in runs[4].misses)


SCRIPT = """
export const env = { versions: { common: 'fake', web: 'fake' }, wasm: {} };
export class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
export const InferenceSession = { async create() { WHAT } };
"""


def fake(folder: Path, what: str) -> RuntimeDist:
    contents = {CPU.api: SCRIPT.replace("WHAT", what).encode(), CPU.mjs: b"", CPU.wasm: b"\0asm\1\0\0\0"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return RuntimeDist(folder, "fake", "0", {name: sha256_file(folder / name) for name in contents}, False)


@pytest.mark.parametrize("worker", [True, False])
def test_a_page_that_falls_silent_is_an_error_that_names_variant_and_threads(
    bundle: Bundle, tmp_path: Path, worker: bool
) -> None:
    jobs = [Job(CPU, fake(tmp_path, "for (;;) {}"), threads=2, worker=worker)]
    with pytest.raises(ParityError, match=r"variant wasm, 2 threads broke before its first step: no answer within 2 s"):
        recording.record_all(bundle, jobs, silence_seconds=2)


def test_a_page_that_breaks_is_an_error_that_says_why_and_ends_the_others(bundle: Bundle, tmp_path: Path) -> None:
    for name in ("silent", "broken"):
        (tmp_path / name).mkdir()
    silent, dist = fake(tmp_path / "silent", "for (;;) {}"), fake(tmp_path / "broken", "")
    (dist.folder / CPU.api).write_text("throw new Error('not a runtime');")
    broken = dataclasses.replace(dist, files={**dist.files, CPU.api: sha256_file(dist.folder / CPU.api)})
    with pytest.raises(ParityError, match=r"variant wasm, 1 thread broke before its first step: .*not a runtime"):
        recording.record_all(bundle, [Job(CPU, silent, threads=2), Job(CPU, broken)], at_once=2)


def test_a_session_that_is_not_created_is_told_and_no_error(bundle: Bundle, tmp_path: Path) -> None:
    run = recording.record(bundle.folder, CPU, fake(tmp_path, "throw new Error('no kernel');"), None, threads=1)
    assert (run.end, run.runtime_version, dict(run.outputs)) == ("done", "fake", {})
    assert run.failures == dict.fromkeys(("create", *REFUSALS), "no kernel")


def test_what_cannot_run_at_all_is_an_error_before_a_browser_starts(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        recording.record(tmp_path, CPU, fetch(), None, threads=1)
    with pytest.raises(UsageError, match="no whole variant"):
        recording.record(bundle, CPU, dataclasses.replace(fetch(), folder=tmp_path, files={}), None, threads=1)


@pytest.fixture
def page_url(tmp_path: Path) -> Iterator[str]:
    """A page that says nothing."""
    files = own_page.files("recording", tmp_path, {"job.json": b"{}"}, CPU, fetch())
    with serving(create_static_app({"index.html": files["job.json"]})) as url:
        yield url


def test_a_page_that_crashes_is_heard(page_url: str) -> None:
    async def crashed() -> own_page.Report:
        async with tab.driver() as playwright:
            program = browsers.find(None, chromium.own_path(playwright))
            async with (
                chromium.launched(playwright, program, "auto") as browser,
                own_page.opened(browser, page_url, "recording") as reports,
            ):
                context = browser.contexts[0]
                session = await context.new_cdp_session(context.pages[0])
                crashing = asyncio.ensure_future(session.send("Page.crash"))
                report = await reports.next(20)
                crashing.cancel()
                return report

    report = asyncio.run(crashed())
    assert (report.kind, report.document) == (own_page.DIED, {"error": "the browser's tab crashed"})
