"""Replay conformance cases in a real Chromium, all in one page where none of them breaks it.

A page that crashes, traps or stops answering is closed, and the replay goes on after the case that did it in a new one.
"""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as Chromium
from playwright.async_api import async_playwright

from edgekit.conformance import suite
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.errors import ParityError
from edgekit.progress import Progress, silent
from edgekit.records.run_record import Adapter
from edgekit.runners import browsers, chromium, own_page
from edgekit.runners.browsers import Gpu
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.runtime.recording import Recording
from edgekit.serve.app import create_static_app
from edgekit.serve.assets import Asset
from edgekit.serve.server import serving

_CHUNK = 100
_SILENCE_SECONDS = 60.0
# The cases of one page: a table of memory that only grows should not grow for ever.
_CASES_OF_A_PAGE = 4000


@dataclass(frozen=True)
class Browsed:
    """What a browser gave: a reply for each case, and what it was. ``adapter`` None: WebGPU was not asked for."""

    replies: tuple[Reply, ...]
    browser_version: str
    runtime_version: str
    adapter: Adapter | None


def replay(
    cases: Sequence[Case],
    variant: Variant,
    dist: RuntimeDist,
    *,
    threads: int = 1,
    placements: bool = False,
    recording: Recording | None = None,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    silence_seconds: float = _SILENCE_SECONDS,
    progress: Progress = silent,
) -> Browsed:
    """Replay ``cases`` with one variant of the runtime in ``dist``; a reply for each, in their order.

    ``placements``: have the runtime say to which execution provider each node went (slower). ``silence_seconds``: a
    page that reports nothing for so long is taken for dead. ``recording``: where the runtime in ``dist``, a recording
    one, sets its flags; each reply then says which functions its case entered.

    Raises MissingToolError when there is no browser or it does not start, ParityError when the page does not start.
    """
    dist.require([variant])
    work = _Work(cases, variant, dist, threads, placements, recording, silence_seconds, progress)
    return asyncio.run(work.run(browser_path, gpu))


@dataclass(eq=False)
class _Work:
    cases: Sequence[Case]
    variant: Variant
    dist: RuntimeDist
    threads: int
    placements: bool
    recording: Recording | None
    silence_seconds: float
    progress: Progress
    found: dict[int, Reply] = field(default_factory=dict)
    started: dict[str, Any] = field(default_factory=dict)

    async def run(self, browser_path: Path | None, gpu: Gpu) -> Browsed:
        self.progress("Starting the browser")
        async with async_playwright() as playwright:
            program = browsers.find(browser_path, chromium.own_path(playwright))
            chunk = _CHUNK
            version = ""
            while todo := [index for index in range(len(self.cases)) if index not in self.found]:
                # A browser of its own for each page: a GPU process that a case has broken ends with it.
                async with chromium.launched(playwright, program, gpu) as browser:
                    version = browser.version
                    chunk = await self._pages(browser, todo[:_CASES_OF_A_PAGE], chunk)
        adapter = self.started.get("adapter")
        return Browsed(
            tuple(self.found[index] for index in range(len(self.cases))),
            version,
            self.started["runtime_version"],
            Adapter(**{**adapter, "features": tuple(adapter["features"])}) if adapter else None,
        )

    async def _pages(self, browser: Chromium, todo: Sequence[int], chunk: int) -> int:
        """Replay ``todo`` in one page; return the chunk size for the next page.

        A page that dies in a chunk leaves several suspects: the next page takes them one at a time.
        """
        with tempfile.TemporaryDirectory(prefix="edgekit-conformance-") as name:
            files = self._files(Path(name), todo, chunk)
            with serving(create_static_app(files)) as url:
                end = await _open(browser, url, self)
        if end is None:
            return _CHUNK
        suspects = [index for index in todo if index not in self.found]
        if chunk == 1 and suspects:
            self.found[suspects[0]] = Reply("crashed", error=end)
            return _CHUNK
        return 1

    def take(self, document: dict[str, Any], data: bytes) -> None:
        """Keep what a page reported."""
        self.found |= suite.replies(document["replies"], data)
        self.progress(f"Replaying in Chromium ({self.variant.id})", len(self.found) / len(self.cases))

    def _files(self, folder: Path, todo: Sequence[int], chunk: int) -> dict[str, Asset]:
        entries, data = suite.encode(self.cases, todo[:chunk] if chunk == 1 else todo)
        config = {
            "runtime": own_page.runtime_urls(self.variant, self.dist),
            "execution_provider": self.variant.execution_provider,
            "threads": self.threads,
            "chunk": chunk,
            "placements": self.placements,
            "recording": None if self.recording is None else asdict(self.recording),
            "entries": entries,
        }
        contents = {"suite.json": json.dumps(config).encode(), "suite.safetensors": data}
        return own_page.files("conformance", folder, contents, self.variant, self.dist)


async def _open(browser: Chromium, url: str, work: _Work) -> str | None:
    """Open the page and take its reports; return why it ended early, or None.

    Raises ParityError when it ends before the first case: no case can be blamed for that.
    """
    seconds, has_started = own_page.START_SECONDS, False
    async with own_page.opened(browser, url, "conformance") as reports:
        while True:
            report = await reports.next(seconds)
            if report.kind == "started":
                work.started, has_started, seconds = report.document, True, work.silence_seconds
            elif report.kind == "replies":
                work.take(report.document, report.tensors)
            elif report.kind == "ended":
                return None
            elif has_started and report.kind == own_page.DIED:
                return str(report.document["error"])
            else:
                raise ParityError(f"The conformance page broke: {report.document['error']}")
