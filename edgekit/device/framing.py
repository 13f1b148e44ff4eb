"""Where one request ends and the next begins: a head that could be read in two ways is refused.

A proxy that passes requests on over one connection, and reads such a head in the other way, would have a part of one
client's body taken for a request of another (RFC 9112, sections 6.3 and 11.2).
"""

from collections.abc import Callable, Mapping
from email.message import Message
from http import HTTPStatus

_OLD = ("HTTP/0.9", "HTTP/1.0")  # which have no Host


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


class Lines:
    """The lines of a head as the standard library reads them, and whether all of them were whole.

    It takes a lone CR for the end of a line, and others do not. ``whole``: there was none, and no NUL.
    """

    def __init__(self, readline: Callable[[int], bytes]) -> None:
        self._readline = readline
        self.whole = True

    def readline(self, size: int = -1) -> bytes:
        """Read a line, as the stream itself does."""
        line = self._readline(size)
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        self.whole = self.whole and b"\r" not in text and b"\0" not in text
        return line


def body_length(headers: Message, version: str, *, whole: bool = True) -> int | None:
    """Return how many bytes of a body follow, as the head says once; None: it does not say.

    Raises RefusedError for a head that leaves it open, or that says it in a way which is not read here.
    """
    if headers.get("Transfer-Encoding") is not None:
        raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "Say the length of the body with Content-Length.")
    # Behind a line that is no header, the parser takes the others for a body.
    if not whole or headers.defects or headers.get_payload():
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The head of the request holds a line that is no header.")
    lengths = headers.get_all("Content-Length") or []
    if len(lengths) > 1 or not all(one.isascii() and one.isdigit() and len(one) <= 18 for one in lengths):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "Say the length of the body with one Content-Length.")
    if len(headers.get_all("Host") or []) not in ((0, 1) if version in _OLD else (1,)):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "Say with one Host which service is meant.")
    return int(lengths[0]) if lengths else None
