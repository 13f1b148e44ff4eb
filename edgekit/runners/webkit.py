"""Obtain a run record from a real WebKit: WebKitGTK through its WebDriver, or the build that Playwright made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright

from edgekit.bundle.open import Bundle
from edgekit.errors import MissingToolError
from edgekit.optional import need
from edgekit.progress import Progress, silent
from edgekit.records.run_record import RunRecord
from edgekit.runners import browsers, display, page, processes, tab
from edgekit.runners.browsers import WEBKIT, Browser, Gpu
from edgekit.runners.page import Ask, Watch

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

BROWSER = WEBKIT.name

# WebKitGTK 2.50 isolates the page under WebDriver and yet leaves SharedArrayBuffer out, which Safari gives such a page.
_SETTINGS = {"JSC_useSharedArrayBuffer": "1"}
_PORT_SECONDS = 15.0
_SESSION_SECONDS = 60.0
_QUIT_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_TEXT_CHARACTERS = 300
# WebDriver reports no requests and no console: what a page loaded, and what it shows.
_LOADED = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
_SHOWN = "return document.body ? document.body.innerText : ''"


def run(
    bundle: Bundle,
    ask: Ask,
    *,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    progress: Progress = silent,
) -> RunRecord:
    """Replay ``bundle``'s golden cases in WebKit with a fresh profile and return the record it posts.

    WebKitGTK runs on a virtual display of its own, and has no WebGPU. Raises like ``chromium.run``.
    """
    return page.require_gpu(page.until_interrupted(_run(bundle, ask, browser_path, progress)), gpu)


async def _run(bundle: Bundle, ask: Ask, browser_path: Path | None, progress: Progress) -> RunRecord:
    progress("Starting the browser")
    async with tab.driver() as playwright:
        program = browsers.find(browser_path, own_path(playwright), WEBKIT)
        if program.playwrights_own:
            return await _run_own(playwright, program, bundle, ask, progress)
    async with page.served(bundle, ask) as watch, driven(program) as browser:
        progress(f"{BROWSER}GTK {version(browser)} replays the golden cases")
        outcome = await page.wait(watch, _open(browser, watch), ask.timeout_seconds)
        await _look(browser, watch, answered=not isinstance(outcome, str))
    return page.conclude(watch, outcome, has_console=False)


async def _run_own(playwright: Playwright, program: Browser, bundle: Bundle, ask: Ask, progress: Progress) -> RunRecord:
    async with page.served(bundle, ask) as watch, launched(playwright, program) as browser:
        progress(f"{BROWSER} {browser.version} replays the golden cases")
        outcome = await tab.replay(browser, watch, ask.timeout_seconds)
    return page.conclude(watch, outcome)


@asynccontextmanager
async def launched(playwright: Playwright, program: Browser) -> AsyncIterator[PlaywrightBrowser]:
    """Start the headless build that Playwright made, and end it however the block ends.

    Raises MissingToolError when it does not start.
    """
    try:
        made = await playwright.webkit.launch(
            executable_path=program.path,
            timeout=tab.LAUNCH_SECONDS * 1000,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
    except PlaywrightError as error:
        raise tab.does_not_start(program, WEBKIT, error) from error
    async with tab.ending(made) as browser:
        yield browser


def own_path(playwright: Playwright) -> Path:
    """Return where Playwright keeps (or would keep) its own WebKit."""
    return Path(playwright.webkit.executable_path)


def version(browser: "WebDriver") -> str:
    """Return the browser's version, as it gives it itself."""
    return str(browser.capabilities.get("browserVersion", ""))


@asynccontextmanager
async def driven(program: Browser) -> AsyncIterator["WebDriver"]:
    """Start WebKitGTK on a display of its own through ``program``, its WebDriver; end both however the block ends.

    Raises MissingToolError when selenium or a display is missing, or the browser does not start.
    """
    need("selenium", "webkit", "Driving WebKitGTK")
    from selenium.webdriver.common.utils import free_port

    port = free_port()
    async with display.screen() as environment:
        command = [str(program.path), f"--port={port}"]
        async with processes.started(command, {**environment, **_SETTINGS}) as process:
            await _until_listening(port, process, program)
            browser = await _connect(port, program)
            try:
                yield browser
            finally:
                with suppress(Exception):  # it may be dead already; the processes are ended all the same
                    await asyncio.wait_for(asyncio.to_thread(browser.quit), _QUIT_SECONDS)


async def _until_listening(port: int, process: asyncio.subprocess.Process, program: Browser) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_PORT_SECONDS):
            while process.returncode is None:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection(page.LOOPBACK, port)
                    writer.close()
                    return
                await asyncio.sleep(0.05)
    raise _does_not_start(program, "its WebDriver answers nothing")


async def _connect(port: int, program: Browser) -> "WebDriver":
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver import Remote
    from selenium.webdriver.remote.client_config import ClientConfig
    from selenium.webdriver.remote.remote_connection import RemoteConnection
    from selenium.webdriver.webkitgtk.options import Options

    config = ClientConfig(remote_server_addr=f"http://{page.LOOPBACK}:{port}", timeout=int(_SESSION_SECONDS))
    connection = RemoteConnection(client_config=config)

    def connect() -> "WebDriver":
        return Remote(command_executor=connection, options=Options())

    try:
        return await asyncio.wait_for(asyncio.to_thread(connect), _SESSION_SECONDS)
    except TimeoutError:
        raise _does_not_start(program, f"no window within {_SESSION_SECONDS:g} s") from None
    except WebDriverException as error:
        raise _does_not_start(program, _said(error)) from error


def _does_not_start(program: Browser, why: str) -> MissingToolError:
    return MissingToolError(
        f"The browser of {program.path} does not start: {why}",
        hint=f"Try it by hand, or use another. {browsers.install_hint(WEBKIT)}",
    )


def _said(error: Exception) -> str:
    message = str(getattr(error, "msg", None) or error)
    first = message.strip().split("\n", 1)[0].split("; For documentation on this error", 1)[0]
    return first[: page.LINE_CHARACTERS]


async def _open(browser: "WebDriver", watch: Watch) -> None:
    """Open the page, then look now and then whether its window is still there: nothing tells when it dies."""
    from selenium.common.exceptions import WebDriverException

    try:
        await asyncio.to_thread(browser.get, watch.url)
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if not await asyncio.to_thread(lambda: browser.window_handles):
                watch.finish(page.ENDED)
    except WebDriverException as error:
        watch.finish(f"{page.ENDED} ({_said(error)})")
    except Exception as error:  # of the connection, whose library selenium does not hide
        watch.finish(f"{page.ENDED} ({type(error).__name__})")


async def _look(browser: "WebDriver", watch: Watch, *, answered: bool) -> None:
    """Note what the page loaded and, where it did not answer, what it shows."""

    def look() -> None:
        for url in browser.execute_script(_LOADED):
            watch.see(str(url))
        if not answered:
            shown = " ".join(str(browser.execute_script(_SHOWN)).split())
            watch.note("the page shows", shown[:_TEXT_CHARACTERS])

    with suppress(Exception):  # a page that hangs answers nothing, and that is said already
        await asyncio.wait_for(asyncio.to_thread(look), _QUIT_SECONDS)
