"""Replay conformance cases in a real browser, batch after batch in one page where none of them breaks it.

A page that crashes, traps or stops answering is closed, and the replay goes on after the case that did it in a new one.
"""

import asyncio
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Playwright

from edgekit.conformance import suite
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.errors import ParityError, UsageError
from edgekit.progress import Progress, silent
from edgekit.records.run_record import Adapter
from edgekit.runners import browsers, chromium, firefox, own_page, tab
from edgekit.runners.browsers import CHROMIUM, FIREFOX, Browser, Engine, Gpu
from edgekit.runners.page import until_interrupted
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import AdapterName, Variant
from edgekit.runtime.recording import Recording, of_bits
from edgekit.serve.app import create_static_app
from edgekit.serve.assets import Asset
from edgekit.serve.server import serving

_ENGINES = (CHROMIUM, FIREFOX)
CHUNK = 100
_SILENCE_SECONDS = 60.0
# The cases of one page: a table of memory that only grows should not grow for ever.
_CASES_OF_A_PAGE = 4000
# Firefox looks every 100 ms whether a GPU is done, and each case waits for it several times: of 1,691 cases, one after
# another, that made 143 s, for 20 s of work. Several pages wait at once.
_WAITING_PAGES, _WAITING_CHUNK = 6, 20

Feed = Callable[[], Sequence[Case]]
Hear = Callable[[int, Reply], None]


@dataclass(frozen=True)
class Browsed:
    """What a browser gave: a reply for each case, and what it was. ``adapter`` None: WebGPU was not asked for.

    ``branches``: by their numbers, those that all cases together entered, but for those of a page that never answered.
    """

    replies: tuple[Reply, ...]
    browser_version: str
    runtime_version: str
    adapter: Adapter | None
    branches: frozenset[int]


def replay(
    cases: Sequence[Case],
    variant: Variant,
    dist: RuntimeDist,
    *,
    engine: Engine = CHROMIUM,
    threads: int = 1,
    placements: bool = False,
    recording: Recording | None = None,
    posing_as: AdapterName | None = None,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    silence_seconds: float = _SILENCE_SECONDS,
    chunk: int = CHUNK,
    starts: int = 1,
    progress: Progress = silent,
) -> Browsed:
    """Replay ``cases`` with one variant of the runtime in ``dist``; a reply for each, in their order.

    ``engine``: Chromium or Firefox.
    ``placements``: have the runtime say to which execution provider each node went (slower). ``silence_seconds``: a
    page that reports nothing for so long is taken for dead. ``chunk``: how many replies it reports at once; fewer where
    a case takes long, so that silence says that the page is dead. ``recording``: where the runtime in ``dist``, a
    recording one, sets its flags; each reply then says which functions its case entered. ``posing_as``: what the GPU's
    adapter is to call itself. ``starts``: how often in a row a page may fail to start.

    Raises UsageError for another engine, MissingToolError when there is no browser or it does not start, ParityError
    when the page does not start.
    """
    page = _PageSettings(
        variant, dist, engine, threads, placements, recording, posing_as, silence_seconds, chunk, starts
    )
    return until_interrupted(_Work(page, cases, progress=progress).run(browser_path, gpu))


def stream(
    feed: Feed,
    hear: Hear,
    variant: Variant,
    dist: RuntimeDist,
    *,
    engine: Engine = CHROMIUM,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    silence_seconds: float = _SILENCE_SECONDS,
    chunk: int = CHUNK,
    starts: int = 1,
) -> Browsed:
    """Replay what ``feed`` gives, asked again whenever the page has nothing left, until it gives nothing.

    ``feed`` is called in a thread of its own, by turns. ``hear`` gets each reply as it comes, by the number of its case
    in all that was fed. The rest is as for ``replay``.
    """
    page = _PageSettings(variant, dist, engine, 1, False, None, None, silence_seconds, chunk, starts)
    return until_interrupted(_Work(page, (), feed, hear).run(browser_path, gpu))


@dataclass(frozen=True)
class _PageSettings:
    """See ``replay``."""

    variant: Variant
    dist: RuntimeDist
    engine: Engine
    threads: int
    placements: bool
    recording: Recording | None
    posing_as: AdapterName | None
    silence_seconds: float
    chunk: int
    starts: int

    def __post_init__(self) -> None:
        self.dist.require([self.variant])
        if self.engine not in _ENGINES:
            raise UsageError(f"Conformance cases do not run in {self.engine.name}.", hint="Name chromium or firefox.")

    @property
    def waits(self) -> bool:
        """Whether pages spend their time waiting, so that several of them are faster than one."""
        return self.engine is FIREFOX and bool(self.variant.needs) and self.recording is None

    def files(self, folder: Path) -> dict[str, Asset]:
        """Return what is served before the first batch."""
        config = {
            "runtime": own_page.runtime_urls(self.variant, self.dist),
            "execution_provider": self.variant.execution_provider,
            "threads": self.threads,
            "placements": self.placements,
            "recording": None if self.recording is None else asdict(self.recording),
            "posing_as": None if self.posing_as is None else asdict(self.posing_as),
        }
        contents = {"config.json": json.dumps(config).encode()}
        return own_page.files("conformance", folder, contents, self.variant, self.dist)


class _DiedError(Exception):
    """A page ended early: ``pending`` was handed to it and not answered. ``why`` None: a trap, which has its reply."""

    def __init__(self, pending: Sequence[int], why: str | None) -> None:
        super().__init__(why)
        self.pending, self.why = list(pending), why


class _Work:
    """Cases on their way to pages, and replies on their way back. ``queue``: batches that no page has yet."""

    def __init__(
        self,
        page: _PageSettings,
        cases: Sequence[Case],
        feed: Feed | None = None,
        hear: Hear | None = None,
        progress: Progress = silent,
    ) -> None:
        self.page, self.hear, self.progress = page, hear, progress
        self.cases: list[Case] = []
        self.queue: deque[list[int]] = deque()
        self.found: dict[int, Reply] = {}
        self.started: dict[str, Any] = {}
        self.branches: set[int] = set()
        self._feed = feed
        self._feeding = asyncio.Lock()
        self._add(cases)

    def _add(self, cases: Sequence[Case]) -> None:
        first, size = len(self.cases), self.page.chunk
        self.cases += cases
        if self.page.waits:
            size = min(size, _WAITING_CHUNK)
        numbers = range(first, len(self.cases))
        self.queue += (list(numbers[start : start + size]) for start in range(0, len(numbers), size))

    async def run(self, browser_path: Path | None, gpu: Gpu) -> Browsed:
        self.progress("Starting the browser")
        failures = 0
        async with tab.driver() as playwright:
            launched, program, page_settings = _engine(self.page.engine, playwright, browser_path)
            version = ""
            while self.queue or self._feed is not None:
                # A browser of its own for each page: a GPU process that a case has broken ends with it.
                async with launched(playwright, program, gpu) as browser:
                    version = browser.version
                    try:
                        await self._pages(browser, page_settings)
                    except ParityError:
                        failures += 1
                        if failures == self.page.starts:
                            raise
                    else:
                        failures = 0
        adapter = self.started.get("adapter")
        return Browsed(
            tuple(self.found[index] for index in range(len(self.cases))),
            version,
            self.started["runtime_version"],
            Adapter(**{**adapter, "features": tuple(adapter["features"])}) if adapter else None,
            frozenset(self.branches),
        )

    async def _pages(self, browser: PlaywrightBrowser, page_settings: Mapping[str, Any]) -> None:
        """Replay in one browser until nothing is left, it has had enough, or a page of it dies."""
        count = 1
        if self.page.waits:
            count = min(_WAITING_PAGES, max(1, len(self.queue))) if self._feed is None else _WAITING_PAGES
        with tempfile.TemporaryDirectory(prefix="edgekit-conformance-") as name:
            folder = Path(name)
            files = self.page.files(folder)
            with serving(create_static_app(files)) as url:
                pages = [_Page(self, folder, files, number, _CASES_OF_A_PAGE // count) for number in range(count)]
                tasks = [asyncio.ensure_future(page.run(browser, url, page_settings)) for page in pages]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                finally:  # also when this is cancelled: a page is done with before its server and its browser are
                    for page, task in zip(pages, tasks, strict=True):
                        page.over = True
                        task.cancel()
                    ends = await asyncio.gather(*tasks, return_exceptions=True)
        for page in reversed(pages):  # the work of pages that died of another's fault
            if page.pending:
                self.queue.appendleft(page.pending)
        self._blame([end for end in ends if isinstance(end, BaseException)])

    def _blame(self, ends: Sequence[BaseException]) -> None:
        """Say that a case crashed, or have the suspects replayed one by one, first. Raises what is no case's fault."""
        for end in ends:
            if not isinstance(end, (_DiedError, asyncio.CancelledError)):
                raise end
        for died in (end for end in ends if isinstance(end, _DiedError) and end.why is not None):
            if len(died.pending) == 1:
                self._keep(died.pending[0], Reply("crashed", error=died.why))
            self.queue = deque(batch for batch in self.queue if batch != died.pending)
            self.queue.extendleft([index] for index in reversed(died.pending) if index not in self.found)

    async def next(self, page: "_Page") -> list[int]:
        """Return a batch for ``page``; nothing when there is none."""
        async with self._feeding:
            while not self.queue and self._feed is not None and not page.over:
                fed = await asyncio.to_thread(self._feed)
                if fed:
                    self._add(fed)
                else:
                    self._feed = None
        return self.queue.popleft() if self.queue and not page.over else []

    def take(self, document: dict[str, Any], data: bytes) -> None:
        """Keep what a page reported."""
        for index, reply in suite.replies(document["replies"], data).items():
            self._keep(index, reply)
        if self.page.recording is not None:
            self.branches |= of_bits(suite.branches(data))
        where = f"{self.page.engine.name} ({self.page.variant.id})"
        self.progress(f"Replaying in {where}", len(self.found) / len(self.cases))

    def _keep(self, index: int, reply: Reply) -> None:
        self.found[index] = reply
        if self.hear is not None:
            self.hear(index, reply)


class _Page:
    """One page of a browser. ``pending``: what it was handed and has not answered; ``over``: it gets nothing more."""

    def __init__(self, work: _Work, folder: Path, files: dict[str, Asset], number: int, most: int) -> None:
        self.work, self.number = work, number
        self.pending: list[int] = []
        self.over = False
        self._folder, self._files, self._left, self._batches = folder, files, most, 0
        self._asking, self._handed = False, time.monotonic()

    async def run(self, browser: PlaywrightBrowser, url: str, page_settings: Mapping[str, Any]) -> None:
        """Open the page and take its reports. Raises _DiedError when it dies with cases in hand.

        Raises ParityError when it ends without any: no case can be blamed for that.
        """
        has_started, seconds = False, own_page.START_SECONDS
        async with own_page.opened(browser, url, "conformance", {"edgekitNext": self.next}, **page_settings) as reports:
            while True:
                report = await reports.next(seconds)
                if report.kind == "started":
                    self.work.started, has_started, seconds = report.document, True, self.work.page.silence_seconds
                elif report.kind == "replies":
                    self._take(report)
                elif report.kind == "ended":
                    return
                elif report.kind == own_page.SILENT and has_started and self._is_expected(seconds):
                    continue
                elif report.kind in (own_page.DIED, own_page.SILENT) and self.pending:
                    raise _DiedError(self.pending, str(report.document["error"]))
                else:
                    raise ParityError(f"The conformance page broke: {report.document['error']}")

    async def next(self) -> str | None:
        """Answer the page that asks for its next batch: with the name of its files."""
        self._asking = True
        batch = await self.work.next(self) if self._left > 0 else []
        self._asking, self._handed = False, time.monotonic()
        if not batch:
            return None
        self.pending, self._left = batch, self._left - len(batch)
        self._batches += 1
        name = f"batch-{self.number}-{self._batches}"
        entries, data = suite.encode(self.work.cases, batch)
        contents = {f"{name}.json": json.dumps({"entries": entries}).encode(), f"{name}.safetensors": data}
        self._files.update(own_page.written(self._folder, contents))
        return name

    def _is_expected(self, seconds: float) -> bool:
        """Whether a page that said nothing for ``seconds`` had no case in hand for so long."""
        return self._asking or time.monotonic() - self._handed < seconds

    def _take(self, report: own_page.Report) -> None:
        self.work.take(report.document, report.tensors)
        self.pending = [index for index in self.pending if index not in self.work.found]
        if report.document["stopped"]:
            raise _DiedError(self.pending, None)


_Launched = Callable[[Playwright, Browser, Gpu], AbstractAsyncContextManager[PlaywrightBrowser]]


def _engine(engine: Engine, playwright: Playwright, named: Path | None) -> tuple[_Launched, Browser, Mapping[str, Any]]:
    """Return what starts the engine's browser, its program, and the settings that a page of it needs."""
    if engine is FIREFOX:
        program = browsers.find(named, firefox.own_path(playwright), engine)
        return firefox.launched, program, firefox.page_settings(program)
    return chromium.launched, browsers.find(named, chromium.own_path(playwright), engine), {}
