"""``edgekit runtime``: show what is cached of the pinned onnxruntime-web, fetch it, or measure a build."""

from dataclasses import asdict
from pathlib import Path

import click

from edgekit import console
from edgekit.bundle import compress
from edgekit.bundle.destination import check_takes_files
from edgekit.cli.options import json_option, list_option
from edgekit.records.jsonable import jsonable
from edgekit.runtime import cache
from edgekit.runtime import fetch as fetching
from edgekit.runtime.cache import CachedRuntime


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show or fetch the pinned onnxruntime-web, or measure what a build's functions are for.

    \b
    Example:
      edgekit runtime
      edgekit runtime fetch
    """
    if ctx.invoked_subcommand is None:
        _show(cache.look(), as_json)


@command.command()
@json_option
def fetch(as_json: bool) -> None:
    """Get it into the cache now, and compress it, so that no later command needs the network or has to wait.

    \b
    Example:
      edgekit runtime fetch
    """
    with console.progress() as progress:
        dist = fetching.fetch(progress=progress)
        fetching.optimizer(progress=progress)
        compress.prepare([dist.folder / name for name in dist.files], progress=progress)
    _show(cache.look(), as_json)


@command.command()
@click.option("--runtime", "runtime_dir", type=click.Path(path_type=Path), metavar="DIR",
              help="Measure the onnxruntime-web in this dist folder. Default: the pinned build.")  # fmt: skip
@list_option("--variant", "variants", item=click.STRING, metavar="ID[,ID]",
             help="Measure these variants only. Default: every variant that the folder holds.")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), metavar="FILE", help="The Chromium to use.")
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="DIR",
              help="Where to write profiles. Default: edgekit's cache, where 'edgekit build' finds them.")  # fmt: skip
@json_option
def profile(
    runtime_dir: Path | None,
    variants: tuple[str, ...],
    browser_path: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure which functions of a runtime each operator needs, so that 'edgekit build' can cut it.

    edgekit comes with the profiles of the pinned build. Another version of onnxruntime-web, or a build of your own,
    needs its own: thousands of small models run on a recording build of it in Chromium, some minutes a variant.

    \b
    Example:
      edgekit runtime profile --runtime node_modules/onnxruntime-web/dist --variant wasm
    """
    from edgekit import runtime_profile  # takes seconds to import, and the other commands do not need it

    if output is not None:
        check_takes_files(output)
    with console.progress() as progress:
        measured = runtime_profile.write(runtime_dir, variants, output, browser_path=browser_path, progress=progress)
    if as_json:
        console.data_json(jsonable([asdict(one) | {"path": str(one.path)} for one in measured]))
        return
    numbers = ("functions", "start-up", "operators", "bytes")
    console.table(
        "Profiles",
        [console.Column("variant"), *(console.Column(name, number=True) for name in numbers), console.Column("file")],
        [
            [one.variant, f"{one.functions:,}", f"{one.start:,}", f"{one.operators:,}", f"{one.bytes:,}", str(one.path)]
            for one in measured
        ],
    )


def _show(cached: CachedRuntime, as_json: bool) -> None:
    if as_json:
        document = asdict(cached) | {"folder": str(cached.folder), "verified": cached.verified}
        console.data_json(jsonable(document))
        return
    console.table(
        f"{cached.package} {cached.version} in {cached.folder}",
        [
            console.Column("file"),
            console.Column("bytes", number=True),
            console.Column("sha256", spare=1),
            console.Column("cache"),
        ],
        [[file.name, f"{file.bytes:,}", file.sha256, file.state] for file in cached.files],
    )
    if not cached.verified:
        reason = "Nothing is cached yet." if cached.empty else "Some files are missing or changed."
        console.talk(f"{reason} 'edgekit runtime fetch' gets it; 'edgekit build' does so when it needs it.")
