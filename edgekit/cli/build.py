"""``edgekit build``: make a bundle that runs a model and can prove its answers."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource

from edgekit import console, pipeline
from edgekit.bundle.runtime_files import NETS
from edgekit.bundle.sizes import FileSizes
from edgekit.cli import case_options, kind_options, options, program, repair, trim
from edgekit.console import Column
from edgekit.errors import ParityError, UsageError
from edgekit.kinds.config import BuildConfig
from edgekit.pipeline import BuildResult
from edgekit.records.cases import Tolerance
from edgekit.records.jsonable import jsonable
from edgekit.records.settings import Layout, Optimization, SessionSettings
from edgekit.repair import result as results
from edgekit.repair.search import RepairOptions
from edgekit.report import words
from edgekit.runtime_trim import RuntimeSize
from edgekit.targets.options import WEB

# Folders whose files weigh enough to be told one by one, as long as they are so few; others are a line each.
_LISTED = ("model", "runtime")
_MOST_LISTED = 12


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
@click.option("--no-strength", is_flag=True,
              help="Do not try the golden cases on faulty models. Else the bundle says how many they catch, and cases "
              "that catch more are looked for.")  # fmt: skip
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
@click.option("--layout", type=click.Choice(get_args(Layout)),
              help="The layout that WebGPU turns convolutions to. Default: its own choice.")  # fmt: skip
@click.option("--optimization", type=click.Choice(get_args(Optimization)), default="all", show_default=True,
              help="The level of graph optimization with which the page creates sessions.")  # fmt: skip
@click.option("--cpu-node", "cpu_nodes", multiple=True, metavar="NAME",
              help="Leave this node to the CPU on WebGPU. Repeatable.")  # fmt: skip
@click.option("--repair", is_flag=True,
              help="Replay the cases in the target's browser, and repair the bundle where it fails.")  # fmt: skip
@kind_options.kind_options
@options.targets_dir_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, /, model: Path, as_json: bool, **values: Any) -> int:
    """Make a bundle that runs a model and can prove its answers.

    \b
    Example:
      edgekit build model.onnx --target webgpu -o bundle
      edgekit build model.onnx --target wasm --sample photo.jpg --image-size 224x224
      edgekit build vad.onnx --target wasm --feed-back stateN=state --dim batch=1
      edgekit build model.onnx --target raspberry-pi-5 --deb
      edgekit build model.onnx --target android --apk
    """
    kind_options.check(ctx, values)
    if values["no_trim_runtime"]:
        for name, option in (("net", "--net"), ("profiles", "--add-profile")):
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
                raise UsageError(
                    f"{option} is about a runtime that is cut, and --no-trim-runtime ships it as published.",
                    hint="Leave one of the two out.",
                )
    config, done = _config(model, values), None
    with console.progress() as progress:
        if values["repair"]:
            asked = RepairOptions(targets_dir=config.targets_dir, runtime=config.runtime)
            result, done = pipeline.build_repaired(config, asked, progress=progress)
        else:
            result = pipeline.build(config, progress=progress)
    code = ParityError.exit_code if done is not None and done.status == "failed" else 0
    if as_json:
        said = {} if done is None else {"repair": results.to_json(done)}
        places = {"folder": str(result.folder), "beside": [str(place) for place in result.beside]}
        console.data_json(jsonable({**asdict(result), **places, **said}))
        return code
    print_cases(result)
    print_files(result)
    print_runtimes(result)
    kind_options.print_sizes(result)
    print_remarks(result)
    if done is not None:
        repair.print_repair(done)
    folder = shlex.quote(str(result.folder))
    console.talk(console.visible(f"\nBuilt {result.folder}\nProve it:  {program.name()} parity {folder}"))
    if result.kind == WEB:
        console.talk(console.visible(f"See it:    {program.name()} serve {folder}"))
    for place in result.beside:
        console.talk(console.visible(f"Beside it: {place}"))
    return code


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
        strength=not values["no_strength"],
        session=SessionSettings(values["optimization"], values["layout"], values["cpu_nodes"]),
        linux=kind_options.linux(values),
        android=kind_options.android(values),
    )


def print_cases(result: BuildResult) -> None:
    """Show the golden cases and what each can prove."""
    rows = [
        [case.id, "strong" if case.grade.strong else "weak", case.origin, "; ".join(case.grade.weak)]
        for case in result.cases
    ]
    columns = [Column("case"), Column("proves"), Column("inputs"), Column("why weak", optional=True)]
    console.table("Golden cases", columns, rows)


def print_files(result: BuildResult) -> None:
    """Show what the bundle's files weigh: raw and, where there are compressed copies, gzip and brotli.

    Files at the top, of the model and of the runtime have a line each; of every other folder there is one line.
    """
    packed = any(f.gzip_bytes or f.brotli_bytes for f in result.files)
    copies = [Column("gzip", number=True, spare=1), Column("brotli", number=True)] if packed else []
    columns = [Column("file"), Column("raw" if packed else "bytes", number=True), *copies]
    rows = [[name, *_weights(files)[: len(columns) - 1]] for name, files in _folded(result.files)]
    rows.append(["all", *_weights(result.files)[: len(columns) - 1]])
    console.table(f"{result.folder} ({result.target})", columns, rows)


def _folded(files: Sequence[FileSizes]) -> Iterator[tuple[str, list[FileSizes]]]:
    """Yield what is one line of the table: a file, or a folder at the top with all that lies in it."""
    for top, group in groupby(files, key=lambda one: one.path.partition("/")[0]):
        inside = list(group)
        if len(inside) == 1 or (top in _LISTED and len(inside) <= _MOST_LISTED):
            yield from ((one.path, [one]) for one in inside)
        else:
            yield f"{top}/ ({len(inside)} files)", inside


def _weights(files: Sequence[FileSizes]) -> list[str]:
    """Sum up bytes: raw, gzip, brotli. A file without a compressed copy is loaded as it is; "–": none has one."""
    raw = sum(one.raw_bytes for one in files)
    gzip = sum(one.gzip_bytes or one.raw_bytes for one in files) if any(one.gzip_bytes for one in files) else None
    brotli = sum(one.brotli_bytes or one.raw_bytes for one in files) if any(one.brotli_bytes for one in files) else None
    return [_bytes(raw), _bytes(gzip), _bytes(brotli)]


def print_runtimes(result: BuildResult) -> None:
    """Show what a visitor loads of each variant's runtime, beside the stock one, and what could not be cut."""
    if not result.runtimes:
        return
    columns = [Column("runtime (brotli)"), *(Column(n, number=True) for n in ("stock", "trimmed", "ratio"))]
    columns += [Column("functions kept", number=True), Column("same bits with", spare=1)]
    console.table("The runtime, cut to what the model needs", columns, [_runtime_row(one) for one in result.runtimes])
    for one in result.runtimes:
        kept = f"{one.reported:,} functions are kept for what devices missed" if one.reported else ""
        alone = one.functions and one.sources == ("profile",)
        margin = "told by its profile alone, so kept with a margin" if alone else ""
        for said in (one.reason and f"shipped as published: {one.reason}", one.note, margin, kept):
            if said:
                console.talk(console.visible(f"runtime {one.variant}: {said}"))


def _runtime_row(one: RuntimeSize) -> list[str]:
    if not one.functions:
        stock_bytes = _bytes(one.stock_brotli_bytes)
        return [one.variant, stock_bytes, stock_bytes, "1.00", "all", "as published"]
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
    if result.strength is not None:
        for line in words.strength(result.strength):
            console.talk(console.visible(line))
    for line in result.left_out:
        console.talk(console.visible(f"left out: {line}"))
    for warning in result.warnings:
        console.talk(console.visible(f"warning: {warning}"))


def _bytes(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"
