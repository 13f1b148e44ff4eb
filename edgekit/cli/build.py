"""``edgekit build``: make a bundle that runs a model and can prove its answers."""

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from edgekit import console, pipeline
from edgekit.bundle.runtime_files import NETS
from edgekit.cli import case_options, options, program, trim
from edgekit.console import Column
from edgekit.errors import UsageError
from edgekit.pipeline import BuildConfig, BuildResult
from edgekit.records.cases import Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.runtime_trim import RuntimeSize


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--target", "-t", required=True, metavar="ID", help="The device target; 'edgekit targets' lists them.")
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="DIR",
              help="The bundle's folder. Default: MODEL-TARGET in the current folder.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace an existing bundle. Nothing else is ever replaced.")
@click.option("--title", help="The name that the page shows. Default: the model file's name.")
@click.option("--sample", "-s", "samples", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
              help="A real input for the golden cases: .npz, .npy, .safetensors, .pb, .png, .jpg, or a folder of them. "
              "Repeatable.")  # fmt: skip
@click.option("--dim", "dims", multiple=True, type=options.Dim(), metavar="NAME=N",
              help="Give a symbolic dimension this size in the generated cases. Repeatable.")  # fmt: skip
@case_options.case_options
@click.option("--reference", metavar="WHAT",
              help="Where the right answers come from: another model file, recorded outputs (.npz, .safetensors), or a "
              "Python callable module:name. Default: the model itself on desktop onnxruntime, CPU, graph optimization "
              "off.")  # fmt: skip
@options.tolerance_option
@click.option("--no-trim", is_flag=True,
              help="Ship the model as it came. Else what its answers do not need is removed, and each step "
              "proven.")  # fmt: skip
@click.option("--no-trim-runtime", is_flag=True,
              help="Ship onnxruntime-web as published. Else each variant is cut to the functions that the model "
              "needs, and proven to answer the same, bit by bit.")  # fmt: skip
@click.option("--net", type=click.Choice(NETS), default="cpu", show_default=True,
              help="Which stock runtime takes over when a cut one misses a function: the one for the CPU for every "
              "variant, that of each variant, or none.")  # fmt: skip
@click.option("--add-profile", "profiles", multiple=True, type=click.Path(path_type=Path), metavar="RUN",
              help="A run record of a device that missed functions; they are kept. Repeatable.")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE",
              help="The Chromium in which the model's needs of the runtime are recorded.")  # fmt: skip
@click.option("--runtime", type=click.Path(path_type=Path), metavar="DIR",
              help="Take onnxruntime-web from this dist folder. Default: the pinned build, fetched once.")  # fmt: skip
@options.targets_dir_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, /, model: Path, as_json: bool, **values: Any) -> None:
    """Make a bundle that runs a model and can prove its answers.

    \b
    Example:
      edgekit build model.onnx --target webgpu -o bundle
      edgekit build model.onnx --target wasm --sample photo.jpg --image-size 224x224
      edgekit build vad.onnx --target wasm --feed-back stateN=state --dim batch=1
    """
    if values["no_trim_runtime"]:
        for name, option in (("net", "--net"), ("profiles", "--add-profile")):
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise UsageError(
                    f"{option} is about a runtime that is cut, and --no-trim-runtime ships it as published.",
                    hint="Leave one of the two out.",
                )
    with console.progress() as progress:
        result = pipeline.build(_config(model, values), progress=progress)
    if as_json:
        console.data_json(jsonable({**asdict(result), "folder": str(result.folder)}))
        return
    print_cases(result)
    print_files(result)
    print_runtimes(result)
    print_remarks(result)
    folder = shlex.quote(str(result.folder))
    console.talk(console.visible(f"\nBuilt {result.folder}\nProve it:  {program.name()} parity {folder}"))
    console.talk(console.visible(f"See it:    {program.name()} serve {folder}"))


def _config(model: Path, values: dict[str, Any]) -> BuildConfig:
    return BuildConfig(
        model=model,
        target=values["target"],
        output=values["output"] or Path(f"{model.stem or 'model'}-{values['target']}"),
        cases=replace(
            case_options.cases(values),
            dims=options.unique(values["dims"], "--dim"),
            reference=values["reference"],
            output_tolerance={name: Tolerance(relative, absolute) for name, relative, absolute in values["tolerances"]},
        ),
        runtime=values["runtime"],
        title=values["title"],
        force=values["force"],
        targets_dir=values["targets_dir"],
        trim=not values["no_trim"],
        trim_runtime=not values["no_trim_runtime"],
        net=values["net"],
        profiles=values["profiles"],
        browser=values["browser_path"],
    )


def print_cases(result: BuildResult) -> None:
    """Show the golden cases and what each can prove."""
    rows = [
        [case.id, "strong" if case.grade.strong else "weak", case.origin, "; ".join(case.grade.weak)]
        for case in result.cases
    ]
    console.table("Golden cases", [Column("case"), Column("proves"), Column("inputs"), Column("why weak")], rows)


def print_files(result: BuildResult) -> None:
    """Show every file of the bundle with its bytes: raw, gzip, brotli; and what a visitor of each variant loads."""
    columns = [Column("file"), *(Column(name, number=True) for name in ("raw", "gzip", "brotli"))]
    rows = [[f.path, _bytes(f.raw_bytes), _bytes(f.gzip_bytes), _bytes(f.brotli_bytes)] for f in result.files]
    raw = sum(f.raw_bytes for f in result.files)
    gzip = sum(f.gzip_bytes or f.raw_bytes for f in result.files)
    brotli = sum(f.brotli_bytes or f.raw_bytes for f in result.files)
    rows.append(["all", _bytes(raw), _bytes(gzip), _bytes(brotli)])
    console.table(f"{result.folder} ({result.target})", columns, rows)


def print_runtimes(result: BuildResult) -> None:
    """Show what a visitor loads of each variant's runtime, beside the stock one, and what could not be cut."""
    if not result.runtimes:
        return
    columns = [Column("runtime (brotli)"), *(Column(n, number=True) for n in ("stock", "trimmed", "ratio"))]
    columns += [Column("functions", number=True), Column("proven with", spare=1)]
    console.table("The runtime, cut to what the model needs", columns, [_runtime_row(one) for one in result.runtimes])
    for one in result.runtimes:
        for said in (one.reason and f"shipped as published: {one.reason}", one.note):
            if said:
                console.talk(console.visible(f"runtime {one.variant}: {said}"))


def _runtime_row(one: RuntimeSize) -> list[str]:
    if not one.functions:
        return [one.variant, _bytes(one.stock_brotli_bytes), "as published", "", "", ""]
    stock, now = one.stock_brotli_bytes, one.brotli_bytes
    ratio = "–" if stock is None or now is None else f"{now / stock:.2f}"
    threads = " and ".join(map(str, one.proven))
    many = "" if one.proven == (1,) else "s"
    proven = f"{threads} thread{many}" if threads else "not proven here"
    return [one.variant, _bytes(stock), _bytes(now), ratio, f"{one.kept:,} of {one.functions:,}", proven]


def print_remarks(result: BuildResult) -> None:
    """Say what trimming did or why it did nothing, which cases were left out, and what to be warned of."""
    if result.trim is None:
        console.talk(console.visible(f"model: as it came; {result.untrimmed.rstrip('.')}"))
    else:
        console.talk(console.visible(f"model: {trim.told(result.trim)}"))
    for line in result.left_out:
        console.talk(console.visible(f"left out: {line}"))
    for warning in result.warnings:
        console.talk(console.visible(f"warning: {warning}"))


def _bytes(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"
