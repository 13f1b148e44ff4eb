"""A client of the adb server: the host protocol over loopback TCP, a shell with its exit code, files, forwards.

Written here because the packages that speak it either wait without a limit for a device that says nothing, or start an
adb of their own. The protocol: AOSP, packages/modules/adb, OVERVIEW.TXT, SERVICES.TXT, SYNC.TXT, shell_service.h.
"""

import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import MissingToolError, ParityError, UsageError

DEFAULT_PORT = 5037
_SECONDS = 30.0
_CHUNK_BYTES = 64 << 10  # the most that a packet of the sync service may hold
_MAX_REPLY_BYTES = 1 << 16
_MAX_OUTPUT_BYTES = 64 << 20
_STDOUT, _STDERR, _EXIT = 1, 2, 3
_FILE_MODE = 0o100644
_START = "Start it with 'adb start-server' (Debian's package: adb)."


class AdbError(ParityError):
    """The adb server or the device refused something; the message has its words."""


@dataclass(frozen=True)
class Server:
    """Where the adb server listens."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT


@dataclass(frozen=True)
class Device:
    """A line of ``adb devices``; ``state`` "device": it can be used. ``model``: "" where the server does not say."""

    serial: str
    state: str
    model: str = ""


@dataclass(frozen=True)
class ShellResult:
    """What a command on the device wrote, and its exit code."""

    stdout: bytes
    stderr: bytes
    exit_code: int

    @property
    def said(self) -> str:
        """The last words of both, for messages."""
        text = (self.stdout + self.stderr).decode(errors="replace").strip()
        return " / ".join(line.strip() for line in text.splitlines()[-3:])[:500]


def usual_server() -> Server:
    """Return the server that adb itself would use. Raises UsageError for a port in the environment that is none."""
    named = os.environ.get("ANDROID_ADB_SERVER_PORT")
    if named is None:
        return Server()
    if not named.isascii() or not named.isdigit() or not 0 < int(named) < 65536:
        raise UsageError(f"ANDROID_ADB_SERVER_PORT is {named!r}, which is no port.")
    return Server(port=int(named))


def devices(server: Server) -> tuple[Device, ...]:
    """Return the devices that the server knows. Raises MissingToolError when no server answers, AdbError."""
    with _Connection(server) as connection:
        connection.ask("host:devices-l")
        text = connection.reply().decode(errors="replace")
    found = []
    for line in text.splitlines():
        serial, _, rest = line.partition(" ")
        words = rest.split()
        if not serial or not words:
            continue
        model = next((word.removeprefix("model:") for word in words if word.startswith("model:")), "")
        # "no permissions (user is not in the plugdev group); see [...]" is a state of several words.
        found.append(Device(serial, "no permissions" if words[0] == "no" else words[0], model))
    return tuple(found)


def choose(server: Server, serial: str = "") -> Device:
    """Return the device called ``serial`` ("": the only one). Raises MissingToolError that says what to do else."""
    found = devices(server)
    listed = ", ".join(f"{device.serial} ({device.state})" for device in found) or "none"
    if serial:
        chosen = [device for device in found if device.serial == serial]
        if not chosen:
            raise MissingToolError(f"There is no device '{serial}' at the adb server.", hint=f"Devices: {listed}.")
    else:
        chosen = list(found)
        if not chosen:
            raise MissingToolError(
                "No device is connected.", hint="Connect one, and allow USB debugging in its developer options."
            )
        if len(chosen) > 1:
            raise MissingToolError(
                f"There are {len(chosen)} devices.", hint=f"Name one as adb://SERIAL. Devices: {listed}."
            )
    device = chosen[0]
    if device.state != "device":
        raise MissingToolError(f"The device {device.serial} is {device.state}.", hint=_STATES.get(device.state))
    return device


_STATES = {
    "unauthorized": "Unlock it, and allow this computer in the question that it shows.",
    "offline": "Take its cable out and in again, or 'adb reconnect offline'.",
    "no": "This user may not use its USB port; see 'adb devices'.",
    "no permissions": "This user may not use its USB port; see 'adb devices'.",
    "recovery": "Start its system.",
    "sideload": "Start its system.",
    "bootloader": "Start its system.",
}


def shell(server: Server, serial: str, command: str, *, seconds: float = _SECONDS) -> ShellResult:
    """Run ``command`` in the device's shell, and return what it wrote. Raises AdbError when the device goes away."""
    with _Connection(server, seconds, f"'{command.split()[0]}' on {serial}") as connection:
        connection.transport(serial)
        connection.ask(f"shell,v2,raw:{command}")
        written: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray()}
        while True:
            kind, size = struct.unpack("<BI", connection.read(5))
            if size > _MAX_OUTPUT_BYTES:
                raise AdbError(f"The device {serial} sends {size:,} bytes at once, which no shell does.")
            data = connection.read(size)
            if kind == _EXIT and data:
                return ShellResult(bytes(written[_STDOUT]), bytes(written[_STDERR]), data[0])
            if kind in written:
                written[kind] += data
            if sum(map(len, written.values())) > _MAX_OUTPUT_BYTES:
                raise AdbError(f"'{command.split()[0]}' on {serial} writes more than {_MAX_OUTPUT_BYTES:,} bytes.")


def push(server: Server, serial: str, source: Path, destination: str, *, seconds: float = 600.0) -> None:
    """Copy a file to the device. Raises AdbError with its words when it refuses."""
    with _Connection(server, seconds, f"copying {source.name} to {serial}") as connection:
        connection.transport(serial)
        connection.ask("sync:")
        place = f"{destination},{_FILE_MODE}".encode()
        connection.send(b"SEND" + struct.pack("<I", len(place)) + place)
        with source.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                connection.send(b"DATA" + struct.pack("<I", len(chunk)) + chunk)
        # A date that is always the same: the file is removed soon.
        connection.send(b"DONE" + struct.pack("<I", 0))
        status, size = struct.unpack("<4sI", connection.read(8))
        if status != b"OKAY":
            raise _refused(connection, size, f"The device {serial} did not take {source.name}")
        connection.send(b"QUIT" + struct.pack("<I", 0))


def pull(server: Server, serial: str, path: str, *, limit_bytes: int, seconds: float = 600.0) -> bytes:
    """Return the bytes of a file on the device. Raises AdbError when it is not there, or larger than the limit."""
    with _Connection(server, seconds, f"reading {path} of {serial}") as connection:
        connection.transport(serial)
        connection.ask("sync:")
        place = path.encode()
        connection.send(b"RECV" + struct.pack("<I", len(place)) + place)
        data = bytearray()
        while True:
            status, size = struct.unpack("<4sI", connection.read(8))
            if status == b"DONE":
                connection.send(b"QUIT" + struct.pack("<I", 0))
                return bytes(data)
            if status != b"DATA":
                raise _refused(connection, size, f"{path} of {serial} cannot be read")
            if size > _CHUNK_BYTES or len(data) + size > limit_bytes:
                raise AdbError(f"{path} of {serial} has more than the {limit_bytes:,} bytes that it may have.")
            data += connection.read(size)


def _refused(connection: "_Connection", size: int, what: str) -> AdbError:
    words = connection.read(min(size, _MAX_REPLY_BYTES)).decode(errors="replace")
    return AdbError(f"{what}: {words}")


@contextmanager
def forward(server: Server, serial: str, remote: str) -> Iterator[int]:
    """Forward a free port of this machine to ``remote`` on the device while the block runs, and yield that port."""
    with _Connection(server) as connection:
        connection.ask(f"host-serial:{serial}:forward:tcp:0;{remote}")
        connection.okay(f"forwarding to {remote}")  # the first was for the request, this one is for the forward
        text = connection.reply().decode(errors="replace")
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise AdbError(f"The adb server names {text!r} as a port.")
    try:
        yield int(text)
    finally:
        _forget(server, f"host-serial:{serial}:killforward:tcp:{int(text)}")


@contextmanager
def reverse(server: Server, serial: str, port: int) -> Iterator[None]:
    """Let the device reach this machine's ``port`` at its own ``port`` of the same number while the block runs."""
    with _Connection(server) as connection:
        connection.transport(serial)
        connection.ask(f"reverse:forward:tcp:{port};tcp:{port}")
        connection.okay(f"reversing port {port}")
    try:
        yield
    finally:
        _forget(server, f"reverse:killforward:tcp:{port}", serial)


def _forget(server: Server, request: str, serial: str = "") -> None:
    """Undo a forward; where the device has gone, it has gone with it."""
    try:
        with _Connection(server, 5.0) as connection:
            if serial:
                connection.transport(serial)
            connection.ask(request)
    except (AdbError, MissingToolError):
        return


class _Connection:
    """One connection to the adb server, with one limit of time for all of it."""

    def __init__(self, server: Server, seconds: float = _SECONDS, doing: str = "talking to the adb server") -> None:
        self._doing = doing
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        try:
            self._socket = socket.create_connection((server.host, server.port), timeout=min(seconds, _SECONDS))
        except OSError as error:
            raise MissingToolError(
                f"No adb server answers at {server.host}:{server.port}: {error.strerror or error}.", hint=_START
            ) from error

    def __enter__(self) -> "_Connection":
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def transport(self, serial: str) -> None:
        """From here on the connection is with the device."""
        self.ask(f"host:transport:{serial}")

    def ask(self, request: str) -> None:
        """Send a request, and read that it was taken."""
        data = request.encode()
        self.send(b"%04x" % len(data) + data)
        self.okay(request)

    def okay(self, request: str) -> None:
        """Read a status. Raises AdbError with the server's words where it is none of success."""
        status = self.read(4)
        if status == b"OKAY":
            return
        if status != b"FAIL":
            raise AdbError(f"What listens there is no adb server: it answers {status!r}.")
        words = " ".join(self.reply().decode(errors="replace").split())
        raise AdbError(f"adb refuses '{request}': {words}")

    def reply(self) -> bytes:
        """Read a text with its length before it."""
        digits = self.read(4)
        try:
            size = int(digits, 16)
        except ValueError:
            raise AdbError(f"What listens there is no adb server: it answers {digits!r}.") from None
        return self.read(size)

    def send(self, data: bytes) -> None:
        self._limit()
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error) from error

    def read(self, size: int) -> bytes:
        """Read exactly ``size`` bytes. Raises AdbError when they do not come."""
        data = bytearray()
        while len(data) < size:
            self._limit()
            try:
                part = self._socket.recv(min(size - len(data), 1 << 20))
            except OSError as error:
                raise self._lost(error) from error
            if not part:
                raise self._lost(None)
            data += part
        return bytes(data)

    def _limit(self) -> None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._lost(TimeoutError())
        self._socket.settimeout(left)

    def _lost(self, error: OSError | None) -> AdbError:
        if isinstance(error, TimeoutError):
            return AdbError(f"No answer within {self._seconds:g} s while {self._doing}.")
        return AdbError(
            f"The connection ended while {self._doing}.", hint="Was the device unplugged? 'adb devices' lists it."
        )
