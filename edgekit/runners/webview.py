"""Obtain a run record from an app that shows a bundle in a WebView, through the DevTools of its page."""

import secrets
import time
from urllib.parse import urlsplit

from edgekit.apk import assemble
from edgekit.bundle.open import TENSORS, Bundle
from edgekit.errors import MissingToolError, ParityError, UsageError
from edgekit.records import run_record
from edgekit.records.run_record import RunRecord
from edgekit.runners import devtools
from edgekit.runners.devtools import DevToolsPage
from edgekit.runners.page import Ask

_ROOM_BYTES = 16 << 20  # beyond the tensors: the record itself, and outputs that are larger than expected
_OPEN_SECONDS = 30.0
_LOOK_SECONDS = 0.3
_REMOTE_SCHEMES = ("http", "https", "ws", "wss")


def replay(bundle: Bundle, ask: Ask, port: int) -> RunRecord:
    """Replay in the app whose DevTools answer at this machine's ``port``, and return the record.

    Raises MissingToolError when no page of such an app is open there, ParityError like the browsers' runners.
    """
    run = secrets.token_hex(8)
    foreign: list[str] = []

    def see(url: str) -> None:
        # Other schemes never leave the device; and of what a policy stops some have names such as "inline".
        remote = urlsplit(url).scheme in _REMOTE_SCHEMES
        if remote and not url.startswith(f"{assemble.origin()}/") and url not in foreign:
            foreign.append(url[:500])

    limit = _ROOM_BYTES + 2 * (bundle.folder / TENSORS).stat().st_size
    with devtools.attached(port, _page(port)) as page:
        try:
            parts = devtools.handed_over(
                page,
                f"{assemble.origin()}/?{ask.query(run)}",
                seconds=ask.timeout_seconds,
                limit_bytes=limit,
                loads=see,
            )
            if foreign:
                raise ParityError(f"The page tried to load from elsewhere: {', '.join(foreign[:10])}")
            return _record(parts, run)
        except ParityError as error:
            raise _with_console(error, page) from error


def _page(port: int) -> str:
    """Wait until the app shows its page, and return the page's id."""
    end = time.monotonic() + _OPEN_SECONDS
    seen: list[str] = []
    while time.monotonic() < end:
        for entry in devtools.pages(port):
            url = str(entry.get("url", ""))
            if entry.get("type") == "page" and url.startswith(f"{assemble.origin()}/"):
                return str(entry.get("id", ""))
            seen.append(url)
        time.sleep(_LOOK_SECONDS)
    raise MissingToolError(
        f"The app shows no page of a bundle, but {seen[-1][:100] if seen else 'nothing'}.",
        hint="Is the device unlocked, and its screen on?",
    )


def _record(parts: dict[str, bytes], run: str) -> RunRecord:
    try:
        record = run_record.from_device(parts["record"], parts["tensors"])
    except (UsageError, ValueError, KeyError, OverflowError, RecursionError) as error:
        said = error.message if isinstance(error, UsageError) else str(error)[:200]
        raise ParityError(f"The page handed over a record that was refused: {said}") from error
    if record.run != run:
        raise ParityError("The page handed over the record of another run.")
    return record


def _with_console(error: ParityError, page: DevToolsPage) -> ParityError:
    lines = ["The page said (last lines):", *page.console] if page.console else []
    return ParityError("\n".join([error.message, *lines]), hint=error.hint)
