"""A runtime that ``build`` cut to the sample model: the same answers, and a net under whatever else it is given."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import web_bundle
from models_text import write
from playwright.sync_api import Browser, sync_playwright

from edgekit import parity, resources
from edgekit.bundle.open import open_bundle
from edgekit.bundle.runtime_files import CutRuntimes, NetChoice
from edgekit.cli.main import run
from edgekit.files import sha256_file
from edgekit.parity import ParityOptions, ParityResult
from edgekit.records import store
from edgekit.records.cases import GoldenCase
from edgekit.records.run_record import RunRecord
from edgekit.records.tensors import value_of
from edgekit.runners import browsers, recording
from edgekit.runners.recording import Job
from edgekit.runtime import locate, pins
from edgekit.runtime.cut import MISS_ADDRESS
from edgekit.serve.app import create_app
from edgekit.serve.inbox import Inbox
from edgekit.serve.server import serving

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("trimmed runtime")]

CPU = pins.load().chosen(["wasm"], "test")[0]
WASM, STOCK = f"runtime/{CPU.wasm}", f"runtime/stock/{CPU.wasm}"
SAMPLE = resources.root("examples") / "digits"
HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
# The sample has convolutions, but none with gaps; and no Acosh, so that kernel is left out of its runtime.
DILATED = f"""{HEAD} (float[1, 1, 8, 8] x) => (float[1, 1, 6, 6] y) <float[1, 1, 2, 2] w = {{1, 2, 3, 4}}>
{{ y = Conv <dilations = [2, 2]> (x, w) }}"""
ACOSH = f"{HEAD} (float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] y) {{ y = Acosh(x) }}"
IMAGES = np.linspace(1, 3, 64, dtype=np.float32).reshape(1, 1, 8, 8)

# Opens the bundle as its page does, and runs images of some shapes and dtypes.
RUN = """async (runs) => {
  const lib = await import('./app/index.js');
  const config = JSON.parse(document.getElementById('edgekit-config').textContent);
  const host = lib.browserHost(globalThis);
  const misses = [];
  const model = new lib.ModelSource(() => lib.fetchModel(config, host, null, () => {}));
  const { opened } = await lib.openFirst(config.variants, {
    config, host, model, adapter: null, threads: 2, probe: null, onStep() {}, onMiss: (miss) => misses.push(miss),
  });
  const answers = [];
  for (const [name, dtype, shape] of runs) {
    const tensor = lib.tensorOf(dtype, shape, (k) => ((k * 37) % 101) / 101);
    try {
      const { outputs } = await opened.session.run([{ name, dtype, tensor }]);
      answers.push(outputs.map(({ tensor }) => [...tensor.data]));
    } catch (error) {
      answers.push(error.message);
    }
  }
  await opened.session.dispose();
  return { answers, misses };
}"""


def build(folder: Path, *options: object) -> Path:
    sample = ["--sample", str(SAMPLE / "samples.npz"), "--target", "wasm"]
    assert run(["build", str(SAMPLE / "digits.onnx"), *sample, "-o", str(folder), "--json", *map(str, options)]) == 0
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's bundle, as ``build`` makes it."""
    return build(tmp_path_factory.mktemp("digits") / "bundle")


def given(text: str, runtime: Path, folder: Path, net: NetChoice = "cpu") -> Path:
    """A bundle of another model, with the runtime that was cut for the bundle ``runtime``."""
    folder.mkdir()
    model = write(text, folder)
    (y,) = onnxruntime.InferenceSession(model).run(None, {"x": IMAGES})
    case = GoldenCase("only", "by hand", (value_of("x", IMAGES),), (value_of("y", y),))
    cut = CutRuntimes({"wasm": (runtime / WASM).read_bytes()}, net, {})
    cases = replace(web_bundle.cases_for(model), cases=(case,))
    web_bundle.build(model, folder / "bundle", cases=cases, cut=cut, copies=False)
    return folder / "bundle"


def replayed(bundle: Path, kept: Path, **options: Any) -> tuple[ParityResult, RunRecord]:
    result = parity.verify(bundle, ParityOptions(output=kept, repeats=1, **options))
    record = store.load_run(kept).record
    if record is None:  # a busy machine may not start a browser in time, which says nothing about the bundle
        result = parity.verify(bundle, ParityOptions(output=kept, repeats=1, **options))
        record = store.load_run(kept).record
    assert record is not None, result.verdict.reasons
    return result, record


@pytest.mark.parametrize("threads", [1, 2])
def test_the_golden_cases_pass_on_the_cut_runtime_without_a_miss(digits: Path, threads: int, tmp_path: Path) -> None:
    result, record = replayed(digits, tmp_path / "run", threads=threads)
    assert result.verdict.passed and result.verdict.compared > 10
    assert record.misses == ()
    assert record.environment.threads == threads
    assert record.hashes.runtime == sha256_file(digits / WASM) != sha256_file(digits / STOCK)


def test_what_a_visitor_loads_is_a_third_and_the_bundle_says_how_it_was_made(digits: Path) -> None:
    files = {entry.path: entry.bytes for entry in open_bundle(digits).manifest.files}
    assert files[f"{WASM}.br"] < 0.4 * files[f"{STOCK}.br"]
    assert files[WASM] < files[STOCK] / 2
    plan = json.loads((digits / "runtime-trim.json").read_text())
    (row,) = plan["runtimes"]
    assert (plan["net"], row["proven"], row["sources"]) == ("cpu", [1, 4], ["profile", "recording"])


@pytest.mark.sweep
def test_built_again_it_has_the_same_bytes(digits: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    again = build(tmp_path / "again")
    capfd.readouterr()
    assert (again / "manifest.json").read_bytes() == (digits / "manifest.json").read_bytes()
    assert sha256_file(again / WASM) == sha256_file(digits / WASM)


def test_on_webgpu_the_code_for_other_gpus_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.toml").write_text('extends = "webgpu"\ntitle = "one"\n[runtime]\nvariants = ["jspi"]\n')
    model, folder = write(ACOSH, tmp_path), tmp_path / "bundle"
    given = ["--target", "one", "--targets-dir", str(tmp_path), "--no-strength"]
    assert run(["build", str(model), *given, "-o", str(folder), "--json"]) == 0
    capfd.readouterr()
    (gpu,) = pins.load().chosen(["jspi"], "test")
    shipped, stock = folder / "runtime", locate.locate(None)
    assert sha256_file(shipped / gpu.wasm) != stock.files[gpu.wasm]
    dist = replace(stock, folder=shipped, files={**stock.files, gpu.wasm: sha256_file(shipped / gpu.wasm)})
    jobs = [Job(gpu, dist, posing_as=(adapter,), miss_address=MISS_ADDRESS) for adapter in pins.load().adapters]
    for done in recording.record_all(folder, jobs, gpu="software", at_once=2):
        assert (done.end, done.misses) == ("done", ())
        assert [step.outcome for step in done.steps] == ["done"] * 3


@pytest.mark.parametrize("runner", ["chromium", "firefox", "webkit"])
@pytest.mark.parametrize(("text", "reason"), [(DILATED, "trap"), (ACOSH, "kernel")], ids=["function", "kernel"])
def test_another_model_gets_the_right_answer_from_the_net_and_the_miss_is_reported(
    text: str, reason: str, runner: str, digits: Path, tmp_path: Path
) -> None:
    bundle = given(text, digits, tmp_path / "other")
    result, record = replayed(bundle, tmp_path / "run", runner=runner, threads=2)
    assert result.verdict.passed
    (miss,) = record.misses
    assert (miss.variant, miss.recovered_by) == ("wasm", "wasm")
    if reason == "kernel":
        assert (miss.reason, miss.functions, miss.during) == ("kernel", (), "create")
        assert "Acosh" in miss.message
    else:
        assert miss.reason in ("trap", "flag", "silence")
        assert miss.functions
    assert record.hashes.runtime == sha256_file(bundle / STOCK)


@pytest.mark.parametrize("text", [DILATED, ACOSH], ids=["function", "kernel"])
def test_without_a_net_a_miss_is_an_error_that_says_so(text: str, digits: Path, tmp_path: Path) -> None:
    bundle = given(text, digits, tmp_path / "other", net="none")
    assert not (bundle / STOCK).exists()
    result, record = replayed(bundle, tmp_path / "run")
    assert not result.verdict.passed
    (miss, *_) = record.misses
    assert miss.recovered_by is None
    said = json.dumps([record.error, [a.reason for a in record.attempts], [c.error for c in record.cases]])
    assert "built without a net (--net none)" in said and "--add-profile" in said


def test_what_was_missed_is_kept_by_the_next_build(
    digits: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missed = {}
    for name, text in (("function", DILATED), ("kernel", ACOSH)):
        _, record = replayed(given(text, digits, tmp_path / name), tmp_path / f"{name}.run")
        missed[name] = record.misses
    options = [part for name in missed for part in ("--add-profile", tmp_path / f"{name}.run")]
    again = build(tmp_path / "again", *options)
    capfd.readouterr()
    assert (digits / WASM).stat().st_size < (again / WASM).stat().st_size < (again / STOCK).stat().st_size / 2
    result, record = replayed(given(ACOSH, again, tmp_path / "kernel again"), tmp_path / "kernel again.run")
    assert result.verdict.passed and record.misses == ()
    result, record = replayed(given(DILATED, again, tmp_path / "function again"), tmp_path / "function again.run")
    assert result.verdict.passed
    # A device tells of one group at a time, so another one may be missed now; this one is there.
    (before,) = missed["function"]
    assert not {k for miss in record.misses for k in miss.functions} & set(before.functions)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = browsers.find(None, Path(playwright.chromium.executable_path))
        made = playwright.chromium.launch(
            executable_path=program.path, args=browsers.flags("software"), chromium_sandbox=browsers.can_sandbox()
        )
        yield made
        made.close()


@pytest.fixture
def ran(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    with ExitStack() as stack:

        def act(bundle: Path, *runs: tuple[str, str, list[int]]) -> Any:
            app = create_app(open_bundle(bundle, verify=False), Inbox(tmp_path / "inbox"), isolation=True)
            url = stack.enter_context(serving(app))
            page = browser.new_page()
            stack.callback(page.close)
            page.route("**/main.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
            page.goto(url)
            return page.evaluate(RUN, list(runs))

        yield act


def test_shapes_that_were_never_recorded_and_wrong_inputs_are_answered_as_by_the_stock_runtime(
    digits: Path, ran: Callable[..., Any], tmp_path: Path
) -> None:
    cases = replace(web_bundle.cases_for(SAMPLE / "digits.onnx"), cases=())
    stock = tmp_path / "stock"
    web_bundle.build(SAMPLE / "digits.onnx", stock, cases=cases, copies=False)
    shapes = [("image", "float32", [batch, 1, 8, 8]) for batch in (1, 2, 17, 300, 0)]
    wrong = [
        ("image", "float32", [1, 1, 9, 8]),
        ("image", "float32", [1, 8, 8]),
        ("image", "float64", [1, 1, 8, 8]),
        ("picture", "float32", [1, 1, 8, 8]),
    ]
    expected, found = (ran(bundle, *shapes, *wrong, shapes[0]) for bundle in (stock, digits))
    assert found["answers"] == expected["answers"]
    assert [type(answer) for answer in found["answers"]] == [list] * 5 + [str] * 4 + [list]
    assert found["misses"] == []
