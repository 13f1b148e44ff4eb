"""``edgekit runtime``: show what is cached of the pinned onnxruntime-web, or fetch it."""

from dataclasses import asdict

import click

from edgekit import console
from edgekit.bundle import compress
from edgekit.cli.options import json_option
from edgekit.records.jsonable import jsonable
from edgekit.runtime import cache
from edgekit.runtime import fetch as fetching
from edgekit.runtime.cache import CachedRuntime


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show or fetch the pinned onnxruntime-web.

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
        compress.prepare([dist.folder / name for name in dist.files], progress=progress)
    _show(cache.look(), as_json)


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
