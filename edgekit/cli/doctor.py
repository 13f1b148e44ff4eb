"""``edgekit doctor``: show what is installed, and what the browsers here can really do."""

from dataclasses import asdict
from pathlib import Path

import click

from edgekit import console, doctor
from edgekit.cli.options import json_option, list_option
from edgekit.doctor import Probe, Report
from edgekit.errors import MissingToolError, UsageError
from edgekit.progress import Progress
from edgekit.records.jsonable import jsonable
from edgekit.runners import install as installing
from edgekit.runners.browsers import ENGINES, Engine
from edgekit.runners.toolsets import TOOL_SETS, by_id

_SETS = " ".join(f"{one.id}: {one.purpose}." for one in TOOL_SETS)


@click.command()
@click.option("--install", is_flag=True, help="Install each browser that is missing: with apt or Playwright.")
@list_option("--with", "tool_sets", item=click.Choice([one.id for one in TOOL_SETS]), metavar="SET[,SET]",
             help=f"With --install: these Debian packages as well. {_SETS}")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="Look at this Chromium alone.")
@json_option
def command(install: bool, tool_sets: tuple[str, ...], browser_path: Path | None, as_json: bool) -> int:
    """Show what is installed: Chromium, Firefox, WebKit, GPU adapters, node, versions.

    Every browser is started and asked on a page served by edgekit. Exit code 4: none could be started.

    \b
    Example:
      edgekit doctor
      edgekit doctor --install
      edgekit doctor --install --with emulated,deb
    """
    if tool_sets and not install:
        raise UsageError("--with says what --install installs.", hint="Give both, or neither.")
    wanted = [package for name in tool_sets for package in by_id(name).missing]
    if wanted:
        with console.progress() as progress:
            installing.install_packages([p for name in tool_sets for p in by_id(name).packages], progress)
        console.talk(f"Installed {', '.join(wanted)} with apt.")
    with console.progress() as progress:
        report = doctor.examine(browser_path, progress=progress)
    lacking = [engine for engine in ENGINES if report.lacks(engine)] if install else []
    if lacking:
        with console.progress() as progress:
            said = [_install(engine, progress) for engine in lacking]
            report = doctor.examine(browser_path, progress=progress)
        console.talk("\n".join(said))
    if as_json:
        console.data_json({**jsonable(asdict(report)), "has_browser": report.has_browser})
    else:
        _print(report)
    return 0 if report.has_browser else MissingToolError.exit_code


def _install(engine: Engine, progress: Progress) -> str:
    """Install a browser and say how it went. Only where there is no other does a failure end the command."""
    try:
        return f"Installed {engine.name} with {installing.install(engine, progress)}."
    except MissingToolError as error:
        return f"warning: {error.message}\n\nhint: {error.hint}\n"


def _print(report: Report) -> None:
    runtime = report.runtime
    rows = [[tool.name, tool.version or "missing", ""] for tool in report.tools]
    rows.append([runtime.package, runtime.version, f"{runtime.state}: {runtime.folder}"])
    console.table(report.system, [console.Column("what"), console.Column("version"), console.Column("where")], rows)
    names = ("browser", "version", "isolated", "threads", "JSPI", "Float16Array", "WebGPU adapter", "shader-f16")
    console.table(
        "Browsers",
        [console.Column(name) for name in names],
        [
            [browser.path, browser.version or "?", *(_cells(probe))]
            for browser in report.browsers
            for probe in browser.probes or (None,)
        ],
    )
    console.table(
        "For devices",
        [console.Column("set"), console.Column("what for"), console.Column("missing")],
        [[one.id, one.purpose, ", ".join(one.missing) or "nothing"] for one in report.tool_sets],
    )
    for problem in report.problems:
        console.data(console.visible(f"✗ {problem.what}\n    {problem.mend}"))
    for note in report.notes:
        console.data(console.visible(f"  {note}"))
    if not report.problems:
        console.data("✓ Everything is there.")


def _cells(probe: Probe | None) -> list[str]:
    if probe is None:
        return ["–"] * 6
    adapter = probe.adapter
    if adapter is None:
        gpu, half = "none", "–"
    else:
        parts = (adapter.vendor, adapter.architecture, adapter.device, adapter.description)
        name = " ".join(part for part in parts if part) or "unnamed"
        gpu = f"{name} (software)" if adapter.software else name
        half = _mark("shader-f16" in adapter.features)
    threads = f"{_mark(probe.threads)} ({probe.cores} cores)"
    return [_mark(probe.cross_origin_isolated), threads, _mark(probe.jspi), _mark(probe.float16_array), gpu, half]


def _mark(there: bool) -> str:
    return "✓" if there else "✗"
