"""``edgekit diagnose``: find the node at which a failing bundle goes wrong, and what cures it."""

import sys
from pathlib import Path
from typing import Any

import click

from edgekit import console, repro
from edgekit.bundle.destination import check_outside_bundles
from edgekit.cli.options import FiniteRange, json_option, single_option, targets_dir_option, tolerance_option, unique
from edgekit.diagnose import run
from edgekit.diagnose.result import Diagnosis, to_json
from edgekit.errors import ParityError
from edgekit.parity import ParityOptions
from edgekit.records.cases import Tolerance
from edgekit.report import diagnosis as report
from edgekit.report.text import TextTable
from edgekit.runners.browsers import GPUS
from edgekit.runners.page import DEFAULT_TIMEOUT_SECONDS
from edgekit.runtime import local, locate

_UNEXPLAINED = ("unexplained", "not_run")


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@single_option("--browser", metavar="NAME", help="The browser that fails: chromium or firefox. Default: the target's.")
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The browser's program.")
@click.option("--gpu", type=click.Choice(GPUS), default="auto", show_default=True, help="The WebGPU adapter to use.")
@single_option("--variant", metavar="ID", help="The variant of the runtime that fails. Default: the first that runs.")
@single_option("--threads", type=click.IntRange(1, 64), metavar="N", help="Threads. Default: as the target says.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Replay this golden case only. Repeatable.")
@tolerance_option
@click.option("--runtime", "runtime_dir", type=click.Path(path_type=Path), metavar="DIR",
              help="The whole onnxruntime-web that the bundle is built with. Default: the pinned one.")  # fmt: skip
@click.option("--other-runtime", "others", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
              help="Try this version of onnxruntime-web too: a dist folder. Repeatable.")  # fmt: skip
@click.option("--here", is_flag=True, help="Change settings alone: not the variant, the threads, the engine.")
@click.option("--timeout", type=FiniteRange(1, 86400), default=DEFAULT_TIMEOUT_SECONDS, show_default=True,
              metavar="SECONDS", help="How long the bundle's page may take to answer.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="DIR",
              help="Write the repro here. Default: BUNDLE.repro.")  # fmt: skip
@click.option("--no-repro", is_flag=True, help="Write no repro.")
@targets_dir_option
@json_option
def command(bundle: Path, as_json: bool, **values: Any) -> int:
    """Find the node at which a failing bundle goes wrong in a browser, and what cures it.

    Runs parity, compares the values between nodes with the desktop's, puts the first wrong node on trial alone, changes
    one thing at a time, and writes the smallest model that still fails into a folder with a page and a report to file.
    The node is told on stderr as soon as it is known.
    Trials use the published runtime. Exit code 0: explained, or parity passes. 6: it fails and nothing explains it.

    \b
    Example:
      edgekit diagnose bundle
      edgekit diagnose bundle --browser firefox --variant asyncify -o repro
    """
    place = (
        None if values["no_repro"] else values["output"] or bundle.resolve().with_name(f"{bundle.resolve().name}.repro")
    )
    if place is not None:
        check_outside_bundles(place)
        repro.check_place(place)
    parity = ParityOptions(
        runner=values["browser"],
        browser_path=values["browser_path"],
        gpu=values["gpu"],
        cases=values["cases"] or None,
        variant=values["variant"],
        threads=values["threads"],
        repeats=0,
        timeout_seconds=values["timeout"],
        tolerance=unique(
            ((name, Tolerance(relative, absolute)) for name, relative, absolute in values["tolerances"]), "--tolerance"
        ),
        targets_dir=values["targets_dir"],
        command=("edgekit", *sys.argv[1:]),
    )
    with console.progress() as progress:
        options = run.Options(
            parity,
            locate.locate(values["runtime_dir"], progress=progress),
            tuple(local.open_folder(folder) for folder in values["others"]),
            elsewhere=not values["here"],
            repro=place,
        )
        found = run.diagnose(bundle, options, progress=progress, tell=console.talk)
    if as_json:
        console.data_json(to_json(found))
    else:
        _show(found)
    if found.repro is not None:
        console.talk(f"Wrote the repro {found.repro}.")
    return ParityError.exit_code if found.outcome in _UNEXPLAINED else 0


def _show(found: Diagnosis) -> None:
    if found.findings:
        _table(report.where_table(found))
    if found.trials:
        _table(report.why_table(found))
    console.data(console.visible("\n".join(report.lines(found)).lstrip("\n")))


def _table(table: TextTable) -> None:
    columns = [console.Column(column.title, column.number, column.spare) for column in table.columns]
    console.table(table.title, columns, table.rows)
