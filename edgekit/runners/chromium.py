"""Obtain a run record from a real Chromium: serve the bundle, open its page, and wait for what the page posts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser as Chromium
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright

from edgekit.bundle.open import Bundle
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import browsers, page, tab
from edgekit.runners.browsers import CHROMIUM, Browser, Gpu
from edgekit.runners.page import Ask

BROWSER = CHROMIUM.name

first_line = tab.first_line


def run(
    bundle: Bundle,
    ask: Ask,
    *,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    progress: Progress = silent,
) -> RunRecord:
    """Replay ``bundle``'s golden cases in a headless Chromium with a fresh profile and return the record it posts.

    Raises MissingToolError when there is no browser, it does not start, or ``gpu`` "hardware" found none; ParityError,
    with the browser's last console lines, when the page does not answer, breaks, or loads anything from elsewhere.
    """
    return page.require_gpu(page.until_interrupted(_run(bundle, ask, browser_path, gpu, progress)), gpu)


async def _run(bundle: Bundle, ask: Ask, browser_path: Path | None, gpu: Gpu, progress: Progress) -> RunRecord:
    progress("Starting the browser")
    async with tab.driver() as playwright:
        program = browsers.find(browser_path, own_path(playwright))
        async with page.served(bundle, ask) as watch, launched(playwright, program, gpu) as browser:
            progress(f"{BROWSER} {browser.version} replays the golden cases")
            outcome = await tab.replay(browser, watch, ask.timeout_seconds)
    return page.conclude(watch, outcome)


def own_path(playwright: Playwright) -> Path:
    """Return where Playwright keeps (or would keep) its own Chromium."""
    return Path(playwright.chromium.executable_path)


@asynccontextmanager
async def launched(playwright: Playwright, program: Browser, gpu: Gpu) -> AsyncIterator[Chromium]:
    """Start a headless browser with a fresh profile, and end it however the block ends.

    Raises MissingToolError when it does not start.
    """
    async with tab.ending(await _launch(playwright, program, gpu)) as browser:
        yield browser


async def _launch(playwright: Playwright, program: Browser, gpu: Gpu) -> Chromium:
    sandbox = browsers.can_sandbox()
    while True:
        try:
            return await playwright.chromium.launch(
                executable_path=program.path,
                args=browsers.flags(gpu),
                chromium_sandbox=sandbox,
                timeout=tab.LAUNCH_SECONDS * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except PlaywrightError as error:
            if sandbox and "sandbox" in tab.said(error).lower():
                sandbox = False  # some systems forbid ordinary users the namespaces that it is made of
                continue
            raise tab.does_not_start(program, CHROMIUM, error) from error
