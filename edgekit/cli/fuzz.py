"""``edgekit fuzz``: look for wrong answers of a runtime before users find them."""

from pathlib import Path
from typing import Any

import click

from edgekit import console
from edgekit.bundle.destination import check_takes_files
from edgekit.cli.options import FiniteRange, json_option, list_option, single_option
from edgekit.errors import ParityError, UsageError
from edgekit.fuzz import journal
from edgekit.fuzz.report import FuzzReport
from edgekit.runners.browsers import GPUS


@click.command()
@single_option("--browser", type=click.Choice(["chromium", "firefox"]), default="chromium",
               help="The browser to drive.")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The browser's program.")
@single_option("--variant", default="jspi", metavar="ID", help="The variant of the runtime.")
@click.option("--gpu", type=click.Choice(GPUS), default="auto", show_default=True, help="The WebGPU adapter to use.")
@list_option("--ops", item=click.STRING, metavar="NAME[,NAME]",
              help="Draw these operators only, and chains that begin with them. Default: all.")  # fmt: skip
@click.option("--ops-from", "near", type=click.Path(path_type=Path), metavar="MODEL",
              help="Draw near this model's nodes: their attributes and sizes, and neighbours of these.")  # fmt: skip
@click.option("--minutes", type=FiniteRange(0.05, 10_000), default=5.0, show_default=True,
              help="How long to look for wrong answers. To understand what is found (make it small, sort it by cause, "
              "measure cures) takes about as long again, or two minutes.")  # fmt: skip
@click.option("--cases", "most", type=click.IntRange(1), metavar="N", help="Look at so many cases at most.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
              help="The same seed draws the same cases.")  # fmt: skip
@click.option("--runtime", "runtime_dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Look at the onnxruntime-web in this dist folder. Default: the pinned build.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Keep the journal, findings and repros here. The same run goes on from it.")  # fmt: skip
@click.option(
    "--update",
    is_flag=True,
    help="Make what is found, and what was known and is still wrong, edgekit's knowledge of this build; with --ops, of "
    "these operators.",
)
@json_option
def command(as_json: bool, update: bool, ops: tuple[str, ...], **values: Any) -> int:
    """Look for wrong answers: random small models, desktop onnxruntime against a browser.

    A disagreement that comes twice is a finding. The onnx reference evaluator says which side is wrong; the finding is
    made small, sorted by its cause, and what makes it right is measured. 'edgekit check' warns of what is known.
    What is wrong is told on stderr as it is found, and a run that is ended goes on from what it kept with -o.

    Exit code 0: nothing was found to be wrong. 6: something was.

    \b
    Example:
      edgekit fuzz --variant jspi --minutes 5 -o findings
      edgekit fuzz --variant wasm --ops Conv,Slice --seed 7
      edgekit fuzz --browser firefox --ops-from model.onnx
    """
    from edgekit.fuzz import find, generators, write  # takes seconds to import

    if update and values["near"]:
        raise UsageError("--update makes knowledge of operators, not of a model.", hint="Leave --ops-from out.")
    if values["output"] is not None:
        check_takes_files(values["output"])
        journal.check_place(values["output"])
    with console.progress() as progress:
        report, known = find.fuzz(
            find.FuzzOptions(ops=ops, again=update, **values), progress=progress, tell=console.talk
        )
    path = write.update(known, generators.chosen(ops) if ops else None) if update else None
    if as_json:
        console.data_json(report.to_json() | {"updated": None if path is None else str(path)})
    else:
        _show(report)
        if path is not None:
            console.talk(f"Wrote {path}.")
    return ParityError.exit_code if report.entries or report.unclear else 0


def _show(report: FuzzReport) -> None:
    where = f" on {report.adapter}{' (software)' if report.software else ''}" if report.adapter else ""
    console.data(console.visible_line(
        f"{report.runtime} {report.variant} in {report.browser}{where}: {report.cases:,} cases of {report.operators} "
        f"kinds in {report.seconds:.0f} s ({report.cases_per_second:.1f} a second), seed {report.seed}"
    ))  # fmt: skip
    console.data(", ".join(f"{status} {count:,}" for status, count in report.counts.items()) + "\n")
    if report.entries:
        _show_entries(report)
    for title, lines in (
        ("Wrong, and no pattern was found", report.unclear),
        ("The desktop is wrong, by the reference evaluator", report.desktop),
        ("Crashed", report.crashed),
    ):
        if lines:
            console.data(f"{title}:")
            for line in lines:
                console.data(console.visible_line(f"  {line}"))
            console.data("")
    if not report.entries and not report.unclear:
        console.data("No wrong answer was found." if report.compared else "No case had answers to compare.")


def _show_entries(report: FuzzReport) -> None:
    rows = []
    for entry in report.entries:
        cures = [str(cure) for cure in entry.cures if cure.cures]
        rows.append([entry.text, entry.side, str(entry.failures), entry.problem, ", ".join(cures) or "nothing tried"])
    console.table(
        f"{len(rows)} cause{'' if len(rows) == 1 else 's'} of wrong answers",
        [
            console.Column("where"), console.Column("wrong side", spare=1), console.Column("cases", number=True),
            console.Column("smallest"), console.Column("right with"),
        ],
        rows,
    )  # fmt: skip
