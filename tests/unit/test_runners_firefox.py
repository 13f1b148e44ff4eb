"""The runner on a real Firefox; what it shares with Chromium's is tested there. A missing Firefox is an error."""

import sys
from pathlib import Path

import pytest
import tiny_bundle
from running import interrupt_after, killing, processes

from edgekit.errors import MissingToolError, ParityError
from edgekit.runners import browsers, firefox
from edgekit.runners.browsers import Browser
from edgekit.runners.page import Ask

pytestmark = pytest.mark.browser

SILENT = b"console.log('starting'); await new Promise(() => {});"


def firefoxes() -> list[str]:
    return [line for line in processes().values() if "firefox" in line.split(" ", 1)[0]]


def test_the_record_comes_from_a_firefox_with_webgpu_and_isolation(tmp_path: Path) -> None:
    record = firefox.run(tiny_bundle.make(tmp_path / "bundle"), Ask())
    assert record.cases[0].status == "done"
    environment = record.environment
    assert "Firefox/" in (environment.user_agent or "") and environment.cross_origin_isolated is True
    assert environment.adapter is not None and "shader-f16" in environment.adapter.features
    assert firefoxes() == []


@pytest.mark.skipif(sys.platform != "linux", reason="Mesa's drivers")
def test_the_software_adapter_can_be_asked_for_and_is_named_as_such(tmp_path: Path) -> None:
    adapter = firefox.run(tiny_bundle.make(tmp_path / "bundle"), Ask(), gpu="software").environment.adapter
    assert adapter is not None and adapter.software


def test_a_page_that_blocks_its_thread_ends_at_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match="did not answer within 2 s"):
        firefox.run(tiny_bundle.make(tmp_path / "bundle", {"page.js": b"for (;;) {}"}), Ask(timeout_seconds=2))
    assert firefoxes() == []


def test_the_console_is_part_of_what_went_wrong(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle", {"page.js": b"setTimeout(() => null.x, 0);" + SILENT})
    with pytest.raises(ParityError) as caught:
        firefox.run(bundle, Ask(timeout_seconds=4))
    assert "[log] starting" in caught.value.message and "null" in caught.value.message


def test_a_page_that_loads_from_elsewhere_is_an_error_although_it_answers(tmp_path: Path) -> None:
    script = tiny_bundle.script(before="await import('https://cdn.example/ort.mjs').catch(() => {});")
    with pytest.raises(ParityError, match=r"load from elsewhere: https://cdn\.example"):
        firefox.run(tiny_bundle.make(tmp_path / "bundle", {"page.js": script}), Ask(timeout_seconds=30))


@pytest.mark.skipif(sys.platform != "linux", reason="finds the browser's processes in /proc")
def test_a_browser_that_dies_is_told_from_silence(tmp_path: Path) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle", {"page.js": SILENT})
    dying = killing(lambda line: "firefox" in line.split(" ", 1)[0])
    with dying as hear, pytest.raises(ParityError, match="ended before the page answered"):
        firefox.run(bundle, Ask(timeout_seconds=30), progress=hear)
    assert firefoxes() == []


@pytest.mark.skipif(sys.platform != "linux", reason="finds the browser's processes in /proc")
@pytest.mark.parametrize(("word", "seconds"), [("Starting", 0.5), ("Starting", 2.0), ("replays", 0.5)])
def test_ctrl_c_ends_the_browser_and_leaves_nothing(tmp_path: Path, word: str, seconds: float) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle", {"page.js": SILENT})
    assert interrupt_after("firefox", bundle.folder, word, seconds) == (130, set())


def test_a_firefox_that_does_not_start_is_an_error_that_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"/bin/true does not start") as caught:
        firefox.run(tiny_bundle.make(tmp_path / "bundle"), Ask(), browser_path=Path("/bin/true"))
    assert "playwright install firefox" in (caught.value.hint or "")


def test_only_a_stock_firefox_has_its_media_features_left_alone() -> None:
    stock, own = Browser(Path("/usr/bin/firefox-esr"), "PATH"), Browser(Path("/x/firefox"), "playwright", True)
    assert set(firefox.page_settings(stock).values()) == {"null"}
    assert firefox.page_settings(own) == {}
    assert browsers.preferences()["dom.webgpu.enabled"] is True
