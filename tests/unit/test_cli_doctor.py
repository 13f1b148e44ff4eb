import json
import sys
from pathlib import Path

import pytest

from edgekit.cli.main import run
from edgekit.runners import browsers
from edgekit.runners.toolsets import TOOL_SETS


@pytest.mark.browser
def test_it_shows_versions_and_what_each_browser_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in ("onnxruntime-web", "playwright", "node", "npm", "isolated", "JSPI", "WebGPU adapter", "✓"):
        assert word in out


@pytest.mark.browser
def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["has_browser"] is True
    assert document["browsers"][0]["probes"][0]["cross_origin_isolated"] is True


def test_without_a_browser_it_is_exit_code_4_and_the_rest_is_still_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--browser-path", "/nowhere/chrome"]) == 4
    out = capsys.readouterr().out
    assert "/nowhere/chrome" in out and "playwright install chromium" in out and "onnxruntime" in out
    assert "Everything is there" not in out


def test_installing_that_fails_is_exit_code_4_with_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no network; exit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.delenv(browsers.ENVIRONMENT_NAME, raising=False)
    monkeypatch.setattr(sys, "executable", str(python))
    assert run(["doctor", "--install"]) == 4
    err = capsys.readouterr().err
    assert (
        all(f"No {name} could be installed" in err for name in ("Chromium", "Firefox", "WebKit"))
        and "no network" in err
        and "hint:" in err
    )


def test_what_devices_need_is_told_and_with_goes_with_install_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--with", "emulated"]) == 2
    assert "--with says what --install installs" in capsys.readouterr().err
    run(["doctor", "--browser-path", "/nowhere/chrome"])
    out = capsys.readouterr().out
    assert all(one.id in out and one.purpose[:20] in out for one in TOOL_SETS)


def test_packages_that_cannot_be_installed_are_exit_code_4_with_the_line_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no apt-get, and nothing of what a set needs
    assert run(["doctor", "--install", "--with", "apk"]) == 4
    err = capsys.readouterr().err
    assert "apt-get cannot be used here" in err and "apt-get install -y aapt" in err
