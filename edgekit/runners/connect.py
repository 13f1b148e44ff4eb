"""Obtain a run record from a browser that already runs: over the DevTools protocol, or through a Playwright server."""

import json
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import BrowserContext, Page, Playwright
from playwright.async_api import Error as PlaywrightError

from edgekit.bundle.open import Bundle
from edgekit.errors import MissingToolError, UsageError
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import browsers, page, tab
from edgekit.runners.browsers import CHROMIUM, ENGINES, FIREFOX, Engine, Gpu
from edgekit.runners.page import Ask
from edgekit.serve.app import is_loopback

_CONNECT_SECONDS = 30.0
_DEVTOOLS = (
    "Start a desktop's browser with --remote-debugging-port=9222; for Chrome on a phone: "
    "'adb forward tcp:9222 localabstract:chrome_devtools_remote'."
)


def run_cdp(
    bundle: Bundle, ask: Ask, url: str, *, host: str = page.LOOPBACK, port: int = 0, progress: Progress = silent
) -> RunRecord:
    """Replay in the Chromium that answers the DevTools protocol at ``url`` (http or ws), and return the record.

    The page is served at ``host`` and ``port``, which that browser must reach. The tab is closed afterwards; the
    browser goes on. Raises UsageError for a malformed URL, MissingToolError when no browser answers there, ParityError
    like ``chromium.run``.
    """
    _check(url, ("http", "https", "ws", "wss"), "--cdp", "http://127.0.0.1:9222")
    return page.until_interrupted(_cdp(bundle, ask, url, host, port, progress))


def run_remote(
    bundle: Bundle, ask: Ask, url: str, *, engine: str = CHROMIUM.id, gpu: Gpu = "auto", progress: Progress = silent
) -> RunRecord:
    """Replay in a browser of the Playwright server at ``url`` (ws or wss), and return the record.

    The browser reaches this machine's server through Playwright's own connection, so that the page is a secure context
    there too. ``engine``: "chromium", "firefox" or "webkit". Raises like ``run_cdp``.
    """
    _check(url, ("ws", "wss"), "--remote", "ws://192.0.2.1:3000/")
    chosen = next((known for known in ENGINES if known.id == engine), None)
    if chosen is None:
        raise UsageError(
            f"A Playwright server has no browser '{engine}'.",
            hint=f"Browsers: {', '.join(known.id for known in ENGINES)}.",
        )
    return page.require_gpu(page.until_interrupted(_remote(bundle, ask, url, chosen, gpu, progress)), gpu)


def _check(url: str, schemes: tuple[str, ...], option: str, example: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise UsageError(f"{option}: {url!r} is not an address with {', '.join(schemes)}.", hint=f"Such as {example}.")


async def _cdp(bundle: Bundle, ask: Ask, url: str, host: str, port: int, progress: Progress) -> RunRecord:
    progress(f"Looking for a browser at {url}")
    async with tab.driver() as playwright, page.served(bundle, ask, host=host, port=port) as watch:
        try:
            made = await playwright.chromium.connect_over_cdp(url, timeout=_CONNECT_SECONDS * 1000)
        except PlaywrightError as error:
            raise MissingToolError(f"No browser answers at {url}: {tab.first_line(error)}", hint=_DEVTOOLS) from error
        opened: list[Page] = []
        async with tab.ending(made) as browser:
            progress(f"{CHROMIUM.name} {browser.version} at {url} replays the golden cases")
            try:
                outcome = await tab.replay_in(browser, lambda: _new_tab(browser, opened), watch, ask.timeout_seconds)
            finally:
                await _close(opened)
    return page.conclude(watch, outcome, hint=_reach(watch.origin, host))


def _reach(origin: str, host: str) -> str:
    """Say how a browser elsewhere gets at this machine's server."""
    port = origin.rsplit(":", 1)[1]
    if not is_loopback(host):
        return f"The browser must reach {origin}. Over plain http it has neither WebGPU nor threads there."
    return (
        f"The browser must reach {origin}. A phone does after 'adb reverse tcp:{port} tcp:{port}' (fix the port with "
        f"--port {port}); a browser on another machine does with --host, over plain http, without WebGPU and threads."
    )


async def _new_tab(browser: PlaywrightBrowser, opened: list[Page]) -> Page:
    """Open a tab in a fresh profile or, where there can be none (Chrome on Android), in the browser's own."""
    try:
        context: BrowserContext = await browser.new_context()
    except PlaywrightError:
        if not browser.contexts:
            raise
        context = browser.contexts[0]
    made = await context.new_page()
    opened.append(made)
    return made


async def _close(opened: list[Page]) -> None:
    for made in opened:
        try:
            await made.close()
        except PlaywrightError:
            return  # the tab, or its browser, has gone already


async def _remote(bundle: Bundle, ask: Ask, url: str, engine: Engine, gpu: Gpu, progress: Progress) -> RunRecord:
    progress(f"Looking for a Playwright server at {url}")
    async with tab.driver() as playwright, page.served(bundle, ask) as watch:
        made = await _connect(playwright, url, engine, gpu)
        async with tab.ending(made) as browser:
            progress(f"{engine.name} {browser.version} at {url} replays the golden cases")
            outcome = await tab.replay(browser, watch, ask.timeout_seconds)
    return page.conclude(watch, outcome)


async def _connect(playwright: Playwright, url: str, engine: Engine, gpu: Gpu) -> PlaywrightBrowser:
    # A server that starts a browser for each client takes these; one that has started its browser leaves them aside.
    options: dict[str, Any] = {}
    if engine is CHROMIUM:
        options["args"] = browsers.flags(gpu)
    elif engine is FIREFOX:
        options["firefoxUserPrefs"] = browsers.preferences()
    try:
        kind = {"chromium": playwright.chromium, "firefox": playwright.firefox, "webkit": playwright.webkit}[engine.id]
        return await kind.connect(
            url,
            expose_network="<loopback>",
            headers={"x-playwright-launch-options": json.dumps(options)},
            timeout=_CONNECT_SECONDS * 1000,
        )
    except PlaywrightError as error:
        raise MissingToolError(
            f"The Playwright server at {url} gives no {engine.name}: {tab.first_line(error)}",
            hint="Start one there, of the same version as here: 'python -m playwright run-server --port 3000'.",
        ) from error
