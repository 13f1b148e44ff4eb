"""The drawing of a model in a real browser: it opens from a file, offline, and tells what a node is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from models_text import NESTED_IF, parse
from playwright.sync_api import Browser, Page, expect

from edgekit.report.graph import graph_html

pytestmark = pytest.mark.browser


@pytest.fixture(params=[1280, 390])
def page(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    file = tmp_path / "graph.html"
    file.write_text(graph_html(parse(NESTED_IF), "nested.onnx", "7 nodes"), encoding="utf-8")
    said: list[str] = []
    opened = browser.new_page(viewport={"width": request.param, "height": 800})
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith("file:") else None)
    opened.goto(file.as_uri())
    yield opened
    assert not said
    opened.close()


def test_a_click_tells_what_a_node_is_and_opens_its_branches(page: Page) -> None:
    page.locator("#graph-1 .card.opens").click()
    expect(page.locator("#about")).to_contain_text("then_branch")
    expect(page.locator("#graph-2")).not_to_have_attribute("open", "")
    page.locator("#about a").first.click()
    expect(page.locator("#graph-2")).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(page.locator("#about")).to_be_hidden()


def test_find_leads_to_a_node_in_a_closed_panel(page: Page) -> None:
    page.locator("#find").fill("mul")
    expect(page.locator("#found")).to_have_text("1 found. Enter: go there.")
    page.locator("#find").press("Enter")
    expect(page.locator(".card.chosen .t")).to_have_text("Mul")
    expect(page.locator(".card.chosen")).to_be_in_viewport()


def test_zoom_changes_the_size_and_fit_shows_the_whole_width(page: Page) -> None:
    drawing = page.locator("#graph-1 svg")
    page.locator("#graph-1 [data-zoom='1']").click()
    before = float(drawing.get_attribute("width") or 0)
    page.locator("#graph-1 [data-zoom='in']").click()
    assert float(drawing.get_attribute("width") or 0) > before
    page.locator("#graph-1 [data-zoom='fit']").click()
    assert page.locator("#graph-1 .canvas").evaluate("c => c.scrollWidth <= c.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
