"""The runner on browsers that already run: one with its DevTools protocol open, one behind a Playwright server."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_bundle

from edgekit.errors import MissingToolError, ParityError, UsageError
from edgekit.runners import browsers, connect
from edgekit.runners.page import Ask

browser = pytest.mark.browser
FLAGS = [*browsers.flags("software"), *([] if browsers.can_sandbox() else ["--no-sandbox"])]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def devtools(tmp_path: Path) -> Iterator[str]:
    """The address of a Chromium that this test started by itself, as a kiosk would."""
    program = browsers.find(None, None).path
    profile = tmp_path / "profile"
    command = [str(program), "--headless", *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    with subprocess.Popen([*command, "about:blank"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "DevTools listening on" in line)
            yield "http://" + line.split("ws://", 1)[1].split("/", 1)[0]
        finally:
            process.terminate()


@pytest.fixture
def playwright_server(tmp_path: Path) -> Iterator[str]:
    """The address of a Playwright server with a Chromium."""
    port = free_port()
    settings = {"executablePath": str(browsers.find(None, None).path), "port": port, "wsPath": "/pw", "args": FLAGS}
    (tmp_path / "server.json").write_text(json.dumps({**settings, "chromiumSandbox": browsers.can_sandbox()}))
    driver = [sys.executable, "-c", "from playwright.__main__ import main; main()"]
    command = [*driver, "launch-server", "--browser", "chromium", "--config", str(tmp_path / "server.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def tabs(address: str) -> list[str]:
    with urllib.request.urlopen(f"{address}/json") as answer:  # noqa: S310  of this test's own browser
        return [tab["url"] for tab in json.load(answer) if tab["url"].startswith("http")]


@browser
def test_a_browser_that_runs_replays_and_goes_on_without_the_tab(tmp_path: Path, devtools: str) -> None:
    said: list[str] = []
    record = connect.run_cdp(
        tiny_bundle.make(tmp_path / "b"), Ask(), devtools, progress=lambda message, done=None: said.append(message)
    )
    assert record.cases[0].status == "done" and record.environment.cross_origin_isolated is True
    assert any(devtools in message and "replays" in message for message in said)
    assert tabs(devtools) == []
    connect.run_cdp(tiny_bundle.make(tmp_path / "b2"), Ask(), devtools)


@browser
def test_a_browser_that_cannot_reach_the_page_is_told_how(tmp_path: Path, devtools: str) -> None:
    bundle = tiny_bundle.make(tmp_path / "b", {"page.js": b"await new Promise(() => {});"})
    with pytest.raises(ParityError, match="did not answer") as caught:
        connect.run_cdp(bundle, Ask(timeout_seconds=2), devtools, port=0)
    assert "adb reverse tcp:" in (caught.value.hint or "") and "--host" in (caught.value.hint or "")
    assert tabs(devtools) == []


@browser
def test_a_playwright_server_s_browser_reaches_this_machine_through_the_connection(
    tmp_path: Path, playwright_server: str
) -> None:
    record = connect.run_remote(tiny_bundle.make(tmp_path / "b"), Ask(), playwright_server)
    assert record.cases[0].status == "done" and record.environment.cross_origin_isolated is True
    with pytest.raises(MissingToolError, match="gives no Chromium"):
        connect.run_remote(tiny_bundle.make(tmp_path / "b2"), Ask(), playwright_server + "-of-another")


@browser
def test_where_nothing_answers_there_is_no_browser(tmp_path: Path) -> None:
    bundle, port = tiny_bundle.make(tmp_path / "b"), free_port()
    with pytest.raises(MissingToolError, match=f"No browser answers at http://127.0.0.1:{port}") as caught:
        connect.run_cdp(bundle, Ask(), f"http://127.0.0.1:{port}")
    assert "--remote-debugging-port" in (caught.value.hint or "") and "adb forward" in (caught.value.hint or "")
    with pytest.raises(MissingToolError, match=f"ws://127.0.0.1:{port}/ gives no Firefox") as caught:
        connect.run_remote(bundle, Ask(), f"ws://127.0.0.1:{port}/", engine="firefox")
    assert "run-server" in (caught.value.hint or "")


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x", "http://", "http://[::1", "http://x:0", "http://x:99999"])
def test_an_address_that_is_none_is_a_usage_error(tmp_path: Path, url: str) -> None:
    bundle = tiny_bundle.make(tmp_path / "b")
    with pytest.raises(UsageError, match="--cdp"):
        connect.run_cdp(bundle, Ask(), url)
    with pytest.raises(UsageError, match="--remote"):
        connect.run_remote(bundle, Ask(), url)


def test_a_server_has_no_browser_of_another_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no browser 'netscape'") as caught:
        connect.run_remote(tiny_bundle.make(tmp_path / "b"), Ask(), "ws://127.0.0.1:9/", engine="netscape")
    assert "chromium, firefox, webkit" in (caught.value.hint or "")
