"""Obtain a run record from a real Firefox: the stock one through WebDriver BiDi, or the build that Playwright made."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright

from edgekit.bundle.open import Bundle
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import browsers, page, tab
from edgekit.runners.browsers import FIREFOX, Browser, Gpu
from edgekit.runners.page import Ask

BROWSER = FIREFOX.name

# Playwright's name for a stock Firefox, which it drives through WebDriver BiDi.
_STOCK = "moz-firefox"
# Over BiDi, Firefox ESR 153 refuses to have its media features overridden; "null" leaves each as it is.
_STOCK_PAGE = dict.fromkeys(("color_scheme", "reduced_motion", "forced_colors", "contrast"), "null")


def run(
    bundle: Bundle,
    ask: Ask,
    *,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    progress: Progress = silent,
) -> RunRecord:
    """Replay ``bundle``'s golden cases in a headless Firefox with a fresh profile and return the record it posts.

    WebGPU is switched on by preferences. ``gpu`` "software" hides every Vulkan driver but Mesa's on the CPU, where
    that is installed. Raises like ``chromium.run``.
    """
    return page.require_gpu(page.until_interrupted(_run(bundle, ask, browser_path, gpu, progress)), gpu)


async def _run(bundle: Bundle, ask: Ask, browser_path: Path | None, gpu: Gpu, progress: Progress) -> RunRecord:
    progress("Starting the browser")
    async with tab.driver() as playwright:
        program = browsers.find(browser_path, own_path(playwright), FIREFOX)
        async with page.served(bundle, ask) as watch, launched(playwright, program, gpu) as browser:
            progress(f"{BROWSER} {browser.version} replays the golden cases")
            outcome = await tab.replay(browser, watch, ask.timeout_seconds, **page_settings(program))
    return page.conclude(watch, outcome)


def own_path(playwright: Playwright) -> Path:
    """Return where Playwright keeps (or would keep) its own Firefox."""
    return Path(playwright.firefox.executable_path)


def page_settings(program: Browser) -> dict[str, Any]:
    """Return what a new page of ``program`` needs to be made with."""
    return {} if program.playwrights_own else dict(_STOCK_PAGE)


@asynccontextmanager
async def launched(playwright: Playwright, program: Browser, gpu: Gpu) -> AsyncIterator[PlaywrightBrowser]:
    """Start a headless browser with a fresh profile, and end it however the block ends.

    Raises MissingToolError when it does not start.
    """
    try:
        made = await playwright.firefox.launch(
            executable_path=program.path,
            channel=None if program.playwrights_own else _STOCK,
            firefox_user_prefs=browsers.preferences(),
            env={**os.environ, **browsers.vulkan(gpu)},
            timeout=tab.LAUNCH_SECONDS * 1000,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
    except PlaywrightError as error:
        raise tab.does_not_start(program, FIREFOX, error) from error
    async with tab.ending(made) as browser:
        yield browser
