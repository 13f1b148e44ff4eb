"""``edgekit inspect``: show what a model is."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from edgekit import console
from edgekit.bundle.destination import check_outside_bundles
from edgekit.cli.options import Dim, json_option, unique
from edgekit.errors import UsageError
from edgekit.facts.study import Study, study
from edgekit.files import keep_sources, write_atomic
from edgekit.model import io as model
from edgekit.model.io import LoadedModel
from edgekit.records.jsonable import jsonable
from edgekit.records.store import load_run
from edgekit.report import facts as report
from edgekit.report.graph import graph_html
from edgekit.report.graph_marks import marks_of
from edgekit.targets import load as targets


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--dim", "dims", multiple=True, type=Dim(), metavar="NAME=N",
              help="Estimate the work for this size of a symbolic dimension. Repeatable.")  # fmt: skip
@click.option("--all", "show_all", is_flag=True, help="Show every table: largest weights, copies, control flow, ....")
@click.option("--graph", "graph_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Draw the model as an HTML page that opens offline.")  # fmt: skip
@click.option("--record", type=click.Path(path_type=Path), metavar="RECORD",
              help="Colour that by a folder of 'edgekit parity -o': where nodes ran, what is wrong.")  # fmt: skip
@json_option
def command(model_path: Path, dims: tuple[tuple[str, int], ...], **options: Any) -> None:
    """Show what a model is: inputs, outputs, operators, weights.

    What is worth knowing before it goes anywhere stands at the end. Nothing of the model is run.

    \b
    Example:
      edgekit inspect model.onnx
      edgekit inspect model.onnx --dim batch=4 --all
      edgekit inspect model.onnx --graph model.html
      edgekit inspect model.onnx --json
    """
    if options["record"] is not None and options["graph_file"] is None:
        raise UsageError("--record colours a drawing, and none is asked for.", hint="Say --graph FILE as well.")
    if options["graph_file"] is not None:
        check_outside_bundles(options["graph_file"])
    loaded = model.load(model_path, complete=False)
    if options["graph_file"] is not None:
        keep_sources(options["graph_file"], [loaded.path, *(file.path for file in loaded.external_files)])
    found = study(loaded, unique(dims, "--dim"))
    if options["graph_file"] is not None:
        _draw(loaded, found, options["graph_file"], options["record"])
    if options["as_json"]:
        console.data_json(jsonable(asdict(found.facts)))
        return
    for table in report.everything(found.facts) if options["show_all"] else report.essentials(found.facts):
        columns = [console.Column(column.title, column.number) for column in table.columns]
        console.table(table.title, columns, table.rows)
    known = [targets.load(target) for target in targets.ids()]
    if notes := [*report.target_notes(found.facts, known), *report.notes(found.facts)]:
        console.data("Worth knowing")
        for note in notes:
            console.data(f"  - {console.visible_line(note)}")


def _draw(loaded: LoadedModel, found: Study, file: Path, record: Path | None) -> None:
    marks = None if record is None else marks_of(load_run(record), loaded.path)
    page = graph_html(loaded.proto, found.facts.file, report.headline(found.facts), found.table, marks)
    write_atomic(file, page.encode())
    console.talk(f"Wrote {file}.")
