"""``edgekit demo``: build, verify and measure the bundled sample model."""

import shlex
from dataclasses import asdict
from pathlib import Path

import click

from edgekit import console, pipeline
from edgekit.bundle.destination import check_takes_files
from edgekit.cli import program
from edgekit.cli.build import print_files, print_remarks
from edgekit.cli.options import json_option
from edgekit.cli.parity import print_result
from edgekit.errors import ParityError
from edgekit.parity import ParityOptions
from edgekit.pipeline import DemoResult
from edgekit.records import verdict as verdicts
from edgekit.records.jsonable import jsonable


@click.command()
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, metavar="DIR",
              help="The folder for the bundles.")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The Chromium to drive.")
@json_option
def command(output: Path, browser_path: Path | None, as_json: bool) -> int:
    """Build, verify and measure the bundled sample model, for every web target.

    Exit code 0: every target passed. 6: one did not.

    \b
    Example:
      edgekit demo
      edgekit demo -o /tmp/demo --json
    """
    check_takes_files(output)
    with console.progress(steps=True) as progress:
        results = pipeline.demo(output, parity_options=ParityOptions(browser_path=browser_path), progress=progress)
    if as_json:
        console.data_json([_json(result) for result in results])
    else:
        for result in results:
            print_files(result.build)
            print_remarks(result.build)
            print_result(result.parity)
        commands = [f"  {program.name()} serve {shlex.quote(str(result.build.folder))}" for result in results]
        console.talk(console.visible("\n".join(["\nOpen the demo page with one of:", *commands])))
    return 0 if all(result.parity.verdict.passed for result in results) else ParityError.exit_code


def _json(result: DemoResult) -> dict[str, object]:
    built = jsonable({**asdict(result.build), "folder": str(result.build.folder)})
    timings = jsonable([asdict(row) for row in result.parity.timings])
    return {"build": built, "verdict": verdicts.to_json(result.parity.verdict), "timings": timings}
