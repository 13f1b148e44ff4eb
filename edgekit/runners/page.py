"""Serve a bundle, ask its page for a run record, and wait for what the page posts: the same for every browser."""

import asyncio
import secrets
import signal
import tempfile
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from edgekit.bundle.open import Bundle
from edgekit.errors import MissingToolError, ParityError
from edgekit.records.run_record import RunRecord
from edgekit.runners.browsers import Gpu
from edgekit.serve.app import create_app, is_loopback
from edgekit.serve.inbox import Arrival, Inbox, InboxLimits
from edgekit.serve.server import serving

DEFAULT_TIMEOUT_SECONDS = 300.0
LOOPBACK = "127.0.0.1"
# When a browser dies, its tab is reported as closed first.
ENDED = "The browser, or its tab, ended before the page answered."
LINE_CHARACTERS = 500

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
_PLACEMENT_SHARE = 0.8  # of the time that the page has for its whole answer

_LIMITS = InboxLimits()
_CONSOLE_LINES = 30
_FOREIGN_REQUESTS = 10
# What a page may load that never leaves the machine.
_LOCAL_SCHEMES = ("data", "blob", "about")

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """What is asked of the page.

    ``cases`` None: all; ``variant`` None: the page takes the first that the browser can run; ``threads`` None: as the
    target says. ``repeats``: timed runs after the first. ``timeout_seconds`` is for everything after the browser has
    started. ``placement``: whether to find out which execution provider got which node, in a session more. ``again``:
    whether to look if the same is said twice, where that is cheap; ``soak``: how often one case runs, to see it drift.
    """

    cases: Sequence[str] | None = None
    variant: str | None = None
    threads: int | None = None
    repeats: int = 5
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    placement: bool = True
    again: bool = True
    soak: int = 0

    def query(self, run: str) -> str:
        """Return the page's query; ``run`` is the id that the record must bring back."""
        asked = {"parity": "1", "run": run, "repeats": str(self.repeats)}
        if self.variant is not None:
            asked["variant"] = self.variant
        if self.threads is not None:
            asked["threads"] = str(self.threads)
        if self.cases is not None:
            asked["cases"] = ",".join(self.cases)
        if self.placement:  # seconds since the page was opened: the record must not come too late for it
            asked["placement"] = str(int(_PLACEMENT_SHARE * self.timeout_seconds))
        if self.again:
            asked["again"] = "1"
        if self.soak:
            asked["soak"] = str(self.soak)
        return urlencode(asked)


@dataclass(frozen=True, eq=False)
class Watch:
    """What the browser said while the page was open, and the first thing that ended the wait."""

    url: str
    origin: str
    end: asyncio.Future[RunRecord | str]
    console: deque[str] = field(default_factory=lambda: deque(maxlen=_CONSOLE_LINES))
    foreign: list[str] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        """Keep a line of what the browser said."""
        self.console.append(f"[{kind}] {text[:LINE_CHARACTERS]}")

    def finish(self, with_: RunRecord | str) -> None:
        """End the wait with a record, or with why there is none; what comes after the first end is left aside."""
        if not self.end.done():
            self.end.set_result(with_)

    def see(self, url: str) -> None:
        """Remember ``url`` when it is not of this server."""
        parts = urlsplit(url)
        elsewhere = parts.scheme not in _LOCAL_SCHEMES and f"{parts.scheme}://{parts.netloc}" != self.origin
        if elsewhere and url not in self.foreign and len(self.foreign) < _FOREIGN_REQUESTS:
            self.foreign.append(url[:LINE_CHARACTERS])

    def on_arrival(self, arrival: Arrival, run: str) -> None:
        """Take what the inbox received, in the loop's own thread."""
        if arrival.problem is not None:
            self.finish(f"The page posted a record that was refused: {arrival.problem}")
        elif arrival.record is not None and arrival.record.run == run:
            self.finish(arrival.record)


@asynccontextmanager
async def served(
    bundle: Bundle,
    ask: Ask,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    token: str = "",
    limits: InboxLimits = _LIMITS,
) -> AsyncIterator[Watch]:
    """Serve ``bundle`` while the block runs, and yield the watch that the record will end.

    ``token``: the first part of every address, without which the server answers nothing. Raises UsageError when it
    cannot listen on ``host`` and ``port`` (0: a free one).
    """
    loop = asyncio.get_running_loop()
    run = secrets.token_hex(8)
    end: asyncio.Future[RunRecord | str] = loop.create_future()

    def listener(arrival: Arrival) -> None:
        with suppress(RuntimeError):  # a post that came too late, when the loop has closed
            loop.call_soon_threadsafe(watch.on_arrival, arrival, run)

    def see(url: str) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(watch.see, url)

    with tempfile.TemporaryDirectory(prefix="edgekit-inbox-") as folder:
        inbox = Inbox(Path(folder), limits, listener=listener)
        app = create_app(bundle, inbox, loopback_only=is_loopback(host), token=token, on_violation=see)
        with serving(app, host, port) as url:
            watch = Watch(f"{url}{f'{token}/' if token else ''}?{ask.query(run)}", url.rstrip("/"), end)
            yield watch


async def wait(
    watch: Watch,
    opening: Coroutine[Any, Any, None],
    seconds: float,
    late: str = "The page did not answer",
    standing: Callable[[], Awaitable[str]] | None = None,
) -> RunRecord | str:
    """Have ``opening`` open the page, and wait for the end; return the record, or why there is none.

    ``standing``: says, when the time is over, how far the page has come.
    """
    # Beside the wait, not before it: a browser that dies while a page opens may leave that call without an answer.
    task = asyncio.ensure_future(opening)
    try:
        async with asyncio.timeout(seconds):
            return await watch.end
    except TimeoutError:
        return f"{late} within {seconds:g} s.{f' {await standing()}' if standing else ''}"
    finally:
        task.cancel()
        await asyncio.wait([task])  # an error of its own is no longer of interest: the wait has ended


def conclude(watch: Watch, outcome: RunRecord | str, hint: str | None = None, *, has_console: bool = True) -> RunRecord:
    """Return the record. Raises ParityError, with what the browser said, when there is none or it loaded elsewhere.

    ``hint``: what to do when there is no record. ``has_console``: whether an empty console means that nothing was said.
    """
    if watch.foreign:
        raise ParityError(
            _with_console(f"The page tried to load from elsewhere: {', '.join(watch.foreign)}", watch, has_console),
            hint="A bundle is served whole from one place. Build it again with 'edgekit build --force'.",
        )
    if isinstance(outcome, str):
        raise ParityError(
            _with_console(outcome, watch, has_console),
            hint=hint or "Open the page with 'edgekit serve' to see what it does; --timeout gives it more time.",
        )
    return outcome


def _with_console(message: str, watch: Watch, has_console: bool) -> str:
    if not watch.console:
        return f"{message} Its console is empty." if has_console else message
    return "\n".join([message, "The browser said (last lines):", *watch.console])


def require_gpu(record: RunRecord, gpu: Gpu) -> RunRecord:
    """Return ``record``. Raises MissingToolError when "hardware" was asked for and there was none."""
    adapter = record.environment.adapter
    if gpu == "hardware" and (adapter is None or adapter.software):
        raise MissingToolError(
            f"The browser found no GPU, only {adapter.description or adapter.architecture or 'a software adapter'}."
            if adapter
            else "The browser found no GPU.",
            hint="Leave out --gpu hardware to use a software adapter.",
        )
    return record


def until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a loop of its own; Ctrl-C or SIGTERM cancels it once, and a second cannot cut its clean-up short.

    asyncio's own handling raises inside the clean-up on the second Ctrl-C, and waits for the driver for ever. It also
    writes out what ``work`` returned, to find no name for its handler: seconds, where that is thousands of arrays.
    """
    interrupted = False

    async def guarded() -> T:
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

        def interrupt() -> None:
            nonlocal interrupted
            if not interrupted:
                interrupted = True
                # What the driver's own tasks then run into, as the browser goes, is nobody's business.
                loop.set_exception_handler(lambda _loop, _context: None)
                task.cancel()

        for number in _INTERRUPTS:
            # Not on Windows, and not outside the main thread: there the default has to do.
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, interrupt)
        return await task

    with _handlers_kept():
        try:
            return asyncio.run(guarded())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        except Exception:
            # The terminal tells the browser too, which may be gone before the work hears of it.
            if interrupted:
                raise KeyboardInterrupt from None
            raise


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Put back what handled interrupts: a loop that closes leaves the defaults, which for SIGTERM end the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: it was not set from Python
                signal.signal(number, handler)
