"""The service: inferences over HTTP, bounded in every direction."""

import json
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any

from edgekit.bundle.open import Bundle, load_cases
from edgekit.desktop.exchange import StoredFeed
from edgekit.device import notify
from edgekit.device.config import Config
from edgekit.device.engine import Engine
from edgekit.device.gate import Budget, Gate
from edgekit.device.handler import Handler
from edgekit.device.metrics import Metrics
from edgekit.device.watch import Watch
from edgekit.errors import ModelError, UsageError

_DRAIN_SECONDS = 20.0
# The bodies that are in memory at once have together at most so often the bytes of the largest one.
_BODIES = 4
# A connection that is sent away stays open so long, for the client to read why.
_PARTING_SECONDS = 1.0
_FULL_BODY = json.dumps({"error": "Too many connections. Try again."}).encode()
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_FULL_BODY), _FULL_BODY)
)


class Service(ThreadingHTTPServer):
    """A thread for each connection, up to a number; what they share."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, engine: Engine, config: Config) -> None:
        self.engine = engine
        self.config = config.server
        self.metrics = Metrics()
        self.gate = Gate(config.server.running, config.server.waiting)
        # The kernel's queue of connections not accepted yet: one that finds it full tries again a second later.
        self.request_queue_size = config.server.connections
        self.bodies = Budget(_BODIES * config.server.request_bytes)
        self.watch = Watch(self.metrics.dropped)
        self.stopping = False
        self._open = 0
        self._count = threading.Lock()
        self._parting: deque[tuple[float, socket.socket]] = deque()
        if ":" in config.server.host:
            self.address_family = socket.AF_INET6
        super().__init__((config.server.host, config.server.port), Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server for the name of this machine, which may take long on a device."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.config.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread, or send it away where as many are open as may be."""
        with self._count:
            full = self._open >= self.config.connections
            if not full:
                self._open += 1
        if not full:
            try:
                super().process_request(request, client_address)
            except RuntimeError:  # the system gives no more threads
                self._closed()
                full = True
        if full:
            self._send_away(request)

    def _send_away(self, request: socket.socket) -> None:
        """Answer 503 without a thread. The connection is closed a moment later, by ``service_actions``: a client that
        still sends when it is closed gets a reset, and the answer is lost with it.
        """
        self.metrics.answered(503)
        with suppress(OSError):
            request.setblocking(False)
            request.send(_FULL)
            request.shutdown(socket.SHUT_WR)
        self._parting.append((time.monotonic() + _PARTING_SECONDS, request))
        while len(self._parting) > self.config.connections:
            self.shutdown_request(self._parting.popleft()[1])

    def service_actions(self) -> None:
        """Read what those who were sent away still send, and close where they are done or had their time."""
        for _ in range(len(self._parting)):
            end, request = self._parting.popleft()
            if time.monotonic() < end and not _has_ended(request):
                self._parting.append((end, request))
            else:
                self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._closed()

    def _closed(self) -> None:
        with self._count:
            self._open -= 1

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._open

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no event; anything else goes to the journal, and the service goes on."""
        error = sys.exception()
        if not isinstance(error, OSError):
            sys.stderr.write(f"edgekit-run: a connection ended with {type(error).__name__}: {error}\n")


def _has_ended(request: socket.socket) -> bool:
    """Read what a client has sent, which nobody wants; return whether it sends no more."""
    try:
        return not request.recv(1 << 16)
    except BlockingIOError:
        return False
    except OSError:
        return True


def serve(bundle: Bundle, config: Config, say: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT, then end what was accepted, and return 0.

    Raises ModelError where the runtime refuses the model, UsageError where it cannot listen.
    """
    engine = Engine(bundle, config.session)
    warm_up(engine)
    try:
        service = Service(engine, config)
    except (OSError, ValueError) as error:  # a name that no name server is asked for is a ValueError
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UsageError(
            f"Cannot listen on {config.server.host}:{config.server.port}: {reason}.",
            hint="Choose another with --host and --port, or in config.toml.",
        ) from error

    def stop(*_: object) -> None:
        # From another thread: shutdown() waits for the loop, which this handler interrupts.
        threading.Thread(target=service.shutdown, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    service.watch.start()
    shown = f"[{config.server.host}]" if ":" in config.server.host else config.server.host
    threads = "1 thread" if engine.threads == 1 else f"{engine.threads} threads"
    say(f"Serving {bundle.manifest.title} at http://{shown}:{service.server_port}/ ({threads})")
    notify.notify("READY=1")
    service.serve_forever(poll_interval=0.2)
    _drain(service)
    return 0


def warm_up(engine: Engine) -> None:
    """Run a golden case once, so that the first request is not the slow one. Raises ModelError where that fails."""
    case = load_cases(engine.bundle).cases[0]
    result = engine.run(StoredFeed(case.inputs, None, 1))
    if result.error is not None:
        raise ModelError(f"The model does not run on its golden case '{case.id}': {result.error}")


def _drain(service: Service) -> None:
    """Let what was accepted come to its end: no new connections, no new requests on those that are open."""
    notify.notify("STOPPING=1")
    service.stopping = True
    service.socket.close()
    end = time.monotonic() + _DRAIN_SECONDS
    while (service.gate.running or service.gate.waiting) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.1)  # the last answers are on their way
    service.watch.stop()
