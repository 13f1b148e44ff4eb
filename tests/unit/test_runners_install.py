import os
import sys
from pathlib import Path

import pytest

from edgekit.errors import MissingToolError
from edgekit.runners import browsers, install


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


def test_installing_falls_back_to_apt_and_says_which_way_it_went(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare / "env", 'shift; "$@"')
    program(bare / "apt-get", f'echo "$@" >> {bare}/log')
    monkeypatch.setattr(sys, "executable", str(program(bare / "python", "echo no network; exit 1")))
    said: list[str] = []
    assert install.install(progress=lambda message, done=None: said.append(message)) == "apt"
    assert (bare / "log").read_text().splitlines() == ["update", "install -y --no-install-recommends chromium"]
    assert any("playwright install chromium" in message for message in said)


def test_playwright_is_asked_first_and_apt_not_at_all_when_that_works(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bare / "apt-get", f"touch {bare}/used")
    monkeypatch.setattr(sys, "executable", str(program(bare / "python")))
    assert install.install() == "playwright"
    assert not (bare / "used").exists()


def test_when_nothing_can_be_installed_the_error_holds_what_every_way_said(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare / "env", 'shift; "$@"')
    program(bare / "apt-get", "echo E: no such package; exit 100")
    monkeypatch.setattr(sys, "executable", str(program(bare / "python", "echo no network; exit 1")))
    with pytest.raises(MissingToolError) as caught:
        install.install()
    assert "no network" in caught.value.message and "E: no such package" in caught.value.message
    assert "exit code 100" in caught.value.message
    assert "apt-get install -y chromium" in (caught.value.hint or "")


def test_apt_is_left_alone_when_it_would_ask_for_a_password(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(bare / "apt-get", f"touch {bare}/used")
    program(bare / "sudo", "exit 1")
    monkeypatch.setattr(sys, "executable", str(program(bare / "python", "exit 1")))
    with pytest.raises(MissingToolError) as caught:
        install.install()
    assert not (bare / "used").exists()
    assert "sudo apt-get install -y chromium" in (caught.value.hint or "")


def test_an_installer_that_never_ends_is_stopped(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_PLAYWRIGHT_SECONDS", 0.5)
    monkeypatch.setattr(sys, "executable", str(program(bare / "python", "echo started; exec /bin/sleep 60")))
    with pytest.raises(MissingToolError, match=r"started\n\(stopped after"):
        install.install()


def test_the_stock_firefox_comes_before_the_one_that_playwright_made(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare / "env", 'shift; "$@"')
    program(bare / "apt-get", f'echo "$@" >> {bare}/log')
    monkeypatch.setattr(sys, "executable", str(program(bare / "python", f"touch {bare}/used")))
    assert install.install(browsers.FIREFOX) == "apt"
    assert install.install(browsers.WEBKIT) == "apt"
    lines = (bare / "log").read_text().splitlines()
    assert lines[1] == "install -y --no-install-recommends firefox-esr mesa-vulkan-drivers"
    assert lines[3] == "install -y --no-install-recommends webkit2gtk-driver xvfb"
    assert not (bare / "used").exists()


def test_where_apt_has_no_firefox_playwright_s_own_is_taken(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare / "env", 'shift; "$@"')
    program(bare / "apt-get", '[ "$1" = update ] || exit 100')
    monkeypatch.setattr(sys, "executable", str(program(bare / "python", f'echo "$@" > {bare}/asked')))
    assert install.install(browsers.FIREFOX) == "playwright"
    assert (bare / "asked").read_text() == "-m playwright install firefox\n"
