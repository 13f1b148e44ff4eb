"""What the service answers. A client is untrusted: its request has a size, a time and a form, or an error."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast

import onnxruntime as ort

from edgekit.desktop import child
from edgekit.device import framing, once, payload
from edgekit.device.framing import RefusedError
from edgekit.device.gate import BusyError
from edgekit.device.payload import JSON, SAFETENSORS
from edgekit.errors import UsageError
from edgekit.records.tensors import Value

if TYPE_CHECKING:
    from edgekit.device.server import Service

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_BINARY = (SAFETENSORS, "application/octet-stream")
# What onnxruntime says of inputs that are not the model's in rank, size or value.
_CLIENTS_FAULT = ("INVALID_ARGUMENT", "Got invalid dimensions", "Invalid rank for input", "Invalid input")


class Handler(BaseHTTPRequestHandler):
    """One connection; it stays open for more requests."""

    protocol_version = "HTTP/1.1"
    server_version = "edgekit-run"
    sys_version = ""
    # Of this request: whether the lines of its head were whole, how long its body is said to be, and whether that is
    # not read.
    whole = True
    length: int | None = None
    left_over = False
    server: "Service"

    def handle_one_request(self) -> None:
        """Read a request and answer it, within the time that a client has."""
        if self.server.stopping:
            self.close_connection = True
            return
        # The wait for the first byte of a request and the reading of its head are under one deadline: one that trickles
        # in bytes keeps a thread no longer than one that says nothing.
        with self.server.watch.client(self.connection, self.server.config.request_seconds, idle=True):
            try:
                self.raw_requestline = self.rfile.readline(65537)
                if len(self.raw_requestline) > 65536:
                    self.requestline = self.request_version = self.command = ""
                    self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
                    return
                if not self.raw_requestline:
                    self.close_connection = True
                    return
                if not self._parse():
                    return
            except OSError:
                self.close_connection = True
                return
        try:
            self._answer()
        except OSError:  # the client went away
            self.close_connection = True

    def _parse(self) -> bool:
        """Read the head, and remember whether its lines were whole."""
        stream = self.rfile
        lines = framing.Lines(stream.readline)
        self.rfile = cast("Any", lines)
        try:
            return self.parse_request()
        finally:
            self.rfile = stream
            self.whole = lines.whole

    def handle_expect_100(self) -> bool:
        """Wait with "100 Continue" until it is known that the body is taken."""
        return True

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        routes = {
            "/infer": ("POST", self._infer),
            "/healthz": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
        }
        routes["/"] = ("GET", self._about)
        try:
            self.length = framing.body_length(self.headers, self.request_version, whole=self.whole)
            self._check_host()
            if path not in routes:
                raise RefusedError(HTTPStatus.NOT_FOUND, f"There is nothing at {path[:100]!r}.")
            method, answer = routes[path]
            if self.command != method and not (method == "GET" and self.command == "HEAD"):
                raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {method}.", {"Allow": method})
            if method == "GET" and self.length:
                self.close_connection = self.left_over = True
            answer()
        except RefusedError as error:
            # What is left of a body that was not read would be taken for the next request.
            self.close_connection = True
            self._send(error.status, JSON, json.dumps({"error": error.message}).encode(), error.headers)
        except MemoryError:
            self.close_connection = True
            self._send(HTTPStatus.INSUFFICIENT_STORAGE, JSON, b'{"error": "Not enough memory."}')

    def _check_host(self) -> None:
        """Refuse a request for another name: the page of an attacker, whose name was made to lead to this machine, may
        read what is answered to it. Where other machines may ask, they know this one by names that it does not know.
        """
        host, config = self.headers.get("Host"), self.server.config
        if host is None or config.host not in _LOOPBACK:
            return
        name = host.rpartition(":")[0] if host[-1:].isdigit() and ":" in host else host
        if name.strip("[]").lower() not in {*_LOOPBACK, *(one.lower() for one in config.names)}:
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"{host[:100]!r} is no name of this service. Add it to 'names' under [server] in config.toml.",
            )

    def _infer(self) -> None:
        kind = self.headers.get_content_type()
        if kind not in (JSON, *_BINARY):
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Send {JSON} or {SAFETENSORS}.")
        if any(one.strip().lower() != "identity" for one in self.headers.get_all("Content-Encoding") or []):
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, with no Content-Encoding.")
        try:
            length = self._length()
            with self.server.bodies.hold(length):
                data, binary = self._inferred(kind, self._body(length))
        except BusyError:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "As many requests wait as may. Try again.", {"Retry-After": "1"}
            ) from None
        except UsageError as error:
            hint = f" {error.hint}" if error.hint else ""
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{error.message}{hint}") from error
        self._send(HTTPStatus.OK, SAFETENSORS if binary else JSON, data)

    def _inferred(self, kind: str, body: bytes) -> tuple[bytes, bool]:
        """Run the model on a body; return the answer, and whether it is safetensors."""
        engine, options = self.server.engine, ort.RunOptions()
        options.log_severity_level = 4
        seconds = self.server.config.run_seconds
        with self.server.gate(seconds):
            # Inside, because JSON takes many times its bytes when it is read.
            known = once.input_dtypes(engine)
            values = payload.from_json(body, known) if kind == JSON else payload.from_safetensors(body)
            started = time.perf_counter()
            with self.server.watch.inference(options, seconds):
                outputs = self._run(values, options)
            took = time.perf_counter() - started
            self.server.metrics.ran(took)
            wanted = self.headers.get("Accept", "*/*")
            binary = kind != JSON if "*/*" in wanted or not wanted else any(one in wanted for one in _BINARY)
            data = payload.to_safetensors(outputs) if binary else payload.to_json(outputs, took * 1000)
        return data, binary

    def _run(self, values: tuple[Value, ...], options: ort.RunOptions) -> tuple[Value, ...]:
        try:
            return self.server.engine.infer(values, options)
        except child.RefusedError as error:
            raise UsageError(f"{str(error)[:500]}.") from error
        except Exception as error:
            said = str(error)[:500]
            if options.terminate:
                raise RefusedError(
                    HTTPStatus.GATEWAY_TIMEOUT, "The inference took too long, and was stopped."
                ) from error
            if any(mark in said for mark in _CLIENTS_FAULT):
                raise UsageError(f"The model does not take these inputs: {said}") from error
            raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, f"The model failed on these inputs: {said}") from error

    def _length(self) -> int:
        """Return the length of the body, which the client must say beforehand."""
        length, most = self.length, self.server.config.request_bytes
        if length is None:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "Say the length of the body with one Content-Length.")
        if length > most:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body may have {most:,} bytes.")
        return length

    def _body(self, length: int) -> bytes:
        with self.server.watch.client(self.connection, self.server.config.request_seconds):
            if self.headers.get("Expect", "").lower() == "100-continue" and self.request_version == "HTTP/1.1":
                self.send_response_only(HTTPStatus.CONTINUE)
                self.end_headers()
            body = self.rfile.read(length)
        if len(body) < length:  # the client, or the deadline, ended it
            raise ConnectionError
        return body

    def _health(self) -> None:
        alive = self.server.watch.alive and not self.server.stopping
        status = HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE
        self._send(status, JSON, json.dumps({"status": "ok" if alive else "failing"}).encode())

    def _metrics(self) -> None:
        gate = self.server.gate
        text = self.server.metrics.text(gate.running, gate.waiting)
        self._send(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", text.encode())

    def _about(self) -> None:
        engine = self.server.engine

        def told(arguments: Any) -> dict[str, Any]:
            """Dtype and shape by name; a shape of null: any, also in how many dimensions it has."""
            return {
                a.name: {"dtype": child.dtype_of(a.type), "shape": a.shape if a.name not in engine.any_rank else None}
                for a in arguments
            }

        about = {
            "title": engine.bundle.manifest.title,
            "model_sha256": engine.bundle.manifest.model.sha256,
            "inputs": told(engine.session.get_inputs()),
            "outputs": told(engine.session.get_outputs()),
        }
        self._send(HTTPStatus.OK, JSON, json.dumps(about).encode())

    def _send(self, status: HTTPStatus, kind: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.server.metrics.answered(status)
        with self.server.watch.client(self.connection, self.server.config.request_seconds):
            self.send_response(status)
            more = {"Content-Type": kind, "Content-Length": str(len(data)), "X-Content-Type-Options": "nosniff"}
            if self.close_connection or self.server.stopping:
                self.close_connection = True
                more["Connection"] = "close"
            for name, value in {**more, **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
            self.wfile.flush()
        if self.close_connection and (status >= HTTPStatus.BAD_REQUEST or self.left_over):
            self._linger()

    def _linger(self) -> None:
        """Read on for a moment what the client still sends: a closed socket with unread data resets the connection,
        and the answer would be lost.
        """
        with suppress(OSError):
            self.connection.settimeout(0.2)
            end = time.monotonic() + 1.0
            self.connection.shutdown(1)  # no more is written
            while time.monotonic() < end and self.connection.recv(1 << 16):
                pass

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is not HTTP, or none that is served here."""
        self.close_connection = True
        self.request_version = self.protocol_version  # or what is no HTTP would be answered without a head
        status = HTTPStatus(code)
        with suppress(OSError):
            self._send(status, JSON, json.dumps({"error": message or status.phrase}).encode())

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  the base class names it so
        """Say nothing: the journal of a device is small, and /metrics counts."""
