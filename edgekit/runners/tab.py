"""A tab of a browser that Playwright drives: open the bundle's page in it, and tell the watch what it says."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Playwright, async_playwright

from edgekit.errors import MissingToolError
from edgekit.records.run_record import RunRecord
from edgekit.runners import browsers, page
from edgekit.runners.browsers import Browser, Engine
from edgekit.runners.page import LINE_CHARACTERS, Watch

CRASHED = "The browser's tab crashed (often: out of memory)."

_CLOSE_SECONDS = 10.0
_CRASH_SECONDS = 1.0
# What the page says that it is doing.
_STATUS = "() => document.getElementById('status-text')?.textContent.trim() ?? ''"
_STATUS_SECONDS = 5.0
LAUNCH_SECONDS = 60.0
# How Playwright shows what the browser wrote to stderr, and which of it says why it did not start.
_BROWSER_LINE = re.compile(r"\[pid=\d+\]\[err\] (.+)")
_TELLING = re.compile(r"FATAL|error while loading|cannot open|[Ss]andbox|not found|Permission denied|display")
_START_LINES = 5


async def replay(browser: PlaywrightBrowser, watch: Watch, seconds: float, **settings: Any) -> RunRecord | str:
    """Open the watch's page in a new tab with a fresh profile; return the record, or why there is none.

    ``settings``: those of Playwright's ``new_page``.
    """

    async def new_page() -> Page:
        return await browser.new_page(**settings)

    return await replay_in(browser, new_page, watch, seconds)


async def replay_in(
    browser: PlaywrightBrowser, new_page: Callable[[], Awaitable[Page]], watch: Watch, seconds: float
) -> RunRecord | str:
    """Do as ``replay`` does in the tab that ``new_page`` makes."""
    browser.on("disconnected", lambda _: watch.finish(page.ENDED))
    tabs: list[Page] = []
    return await page.wait(watch, _open(new_page, watch, tabs), seconds, standing=lambda: _standing(tabs))


async def _standing(tabs: list[Page]) -> str:
    """Say how far the page has come, for one that came too late."""
    if not tabs:
        return "The browser opened no tab."
    try:
        text = await asyncio.wait_for(tabs[0].evaluate(_STATUS), _STATUS_SECONDS)
    except (PlaywrightError, TimeoutError):
        return "It does not react any more."
    return f"It stands at: {text}" if text else "It is still empty."


async def _open(new_page: Callable[[], Awaitable[Page]], watch: Watch, tabs: list[Page]) -> None:
    try:
        tab = await new_page()
        tabs.append(tab)
        _listen(tab, watch)
        await tab.goto(watch.url, wait_until="commit", timeout=0)
    except PlaywrightError as error:
        # A crash makes the call in progress fail too, in many words; its own event says it better.
        await asyncio.wait([watch.end], timeout=_CRASH_SECONDS)
        said = first_line(error)
        watch.finish(CRASHED if "crashed" in said else f"The page could not be opened: {said}")


def _listen(tab: Page, watch: Watch) -> None:
    tab.on("console", lambda message: watch.note(message.type, message.text))
    tab.on("pageerror", lambda error: watch.note("uncaught", str(error)))
    tab.on("crash", lambda _: watch.finish(CRASHED))
    tab.on("close", lambda _: watch.finish(page.ENDED))
    tab.context.on("request", lambda request: watch.see(request.url))


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


@asynccontextmanager
async def ending(browser: PlaywrightBrowser) -> AsyncIterator[PlaywrightBrowser]:
    """Close ``browser`` however the block ends."""
    try:
        yield browser
    finally:
        # On Ctrl-C the terminal has ended the driver too: closing then fails, or never answers.
        with suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(browser.close(), _CLOSE_SECONDS)


def does_not_start(program: Browser, engine: Engine, error: PlaywrightError) -> MissingToolError:
    """Return the error for a browser that did not start, with what it said."""
    return MissingToolError(
        f"The browser {program.path} does not start: {said(error)}",
        hint=f"Try it by hand, or use another. {browsers.install_hint(engine)}",
    )


def said(error: PlaywrightError) -> str:
    """Return what the browser wrote before it ended, or Playwright's own words where it wrote nothing."""
    lines = dict.fromkeys(line.strip()[:LINE_CHARACTERS] for line in _BROWSER_LINE.findall(str(error)))
    telling = [line for line in lines if _TELLING.search(line)] or list(lines)
    return "\n  ".join(["", *telling[-_START_LINES:]]) if telling else first_line(error)


def first_line(error: PlaywrightError) -> str:
    """Return the first line of a Playwright error, which says what happened; the rest is its log."""
    return str(error).strip().split("\n", 1)[0][:LINE_CHARACTERS]
