"""The runner on a real WebKitGTK. A missing driver, or display, is an error."""

import shutil
import sys
import threading
from pathlib import Path

import pytest
import tiny_bundle
from running import interrupt_after, killing, processes

from edgekit import optional
from edgekit.errors import MissingToolError, ParityError
from edgekit.records.run_record import RunRecord
from edgekit.runners import display, webkit
from edgekit.runners.page import Ask

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform != "linux", reason="WebKitGTK is a browser of Linux"),
]

SILENT = b"document.body.append('waiting for a friend'); await new Promise(() => {});"
PROGRAMS = ("WebKit", "MiniBrowser", "Xvfb")


def webkits() -> list[str]:
    return [line for line in processes().values() if any(name in line for name in PROGRAMS)]


def test_the_record_comes_from_a_webkit_with_isolation_and_without_webgpu(tmp_path: Path) -> None:
    record = webkit.run(tiny_bundle.make(tmp_path / "bundle"), Ask())
    assert record.cases[0].status == "done"
    assert "Chrome" not in (record.environment.user_agent or "")
    assert "AppleWebKit" in (record.environment.user_agent or "")
    assert record.environment.cross_origin_isolated is True and record.environment.adapter is None
    assert webkits() == []


def test_the_page_has_shared_memory_as_in_safari(tmp_path: Path) -> None:
    before = "new SharedArrayBuffer(8);"
    webkit.run(tiny_bundle.make(tmp_path / "bundle", {"page.js": tiny_bundle.script(before=before)}), Ask())


def test_a_page_that_loads_from_elsewhere_is_an_error_although_it_answers(tmp_path: Path) -> None:
    script = tiny_bundle.script(before="await fetch('http://127.0.0.2:9/lib.js').catch(() => {});")
    with pytest.raises(ParityError, match=r"load from elsewhere: http://127\.0\.0\.2"):
        webkit.run(tiny_bundle.make(tmp_path / "bundle", {"page.js": script}), Ask(timeout_seconds=30))


def test_hardware_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="no GPU"):
        webkit.run(tiny_bundle.make(tmp_path / "bundle"), Ask(), gpu="hardware")


def test_a_page_that_never_answers_ends_at_the_limit_with_what_it_shows(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match="did not answer within 3 s") as caught:
        webkit.run(tiny_bundle.make(tmp_path / "bundle", {"page.js": SILENT}), Ask(timeout_seconds=3))
    assert "[the page shows] waiting for a friend" in caught.value.message
    assert webkits() == []


def test_a_page_that_blocks_its_thread_ends_at_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match="did not answer within 2 s"):
        webkit.run(tiny_bundle.make(tmp_path / "bundle", {"page.js": b"for (;;) {}"}), Ask(timeout_seconds=2))
    assert webkits() == []


@pytest.mark.parametrize("name", ["WebKitWebProcess", "MiniBrowser", "Xvfb", "WebKitWebDriver"])
def test_whatever_dies_is_told_from_silence(tmp_path: Path, name: str) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle", {"page.js": SILENT})
    dying = killing(lambda line: name in line.split(" ", 1)[0])
    with dying as hear, pytest.raises(ParityError, match="ended before the page answered"):
        webkit.run(bundle, Ask(timeout_seconds=40), progress=hear)
    assert webkits() == []


@pytest.mark.parametrize(("word", "seconds"), [("Starting", 0.8), ("Starting", 1.6), ("replays", 0.5)])
def test_ctrl_c_ends_browser_and_display_and_leaves_nothing(tmp_path: Path, word: str, seconds: float) -> None:
    bundle = tiny_bundle.make(tmp_path / "bundle", {"page.js": SILENT})
    assert interrupt_after("webkit", bundle.folder, word, seconds) == (130, set())


def test_two_runs_at_once_have_displays_of_their_own(tmp_path: Path) -> None:
    records: dict[int, RunRecord] = {}

    def run(number: int) -> None:
        records[number] = webkit.run(tiny_bundle.make(tmp_path / str(number)), Ask())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert records.keys() == {0, 1} and records[0].run != records[1].run


def test_without_a_display_it_is_an_error_with_the_line_that_installs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = shutil.which("WebKitWebDriver")
    assert driver is not None
    monkeypatch.setattr(display.shutil, "which", lambda name: None)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingToolError, match="no") as caught:
        webkit.run(tiny_bundle.make(tmp_path / "bundle"), Ask(), browser_path=Path(driver))
    assert "needs a display" in caught.value.message and "install -y xvfb" in (caught.value.hint or "")


def test_an_xvfb_that_does_not_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = shutil.which("WebKitWebDriver")
    assert driver is not None
    broken = tmp_path / "Xvfb"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(MissingToolError, match="Xvfb does not start"):
        webkit.run(tiny_bundle.make(tmp_path / "bundle"), Ask(), browser_path=Path(driver))


def test_without_selenium_the_line_that_installs_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="'selenium'") as caught:
        webkit.run(tiny_bundle.make(tmp_path / "bundle"), Ask())
    assert "edgekit[webkit]" in (caught.value.hint or "")


def test_a_driver_that_does_not_start_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"/bin/true does not start") as caught:
        webkit.run(tiny_bundle.make(tmp_path / "bundle"), Ask(), browser_path=Path("/bin/true"))
    assert "webkit2gtk-driver" in (caught.value.hint or "")
    assert webkits() == []
