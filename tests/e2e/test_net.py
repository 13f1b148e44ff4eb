"""The net under a trimmed runtime: real runtimes, cut to what was recorded, miss in a real Chromium, and recover."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
import web_bundle
from playwright.sync_api import Browser, Page, expect, sync_playwright

from edgekit.bundle.open import open_bundle
from edgekit.files import json_bytes, sha256_bytes, sha256_file
from edgekit.records import manifest as manifests
from edgekit.records import run_record
from edgekit.records.cases import GoldenCase
from edgekit.records.manifest import FileEntry
from edgekit.records.tensors import value_of
from edgekit.runners import browsers
from edgekit.runtime import pins
from edgekit.serve.app import create_app
from edgekit.serve.inbox import Inbox
from edgekit.serve.server import serving
from edgekit.wasm.code import bodies
from edgekit.wasm.edits import cut, record
from edgekit.wasm.layout import flag_base
from edgekit.wasm.module import Module, parse

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("net")]  # one worker: the bundle is made once

CPU = pins.load().chosen(["wasm"], "test")[0]
MISS_ADDRESS = 16
WIDTH = 64
# What is run decides which operators are met: Acosh only where the flag is false.
BRANCHES = f"""
<ir_version: 8, opset_import: ["" : 17]>
branches (bool flag, float[N, {WIDTH}] x) => (float[N, {WIDTH}] y)
<float[{WIDTH}, {WIDTH}] w = {{{", ".join("0.015625" for _ in range(WIDTH * WIDTH))}}}>
{{
    p = MatMul(x, w)
    y = If (flag) <
        then_branch = kept () => (float[N, {WIDTH}] t) {{ t = Relu(p) }},
        else_branch = other () => (float[N, {WIDTH}] e) {{ e = Acosh(p) }}
    >
}}
"""
# The mean of twos is 2, and acosh of it:
ACOSH_2 = float(np.arccosh(np.float32(2)))

# Opens the bundle as the page does, and runs x = 2 with each flag and width; what is thrown is given as text.
RUN = """async ({ threads, runs }) => {
  const lib = await import('./app/index.js');
  const config = JSON.parse(document.getElementById('edgekit-config').textContent);
  const host = lib.browserHost(globalThis);
  const misses = [];
  const model = new lib.ModelSource(() => lib.fetchModel(config, host, null, () => {}));
  const { opened, attempts } = await lib.openFirst(config.variants, {
    config, host, model, adapter: null, threads, probe: null, onStep() {}, onMiss: (miss) => misses.push(miss),
  });
  model.forget();
  const answers = [];
  let ticks = 0;
  setInterval(() => { ticks += 1; });
  for (const [flag, rows, columns] of opened === null ? [] : runs) {
    ticks = 0;
    try {
      const { outputs, run_ms } = await opened.session.run([
        { name: 'flag', dtype: 'bool', tensor: lib.tensorOf('bool', [], () => flag) },
        { name: 'x', dtype: 'float32', tensor: lib.tensorOf('float32', [rows, columns], () => 2) },
      ]);
      answers.push({ y: outputs[0].tensor.data[0], run_ms, ticks });
    } catch (error) {
      answers.push({ error: error.message });
    }
  }
  const running = opened?.running();
  await opened?.session.dispose();
  const fetched = performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname);
  return { answers, misses, attempts, running, fetched };
}"""

# Runs the same on a recording runtime, in the page itself, and returns the functions that were entered.
RECORD = """async ([base, count, runs]) => {
  const lib = await import('./app/index.js');
  const { model, variants: [variant] } = JSON.parse(document.getElementById('edgekit-config').textContent);
  const bytes = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());
  const absolute = (url) => new URL(url, document.baseURI).href;
  let memory;
  const host = lib.browserHost(globalThis);
  const engine = new lib.Engine({ ...host, onMemory: (made) => { memory = made; } });
  await engine.open({
    wasm: await bytes('recording.wasm'), model: await bytes(model.url), externalData: [], threads: 1,
    apiUrl: absolute(variant.api_url), mjsUrl: absolute(variant.mjs_url),
    executionProvider: 'wasm', missAddress: null,
  }, () => {});
  for (const [flag, rows, columns] of runs) {
    await engine.run(new Map(Object.entries({
      flag: lib.tensorOf('bool', [], () => flag), x: lib.tensorOf('float32', [rows, columns], () => 2),
    })), ['y']).catch(() => {});
  }
  const flags = new Uint8Array(memory.buffer, base, count);
  return [...flags.keys()].filter((k) => flags[k] === 1);
}"""

RIGHT, OTHER, WRONG = (1, 4, WIDTH), (0, 4, WIDTH), (1, 4, WIDTH + 1)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = browsers.find(None, Path(playwright.chromium.executable_path))
        made = playwright.chromium.launch(
            executable_path=program.path, args=browsers.flags("software"), chromium_sandbox=browsers.can_sandbox()
        )
        yield made
        made.close()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with the stock runtime, and two cases: with the flag set and without."""
    folder = tmp_path_factory.mktemp("net")
    onnx.save(onnx.parser.parse_model(BRANCHES), folder / "m.onnx")
    twos = np.full((4, WIDTH), 2, np.float32)

    def case(name: str, flag: bool, y: float) -> GoldenCase:
        given = (value_of("flag", np.array(flag)), value_of("x", twos))
        return GoldenCase(name, "by hand", given, (value_of("y", np.full_like(twos, y)),))

    cases = replace(
        web_bundle.cases_for(folder / "m.onnx"),
        model_sha256=sha256_file(folder / "m.onnx"),
        cases=(case("kept", True, 2), case("other", False, ACOSH_2)),
    )
    web_bundle.build(folder / "m.onnx", folder / "bundle", cases=cases)
    return folder / "bundle"


@pytest.fixture(scope="module")
def stock(bundle: Path) -> Module:
    return parse((bundle / "runtime" / CPU.wasm).read_bytes())


@pytest.fixture(scope="module")
def open_page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open a bundle's page (without its demo, where no ``query`` is given), and return what ``act`` makes of it."""
    inboxes = tmp_path_factory.mktemp("inbox")

    def opened(
        folder: Path,
        act: Any,
        *,
        isolation: bool = True,
        query: str | None = None,
        inbox: Path = inboxes,
        **files: bytes,
    ) -> Any:
        app = create_app(open_bundle(folder, verify=False), Inbox(inbox), isolation=isolation)
        with serving(app) as url:
            page = browser.new_page()
            if query is None:
                files["main.js"] = b""
            for name, body in files.items():
                page.route(
                    f"**/{name}", lambda route, _request, body=body: route.fulfill(body=body, content_type=_type(route))
                )
            page.goto(f"{url}{query or ''}")
            try:
                return act(page)
            finally:
                page.close()

    return opened


def _type(route: Any) -> str:
    return "application/wasm" if route.request.url.endswith("wasm") else "text/javascript"


@pytest.fixture(scope="module")
def keep(bundle: Path, stock: Module, open_page: Any) -> dict[str, frozenset[int]]:
    """Functions entered on one thread: by the run with the flag set, and by that and one that is refused."""
    base, count = flag_base(stock), len(bodies(stock))
    recording = {"recording.wasm": record(stock, base).to_bytes()}

    def entered(runs: Any) -> frozenset[int]:
        return frozenset(open_page(bundle, lambda page: page.evaluate(RECORD, [base, count, runs]), **recording))

    return {"right": entered([RIGHT]), "right and wrong": entered([RIGHT, WRONG])}


@pytest.fixture(scope="module")
def trimmed(bundle: Path, stock: Module, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that makes a bundle whose runtime has only the functions ``keep``, with a net or without."""
    return partial(_trim, bundle, stock, tmp_path_factory)


def _trim(
    bundle: Path, stock: Module, factory: pytest.TempPathFactory, keep: Collection[int], net: str | None = "cpu"
) -> Path:
    folder = factory.mktemp("trimmed") / "bundle"
    small = cut(stock, keep, MISS_ADDRESS).to_bytes()
    html = (bundle / "index.html").read_text()
    (block,) = re.findall(r'id="edgekit-config">(.*?)</script>', html, re.DOTALL)
    config = json.loads(block)
    (variant,) = config["variants"]
    whole = {key: value for key, value in variant.items() if key not in ("needs", "trimmed")} | {"id": "cpu"}
    config["nets"] = [] if net is None else [whole]
    wasm = {"wasm_url": "runtime/small.wasm", "wasm_sha256": sha256_bytes(small), "wasm_bytes": len(small)}
    config["variants"] = [variant | wasm | {"trimmed": {"miss_address": MISS_ADDRESS, "net": net}}]
    changed = {
        "index.html": html.replace(block, json.dumps(config).replace("<", "\\u003c")).encode(),
        "runtime/small.wasm": small,
    }
    manifest = manifests.from_json(json.loads((bundle / manifests.NAME).read_bytes()))
    kept = [entry for entry in manifest.files if entry.path.removesuffix(".br").removesuffix(".gz") not in changed]
    for path in (entry.path for entry in kept):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).hardlink_to(bundle / path)
    for path, data in changed.items():
        (folder / path).write_bytes(data)
        kept.append(FileEntry(path, sha256_bytes(data), len(data)))
    files = tuple(sorted(kept, key=lambda entry: entry.path))
    (folder / manifests.NAME).write_bytes(json_bytes(manifests.to_json(replace(manifest, files=files))))
    return folder


@pytest.fixture
def outcome(open_page: Any) -> Any:
    """Return a function that runs the model in a bundle's page."""

    def ran(folder: Path, *runs: tuple[int, int, int], threads: int = 1, isolation: bool = True) -> Any:
        given = {"threads": threads, "runs": runs}
        return open_page(folder, lambda page: page.evaluate(RUN, given), isolation=isolation)

    return ran


def stock_was_fetched(result: Any) -> bool:
    return any(path.endswith(CPU.wasm) for path in result["fetched"])


def test_what_was_recorded_runs_without_a_miss_and_without_the_stock_runtime(
    trimmed: Any, keep: Any, outcome: Any
) -> None:
    result = outcome(trimmed(keep["right"]), RIGHT, RIGHT)
    assert [answer["y"] for answer in result["answers"]] == [2, 2]
    assert (result["misses"], stock_was_fetched(result)) == ([], False)


@pytest.mark.parametrize("isolation", [True, False])
def test_an_operator_that_was_cut_out_runs_on_the_net_and_is_reported(
    isolation: bool, trimmed: Any, keep: Any, outcome: Any
) -> None:
    result = outcome(trimmed(keep["right"]), RIGHT, OTHER, RIGHT, isolation=isolation)
    assert [answer["y"] for answer in result["answers"]] == pytest.approx([2, ACOSH_2, 2])
    [miss] = result["misses"]
    assert (miss["variant"], miss["during"], miss["recovered_by"], miss["reason"]) == ("wasm", "run", "cpu", "trap")
    assert miss["functions"] and not keep["right"] & set(miss["functions"])
    assert stock_was_fetched(result)


def test_more_threads_than_were_recorded_recover_though_one_may_wait_for_ever(
    trimmed: Any, keep: Any, outcome: Any
) -> None:
    result = outcome(trimmed(keep["right"]), (1, 2048, WIDTH), threads=2)
    assert [answer["y"] for answer in result["answers"]] == [2]
    [miss] = result["misses"]
    assert miss["recovered_by"] == "cpu"
    assert result["running"]["threads"] == 2


def test_a_wrong_shape_is_refused_in_the_words_of_the_runtime_and_is_no_miss(
    trimmed: Any, keep: Any, outcome: Any
) -> None:
    result = outcome(trimmed(keep["right and wrong"]), WRONG, RIGHT)
    refused, right = result["answers"]
    assert re.search("Got: 65|invalid dimensions", refused["error"])
    assert right["y"] == 2
    assert (result["misses"], stock_was_fetched(result)) == ([], False)


def test_the_twin_where_no_refusal_was_recorded_the_net_gives_those_words(
    trimmed: Any, keep: Any, outcome: Any
) -> None:
    result = outcome(trimmed(keep["right"]), WRONG, RIGHT)
    refused, right = result["answers"]
    assert re.search("Got: 65|invalid dimensions", refused["error"])
    assert right["y"] == 2
    assert [miss["recovered_by"] for miss in result["misses"]] == ["cpu"]


def test_without_a_net_a_miss_is_an_error_that_names_the_function_and_what_to_do(
    trimmed: Any, keep: Any, outcome: Any
) -> None:
    result = outcome(trimmed(keep["right"], net=None), OTHER, RIGHT)
    refused, right = result["answers"]
    [miss] = result["misses"]
    assert miss["recovered_by"] is None
    for words in (f"lacks group {miss['functions'][0]}", "--net cpu", "--add-profile"):
        assert words in refused["error"]
    assert right["y"] == 2  # what was recorded still runs
    assert not stock_was_fetched(result)


def test_a_runtime_cut_to_nothing_recovers_while_the_session_is_created(trimmed: Any, outcome: Any) -> None:
    result = outcome(trimmed([]), OTHER)
    assert result["answers"][0]["y"] == pytest.approx(ACOSH_2)
    assert [miss["during"] for miss in result["misses"]] == ["create"]


def test_the_page_is_not_blocked_while_the_model_runs(bundle: Path, outcome: Any) -> None:
    [answer] = outcome(bundle, (1, 200_000, WIDTH))["answers"]
    assert answer["run_ms"] > 50
    assert answer["ticks"] > 5


def test_where_no_worker_starts_the_page_runs_the_model_itself_and_a_trap_is_still_caught(
    trimmed: Any, keep: Any, open_page: Any
) -> None:
    given = {"threads": 2, "runs": [RIGHT, OTHER]}
    act = partial(Page.evaluate, expression=RUN, arg=given)
    result = open_page(trimmed(keep["right"]), act, **{"runtime-worker.js": b"no script"})
    assert [answer["y"] for answer in result["answers"]] == pytest.approx([2, ACOSH_2])
    assert [miss["reason"] for miss in result["misses"]] == ["trap"]
    assert result["running"]["threads"] == 1


def agent_record(open_page: Any, folder: Path, inbox: Path, asked: str = "") -> run_record.RunRecord:
    """Return the record that a bundle's page posts."""

    def visit(page: Page) -> None:
        page.wait_for_selector("html[data-edgekit=done]", state="attached")

    open_page(folder, visit, query=f"?parity=1&run=r&repeats=1&threads=1{asked}", inbox=inbox)
    [path] = inbox.rglob("record.json")
    return run_record.from_files(json.loads(path.read_text()), path.with_suffix(".safetensors").read_bytes())


@pytest.mark.parametrize("net", ["cpu", None])
def test_where_nodes_ran_is_asked_of_the_net_and_a_trimmed_runtime_that_cannot_tell_harms_nothing(
    net: str | None, trimmed: Any, keep: Any, open_page: Any, tmp_path: Path
) -> None:
    # What was recorded of a session that says nothing holds no function that writes what it would say.
    ran = agent_record(open_page, trimmed(keep["right"], net=net), tmp_path, "&cases=kept&placement=60")
    assert (ran.error, ran.misses, ran.cases[0].status) == (None, (), "done")
    assert (ran.placement is None) == (net is None)
    if ran.placement is not None:
        assert [part.execution_provider for part in ran.placement] == ["CPUExecutionProvider"]


def test_the_record_of_the_agent_holds_the_miss_and_its_answers_are_right(
    trimmed: Any, keep: Any, open_page: Any, tmp_path: Path
) -> None:
    ran = agent_record(open_page, trimmed(keep["right"]), tmp_path)
    assert [miss.recovered_by for miss in ran.misses] == ["cpu"]
    assert [case.status for case in ran.cases] == ["done", "done"]
    array = ran.cases[1].outputs[0].array
    assert array is not None
    np.testing.assert_allclose(array, ACOSH_2, rtol=1e-6)


def test_the_demo_page_says_what_happened_and_shows_the_right_answer(trimmed: Any, keep: Any, open_page: Any) -> None:
    def visit(page: Page) -> None:
        page.wait_for_selector("html[data-edgekit=ready]", state="attached")
        assert page.inner_text("#notices").count("took over") == 0
        warnings: list[str] = []
        page.on("console", lambda message: warnings.append(message.text))
        page.click("#replay")
        expect(page.locator("#status-text")).to_have_text(re.compile("^Replayed "))
        assert all("✓" in mark for mark in page.locator("#cases .mark").all_inner_texts())
        assert "took over" in page.inner_text("#notices")
        assert "Stock runtime after a miss" in page.inner_text("#badges")
        assert any("edgekit: The trimmed runtime" in text for text in warnings)

    # Not isolated, the page uses the one thread that was recorded.
    open_page(trimmed(keep["right"]), visit, query="", isolation=False)
