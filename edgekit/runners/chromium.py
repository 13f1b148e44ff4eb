"""Obtain a run record from a real Chromium: serve the bundle, open its page, and wait for what the page posts."""

import asyncio
import re
import secrets
import signal
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from playwright.async_api import Browser as Chromium
from playwright.async_api import ConsoleMessage, Page, Playwright, Request, async_playwright
from playwright.async_api import Error as PlaywrightError

from edgekit.bundle.open import Bundle
from edgekit.errors import MissingToolError, ParityError
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import browsers
from edgekit.runners.browsers import Browser, Gpu
from edgekit.serve.app import create_app
from edgekit.serve.inbox import Arrival, Inbox
from edgekit.serve.server import serving

BROWSER = "Chromium"
DEFAULT_TIMEOUT_SECONDS = 300.0

_CONSOLE_LINES = 30
_LINE_CHARACTERS = 500
_FOREIGN_REQUESTS = 10
_CLOSE_SECONDS = 10.0
_LAUNCH_SECONDS = 60.0
_CRASH_SECONDS = 1.0
# What a page may load that never leaves the machine.
_LOCAL_SCHEMES = ("data", "blob", "about")
# How Playwright shows what the browser wrote to stderr, and which of it says why it did not start.
_BROWSER_LINE = re.compile(r"\[pid=\d+\]\[err\] (.+)")
_TELLING = re.compile(r"FATAL|error while loading|cannot open|[Ss]andbox|not found|Permission denied|display")
_START_LINES = 5
_CRASHED = "The browser's tab crashed (often: out of memory)."
# When the browser dies, its tab is reported as closed first.
_ENDED = "The browser, or its tab, ended before the page answered."
_STOPPED_BY_POLICY = re.compile(r"'((?:https?|wss?)://[^']+)' violates the following Content Security Policy")


def run(
    bundle: Bundle,
    *,
    cases: Sequence[str] | None = None,
    variant: str | None = None,
    threads: int | None = None,
    repeats: int = 5,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    progress: Progress = silent,
) -> RunRecord:
    """Replay ``bundle``'s golden cases in a headless Chromium with a fresh profile and return the record it posts.

    ``cases`` None: all; ``variant`` None: the page takes the first that the browser can run; ``threads`` None: as the
    target says. ``repeats``: timed runs after the first. ``timeout_seconds`` is for everything after the browser has
    started.

    Raises MissingToolError when there is no browser, it does not start, or ``gpu`` "hardware" found none; ParityError,
    with the browser's last console lines, when the page does not answer, breaks, or loads anything from elsewhere.
    """
    query = {"parity": "1", "run": secrets.token_hex(8), "repeats": str(repeats)}
    if variant is not None:
        query["variant"] = variant
    if threads is not None:
        query["threads"] = str(threads)
    if cases is not None:
        query["cases"] = ",".join(cases)
    record = _until_interrupted(_run(bundle, query, timeout_seconds, browser_path, gpu, progress))
    adapter = record.environment.adapter
    if gpu == "hardware" and (adapter is None or adapter.software):
        raise MissingToolError(
            f"The browser found no GPU, only {adapter.description or adapter.architecture}."
            if adapter
            else "The browser found no GPU.",
            hint="Leave out --gpu hardware to use a software adapter.",
        )
    return record


def _until_interrupted(work: Coroutine[Any, Any, RunRecord]) -> RunRecord:
    """Run ``work`` in a loop of its own; Ctrl-C cancels it once, and a second one cannot cut its clean-up short.

    asyncio's own handling raises inside the clean-up on the second Ctrl-C, and then waits for the driver for ever.
    """
    interrupted = False

    async def guarded() -> RunRecord:
        task = asyncio.ensure_future(work)

        def interrupt() -> None:
            nonlocal interrupted
            if not interrupted:
                interrupted = True
                task.cancel()

        # Not on Windows, and not outside the main thread: there the default has to do.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        return await task

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@dataclass(eq=False)
class _Watch:
    """What the browser said while the page was open, and the first thing that ended the wait."""

    origin: str
    end: asyncio.Future[RunRecord | str]
    console: deque[str] = field(default_factory=lambda: deque(maxlen=_CONSOLE_LINES))
    foreign: list[str] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        self.console.append(f"[{kind}] {text[:_LINE_CHARACTERS]}")

    def finish(self, with_: RunRecord | str) -> None:
        if not self.end.done():
            self.end.set_result(with_)

    def on_console(self, message: ConsoleMessage) -> None:
        self.note(message.type, message.text)
        # What the page's policy stops never becomes a request.
        stopped = _STOPPED_BY_POLICY.search(message.text) if message.type == "error" else None
        if stopped:
            self.see(stopped[1])

    def on_request(self, request: Request) -> None:
        self.see(request.url)

    def see(self, url: str) -> None:
        """Remember ``url`` when it is not of this server."""
        parts = urlsplit(url)
        elsewhere = parts.scheme not in _LOCAL_SCHEMES and f"{parts.scheme}://{parts.netloc}" != self.origin
        if elsewhere and url not in self.foreign and len(self.foreign) < _FOREIGN_REQUESTS:
            self.foreign.append(url[:_LINE_CHARACTERS])

    def on_arrival(self, arrival: Arrival, run: str) -> None:
        """Take what the inbox received, in the loop's own thread."""
        if arrival.problem is not None:
            self.finish(f"The page posted a record that was refused: {arrival.problem}")
        elif arrival.record is not None and arrival.record.run == run:
            self.finish(arrival.record)

    def listen_to(self, page: Page) -> None:
        page.on("console", self.on_console)
        page.on("pageerror", lambda error: self.note("uncaught", str(error)))
        page.on("crash", lambda _: self.finish(_CRASHED))
        page.on("close", lambda _: self.finish(_ENDED))
        page.context.on("request", self.on_request)


async def _run(
    bundle: Bundle, query: dict[str, str], seconds: float, browser_path: Path | None, gpu: Gpu, progress: Progress
) -> RunRecord:
    loop = asyncio.get_running_loop()
    progress("Starting the browser")
    async with driver() as playwright:
        program = browsers.find(browser_path, own_path(playwright))
        with tempfile.TemporaryDirectory(prefix="edgekit-inbox-") as folder:
            watch = _Watch("", loop.create_future())

            def listener(arrival: Arrival) -> None:
                with suppress(RuntimeError):  # a post that came too late, when the loop has closed
                    loop.call_soon_threadsafe(watch.on_arrival, arrival, query["run"])

            with serving(create_app(bundle, Inbox(Path(folder), listener=listener))) as url:
                watch.origin = url.rstrip("/")
                async with launched(playwright, program, gpu) as browser:
                    progress(f"{BROWSER} {browser.version} replays the golden cases")
                    outcome = await _open_and_wait(browser, f"{url}?{urlencode(query)}", watch, seconds)
    if watch.foreign:
        raise ParityError(
            _with_console(f"The page tried to load from elsewhere: {', '.join(watch.foreign)}", watch),
            hint="A bundle is served whole from one place. Build it again with 'edgekit build --force'.",
        )
    if isinstance(outcome, str):
        raise ParityError(
            _with_console(outcome, watch),
            hint="Open the page with 'edgekit serve' to see what it does; --timeout gives it more time.",
        )
    return outcome


async def _open_and_wait(browser: Chromium, url: str, watch: _Watch, seconds: float) -> RunRecord | str:
    browser.on("disconnected", lambda _: watch.finish(_ENDED))
    # Beside the wait, not before it: a browser that dies while a page opens may leave that call without an answer.
    opening = asyncio.ensure_future(_open(browser, url, watch))
    try:
        async with asyncio.timeout(seconds):
            return await watch.end
    except TimeoutError:
        return f"The page did not answer within {seconds:g} s."
    finally:
        opening.cancel()
        with suppress(asyncio.CancelledError, PlaywrightError):
            await opening


async def _open(browser: Chromium, url: str, watch: _Watch) -> None:
    try:
        page = await browser.new_page()
        watch.listen_to(page)
        await page.goto(url, wait_until="commit", timeout=0)
    except PlaywrightError as error:
        # A crash makes the call in progress fail too, in many words; its own event says it better.
        await asyncio.wait([watch.end], timeout=_CRASH_SECONDS)
        said = first_line(error)
        watch.finish(_CRASHED if "crashed" in said else f"The page could not be opened: {said}")


@asynccontextmanager
async def driver() -> AsyncIterator[Playwright]:
    """Start Playwright's driver, and end it however the block ends.

    Playwright's own start, when it is cancelled, leaves a process behind and a task that waits for it for ever: so the
    start is never cancelled, but waited for and then undone.
    """
    manager = async_playwright()
    starting = asyncio.ensure_future(manager.__aenter__())
    try:
        playwright = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting], timeout=_CLOSE_SECONDS)
        if starting.done() and starting.exception() is None:
            await manager.__aexit__()
        raise
    try:
        yield playwright
    finally:
        await manager.__aexit__()


def own_path(playwright: Playwright) -> Path:
    """Return where Playwright keeps (or would keep) its own Chromium."""
    return Path(playwright.chromium.executable_path)


@asynccontextmanager
async def launched(playwright: Playwright, program: Browser, gpu: Gpu) -> AsyncIterator[Chromium]:
    """Start a headless browser with a fresh profile, and end it however the block ends.

    Raises MissingToolError when it does not start.
    """
    browser = await _launch(playwright, program, gpu)
    try:
        yield browser
    finally:
        # On Ctrl-C the terminal has ended the driver too: closing then fails, or never answers.
        with suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(browser.close(), _CLOSE_SECONDS)


async def _launch(playwright: Playwright, program: Browser, gpu: Gpu) -> Chromium:
    sandbox = browsers.can_sandbox()
    while True:
        try:
            return await playwright.chromium.launch(
                executable_path=program.path,
                args=browsers.flags(gpu),
                chromium_sandbox=sandbox,
                timeout=_LAUNCH_SECONDS * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except PlaywrightError as error:
            if sandbox and "sandbox" in _said(error).lower():
                sandbox = False  # some systems forbid ordinary users the namespaces that it is made of
                continue
            raise MissingToolError(
                f"The browser {program.path} does not start: {_said(error)}",
                hint=f"Try it by hand, or use another. {browsers.install_hint()}",
            ) from error


def _said(error: PlaywrightError) -> str:
    """Return what the browser wrote before it ended, or Playwright's own words where it wrote nothing."""
    lines = dict.fromkeys(line.strip()[:_LINE_CHARACTERS] for line in _BROWSER_LINE.findall(str(error)))
    telling = [line for line in lines if _TELLING.search(line)] or list(lines)
    return "\n  ".join(["", *telling[-_START_LINES:]]) if telling else first_line(error)


def first_line(error: PlaywrightError) -> str:
    """Return the first line of a Playwright error, which says what happened; the rest is its log."""
    return str(error).strip().split("\n", 1)[0][:_LINE_CHARACTERS]


def _with_console(message: str, watch: _Watch) -> str:
    if not watch.console:
        return f"{message} Its console is empty."
    return "\n".join([message, "The browser's console (last lines):", *watch.console])
