"""Options of ``edgekit build`` that only some kinds of target have, and what only their bundles show."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from edgekit import console
from edgekit.apk.keys import PASSWORD_VARIABLE
from edgekit.cli.options import F
from edgekit.console import Column
from edgekit.errors import UsageError
from edgekit.kinds.config import AndroidOptions, LinuxOptions
from edgekit.pipeline import BuildResult
from edgekit.targets import load as targets
from edgekit.targets.options import ANDROID, LINUX, WEB

# By parameter: the option, and the kinds of target that it is for. What is not here is for all of them.
_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "no_trim_runtime": ("--no-trim-runtime", (WEB,)),
    "net": ("--net", (WEB,)),
    "profiles": ("--add-profile", (WEB,)),
    "browser_path": ("--browser-path", (WEB,)),
    "runtime": ("--runtime", (WEB,)),
    "layout": ("--layout", (WEB,)),
    "cpu_nodes": ("--cpu-node", (WEB,)),
    "repair": ("--repair", (WEB,)),
    "deb": ("--deb", (LINUX,)),
    "deb_version": ("--deb-version", (LINUX,)),
    "apk": ("--apk", (ANDROID, WEB)),
    "native": ("--native", (ANDROID,)),
    "application_id": ("--app-id", (ANDROID, WEB)),
    "keystore": ("--keystore", (ANDROID, WEB)),
    "password_file": ("--keystore-password-file", (ANDROID, WEB)),
    "alias": ("--keystore-alias", (ANDROID, WEB)),
}

_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--deb", is_flag=True, help="Linux: write a Debian package beside the bundle, with Debian's tools."),
    click.option("--deb-version", default="1", show_default=True, metavar="VERSION",
                 help="Linux: the version of the Debian package."),
    click.option("--apk", is_flag=True, help="Write an Android app beside the bundle: the page in a WebView, without a "
                 "network, made without the Android SDK."),
    click.option("--native", is_flag=True, help="With --apk: have Gradle and the Android SDK build the project's app."),
    click.option("--app-id", "application_id", metavar="ID", help="The Android app's id. Default: from the title."),
    click.option("--keystore", type=click.Path(path_type=Path), metavar="FILE",
                 help=f"Sign the app with the key in this keystore, whose password is in {PASSWORD_VARIABLE}. Default: "
                 "a debug key, made once."),
    click.option("--keystore-password-file", "password_file", type=click.Path(path_type=Path), metavar="FILE",
                 help="Read the keystore's password from the one line of this file."),
    click.option("--keystore-alias", "alias", metavar="NAME", help="Which key of the keystore. Default: the only one."),
)  # fmt: skip


def kind_options(function: F) -> F:
    """Options of single kinds of target."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function


def check(ctx: click.Context, values: dict[str, Any]) -> None:
    """Raise UsageError for an option that was given and is not for the target's kind."""
    target = targets.load(values["target"], values["targets_dir"])
    # An app that shows a page is built like the page.
    built = WEB if target.kind == ANDROID and values["apk"] and not values["native"] else target.kind
    for name, (option, kinds) in _KINDS.items():
        if not {target.kind, built} & set(kinds) and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(
                f"{option} is for targets of kind {' or '.join(kinds)}; '{target.id}' is of kind '{target.kind}'.",
                hint="Leave it out.",
            )


def linux(values: dict[str, Any]) -> LinuxOptions:
    """Return what was asked of a build for Linux."""
    return LinuxOptions(values["deb"], values["deb_version"])


def android(values: dict[str, Any]) -> AndroidOptions:
    """Return what was asked of a build for Android. Raises UsageError for options that need another."""
    options = AndroidOptions(**{f.name: values[f.name] for f in fields(AndroidOptions)})
    if options.native and not options.apk:
        raise UsageError("--native belongs to --apk.", hint="Give both: --apk --native.")
    if options.keystore is not None and (not options.apk or options.native):
        raise UsageError(
            "--keystore signs what --apk writes.",
            hint="Give --apk, too." if not options.apk else "Gradle signs its own: see app/build.gradle.kts.",
        )
    if options.keystore is None and (options.password_file is not None or options.alias is not None):
        raise UsageError("--keystore-password-file and --keystore-alias belong to --keystore.", hint="Name it.")
    return options


def print_sizes(result: BuildResult) -> None:
    """Show what model, runtime and code weigh, beside the official packages, where the bundle's kind tells."""
    if not result.sizes:
        return
    columns = [
        Column("what"),
        *(Column(n, number=True) for n in ("bytes", "packed", "official")),
        Column("remark", optional=True),
    ]
    rows = [
        [row.name, _bytes(row.raw_bytes), _bytes(row.packed_bytes), _bytes(row.official_bytes), row.note]
        for row in result.sizes
    ]
    console.table("What the device gets", columns, rows)


def _bytes(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"
