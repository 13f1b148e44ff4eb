"""``edgekit inspect``: show what a model is."""

from dataclasses import asdict
from pathlib import Path

import click

from edgekit import console
from edgekit.cli.options import Dim, json_option, unique
from edgekit.facts.study import study
from edgekit.model import io as model
from edgekit.records.jsonable import jsonable
from edgekit.report import facts as report


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--dim", "dims", multiple=True, type=Dim(), metavar="NAME=N",
              help="Estimate the work for this size of a symbolic dimension. Repeatable.")  # fmt: skip
@click.option("--all", "show_all", is_flag=True, help="Show every table: largest weights, copies, control flow, ....")
@json_option
def command(model_path: Path, dims: tuple[tuple[str, int], ...], show_all: bool, as_json: bool) -> None:
    """Show what a model is: inputs, outputs, operators, weights.

    What is worth knowing before it goes anywhere stands at the end. Nothing of the model is run.

    \b
    Example:
      edgekit inspect model.onnx
      edgekit inspect model.onnx --dim batch=4 --all
      edgekit inspect model.onnx --json
    """
    found = study(model.load(model_path, complete=False), unique(dims, "--dim")).facts
    if as_json:
        console.data_json(jsonable(asdict(found)))
        return
    for table in report.everything(found) if show_all else report.essentials(found):
        columns = [console.Column(column.title, column.number) for column in table.columns]
        console.table(table.title, columns, table.rows)
    if notes := report.notes(found):
        console.data("Worth knowing")
        for note in notes:
            console.data(f"  - {console.visible_line(note)}")
