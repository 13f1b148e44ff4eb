"""Pages of edgekit's own, which no bundle has: served beside what they need, opened in a browser, and listened to."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Error as PlaywrightError

from edgekit import resources
from edgekit.errors import ParityError
from edgekit.files import sha256_bytes, sha256_file
from edgekit.runners import tab
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.serve import assets
from edgekit.serve.assets import Asset

START_SECONDS = 120.0
# The kinds of reports that the page did not make itself.
DIED = "died"
SILENT = "silent"

_CLOSE_SECONDS = 5.0
_CRASHED = "the browser's tab crashed"


@dataclass(frozen=True, eq=False)
class Report:
    """What a page said: JSON, and the bytes of a safetensors file.

    Of ``DIED`` and ``SILENT``, ``document["error"]`` says why.
    """

    kind: str
    document: Any
    tensors: bytes = b""


def runtime_urls(variant: Variant, dist: RuntimeDist) -> dict[str, str]:
    """Say to a page where its runtime lies."""
    return {
        "api_url": f"runtime/{variant.api}",
        "mjs_url": f"runtime/{variant.mjs}",
        "wasm_url": f"runtime/{variant.wasm}",
        "wasm_sha256": dist.files[variant.wasm],
    }


def files(
    name: str, folder: Path, contents: Mapping[str, bytes], variant: Variant, dist: RuntimeDist
) -> dict[str, Asset]:
    """Return what is served with the page ``name``: itself, every script, the runtime, and ``contents``.

    ``contents``, by file name, are written to ``folder``.
    """
    found = written(folder, contents)
    page = resources.root("templates") / name
    found |= assets.of_files(page, [("index.html", sha256_file(page / "index.html"))])
    runtime = assets.of_files(dist.folder, [(file, dist.files[file]) for file in variant.files])
    found |= {f"runtime/{file}": asset for file, asset in runtime.items()}
    source = resources.root("web") / "src"
    scripts = [path.relative_to(source).as_posix() for path in sorted(source.rglob("*.js"))]
    app = assets.of_files(source, [(file, sha256_file(source / file)) for file in scripts])
    return found | {f"app/{file}": asset for file, asset in app.items()}


def written(folder: Path, contents: Mapping[str, bytes]) -> dict[str, Asset]:
    """Write ``contents``, by file name, to ``folder`` and return them to be served."""
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return assets.of_files(folder, [(file, sha256_bytes(content)) for file, content in contents.items()])


class Reports:
    """What an open page says, one after another."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[Report] = asyncio.Queue()

    async def next(self, seconds: float) -> Report:
        """Return the next report; ``DIED`` when the page crashed, ``SILENT`` when it says nothing for ``seconds``."""
        try:
            return await asyncio.wait_for(self._heard.get(), seconds)
        except TimeoutError:
            return Report(SILENT, {"error": f"no answer within {seconds:g} s"})

    async def take(self, kind: str, document: str, tensors: str) -> None:
        """Take what the page calls with."""
        self._heard.put_nowait(Report(kind, json.loads(document), base64.b64decode(tensors)))

    def end(self, why: str) -> None:
        self._heard.put_nowait(Report(DIED, {"error": why}))


@asynccontextmanager
async def opened(
    browser: PlaywrightBrowser,
    url: str,
    name: str,
    answers: Mapping[str, Callable[[], Awaitable[Any]]] | None = None,
    **settings: Any,
) -> AsyncIterator[Reports]:
    """Open the page ``name`` in a tab with a fresh profile for as long as the block runs.

    ``answers``: functions that the page may call, by their names there, for something that JSON holds. ``settings``:
    those of Playwright's ``new_page``. Raises ParityError when it cannot be opened.
    """
    reports = Reports()
    page = await browser.new_page(**settings)
    page.on("crash", lambda _: reports.end(_CRASHED))
    page.on("close", lambda _: reports.end(_CRASHED))
    browser.on("disconnected", lambda _: reports.end("the browser ended"))
    await page.expose_function("edgekitReport", reports.take)
    for called, answer in (answers or {}).items():
        await page.expose_function(called, answer)
    try:
        await page.goto(url, wait_until="commit")
    except PlaywrightError as error:
        raise ParityError(f"The {name} page could not be opened: {tab.first_line(error)}") from error
    yield reports
    try:
        await asyncio.wait_for(page.close(), _CLOSE_SECONDS)
    except (PlaywrightError, TimeoutError):
        return  # it crashed or hangs; the browser that ends next ends it too
