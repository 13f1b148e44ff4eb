import os
import sys
from pathlib import Path

import pytest

from edgekit.errors import MissingToolError
from edgekit.runners import browsers


def program(path: Path, text: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty PATH folder, which is returned, and no browser that anyone named."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(browsers.ENVIRONMENT_NAME, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return folder


def test_the_one_that_was_named_wins_then_the_variable_then_playwright_then_path(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(bare / "chromium")
    own, variable, named = (program(tmp_path / name) for name in ("own", "variable", "named"))
    assert browsers.find(None, None).path == on_path
    assert browsers.find(None, own).path == own
    monkeypatch.setenv(browsers.ENVIRONMENT_NAME, str(variable))
    assert browsers.find(None, own) == browsers.Browser(variable, browsers.ENVIRONMENT_NAME)
    assert browsers.find(named, own) == browsers.Browser(named, "--browser-path")


def test_a_name_on_path_can_be_named(bare: Path) -> None:
    mine = program(bare / "my-chrome")
    assert browsers.find(Path("my-chrome"), None).path == mine


def test_playwright_s_own_counts_only_when_it_was_downloaded(bare: Path, tmp_path: Path) -> None:
    on_path = program(bare / "google-chrome")
    assert browsers.find(None, tmp_path / "not-downloaded").path == on_path


def test_each_browser_is_found_once(bare: Path) -> None:
    chromium = program(bare / "chromium")
    (bare / "chromium-browser").symlink_to(chromium)
    other = program(bare / "google-chrome")
    assert [browser.path for browser in browsers.found(None, None)] == [chromium, other]


def test_no_browser_is_an_error_with_the_line_that_installs_one(bare: Path) -> None:
    with pytest.raises(MissingToolError, match="no Chromium") as caught:
        browsers.find(None, None)
    assert f"{sys.executable} -m playwright install chromium" in (caught.value.hint or "")
    assert "apt-get" not in (caught.value.hint or "")
    program(bare / "apt-get")
    assert "apt-get install -y chromium" in browsers.install_hint()


@pytest.mark.parametrize("name", ["nowhere", "<script>\n'\"", "größe"])
def test_a_named_browser_that_is_not_there_is_an_error_and_nothing_else_is_taken(bare: Path, name: str) -> None:
    program(bare / "chromium")
    with pytest.raises(MissingToolError, match="--browser-path names is not there"):
        browsers.find(Path(name), None)


def test_a_variable_that_names_nothing_is_said_by_its_name(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browsers.ENVIRONMENT_NAME, "/nowhere/chrome")
    with pytest.raises(MissingToolError, match="EDGEKIT_BROWSER names is not there: /nowhere/chrome"):
        browsers.find(None, None)


@pytest.mark.parametrize("kind", ["folder", "text"])
def test_what_is_no_program_is_not_taken_for_a_browser(bare: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text("hello")
    with pytest.raises(MissingToolError, match="is not a program"):
        browsers.find(path, None)


def test_the_sandbox_is_off_for_root_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not browsers.can_sandbox()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert browsers.can_sandbox()
    assert "--no-sandbox" not in browsers.flags("auto")


def test_the_software_adapter_is_forced_only_when_asked_for() -> None:
    assert "--use-webgpu-adapter=swiftshader" in browsers.flags("software")
    assert not any("swiftshader" in flag for flag in browsers.flags("auto") + browsers.flags("hardware"))


def test_every_engine_has_its_own_programs_variable_and_line_that_installs_it(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bare / "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare / "chromium")
    with pytest.raises(MissingToolError, match="no Firefox") as caught:
        browsers.find(None, None, browsers.FIREFOX)
    assert "apt-get install -y firefox-esr mesa-vulkan-drivers" in (caught.value.hint or "")
    with pytest.raises(MissingToolError, match="no WebKit") as caught:
        browsers.find(None, None, browsers.WEBKIT)
    assert "apt-get install -y webkit2gtk-driver xvfb" in (caught.value.hint or "")
    mine = program(tmp_path / "mine")
    monkeypatch.setenv("EDGEKIT_FIREFOX", str(mine))
    assert browsers.find(None, None, browsers.FIREFOX) == browsers.Browser(mine, "EDGEKIT_FIREFOX")
    with pytest.raises(MissingToolError, match="no WebKit"):
        browsers.find(None, None, browsers.WEBKIT)


def test_a_script_that_starts_the_firefox_found_already_is_no_second_browser(bare: Path) -> None:
    stock = program(bare / "firefox-esr")
    program(bare / "firefox")
    assert [browser.path for browser in browsers.found(None, None, browsers.FIREFOX)] == [stock]


def test_the_build_that_playwright_made_is_known_also_when_it_was_named(bare: Path, tmp_path: Path) -> None:
    own, stock = program(tmp_path / "own"), program(bare / "firefox")
    assert browsers.find(None, own, browsers.FIREFOX).playwrights_own
    assert browsers.find(own, own, browsers.FIREFOX).playwrights_own
    assert not browsers.find(stock, own, browsers.FIREFOX).playwrights_own


def test_firefox_takes_vulkan_on_the_cpu_only_when_software_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsers, "_LAVAPIPE", str(tmp_path))
    assert browsers.vulkan("software") == {}
    (tmp_path / "lvp_icd.x86_64.json").touch()
    (tmp_path / "radeon_icd.x86_64.json").touch()
    assert set(browsers.vulkan("software").values()) == {str(tmp_path / "lvp_icd.x86_64.json")}
    assert browsers.vulkan("auto") == browsers.vulkan("hardware") == {}
