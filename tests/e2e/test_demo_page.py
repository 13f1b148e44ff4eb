"""The demo page as a person meets it: real bundles, the real server, a real Chromium."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx.parser
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from edgekit import pipeline, resources
from edgekit.bundle.open import CASES, TENSORS, open_bundle
from edgekit.facts import survey as facts
from edgekit.golden.images import ImageOptions, load_image
from edgekit.golden.make import CaseOptions
from edgekit.kinds.config import BuildConfig
from edgekit.model import io as model
from edgekit.records import cases as case_files
from edgekit.runners import browsers
from edgekit.serve.app import create_app
from edgekit.serve.inbox import Inbox
from edgekit.serve.server import serving

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("demo page")]  # one worker: the bundle is made once

TITLE = '<script>pwned()</script> "quoted" \'é☃'
DIGITS = "digits"
PHONE_WIDTH = 360
# The names come from the model, and so from a stranger.
HOSTILE = """
<ir_version: 8, opset_import: ["" : 17]>
hostile (float[N, 3] first, string[2] second, int64 third) => (float[N, 3] fourth, string[2] fifth, int64 sixth)
{
    fourth = Neg(first)
    fifth = Identity(second)
    sixth = Identity(third)
}
"""
# It returns its picture, or refuses: matrices of 2 rows have 2 columns.
PICTURES = """
<ir_version: 8, opset_import: ["" : 17]>
pictures (float[1, 3, H, W] picture, float[1, C] scale) => (float[1, 3, H, W] same, float[1, 1] product)
<float[2, 1] two = {1, 1}>
{
    same = Identity(picture)
    product = MatMul(scale, two)
}
"""
NAMES = {"first": "<img src=x onerror=pwned()>", "second": "'\"></script>", "fourth": "a/b\\c d\n<b>é☃"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = browsers.find(None, Path(playwright.chromium.executable_path))
        # No WebGPU, so that the target for it has to fall back.
        flags = [flag for flag in browsers.flags("software") if "gpu" not in flag]
        made = playwright.chromium.launch(
            executable_path=program.path, args=flags, chromium_sandbox=browsers.can_sandbox()
        )
        yield made
        made.close()


def build(model_path: Path, target: str, folder: Path, **settings: Any) -> None:
    """Build a bundle with the runtime as published: the page is the same, and there in a second."""
    pipeline.build(BuildConfig(model_path, target, folder, trim_runtime=False, **settings))


def build_digits(folder: Path, target: str) -> Path:
    sample = resources.root("examples") / DIGITS
    samples = CaseOptions(samples=(sample / "samples.npz",))
    build(sample / f"{DIGITS}.onnx", target, folder, cases=samples, title="Digits")
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_digits(tmp_path_factory.mktemp("digits") / "bundle", "wasm")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    proto = onnx.parser.parse_model(HOSTILE)
    for value in [*proto.graph.input, *proto.graph.output]:
        value.name = NAMES.get(value.name, value.name)
    for node in proto.graph.node:
        node.input[:] = [NAMES.get(name, name) for name in node.input]
        node.output[:] = [NAMES.get(name, name) for name in node.output]
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    build(folder / "m.onnx", "wasm", folder / "bundle", title=TITLE)
    return folder / "bundle"


@pytest.fixture(scope="module")
def normalisation() -> ImageOptions:
    return ImageOptions(size=(2, 2), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), scale=1 / 128)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory, normalisation: ImageOptions) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    onnx.save(onnx.parser.parse_model(PICTURES), folder / "m.onnx")
    options = CaseOptions(dims={"H": 2, "W": 2, "C": 2}, image=normalisation)
    build(folder / "m.onnx", "wasm", folder / "bundle", cases=options)
    return folder / "bundle"


class Visit:
    """Opens pages of bundles, and remembers what the browser complained about."""

    def __init__(self, browser: Browser, inboxes: Path, stack: ExitStack) -> None:
        self.browser, self.inboxes, self.stack = browser, inboxes, stack
        self.complaints: list[str] = []

    def __call__(
        self,
        folder: Path,
        query: str = "",
        *,
        isolation: bool = True,
        width: int = 1280,
        changed: Mapping[str, bytes] = MappingProxyType({}),
    ) -> Page:
        """``changed``: what the browser gets in place of the files whose URL is like the pattern."""
        app = create_app(open_bundle(folder, verify=False), Inbox(self.inboxes), isolation=isolation)
        url = self.stack.enter_context(serving(app))
        page = self.browser.new_page(viewport={"width": width, "height": 900})
        self.stack.callback(page.close)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        for pattern, body in changed.items():
            page.route(pattern, lambda route, _request, body=body: route.fulfill(body=body))
        page.goto(url + query)
        page.wait_for_selector("html[data-edgekit]", state="attached")
        return page


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Visit]:
    """Give a Visit; afterwards the console must be clean: no error, no violation of the policy, no dialog."""
    with ExitStack() as stack:
        made = Visit(browser, tmp_path / "inbox", stack)
        yield made
    assert made.complaints == []


def run(page: Page) -> None:
    page.click("#run")
    expect(page.locator("#status-text")).to_have_text(re.compile(r"^Ran in "))


def replay(page: Page) -> None:
    page.click("#replay")
    expect(page.locator("#status-text")).to_have_text(re.compile(r"^Replayed "))


def test_the_page_shows_the_model_runs_it_and_replays_every_case(digits: Path, visit: Visit) -> None:
    page = visit(digits)
    assert page.get_attribute("html", "data-edgekit") == "ready"
    assert page.inner_text("#title") == "Digits"
    assert "WebAssembly on the CPU" in page.inner_text("#badges")
    assert page.locator(".input .name").all_inner_texts() == ["image"]
    assert page.locator("#outputs .value .name").all_inner_texts() == ["logits", "probabilities"]
    run(page)
    assert "within tolerance" in page.inner_text("#outputs .headline")
    replay(page)
    marks = page.locator("#cases .mark").all_inner_texts()
    assert len(marks) == len(json.loads((digits / CASES).read_text())["cases"])
    assert all("✓ within tolerance" in mark for mark in marks)
    assert "edgekit parity" in page.inner_text(".judge")
    rows = page.locator(".times tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["Fetch", "Compile", "Create", "First", "Later"]
    assert all(re.search(r"[\d.]+ m?s$", row) for row in rows)


def test_the_twin_a_shifted_reference_is_marked_as_different(digits: Path, tmp_path: Path, visit: Visit) -> None:
    shifted = build_digits(tmp_path / "bundle", "wasm")
    case_set = case_files.from_files(json.loads((shifted / CASES).read_text()), (shifted / TENSORS).read_bytes())
    case, *cases = case_set.cases
    output, *outputs = case.outputs
    assert output.array is not None
    off = replace(case, outputs=(replace(output, array=output.array + 1), *outputs))
    case_set = replace(case_set, cases=(off, *cases))
    (shifted / TENSORS).write_bytes(case_files.to_files(case_set)[1])
    for copy in shifted.glob(f"{TENSORS}.*"):
        copy.unlink()
    page = visit(shifted)
    replay(page)
    first, *rest = page.locator("#cases .mark").all_inner_texts()
    assert "✗ differs" in first
    assert all("✓" in mark for mark in rest)
    assert "1 not" in page.inner_text(".summary")


def test_inputs_are_made_typed_or_come_from_a_file_or_a_picture(digits: Path, tmp_path: Path, visit: Visit) -> None:
    page = visit(digits)
    way = page.get_by_label("Fill with")
    page.get_by_label("batch").fill("2")
    for made in ("random", "zeros", "ones"):
        way.select_option(made)
        run(page)
        assert "[2, 10]" in page.inner_text("#outputs")

    way.select_option("text")
    page.locator("textarea").fill("1 2 three")
    page.click("#run")
    expect(page.locator(".problem")).to_have_text(re.compile("takes 128 values .*; here are 3"))
    page.locator("textarea").fill("0.5")
    run(page)

    way.select_option("file")
    np.save(tmp_path / "three.npy", np.zeros((3, 1, 8, 8)))
    page.set_input_files("input[type=file]", tmp_path / "three.npy")
    expect(page.locator(".given")).to_contain_text("converted from float64")
    run(page)
    assert "[3, 10]" in page.inner_text("#outputs")
    np.save(tmp_path / "wrong.npy", np.zeros((1, 1, 9, 8), np.float32))
    page.set_input_files("input[type=file]", tmp_path / "wrong.npy")
    expect(page.locator(".problem")).to_contain_text("[1, 1, 9, 8]; this input takes [batch, 1, 8, 8]")

    way.select_option("image")
    Image.new("RGB", (30, 20), "white").save(tmp_path / "white.png")
    page.set_input_files("input[type=file]", tmp_path / "white.png")
    expect(page.locator("canvas")).to_be_visible()
    run(page)
    assert page.locator(".score.first").count() > 0


def random_picture(path: Path, height: int, width: int, mode: str = "RGB") -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return path


def first_values(page: Page) -> list[float]:
    return [float(text) for text in page.inner_text("#outputs .value:nth-of-type(1) .first-values code").split(",")]


@pytest.mark.parametrize(("height", "width", "mode"), [(2, 2, "RGB"), (31, 17, "RGB"), (2, 2, "L")])
def test_a_picture_becomes_the_numbers_that_the_build_makes_of_it(
    height: int, width: int, mode: str, pictures: Path, normalisation: ImageOptions, tmp_path: Path, visit: Visit
) -> None:
    path = random_picture(tmp_path / "picture.png", height, width, mode)
    argument = facts.survey(model.load(pictures / "model/model.onnx")).inputs[0]
    expected = load_image(path, argument, normalisation).ravel()
    page = visit(pictures)
    page.get_by_label("Fill with").first.select_option("image")
    assert "As the build did" in page.locator(".image-options option:checked").last.inner_text()
    page.set_input_files("input[type=file]", path)
    expect(page.locator("canvas")).to_be_visible()
    run(page)
    # The page shows seven digits.
    np.testing.assert_allclose(first_values(page), expected, rtol=1e-6, atol=1e-6)
    page.locator(".image-options select").last.select_option("unit")
    run(page)
    assert not np.allclose(first_values(page), expected, atol=1e-2)


def test_a_picture_gives_its_size_to_a_model_that_fixes_none_as_in_the_build(tmp_path: Path, visit: Visit) -> None:
    onnx.save(onnx.parser.parse_model(PICTURES), tmp_path / "m.onnx")
    options = CaseOptions(dims={"H": 4, "W": 4, "C": 2})
    build(tmp_path / "m.onnx", "wasm", tmp_path / "bundle", cases=options)
    page = visit(tmp_path / "bundle")
    page.get_by_label("Fill with").first.select_option("image")
    page.set_input_files("input[type=file]", random_picture(tmp_path / "picture.png", 2, 2))
    expect(page.get_by_label("H", exact=True)).to_have_value("2")
    run(page)
    expected = load_image(
        tmp_path / "picture.png", facts.survey(model.load(tmp_path / "m.onnx")).inputs[0], ImageOptions()
    )
    np.testing.assert_allclose(first_values(page), expected.ravel(), rtol=1e-6, atol=1e-6)


def test_a_failed_run_leaves_no_green_mark_and_says_why_in_words(pictures: Path, visit: Visit) -> None:
    page = visit(pictures, width=PHONE_WIDTH)
    assert "within tolerance" in page.inner_text("#outputs .headline")
    page.get_by_label("C", exact=True).fill("3")
    page.click("#run")
    expect(page.locator("#outputs .notice")).to_contain_text("MatMul node")
    visit.complaints[:] = [text for text in visit.complaints if "MatMul" not in text]  # the runtime's own remark
    assert not re.search(r"ERROR_CODE|OrtRun|\.h:|::", page.inner_text("#outputs"))
    assert page.locator("#outputs .mark").count() == 0
    assert "Outputs of an earlier run" in page.inner_text(".earlier")
    assert page.locator("#status").bounding_box()["height"] <= 900 / 4  # type: ignore[index]
    page.get_by_label("C", exact=True).fill("2")
    run(page)
    assert page.locator("#outputs .notice, .earlier").count() == 0


def test_another_size_turns_the_golden_case_into_random_values_and_says_so(digits: Path, visit: Visit) -> None:
    page = visit(digits)
    way = page.get_by_label("Fill with")
    page.get_by_label("batch").fill("5")
    page.get_by_label("batch").blur()
    expect(way).to_have_value("random")
    assert "the golden case has values for [" in page.inner_text(".input-body")
    run(page)
    assert "[5, 10]" in page.inner_text("#outputs")
    page.locator(".case-action button").first.click()
    expect(way).to_have_value("case")
    run(page)
    assert "within tolerance" in page.inner_text("#outputs .headline")


def test_a_case_can_be_loaded_and_all_of_it_works_by_keyboard(digits: Path, visit: Visit) -> None:
    page = visit(digits)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    last = page.locator(".case-action button").last
    last.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#status-text")).to_have_text(re.compile(r"inputs of golden case .* are loaded"))
    assert page.evaluate("document.activeElement.id") == "run"
    page.keyboard.press("Enter")
    expect(page.locator("#status-text")).to_have_text(re.compile(r"^Ran in "))
    assert "within tolerance" in page.inner_text("#outputs .headline")


def test_every_control_has_a_name(digits: Path, visit: Visit) -> None:
    page = visit(digits)
    for way in ("text", "file", "image"):
        page.get_by_label("Fill with").select_option(way)
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input,select,textarea,button')]"
            ".filter((c) => !c.labels?.length && !c.textContent.trim() && !c.getAttribute('aria-label')).length"
        )
        assert unnamed == 0


@pytest.mark.parametrize("bundle", ["digits", "hostile"])
def test_nothing_is_wider_than_a_phone(bundle: str, visit: Visit, request: pytest.FixtureRequest) -> None:
    page = visit(request.getfixturevalue(bundle), width=PHONE_WIDTH)
    replay(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE_WIDTH


def test_without_isolation_the_page_runs_on_one_thread_and_says_what_to_do(digits: Path, visit: Visit) -> None:
    page = visit(digits, isolation=False)
    assert "1 thread" in page.inner_text("#badges")
    assert "Cross-Origin-Opener-Policy" in page.inner_text("#notices")
    replay(page)


def test_the_twin_with_isolation_there_is_no_such_notice(digits: Path, visit: Visit) -> None:
    assert visit(digits).inner_text("#notices") == ""


def test_without_webgpu_the_chain_falls_to_the_cpu_and_says_why(tmp_path: Path, visit: Visit) -> None:
    page = visit(build_digits(tmp_path / "bundle", "webgpu"))
    # Chromium's own remark, made when it is asked for an adapter that it does not have.
    visit.complaints[:] = [text for text in visit.complaints if text != "No available adapters."]
    assert "Fell back from WebGPU" in page.inner_text("#badges")
    steps = page.locator(".step").all_inner_texts()
    assert ["not available" in step for step in steps] == [True, True, False]
    assert "runs" in steps[2]
    replay(page)


def test_names_of_a_stranger_are_shown_as_text(hostile: Path, visit: Visit) -> None:
    page = visit(hostile)
    assert page.inner_text("#title") == TITLE
    assert NAMES["first"] in page.locator(".input .name").all_inner_texts()
    assert page.locator("#outputs .value .name").first.text_content() == NAMES["fourth"]
    assert page.locator("main img").count() == 0
    replay(page)
    assert all("✓" in mark for mark in page.locator("#cases .mark").all_inner_texts())


def test_the_page_of_the_agent_shows_what_it_sent(digits: Path, tmp_path: Path, visit: Visit) -> None:
    page = visit(digits, "?parity=1&run=abc&repeats=2")
    assert page.get_attribute("html", "data-edgekit") == "done"
    assert "was sent" in page.inner_text("#status-text")
    assert page.locator("#workbench").is_hidden()
    assert all("✓" in mark for mark in page.locator("#cases .mark").all_inner_texts())
    [record] = (tmp_path / "inbox").rglob("record.json")
    assert f"edgekit report RECORDS/{record.parent.name} --bundle BUNDLE" in page.inner_text("#notices")


def test_a_model_that_was_changed_on_the_way_is_not_run(digits: Path, visit: Visit) -> None:
    page = visit(digits, changed={"**/model/model.onnx*": b"another model"})
    assert page.get_attribute("html", "data-edgekit") == "failed"
    assert "not the file that this bundle was built with" in page.inner_text("#notices")
    assert "The model does not run here" in page.inner_text("#badges")
