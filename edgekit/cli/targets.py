"""``edgekit targets``: list the device targets, or show one."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from edgekit import console
from edgekit.cli.options import json_option, targets_dir_option
from edgekit.figures import figure
from edgekit.records.jsonable import jsonable
from edgekit.targets import load as targets


@click.group(invoke_without_command=True)
@targets_dir_option
@json_option
@click.pass_context
def command(ctx: click.Context, targets_dir: Path | None, as_json: bool) -> None:
    """List the device targets, or show one.

    \b
    Example:
      edgekit targets
      edgekit targets show webgpu
      edgekit targets show mine --targets-dir targets
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = {**(ctx.obj or {}), "targets_dir": targets_dir}
        return
    loaded = [targets.load(target_id, targets_dir) for target_id in targets.ids(targets_dir)]
    if as_json:
        console.data_json([jsonable(asdict(target)) for target in loaded])
        return
    console.table(
        "Device targets",
        [
            console.Column("target"),
            console.Column("kind"),
            console.Column("what it is"),
            console.Column("runtime"),
            console.Column("variants"),
        ],
        [[t.id, t.kind, t.title, t.runtime.package, " → ".join(t.runtime.variants)] for t in loaded],
    )


@command.command()
@click.argument("target_id", metavar="ID")
@targets_dir_option
@json_option
@click.pass_context
def show(ctx: click.Context, target_id: str, targets_dir: Path | None, as_json: bool) -> None:
    """Show everything that one target states, with what it inherits."""
    target = targets.load(target_id, targets_dir or ctx.obj.get("targets_dir"))
    document = jsonable(asdict(target))
    if as_json:
        console.data_json(document)
        return
    rows = [
        [f"{section}.{key}" if key else section, _said(item)]
        for section, value in document.items()
        for key, item in (value if isinstance(value, dict) else {"": value}).items()
    ]
    console.table(f"Target {target.id}", [console.Column("key"), console.Column("value")], rows)


def _said(item: Any) -> str:
    if isinstance(item, dict):
        return f"rel {figure(item['relative'], grouped=False)}, abs {figure(item['absolute'], grouped=False)}"
    return ", ".join(map(str, item)) if isinstance(item, list) else str(item)
