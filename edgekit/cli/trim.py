"""``edgekit trim``: remove what the answers do not need."""

import re
from pathlib import Path
from typing import Any

import click

from edgekit import console, pipeline
from edgekit.bundle.destination import check_outside_bundles
from edgekit.cli import case_options, options
from edgekit.console import Column
from edgekit.errors import UsageError
from edgekit.figures import figure
from edgekit.trim import plan as plans
from edgekit.trim.output import Packing
from edgekit.trim.plan import PassRecord, Plan
from edgekit.trim.request import Shape
from edgekit.trim.run import TrimOptions

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_PROOFS = {
    "identical": "bit-identical",
    "rounding": "rounding",
    "structural": "not run; cannot change an answer",
    "undone": "undone",
    "failed": "could not be done",
}


class DimOrRange(click.ParamType[tuple[str, int, int | None]]):
    """``batch=1`` freezes a dimension; ``batch=1:8`` records its range."""

    name = "NAME=N[:M]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int, int | None]:
        name, _, sizes = str(value).rpartition("=")
        parts = sizes.split(":")
        numbers = [int(part) for part in parts if part.isdigit() and 0 < int(part) < 2**31]
        if not name or len(parts) not in (1, 2) or len(numbers) != len(parts) or numbers != sorted(numbers):
            self.fail(f"'{value}' is not NAME=N or NAME=LOW:HIGH, such as batch=1 or batch=1:8.", param, ctx)
        return name, numbers[0], numbers[1] if len(numbers) == 2 else None


class Size(click.ParamType[int]):
    """``25MB``, ``100MiB``, ``1000000``: a number of bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d{1,15})\s*([kmg]?i?)b?", str(value).strip().lower())
        if found is None or found[2] not in _UNITS or int(found[1]) == 0:
            self.fail(f"'{value}' is not a size, such as 25MB, 100MiB or 1000000.", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), metavar="FILE",
              help="The trimmed model. What is there is replaced when all is done.")  # fmt: skip
@click.option("--outputs", metavar="A,B", multiple=True,
              help="Keep these outputs and what they need. Any value of the graph can be an output.")  # fmt: skip
@click.option("--inputs", metavar="A,B", multiple=True, help="Begin at these values: a part is cut out.")
@click.option("--dim", "dims", multiple=True, type=DimOrRange(), metavar="NAME=N[:M]",
              help="Freeze a symbolic dimension at N; with N:M leave it free, and prove at both sizes. "
              "Repeatable.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Freeze the first axis of every input.")
@click.option("--opset", type=click.IntRange(7, 99), metavar="N", help="Convert to this opset of ai.onnx.")
@click.option("--ir", type=click.IntRange(4, 99), metavar="N",
              help="State this IR version: runtimes refuse a file that states a newer one than they know.")  # fmt: skip
@click.option("--allow-rounding", is_flag=True,
              help="Admit passes that reorder arithmetic; the plan says by how much outputs differ.")  # fmt: skip
@click.option("--int32", is_flag=True,
              help="Compute whole numbers in int32 where they are proven to fit: WebGPU has no int64.")  # fmt: skip
@click.option("--tensor-outputs", is_flag=True, help="Make outputs that are maps (ZipMap) tensors.")
@click.option("--keep-metadata", is_flag=True, help="Keep the doc strings, metadata and recorded shapes of nodes too.")
@click.option("--drop-metadata", is_flag=True, help="Drop those of the model too, which applications may read.")
@click.option("--split-weights", type=Size(), metavar="SIZE",
              help="Keep large tensors in files of at most SIZE beside the model.")  # fmt: skip
@click.option("--merge-weights", is_flag=True, help="Put all weights into the model file.")
@click.option("--skip", multiple=True, metavar="PASS", help="Leave a pass out. Repeatable.")
@click.option("--no-passes", is_flag=True, help="Change nothing but how weights are stored; nothing is run.")
@click.option("--unproven", is_flag=True,
              help="Where nothing can be run, apply the passes that cannot change an answer.")  # fmt: skip
@click.option("--sample", "-s", "samples", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
              help="A real input to prove with, as in 'edgekit build'. Repeatable.")  # fmt: skip
@case_options.case_options
@click.option("--plan", type=click.Path(path_type=Path), metavar="FILE",
              help="Where the plan is written. Default: beside the output, as NAME.plan.json.")  # fmt: skip
@options.json_option
def command(model: Path, output: Path, as_json: bool, **values: Any) -> None:
    """Remove what the answers do not need, and prove that they stay the same.

    Every pass is proven: outputs before and after are bit-identical on the golden cases, or the pass is undone and
    reported.

    \b
    Example:
      edgekit trim model.onnx -o small.onnx
      edgekit trim model.onnx -o small.onnx --batch 1 --dim width=320 --opset 17
      edgekit trim model.onnx -o encoder.onnx --outputs features --sample photo.npz
      edgekit trim big.onnx -o web/big.onnx --split-weights 25MB
    """
    for place in (output, values["plan"]):
        if place is not None:
            check_outside_bundles(place)
    with console.progress() as progress:
        plan = pipeline.trim(model, output, _options(values), progress=progress)
    if as_json:
        console.data_json(plans.to_json(plan))
        return
    _show(plan)
    for note in plan.notes:
        console.talk(f"note: {note}")
    console.talk(f"\nWrote {output}")


def _options(values: dict[str, Any]) -> TrimOptions:
    if values["split_weights"] and values["merge_weights"]:
        raise UsageError("--split-weights and --merge-weights exclude each other.")
    if values["keep_metadata"] and values["drop_metadata"]:
        raise UsageError("--keep-metadata and --drop-metadata exclude each other.")
    return TrimOptions(
        cases=case_options.cases(values),
        shape=Shape(
            inputs=_names(values["inputs"]),
            outputs=_names(values["outputs"]),
            freeze=options.unique(((n, low) for n, low, high in values["dims"] if high is None), "--dim"),
            ranges=options.unique(((n, (low, high)) for n, low, high in values["dims"] if high is not None), "--dim"),
            batch=values["batch"],
            tensors=values["tensor_outputs"],
        ),
        opset=values["opset"],
        ir=values["ir"],
        int32=values["int32"],
        allow_rounding=values["allow_rounding"],
        keep_metadata=values["keep_metadata"],
        drop_metadata=values["drop_metadata"],
        skip=values["skip"],
        passes=not values["no_passes"],
        unproven=values["unproven"],
        packing=Packing(
            external=False if values["merge_weights"] else True if values["split_weights"] else None,
            file_bytes=values["split_weights"],
        ),
        plan=values["plan"],
    )


def _names(given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Split at commas, where the option was given."""
    names = tuple(dict.fromkeys(name for text in given for name in text.split(",") if name))
    if given and not names:
        raise UsageError("--inputs and --outputs need the name of a value.", hint="Is a variable of your script empty?")
    return names if given else None


def _show(plan: Plan) -> None:
    columns = [
        Column("pass"),
        *(Column(title, number=True) for title in ("nodes", "bytes")),
        Column("proof"),
    ]
    rows = [[r.name, _change(r.nodes_before, r.nodes_after), _change(r.bytes_before, r.bytes_after), _proof(r)]
            for r in plan.passes]  # fmt: skip
    rows.append(
        [
            "all",
            f"{plan.nodes_before:,} → {plan.nodes_after:,}",
            f"{plan.bytes_before:,} → {plan.bytes_after:,}",
            _summary(plan),
        ]
    )
    console.table(plan.model, columns, rows)


def told(plan: Plan) -> str:
    """Say in a line what a plan did."""
    done = [record for record in plan.passes if record.proof not in ("undone", "failed")]
    undone = ", ".join(dict.fromkeys(record.name for record in plan.passes if record.proof == "undone"))
    return (
        f"{plan.nodes_before:,} → {plan.nodes_after:,} nodes, {plan.bytes_before:,} → {plan.bytes_after:,} bytes "
        f"in {len(done)} passes, {_summary(plan)}{f'; undone: {undone}' if undone else ''}"
    )


def _change(before: int, after: int) -> str:
    return "–" if before == after else f"{after - before:+,}"


def _proof(record: PassRecord) -> str:
    said = _PROOFS[record.proof]
    if record.proof == "rounding":
        said += f": {figure(record.difference or 0.0, 2)} of the scale"
    return f"{said}: {record.reason}" if record.reason else said


def _summary(plan: Plan) -> str:
    count = len(plan.cases)
    if not count:
        return _PROOFS[plan.proof]
    said = "bit-identical" if plan.proof == "identical" else f"within {figure(plan.difference or 0.0, 2)} of the scale"
    return f"{said} on {count} case{'' if count == 1 else 's'}"
