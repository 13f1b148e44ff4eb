"""``edgekit parity``: replay a bundle's golden cases in a real browser and judge the outputs."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from edgekit import console, parity
from edgekit.bundle.destination import check_outside_bundles
from edgekit.cli.options import FiniteRange, json_option, targets_dir_option, tolerance_option, unique
from edgekit.errors import ParityError
from edgekit.files import write_atomic
from edgekit.parity import ParityOptions, ParityResult
from edgekit.records import verdict as verdicts
from edgekit.records.cases import Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.report import html, junit, text
from edgekit.report.html import Entry
from edgekit.report.text import TextTable
from edgekit.runners.browsers import GPUS


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--browser", metavar="NAME", help="The browser to drive, such as chromium. Default: the target's.")
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The browser's program.")
@click.option("--gpu", type=click.Choice(GPUS), default="auto", show_default=True, help="The WebGPU adapter to use.")
@click.option("--case", "cases", multiple=True, metavar="ID", help="Replay this golden case only. Repeatable.")
@click.option("--variant", metavar="ID", help="Use this variant of the runtime instead of the first that runs.")
@click.option("--threads", type=click.IntRange(1, 64), help="How many threads. Default: as the target says.")
@click.option("--repeats", type=click.IntRange(0, 1000), default=parity.DEFAULT_REPEATS, show_default=True,
              help="How many runs are timed after the first.")  # fmt: skip
@click.option("--timeout", type=FiniteRange(1, 86400), default=parity.DEFAULT_TIMEOUT_SECONDS, show_default=True,
              metavar="SECONDS", help="How long the page may take to answer.")  # fmt: skip
@tolerance_option
@click.option("--allow-fallback", is_flag=True, help="Let another execution provider than the target's first pass.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), metavar="FILE", help="Write an HTML report.")
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="DIR", help="Keep the run's records here.")
@targets_dir_option
@json_option
def command(bundle: Path, junit_file: Path | None, report_file: Path | None, as_json: bool, **values: Any) -> int:
    """Replay a bundle's golden cases in a real browser and judge the outputs.

    Exit code 0: passed. 6: failed, refused or not run. 4: there is no browser.

    \b
    Example:
      edgekit parity bundle
      edgekit parity bundle --case random-1 --tolerance scores=1e-3 --report report.html
    """
    options = _options(values)
    for place in (junit_file, report_file, options.output):
        if place is not None:  # before the minutes of work, not after them
            check_outside_bundles(place)
    with console.progress() as progress:
        result = parity.verify(bundle, options, progress=progress)
    if junit_file is not None:
        write_atomic(junit_file, junit.to_xml([result.verdict]))
    if report_file is not None:
        write_atomic(report_file, html.report_html([_entry(result, options)]).encode())
    if as_json:
        timings = [asdict(row) for row in result.timings]
        console.data_json({"verdict": verdicts.to_json(result.verdict), "timings": jsonable(timings)})
    else:
        print_result(result)
    for place in (report_file, junit_file):
        if place is not None:
            console.talk(f"Wrote {place}.")
    if result.hint:
        console.talk(f"\nhint: {result.hint}")
    return 0 if result.verdict.passed else ParityError.exit_code


def _options(values: dict[str, Any]) -> ParityOptions:
    return ParityOptions(
        runner=values["browser"],
        browser_path=values["browser_path"],
        gpu=values["gpu"],
        cases=values["cases"] or None,
        variant=values["variant"],
        threads=values["threads"],
        repeats=values["repeats"],
        timeout_seconds=values["timeout"],
        tolerance=unique(
            ((name, Tolerance(relative, absolute)) for name, relative, absolute in values["tolerances"]), "--tolerance"
        ),
        allow_fallback=values["allow_fallback"],
        targets_dir=values["targets_dir"],
        output=values["output"],
        command=("edgekit", *sys.argv[1:]),
    )


def _entry(result: ParityResult, options: ParityOptions) -> Entry:
    return Entry(result.verdict, result.record, result.desktop, result.case_set, options.command)


def print_result(result: ParityResult) -> None:
    """Show the verdict: the outputs, the times, and what they come to."""
    if result.record is not None:
        _table(text.output_table(result.verdict))
        _table(text.timing_table(result.timings))
    console.data(console.visible("\n".join(text.summary(result.verdict))))


def _table(table: TextTable) -> None:
    columns = [console.Column(column.title, column.number, column.spare) for column in table.columns]
    console.table(table.title, columns, table.rows)
