"""The report in a real browser: it opens from a file, draws its figures under its own policy, and fits a phone."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from report_samples import failed, passed

from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.report.html import report_html

pytestmark = pytest.mark.browser

FILES = ("index.html", "app/main.js", "model/model.onnx", "model/model.onnx.br", "runtime/ort-wasm-simd-threaded.wasm")
MANIFEST = Manifest(
    "0", "web", "webgpu", "model.onnx", ModelEntry("model/model.onnx", "0" * 64),
    RuntimeEntry("onnxruntime-web", "1", ("jspi", "wasm")),
    tuple(FileEntry(path, "0" * 64, 12_345_678) for path in FILES),
)  # fmt: skip


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_figures_are_drawn_where_they_are_seen_and_nothing_is_fetched_or_too_wide(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / "report.html"
    third = replace(failed(), verdict=replace(failed().verdict, title="a model of another name"))
    sized = replace(failed(), manifest=MANIFEST)
    file.write_text(report_html([sized, passed(), third]), encoding="utf-8")
    said: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith("file:") else None)
    page.goto(file.as_uri())
    assert page.locator(".uplot").count() == 0  # they are in closed parts
    page.locator("#run-1 details.more > summary").click()
    expect(page.locator("#run-1 .uplot")).to_have_count(3)  # two outputs and the latencies
    assert page.locator("#run-2 .uplot").count() == 0
    drawn = page.locator("#run-1 .uplot canvas").first.evaluate(
        "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
    assert drawn > 5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".scroll").count() > 5
    cut = (
        "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel)"
    )
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    assert page.evaluate(cut) == []  # no number lies out of sight, in any table
    page.evaluate("document.querySelectorAll('#run-2 details').forEach((part) => (part.open = false))")
    page.set_viewport_size({"width": 700, "height": 800})
    # Asked from outside: what waits inside of the page would have to be evaluated there, which its policy forbids.
    fits = (
        "[...document.querySelectorAll('#run-1 .plot')].every((p) => p.parentElement.clientWidth === "
        "p.firstElementChild.clientWidth)"
    )
    assert any(page.evaluate(fits) or page.wait_for_timeout(50) for _ in range(200))
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    expect(page.locator("#run-1 .uplot")).to_have_count(3)
    assert not said
    page.close()


def test_without_scripts_the_numbers_are_there_and_no_figure_is_empty(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html([failed()]), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_text("12 values in 3 cases").first).to_be_visible()
    expect(page.get_by_text("Browser, after the first run")).to_be_visible()
    for box in page.locator(".plot").all():
        expect(box).to_be_hidden()
    context.close()


def test_the_twin_a_script_that_is_not_edgekits_own_does_not_run(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html([failed()]).replace("const HEIGHT = 230", "const HEIGHT = 231"), encoding="utf-8")
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.goto(file.as_uri())
    expect(page.get_by_text("Error against the reference")).to_be_visible()
    assert page.locator(".uplot").count() == 0 and "Content Security Policy" in said[0]
    page.close()
