"""The client against the adb server itself, which Debian has: without a device, but with the server's own words."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from android_bundle import needs

from edgekit.errors import MissingToolError
from edgekit.runners import adb_client
from edgekit.runners.adb_client import AdbError, Server

pytestmark = needs("tests")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An adb server of the test's own: at a port of its own, with a key of its own, without the machine's USB."""
    home = tmp_path_factory.mktemp("home")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = shutil.which("adb")
    assert program is not None
    environment = {**os.environ, "HOME": str(home), "ANDROID_SDK_HOME": str(home), "ADB_MDNS": "0"}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-L", f"tcp:localhost:{port}", "server", "nodaemon"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
        )  # fmt: skip
    try:
        _wait(port, process, home / "log")
        yield Server(port=port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_a_server_without_devices_says_so(server: Server) -> None:
    found = adb_client.devices(server)
    with pytest.raises(MissingToolError, match="There is no device 'no-such-serial'"):
        adb_client.choose(server, "no-such-serial")
    if not found:  # whoever runs this may have a phone on a cable
        with pytest.raises(MissingToolError, match="No device is connected"):
            adb_client.choose(server)


def test_the_servers_refusals_are_its_own_words(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(AdbError, match="device 'no-such-serial' not found"):
        adb_client.shell(server, "no-such-serial", "true")
    with pytest.raises(AdbError, match="device 'no-such-serial' not found"):
        adb_client.push(server, "no-such-serial", tmp_path / "file", "/x")
    with (
        pytest.raises(AdbError, match="adb refuses 'host-serial:no-such-serial:forward"),
        adb_client.forward(server, "no-such-serial", "localabstract:x"),
    ):
        pass
