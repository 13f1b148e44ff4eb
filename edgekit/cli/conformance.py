"""``edgekit conformance``: the operator tests of the onnx package, in real browsers, beside the desktop."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from edgekit import conformance_run, console
from edgekit.bundle.destination import check_outside_bundles
from edgekit.cli.options import json_option, list_option
from edgekit.conformance import tally
from edgekit.conformance.tally import Column
from edgekit.conformance_run import BROWSERS, WEB_VARIANTS, ConformanceOptions
from edgekit.files import write_atomic
from edgekit.records.jsonable import jsonable
from edgekit.runners.browsers import GPUS


@click.command()
@list_option("--browser", "browsers", item=click.Choice(sorted(BROWSERS)), metavar="NAME[,NAME]",
              help="The browsers to drive: chromium, firefox. Default: chromium.")  # fmt: skip
@list_option("--variant", "variants", item=click.Choice(WEB_VARIANTS), metavar="ID[,ID]",
              help=f"The variants of the runtime: {', '.join(WEB_VARIANTS)}. Default: all.")  # fmt: skip
@list_option("--ops", "operators", item=click.STRING, metavar="OP[,OP]",
              help="The cases of these operators only.")  # fmt: skip
@click.option("--placement", is_flag=True, help="Find out which cases a GPU session leaves to the CPU. Slower.")
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The browser's program.")
@click.option("--gpu", type=click.Choice(GPUS), default="auto", show_default=True, help="The WebGPU adapter to use.")
@click.option("--runtime", type=click.Path(path_type=Path), metavar="DIR",
              help="Take onnxruntime-web from this dist folder. Default: the pinned build.")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE", help="Write it as a page of Markdown too.")
@json_option
def command(page: Path | None, as_json: bool, **values: Any) -> None:
    """Run the operator tests of the onnx package in real browsers, beside the desktop.

    For each operator: what passes, what is wrong, what is refused. Every wrong answer is listed with its case.
    Exit code 0 whatever the runtimes answer: it measures them, and judges no bundle.

    \b
    Example:
      edgekit conformance
      edgekit conformance --browser chromium,firefox --variant jspi,wasm
      edgekit conformance --ops Conv,Resize --variant jspi --json
    """
    if page is not None:
        check_outside_bundles(page)
    options = ConformanceOptions(
        browsers=values["browsers"] or ("chromium",),
        variants=values["variants"] or WEB_VARIANTS,
        operators=values["operators"] or (),
        placements=values["placement"],
        browser_path=values["browser_path"],
        gpu=values["gpu"],
        runtime=values["runtime"],
    )
    with console.progress() as progress:
        columns = conformance_run.compare(options, progress=progress)
    if page is not None:
        words = [word for word in sys.argv[1:] if word != "--json"]
        write_atomic(page, tally.page(columns, shlex.join(["edgekit", *words])).encode())
    if as_json:
        console.data_json(jsonable({"columns": [_json(one) for one in columns]}))
    else:
        print_columns(columns)
    if page is not None:
        console.talk(f"Wrote {page}.")


def _json(one: Column) -> dict[str, Any]:
    runtime = vars(one.runtime)
    cases = [vars(case) for case in one.cases]
    return {
        "label": one.label,
        "runtime": runtime,
        "seconds": one.seconds,
        "counts": one.counts,
        "operators": one.by_operator(),
        "cases": cases,
    }


def print_columns(columns: tuple[Column, ...]) -> None:
    """Show the operators, then every wrong answer, then the totals."""
    labels = [console.Column(one.label) for one in columns]
    tables = [one.by_operator() for one in columns]
    names = sorted({name for table in tables for name in table})
    rows = [[name, *(tally.short(table.get(name, {})) for table in tables)] for name in names]
    console.table("Operators: passes/wrong/refused; one number: all pass", [console.Column("operator"), *labels], rows)
    wrong = [
        [case.name, case.operator, one.label, console.visible(case.why or "")] for one in columns for case in one.wrong
    ]
    titles = [console.Column(title) for title in ("case", "operator", "where")]
    console.table("Wrong answers", [*titles, console.Column("what", spare=1)], wrong)
    totals = [[status, *(f"{one.counts[status]:,}" for one in columns)] for status in tally.STATUSES]
    numbers = [console.Column(one.label, number=True) for one in columns]
    totals.append(["seconds", *(f"{one.seconds:.1f}" for one in columns)])
    console.table(f"{len(columns[0].cases):,} cases", [console.Column(""), *numbers], totals)
    for adapter in dict.fromkeys(one.runtime.adapter for one in columns if one.runtime.adapter):
        console.data(f"GPU adapter: {adapter}.")
