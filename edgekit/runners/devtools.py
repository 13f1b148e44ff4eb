"""A page of a browser or a WebView over the DevTools protocol itself.

Playwright cannot attach to a WebView: it asks for downloads and contexts, which a WebView does not manage. What is
needed here is little: one page that is open already is asked to load an address, and what it would post is handed over.
"""

import base64
import json
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from edgekit.errors import MissingToolError, ParityError
from edgekit.optional import need

if TYPE_CHECKING:
    import websocket

_LIST_BYTES = 4 << 20
_CONNECT_SECONDS = 10.0
_CALL_SECONDS = 30.0
_CONSOLE_LINES = 30
_LINE_CHARACTERS = 500
BINDING = "edgekitHandOver"

# The page posts its record to the server that it came from. An app has none, so the post is handed over instead: in
# parts, because one message must not be large.
HAND_OVER = """(() => {
  const fetched = globalThis.fetch.bind(globalThis);
  const give = (message) => globalThis.BINDING(JSON.stringify(message));
  const text = (blob) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ''));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  // What the page's policy stops never becomes a request.
  document.addEventListener('securitypolicyviolation', (event) => give({ blocked: event.blockedURI }));
  globalThis.fetch = async (input, init) => {
    const url = new URL(typeof input === 'string' ? input : input.url ?? String(input), location.href);
    if (init?.method !== 'POST' || url.pathname !== '/records' || !(init.body instanceof FormData)) {
      return fetched(input, init);
    }
    for (const [part, blob] of init.body) {
      for (let start = 0; start < blob.size; start += PART_BYTES) {
        give({ part, data: await text(blob.slice(start, start + PART_BYTES)) });
      }
    }
    give({ done: true });
    return new Response('{"id": "handed-over"}', { status: 201, headers: { 'Content-Type': 'application/json' } });
  };
})();""".replace("BINDING", BINDING).replace("PART_BYTES", "786432")


class DevToolsPage:
    """One page. Calls and events go through one connection, which this thread alone reads."""

    def __init__(self, connection: "websocket.WebSocket") -> None:
        self._connection = connection
        self._id = 0
        self._events: deque[dict[str, Any]] = deque()
        self.console: deque[str] = deque(maxlen=_CONSOLE_LINES)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result. Raises ParityError when the page refuses, ends, or says nothing."""
        self._id += 1
        asked = self._id
        self._send({"id": asked, "method": method, "params": parameters})
        end = time.monotonic() + _CALL_SECONDS
        while True:
            message = self._receive(end)
            if message is None:
                raise ParityError(f"The page does not answer {method} within {_CALL_SECONDS:g} s.")
            if message.get("id") == asked:
                if "error" in message:
                    raise ParityError(f"The page refuses {method}: {message['error'].get('message', '')}"[:300])
                result: dict[str, Any] = message.get("result", {})
                return result
            self._events.append(message)

    def events(self, end: float) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (method, parameters) of events until ``time.monotonic()`` reaches ``end``; note what it prints."""
        while True:
            message = self._events.popleft() if self._events else self._receive(end)
            if message is None:
                return
            method, parameters = str(message.get("method", "")), message.get("params") or {}
            self._note(method, parameters)
            yield method, parameters

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            words = " ".join(str(one.get("value", one.get("description", ""))) for one in parameters.get("args", ()))
            self.console.append(f"[{parameters.get('type', 'log')}] {words[:_LINE_CHARACTERS]}")
        elif method == "Runtime.exceptionThrown":
            details = parameters.get("exceptionDetails", {})
            words = str(details.get("exception", {}).get("description") or details.get("text", ""))
            self.console.append(f"[uncaught] {words[:_LINE_CHARACTERS]}")

    def _send(self, message: dict[str, Any]) -> None:
        import websocket

        try:
            self._connection.settimeout(_CALL_SECONDS)
            self._connection.send(json.dumps(message))
        except (OSError, websocket.WebSocketException) as error:
            raise _ended(error) from error

    def _receive(self, end: float) -> dict[str, Any] | None:
        """Return the next message; None when time is up."""
        import websocket

        left = end - time.monotonic()
        if left <= 0:
            return None
        try:
            self._connection.settimeout(left)
            data = self._connection.recv()
            message = json.loads(data) if data else None
        except websocket.WebSocketTimeoutException:
            return None
        except (OSError, ValueError, websocket.WebSocketException) as error:
            raise _ended(error) from error
        if not isinstance(message, dict):
            raise _ended(None)
        return message


def _ended(error: Exception | None) -> ParityError:
    return ParityError(
        "The connection to the page ended: the app was closed, crashed, or the device was unplugged."
        + (f" ({error})" if error is not None and str(error) else "")
    )


def pages(port: int) -> list[dict[str, Any]]:
    """Return what the DevTools server at this machine's ``port`` says of its pages. Raises MissingToolError."""
    address = f"http://127.0.0.1:{port}/json"
    try:
        # No proxy: the address is this machine's own.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, timeout=_CONNECT_SECONDS) as answer:
            listed = json.loads(answer.read(_LIST_BYTES))
    except (OSError, ValueError) as error:
        raise MissingToolError(f"Nothing speaks the DevTools protocol at {address}: {error}") from error
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


@contextmanager
def attached(port: int, identifier: str) -> Iterator[DevToolsPage]:
    """Attach to the page with this id at this machine's ``port`` while the block runs."""
    need("websocket", "adb", "Speaking to a page on a device")
    import websocket

    try:
        connection = websocket.create_connection(
            f"ws://127.0.0.1:{port}/devtools/page/{identifier}",
            timeout=_CONNECT_SECONDS,
            # A browser answers connections that name an origin only where it was told so.
            suppress_origin=True,
            http_no_proxy=["127.0.0.1"],
        )
    except (OSError, websocket.WebSocketException) as error:
        raise MissingToolError(f"The page at port {port} cannot be attached to: {error}") from error
    try:
        yield DevToolsPage(connection)
    finally:
        with suppress(OSError, websocket.WebSocketException):
            connection.close(timeout=1)
        connection.shutdown()  # type: ignore[no-untyped-call]  # a connection that broke is not closed by close()


def handed_over(
    page: DevToolsPage, url: str, *, seconds: float, limit_bytes: int, loads: Callable[[str], None]
) -> dict[str, bytes]:
    """Have ``page`` load ``url``, and return the parts of what it posts. ``loads`` is told each address it asks for.

    Raises ParityError when the page ends, crashes, posts more than the limit, or nothing in time.
    """
    end = time.monotonic() + seconds
    for method in ("Page.enable", "Runtime.enable", "Network.enable", "Inspector.enable"):
        page.call(method)
    page.call("Runtime.addBinding", name=BINDING)
    page.call("Page.addScriptToEvaluateOnNewDocument", source=HAND_OVER)
    page.call("Page.navigate", url=url)
    parts: dict[str, bytes] = {}
    for method, parameters in page.events(end):
        if method == "Network.requestWillBeSent":
            loads(str(parameters.get("request", {}).get("url", "")))
        elif method == "Inspector.targetCrashed":
            raise ParityError("The page crashed (often: out of memory).")
        elif method == "Inspector.detached":
            if parameters.get("reason") == "replaced_with_devtools":
                raise ParityError("Another program, such as a browser's own tools, took the page over.")
            raise _ended(None)
        elif method == "Runtime.bindingCalled" and parameters.get("name") == BINDING:
            try:
                given = json.loads(str(parameters.get("payload")))
                if given.get("done"):
                    return parts
                if "blocked" in given:
                    loads(str(given["blocked"]))
                    continue
                parts[given["part"]] = parts.get(given["part"], b"") + base64.b64decode(given["data"], validate=True)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ParityError("The page handed over something that is no record.") from error
            if sum(map(len, parts.values())) > limit_bytes:
                raise ParityError(f"The page hands over more than {limit_bytes:,} bytes.")
    raise ParityError(f"The page did not answer within {seconds:g} s.")
