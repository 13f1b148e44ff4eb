"""``edgekit repair``: find the settings that make a bundle pass, prove them, and write them into it."""

from pathlib import Path
from typing import Any

import click

from edgekit import console
from edgekit.bundle import beside
from edgekit.cli.options import FiniteRange, json_option, list_option, targets_dir_option
from edgekit.console import Column
from edgekit.errors import ParityError
from edgekit.repair import result as results
from edgekit.repair import run
from edgekit.repair.candidates import FAMILIES
from edgekit.repair.result import Proof, Repair, Tried
from edgekit.repair.search import RepairOptions
from edgekit.report import words
from edgekit.runners.browsers import GPUS

_MANY = "Several are separated by commas."


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@list_option("--browser", "browsers", item=click.STRING, metavar="NAME[,NAME]",
              help=f"The browsers in which it must pass. Default: the target's. {_MANY}")  # fmt: skip
@list_option("--variant", "variants", item=click.STRING, metavar="ID[,ID]",
              help=f"The variants of the runtime that must pass. Default: all of the bundle. {_MANY}")  # fmt: skip
@list_option("--try", "families", item=click.Choice(FAMILIES), metavar="WHAT[,WHAT]",
              help=f"What to try: {', '.join(FAMILIES)}. Default: all of it, in this order.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True,
              help="How often what passes is timed, in turn.")  # fmt: skip
@click.option("--gpu", type=click.Choice(GPUS), default="auto", show_default=True, help="The WebGPU adapter to use.")
@click.option("--timeout", type=FiniteRange(1, 86400), default=300.0, show_default=True, metavar="SECONDS",
              help="How long a page may take to answer.")  # fmt: skip
@click.option("--runtime", type=click.Path(path_type=Path), metavar="DIR",
              help="Take onnxruntime-web from this dist folder. Default: the pinned build.")  # fmt: skip
@targets_dir_option
@json_option
def command(bundle: Path, as_json: bool, **values: Any) -> int:
    """Find the settings that make a failing bundle pass, prove them, and write them into it.

    Layout, nodes left to the CPU, optimization, small rewrites of the graph, and leaving out what fails are tried.
    What passes all golden cases in every combination is timed, and the fastest kept, with the evidence in repair.json;
    on a software adapter, whose times say nothing of a GPU, that which leaves most nodes to the GPU.
    Exit code 0: repaired, or nothing to repair. 6: nothing passes; the bundle is as it was.

    \b
    Example:
      edgekit repair bundle
      edgekit repair bundle --browser chromium,firefox
      edgekit repair bundle --try layout,cpu-nodes --json
    """
    options = RepairOptions(
        browsers=values["browsers"] or (),
        variants=values["variants"] or (),
        families=values["families"] or FAMILIES,
        rounds=values["rounds"],
        gpu=values["gpu"],
        timeout_seconds=values["timeout"],
        targets_dir=values["targets_dir"],
        runtime=values["runtime"],
    )
    with console.progress() as progress:
        done = run.repair(bundle, options, progress=progress)
    if as_json:
        console.data_json(results.to_json(done))
    else:
        print_repair(done)
    if done.status == "repaired":
        for line in beside.told(bundle):
            console.talk(f"warning: {console.visible(line)}")
    return ParityError.exit_code if done.status == "failed" else 0


def print_repair(done: Repair) -> None:
    """Show what was tried, what passed and how fast, and what was chosen."""
    if done.tried:
        columns = [Column("tried"), Column("single cases"), Column("all cases")]
        columns += [Column("not on WebGPU", number=True), Column("later run", number=True), Column("why not", spare=1)]
        rows = [_row(one, done) for one in done.tried]
        console.table("What was tried", columns, rows)
    if done.software and any(one.times_ms for one in done.tried):
        console.data("The GPU adapter is software: the times compare candidates on this machine, and are no GPU's.")
    for line in _concluded(done):
        console.data(console.visible(line))


def _row(one: Tried, done: Repair) -> list[str]:
    sieved = {True: "✓", False: "✗", None: words.NOTHING}[one.sieved]
    where = " ".join(f"{'✓' if proof.status == 'passed' else '✗'} {_label(proof)}" for proof in one.proofs)
    name = f"{one.name} (chosen)" if one.name == done.chosen else one.name
    reason = (one.reason or "").split("\n", 1)[0] if one.name != done.chosen else ""
    elsewhere = str(one.elsewhere) if one.passed and any(proof.elsewhere is not None for proof in one.proofs) else ""
    return [console.visible(name), sieved, where or words.NOTHING, elsewhere or words.NOTHING,
            words.milliseconds(one.later_ms), console.visible(reason)]  # fmt: skip


def _concluded(done: Repair) -> list[str]:
    if done.status == "nothing":
        return [f"✓ Nothing to repair: {_labels(done.before)} passed."]
    failed = [proof for proof in done.before if proof.status != "passed"]
    lines = [f"Before: {_label(proof)} {proof.status}: {proof.note or 'no reason given'}" for proof in failed]
    if done.status == "failed":
        asked = "'edgekit diagnose' names the node and says which side is wrong: no setting cures a wrong reference."
        return [*lines, "✗ Nothing that was tried passes. The bundle is as it was.", asked]
    kept = [f"Kept: {done.chosen_by}."] if done.chosen_by else []
    return [*lines, *kept, f"✓ Repaired with {done.chosen}: {_labels(done.after)} passed."]


def _labels(proofs: tuple[Proof, ...]) -> str:
    return ", ".join(_label(proof) for proof in proofs)


def _label(proof: Proof) -> str:
    return " ".join(part for part in (proof.browser, proof.variant) if part)
