"""Options that read the same in every command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Write JSON to stdout, and nothing else."
)


def targets_dir_option(function: F) -> F:
    """``--targets-dir``: a folder of the user's own target files."""
    decorate = click.option(
        "--targets-dir",
        type=click.Path(path_type=Path),
        help="Read target files from this folder instead of edgekit's own.",
    )
    return decorate(function)
