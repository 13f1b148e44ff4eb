"""An adb server on loopback that speaks the real protocol, with devices that a test makes up.

It takes one request after another as the real one does: lengths in hexadecimal, OKAY and FAIL, transports that hand the
connection to a device, the shell's packets, the sync service's requests, forwards that really listen.
"""

import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NoReturn

Answer = tuple[bytes, bytes, int]


@dataclass
class Phone:
    """A device. ``commands``: what its shell answers, by the first words of a command; a function is given all of it.

    ``unplug_at``: the request or the command at which its connection breaks. ``sockets``: ports of this machine, by the
    name of the socket on the device that they stand for.
    """

    serial: str
    state: str = "device"
    model: str = "Pixel_9"
    commands: dict[str, Answer | Callable[[str], Answer]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    sockets: dict[str, int] = field(default_factory=dict)
    installed: list[bytes] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    unplug_at: str = ""
    refuse_push: str = ""

    def run(self, command: str) -> Answer:
        self.asked.append(command)
        if command.startswith("pm install") and "pm install" not in self.commands:
            self.installed.append(self.files[command.split()[-1]])
            return b"Success\n", b"", 0
        for start, answer in self.commands.items():
            if command.startswith(start):
                return answer(command) if callable(answer) else answer
        return b"", b"", 0


class _GoneError(Exception):
    """The device was unplugged, or the client hung up."""


class AdbServer:
    """The server; ``phones`` may be changed while it runs."""

    def __init__(self, *phones: Phone) -> None:
        self.phones = list(phones)
        self.forwards: dict[int, socket.socket] = {}
        self.reversed: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._spawn(self._accept, self._listener, self._serve)

    def close(self) -> None:
        for listener in (self._listener, *self.forwards.values(), *self._connections):
            _shut(listener)
        for thread in self._threads:
            thread.join(60)  # of a busy machine
            assert not thread.is_alive()

    def _spawn(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(30)
            self._connections.append(connection)
            self._spawn(self._guarded, serve, connection)

    def _guarded(self, serve: Callable[[socket.socket], None], connection: socket.socket) -> None:
        with connection, suppress(_GoneError, OSError):
            serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        while True:
            request = _read(connection, int(_read(connection, 4), 16)).decode()
            if request.startswith("host:transport:"):
                phone = self._phone(connection, request.removeprefix("host:transport:"))
                connection.sendall(b"OKAY")
                self._on_phone(connection, phone)
                return
            self._host(connection, request)
            return  # the real one closes a connection after a host's request

    def _phone(self, connection: socket.socket, serial: str) -> Phone:
        phone = next((phone for phone in self.phones if phone.serial == serial), None)
        if phone is None:
            _fail(connection, f"device '{serial}' not found")
        if phone.state != "device":
            _fail(connection, f"device {phone.state}.")
        return phone

    def _host(self, connection: socket.socket, request: str) -> None:
        if request == "host:version":
            connection.sendall(b"OKAY" + _text("0029"))
        elif request == "host:devices-l":
            lines = [f"{p.serial:<22} {p.state} usb:1-1 product:x model:{p.model} transport_id:1" for p in self.phones]
            connection.sendall(b"OKAY" + _text("".join(f"{line}\n" for line in lines)))
        elif found := re.fullmatch(r"host-serial:(.+?):forward:tcp:0;(.+)", request):
            phone = self._phone(connection, found[1])
            phone.asked.append(request)
            if found[2] not in phone.sockets:
                _fail(connection, f"cannot bind listener: {found[2]}")
            listener = socket.create_server(("127.0.0.1", 0))
            port: int = listener.getsockname()[1]
            self.forwards[port] = listener
            self._spawn(self._accept, listener, lambda taken: self._bridge(taken, phone.sockets[found[2]]))
            connection.sendall(b"OKAY" + b"OKAY" + _text(str(port)))
        elif found := re.fullmatch(r"host-serial:(.+?):killforward:tcp:(\d+)", request):
            _shut(self.forwards.pop(int(found[2])))
            connection.sendall(b"OKAYOKAY")
        else:
            _fail(connection, "unknown host service")

    def _bridge(self, taken: socket.socket, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as other:
            self._spawn(_pump, other, taken)
            _pump(taken, other)

    def _on_phone(self, connection: socket.socket, phone: Phone) -> None:
        request = _read(connection, int(_read(connection, 4), 16)).decode()
        if phone.unplug_at and phone.unplug_at in request:
            raise _GoneError
        if request.startswith("shell,v2,raw:"):
            connection.sendall(b"OKAY")
            stdout, stderr, code = phone.run(request.removeprefix("shell,v2,raw:"))
            half = len(stdout) // 2  # in two packets, as they may come
            for kind, data in ((1, stdout[:half]), (2, stderr), (1, stdout[half:]), (3, bytes([code]))):
                if data:
                    connection.sendall(struct.pack("<BI", kind, len(data)) + data)
        elif request == "sync:":
            connection.sendall(b"OKAY")
            self._sync(connection, phone)
        elif request.startswith("reverse:"):
            self.reversed.append(request)
            connection.sendall(b"OKAYOKAY")
        else:
            _fail(connection, "closed")

    def _sync(self, connection: socket.socket, phone: Phone) -> None:
        while True:
            kind, size = struct.unpack("<4sI", _read(connection, 8))
            if kind == b"QUIT":
                return
            path = _read(connection, size).decode()
            if kind == b"SEND":
                path, _, mode = path.rpartition(",")
                assert int(mode) == 0o100644
                data = bytearray()
                while True:
                    part, size = struct.unpack("<4sI", _read(connection, 8))
                    if part == b"DONE":
                        break
                    assert part == b"DATA"
                    assert size <= 64 << 10
                    data += _read(connection, size)
                    if phone.unplug_at == "push":
                        raise _GoneError
                if phone.refuse_push:
                    words = phone.refuse_push.encode()
                    connection.sendall(b"FAIL" + struct.pack("<I", len(words)) + words)
                    return
                phone.files[path] = bytes(data)
                connection.sendall(b"OKAY" + struct.pack("<I", 0))
            elif kind == b"RECV":
                contents = phone.files.get(path)
                if contents is None:
                    words = b"No such file or directory"
                    connection.sendall(b"FAIL" + struct.pack("<I", len(words)) + words)
                    return
                for start in range(0, len(contents), 50_000):
                    part = contents[start : start + 50_000]
                    connection.sendall(b"DATA" + struct.pack("<I", len(part)) + part)
                connection.sendall(b"DONE" + struct.pack("<I", 0))


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise _GoneError
        data += part
    return data


def _text(text: str) -> bytes:
    return b"%04x" % len(text.encode()) + text.encode()


def _fail(connection: socket.socket, why: str) -> NoReturn:
    connection.sendall(b"FAIL" + _text(why))
    raise _GoneError


def _shut(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def running(*phones: Phone) -> Iterator[AdbServer]:
    server = AdbServer(*phones)
    try:
        yield server
    finally:
        server.close()
