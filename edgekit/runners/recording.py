"""Run a bundle's golden cases in Chromium on a recording build of the runtime: which functions does the model need?

The same page says what a trimmed runtime, or the stock one, does with the same cases.
"""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser as Chromium

from edgekit.bundle.open import Bundle, open_bundle
from edgekit.errors import ParityError
from edgekit.progress import Progress, silent
from edgekit.records import settings, tensors
from edgekit.records.run_record import Adapter
from edgekit.records.tensors import Value
from edgekit.runners import browsers, chromium, own_page, page, tab
from edgekit.runners.browsers import Gpu
from edgekit.runners.own_page import Report
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import AdapterName, Variant
from edgekit.runtime.recording import Recording, of_bits
from edgekit.serve import assets
from edgekit.serve.app import create_static_app
from edgekit.serve.server import serving

_SILENCE_SECONDS = 300.0
# How web/src/recording/spoiled.js names the steps with values that may make any runtime trap.
_WRONG_VALUES = "wrong values of "


@dataclass(frozen=True)
class Job:
    """One runtime to run the bundle's cases on.

    ``dist``: its folder holds the files of ``variant``, whose wasm records (``recording``), is trimmed
    (``miss_address``: where its stubs say that one was called), or is the stock one (neither). ``worker``: the runtime
    lives in a worker, as it does in a bundle's page wherever a worker starts. ``verbose``: a session is only created,
    and says where it puts the nodes. ``posing_as``: what the GPU's adapter is to call itself, one name after the
    other; under each a session is created and the first case is run, by kernels that compute nothing, and that is all.
    """

    variant: Variant
    dist: RuntimeDist
    recording: Recording | None = None
    threads: int = 1
    worker: bool = True
    miss_address: int | None = None
    verbose: bool = False
    posing_as: tuple[AdapterName, ...] = ()


@dataclass(frozen=True, eq=False)
class Step:
    """What came of one step: a session created, a case run, a failure provoked, a session released.

    ``case_id``: of the golden case whose ``outputs`` these are. ``trapped``: the WebAssembly did, and this was the last
    step. ``functions``: the code indices of those entered since the step before; none where the runtime does not
    record. ``branches``: the same by the numbers of their flags.
    """

    name: str
    outcome: Literal["done", "failed", "trapped"]
    error: str | None
    ms: float
    case_id: str | None
    outputs: tuple[Value, ...]
    functions: frozenset[int]
    branches: frozenset[int]


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """What came of a job. ``threads``: those the runtime was given. ``adapter`` None: WebGPU was not asked for.

    ``misses``: what stubs of a trimmed runtime left at its miss address (unless it was cut with numbers of the caller's
    own: a code index + 1). ``end``: "done", "stopped" after a trap or a miss, or "hangs" after a miss in a thread.
    """

    variant: str
    execution_provider: str
    threads: int
    runtime_version: str
    adapter: Adapter | None
    steps: tuple[Step, ...]
    misses: tuple[int, ...]
    end: Literal["done", "stopped", "hangs"]

    @property
    def trapped(self) -> bool:
        """Whether a step trapped that no page of the model's own would take: not the last ones, with wrong values."""
        return self.end != "done" and not (self.steps and self.steps[-1].name.startswith(_WRONG_VALUES))

    @property
    def functions(self) -> frozenset[int]:
        """The code indices of all functions that were entered."""
        return frozenset[int]().union(*(step.functions for step in self.steps))

    @property
    def branches(self) -> frozenset[int]:
        """The branches that were entered, by the numbers of their flags, from 0."""
        return frozenset[int]().union(*(step.branches for step in self.steps))

    @property
    def outputs(self) -> Mapping[str, tuple[Value, ...]]:
        """The outputs of each golden case that came to a good end, from its first run."""
        found: dict[str, tuple[Value, ...]] = {}
        for step in self.steps:
            if step.case_id is not None and step.outcome == "done":
                found.setdefault(step.case_id, step.outputs)
        return found

    @property
    def failing(self) -> str | None:
        """What the first golden case said that did not come to a good end; None: all did, or there was no session."""
        return next((step.error for step in self.steps if step.case_id is not None and step.outcome != "done"), None)

    @property
    def failures(self) -> Mapping[str, str]:
        """What was said in each step that failed or trapped, those that were meant to fail included."""
        return {step.name: step.error for step in self.steps if step.error is not None}


def record(
    bundle: Bundle | Path,
    variant: Variant,
    dist: RuntimeDist,
    recording: Recording | None,
    *,
    threads: int,
    worker: bool = True,
    miss_address: int | None = None,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    progress: Progress = silent,
) -> RecordedRun:
    """Do one job; see ``record_all``."""
    job = Job(variant, dist, recording, threads, worker, miss_address)
    return record_all(bundle, [job], browser_path=browser_path, gpu=gpu, progress=progress)[0]


def record_all(
    bundle: Bundle | Path,
    jobs: Sequence[Job],
    *,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    at_once: int = 1,
    silence_seconds: float = _SILENCE_SECONDS,
    progress: Progress = silent,
) -> tuple[RecordedRun, ...]:
    """Do ``jobs`` with ``bundle`` (or the folder of one), each in a fresh page of one browser; a run for each.

    ``at_once``: how many pages are open at the same time; with more than one the milliseconds of a step say nothing.

    Every golden case is run, the first one again; then runs and session creations are made to fail, for onnxruntime's
    ways to say no are to be kept; then the session is released and created again. ``silence_seconds``: a page that
    reports nothing for so long is taken for dead.

    Raises BundleError for a folder that is no bundle, UsageError when a dist lacks its variant, MissingToolError when
    there is no browser or it does not start, ParityError, which names variant and threads, for a page that breaks,
    crashes or falls silent.
    """
    opened = bundle if isinstance(bundle, Bundle) else open_bundle(bundle)
    for job in jobs:
        job.dist.require([job.variant])
    return page.until_interrupted(_run(opened, jobs, browser_path, gpu, at_once, silence_seconds, progress))


async def _run(
    bundle: Bundle,
    jobs: Sequence[Job],
    browser_path: Path | None,
    gpu: Gpu,
    at_once: int,
    silence_seconds: float,
    progress: Progress,
) -> tuple[RecordedRun, ...]:
    progress("Starting the browser")
    places = asyncio.Semaphore(at_once)
    async with tab.driver() as playwright:
        program = browsers.find(browser_path, chromium.own_path(playwright))
        async with chromium.launched(playwright, program, gpu) as browser:

            async def do(number: int, job: Job) -> RecordedRun:
                async with places:
                    progress(f"Running the golden cases ({_said(job)})", number / len(jobs))
                    return await _do(browser, bundle, job, silence_seconds)

            tasks = [asyncio.create_task(do(number, job)) for number, job in enumerate(jobs)]
            try:
                return tuple(await asyncio.gather(*tasks))
            finally:  # after the first that broke, the browser goes, and what the others say of that is no news
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


async def _do(browser: Chromium, bundle: Bundle, job: Job, silence_seconds: float) -> RecordedRun:
    session = bundle.manifest.sessions.get(job.variant.id)
    stated = {
        "runtime": own_page.runtime_urls(job.variant, job.dist),
        "execution_provider": job.variant.execution_provider,
        "threads": job.threads,
        "worker": job.worker,
        "recording": None if job.recording is None else asdict(job.recording),
        "miss_address": job.miss_address,
        "verbose": job.verbose,
        "posing_as": [asdict(adapter) for adapter in job.posing_as],
        # As the bundle's page creates it, so that what these settings need is recorded too.
        "session": None if session is None else settings.to_json(session),
    }
    with tempfile.TemporaryDirectory(prefix="edgekit-recording-") as name:
        contents = {"job.json": json.dumps(stated).encode()}
        files = own_page.files("recording", Path(name), contents, job.variant, job.dist)
        files |= {f"bundle/{path}": asset for path, asset in assets.of_bundle(bundle).items()}
        with serving(create_static_app(files)) as url:
            async with own_page.opened(browser, url, "recording") as reports:
                heard: list[Report] = []
                seconds = own_page.START_SECONDS
                while not heard or heard[-1].kind not in ("ended", "hangs"):
                    heard.append(await reports.next(seconds))
                    if heard[-1].kind in ("broken", own_page.DIED, own_page.SILENT):
                        raise _broken(job, heard)
                    seconds = silence_seconds
    return _conclude(job, heard)


def _conclude(job: Job, heard: Sequence[Report]) -> RecordedRun:
    said: dict[str, Any] = {report.kind: report.document for report in heard}
    adapter = said.get("adapter")
    steps = [report for report in heard if report.kind == "step"]
    missed = [report.document["missed"] for report in steps] + [said.get("hangs", {}).get("missed", 0)]
    return RecordedRun(
        job.variant.id,
        job.variant.execution_provider,
        said["started"]["threads"],
        said["started"]["runtime_version"],
        Adapter(**{**adapter, "features": tuple(adapter["features"])}) if adapter else None,
        tuple(_step(report) for report in steps),
        tuple(dict.fromkeys(number for number in missed if number)),
        "hangs" if "hangs" in said else said["ended"]["end"],
    )


def _step(report: Report) -> Step:
    document = report.document
    arrays = tensors.decode(report.tensors, "The recording")
    functions, branches = (
        of_bits(bits.tobytes()) if (bits := arrays.get(name)) is not None else frozenset[int]()
        for name in ("functions", "branches")
    )
    return Step(
        document["name"],
        document["outcome"],
        document["error"],
        document["ms"],
        document["case_id"],
        tensors.join(document["outputs"], arrays),
        functions,
        branches,
    )


def _broken(job: Job, heard: Sequence[Report]) -> ParityError:
    steps = [report.document["name"] for report in heard if report.kind == "step"]
    place = f"after the step '{steps[-1]}'" if steps else "before its first step"
    return ParityError(
        f"The recording page of {_said(job)} broke {place}: {heard[-1].document['error']}",
        hint="Try the bundle in this browser with 'edgekit parity'. A model may need more memory than there is.",
    )


def _said(job: Job) -> str:
    more = ", verbose" if job.verbose else ""
    if job.posing_as:
        more += ", as on other GPUs"
    return f"variant {job.variant.id}, {job.threads} thread{'' if job.threads == 1 else 's'}{more}"
