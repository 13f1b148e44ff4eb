"""The client of the adb server, against a server on loopback that speaks the real protocol."""

import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from adb_server import AdbServer, Phone, running

from edgekit.errors import MissingToolError, UsageError
from edgekit.runners import adb_client
from edgekit.runners.adb_client import AdbError, Device, Server


@pytest.fixture
def phone() -> Phone:
    return Phone("R58N")


@pytest.fixture
def fake(phone: Phone) -> Iterator[AdbServer]:
    with running(phone) as server:
        yield server


@pytest.fixture
def server(fake: AdbServer) -> Server:
    return Server(port=fake.port)


def test_devices_are_listed_and_the_only_one_is_taken(fake: AdbServer, server: Server) -> None:
    assert adb_client.devices(server) == (Device("R58N", "device", "Pixel_9"),)
    assert adb_client.choose(server) == adb_client.choose(server, "R58N")
    fake.phones.clear()
    assert adb_client.devices(server) == ()


@pytest.mark.parametrize(
    ("phones", "serial", "message", "hint"),
    [
        ([], "", "No device is connected", "USB debugging"),
        ([Phone("a"), Phone("b")], "", "There are 2 devices", r"adb://SERIAL. Devices: a \(device\), b \(device\)"),
        ([Phone("a")], "c", "There is no device 'c'", r"Devices: a \(device\)"),
        ([Phone("a", "unauthorized")], "", "a is unauthorized", "allow this computer"),
        ([Phone("a", "offline"), Phone("b")], "a", "a is offline", "cable"),
        ([Phone("a", "no permissions (user is not in the plugdev group)")], "", "a is no permissions", "USB port"),
        ([Phone("a", "recovery")], "", "a is recovery", "Start its system"),
    ],
)
def test_what_keeps_a_device_from_being_used_is_said(phones: list[Phone], serial: str, message: str, hint: str) -> None:
    with running(*phones) as fake, pytest.raises(MissingToolError, match=message) as caught:
        adb_client.choose(Server(port=fake.port), serial)
    assert caught.value.hint is not None
    assert re.search(hint, caught.value.hint)


def test_a_shell_gives_both_outputs_and_the_exit_code(phone: Phone, server: Server) -> None:
    phone.commands["both"] = (b"out \xff\n" * 9, b"err", 7)
    done = adb_client.shell(server, "R58N", "both 'of them'")
    assert (done.stdout, done.stderr, done.exit_code) == (b"out \xff\n" * 9, b"err", 7)
    assert phone.asked == ["both 'of them'"]


def test_files_travel_whole_both_ways(phone: Phone, server: Server, tmp_path: Path) -> None:
    contents = os.urandom(300_001)
    (tmp_path / "file").write_bytes(contents)
    adb_client.push(server, "R58N", tmp_path / "file", "/data/local/tmp/it, with a comma")
    assert phone.files == {"/data/local/tmp/it, with a comma": contents}
    assert adb_client.pull(server, "R58N", "/data/local/tmp/it, with a comma", limit_bytes=300_001) == contents
    (tmp_path / "file").write_bytes(b"")
    adb_client.push(server, "R58N", tmp_path / "file", "/empty")
    assert adb_client.pull(server, "R58N", "/empty", limit_bytes=0) == b""


def test_what_the_device_refuses_is_said_in_its_words(phone: Phone, server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    phone.refuse_push = "couldn't create file: Read-only file system"
    with pytest.raises(AdbError, match="did not take file: couldn't create file: Read-only file system"):
        adb_client.push(server, "R58N", tmp_path / "file", "/system/x")
    with pytest.raises(AdbError, match="/gone of R58N cannot be read: No such file"):
        adb_client.pull(server, "R58N", "/gone", limit_bytes=10)
    phone.files["/large"] = bytes(1000)
    with pytest.raises(AdbError, match="more than the 999 bytes"):
        adb_client.pull(server, "R58N", "/large", limit_bytes=999)
    with pytest.raises(AdbError, match="device 'other' not found"):
        adb_client.shell(server, "other", "true")


def test_a_forward_reaches_what_listens_and_is_undone(fake: AdbServer, phone: Phone, server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        phone.sockets["localabstract:x"] = listener.getsockname()[1]
        with adb_client.forward(server, "R58N", "localabstract:x") as port:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                taken, _ = listener.accept()
                connection.sendall(b"hello")
                assert taken.recv(5) == b"hello"
                taken.close()
            assert list(fake.forwards) == [port]
        assert not fake.forwards
    with pytest.raises(AdbError, match="cannot bind"), adb_client.forward(server, "R58N", "localabstract:y"):
        pass


def test_a_reverse_is_asked_of_the_device_and_undone(fake: AdbServer, server: Server) -> None:
    with adb_client.reverse(server, "R58N", 8000):
        assert fake.reversed == ["reverse:forward:tcp:8000;tcp:8000"]
    assert fake.reversed[1] == "reverse:killforward:tcp:8000"


@pytest.mark.parametrize("moment", ["shell", "sync", "push"])
def test_a_device_that_is_unplugged_ends_the_wait_at_once(
    phone: Phone, server: Server, tmp_path: Path, moment: str
) -> None:
    phone.unplug_at = moment
    (tmp_path / "file").write_bytes(bytes(200_000))
    with pytest.raises(AdbError, match=r"The connection ended while .* R58N") as caught:
        if moment == "shell":
            adb_client.shell(server, "R58N", "sleep 1")
        else:
            adb_client.push(server, "R58N", tmp_path / "file", "/x")
    assert "unplugged" in (caught.value.hint or "")


def test_a_device_that_says_nothing_is_waited_for_no_longer_than_said(phone: Phone, server: Server) -> None:
    answer = threading.Event()

    def wait(command: str) -> tuple[bytes, bytes, int]:
        answer.wait(10)
        return b"", b"", 0

    phone.commands["sleep"] = wait
    with pytest.raises(AdbError, match=r"No answer within 0.2 s while 'sleep' on R58N"):
        adb_client.shell(server, "R58N", "sleep 100", seconds=0.2)
    answer.set()


def test_no_server_is_said_with_the_line_that_starts_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(MissingToolError, match=f"No adb server answers at 127.0.0.1:{port}") as caught:
        adb_client.devices(Server(port=port))
    assert "adb start-server" in (caught.value.hint or "")


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"OKAYxxxx", b"", b"FAILzzzz"])
def test_what_is_no_adb_server_is_noticed(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(AdbError, match=r"no adb server|connection ended"):
            adb_client.devices(Server(port=listener.getsockname()[1]))
        thread.join()


def test_the_port_is_that_of_adbs_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANDROID_ADB_SERVER_PORT", raising=False)
    assert adb_client.usual_server() == Server("127.0.0.1", 5037)
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "5038")
    assert adb_client.usual_server().port == 5038
    for bad in ("", "x", "0", "65536", "-1", "٣"):
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", bad)
        with pytest.raises(UsageError, match="which is no port"):
            adb_client.usual_server()
