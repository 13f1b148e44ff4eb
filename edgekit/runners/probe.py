"""Start a browser, open one page in it, and read what the page writes: how ``edgekit doctor`` asks each engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright

from edgekit.errors import ParityError
from edgekit.runners import chromium, firefox, tab, webkit
from edgekit.runners.browsers import CHROMIUM, FIREFOX, WEBKIT, Browser, Engine, Gpu

_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_ANSWER = "#answer[data-done]"
_READ = f"const found = document.querySelector('{_ANSWER}'); return found && found.textContent"


async def answer(playwright: Playwright, engine: Engine, program: Browser, gpu: Gpu, url: str) -> tuple[str, str]:
    """Return the browser's version, and the text of the page's element "answer" once it says that it is done.

    Raises MissingToolError when the browser does not start, ParityError when the page does not answer.
    """
    if engine is WEBKIT and not program.playwrights_own:
        return await _driven(program, url)
    async with _launched(playwright, engine, program, gpu) as browser:
        try:
            settings = firefox.page_settings(program) if engine is FIREFOX else {}
            page = await browser.new_page(**settings)
            await page.goto(url, timeout=_SECONDS * 1000)
            found = page.locator(_ANSWER)
            await found.wait_for(state="attached", timeout=_SECONDS * 1000)
            return browser.version, await found.text_content() or ""
        except PlaywrightError as error:
            raise ParityError(f"The probe page did not answer: {tab.first_line(error)}") from error


@asynccontextmanager
async def _launched(
    playwright: Playwright, engine: Engine, program: Browser, gpu: Gpu
) -> AsyncIterator[PlaywrightBrowser]:
    if engine is CHROMIUM:
        started = chromium.launched(playwright, program, gpu)
    elif engine is FIREFOX:
        started = firefox.launched(playwright, program, gpu)
    else:
        started = webkit.launched(playwright, program)
    async with started as browser:
        yield browser


async def _driven(program: Browser, url: str) -> tuple[str, str]:
    async with webkit.driven(program) as browser:

        def read() -> str | None:
            found: str | None = browser.execute_script(_READ)
            return found

        try:
            async with asyncio.timeout(_SECONDS):
                await asyncio.to_thread(browser.get, url)
                while (text := await asyncio.to_thread(read)) is None:
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise ParityError(f"The probe page did not answer within {_SECONDS:g} s.") from None
        return webkit.version(browser), text


def own_path(playwright: Playwright, engine: Engine) -> str:
    """Return where Playwright keeps (or would keep) its own build of ``engine``."""
    kinds = {"chromium": playwright.chromium, "firefox": playwright.firefox, "webkit": playwright.webkit}
    return kinds[engine.id].executable_path
