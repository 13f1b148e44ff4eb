"""A server in a thread of this process, for as long as a block runs."""

import errno
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server

from edgekit.errors import UsageError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# The addresses to listen on that mean all of a machine's; a browser cannot open them.
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  compared with, not bound to

# A client that sends or takes nothing for this long is let go.
_IDLE_SECONDS = 60

# Where a request's environment holds what is sent.
_ANSWER = "edgekit.answer"


class _Handler(WSGIRequestHandler):
    timeout = _IDLE_SECONDS

    def connection_dropped(self, error: BaseException, environ: "WSGIEnvironment | None" = None) -> None:
        """Let go of the file that was being sent.

        werkzeug closes it only where the rest of the request can be read, and a client that is gone resets that.
        """
        close = getattr((environ or {}).get(_ANSWER), "close", None)
        if close is not None:
            close()

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002  the name is werkzeug's
        """Write no access log: standard error belongs to whoever runs the server."""


@contextmanager
def serving(app: Flask, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve ``app`` while the block runs, and yield its URL, such as ``http://127.0.0.1:8000/``.

    ``port`` 0 takes a free one. Raises UsageError when the port is in use or the host is not one of this machine.
    """
    listener = _listen(host, port)
    family, taken = listener.family, listener.getsockname()[1]
    try:
        # werkzeug ends the process when it cannot bind, so it is given a socket that is bound.
        server = make_server(
            host, taken, _remembered(app), threaded=True, request_handler=_Handler, fd=listener.fileno()
        )
    finally:
        listener.close()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if family == socket.AF_INET6 and ':' in host else host}:{taken}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _remembered(app: "WSGIApplication") -> "WSGIApplication":
    """Return the application, with each answer under a key of its request's environment."""

    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        environ[_ANSWER] = made = app(environ, start_response)
        return made

    return answer


def address_here() -> str | None:
    """Return this machine's address in its network; nothing is sent to find it."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # an address that RFC 5737 keeps for documentation
        address: str = probe.getsockname()[0]
        return address
    return None


def _listen(host: str, port: int) -> socket.socket:
    if not host.strip():  # the system would take it for all addresses
        raise UsageError("The host is empty.", hint="--host takes an address of this machine; 0.0.0.0 is all of them.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # what this refuses, the socket refuses too, with a TypeError
        return socket.create_server((host, port), family=family, backlog=128)
    except (socket.gaierror, UnicodeError) as error:
        raise UsageError(f"There is no host {host!r}.", hint="--host takes an address of this machine.") from error
    except OSError as error:
        raise _refused(error, host, port) from error


def _refused(error: OSError, host: str, port: int) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"Port {port} on {host} is in use.", hint="Choose another with --port; --port 0 takes a free one."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return UsageError(f"Port {port} on {host} is not for ordinary users.", hint="Choose a port above 1023.")
    if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return UsageError(f"{host} is not an address of this machine.", hint="--host 0.0.0.0 listens on all of them.")
    return UsageError(
        f"Cannot listen on {host} port {port}: {error.strerror}.", hint="Choose another --host or --port."
    )
