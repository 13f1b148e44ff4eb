"""Options that read the same in every command, and the types of their values."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from edgekit.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")


class Dim(click.ParamType[tuple[str, int]]):
    """``batch=1``: a symbolic dimension and its size."""

    name = "NAME=N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        name, _, size = str(value).rpartition("=")
        if not name or not size.isdigit() or not 0 < int(size) < 2**31:
            self.fail(f"'{value}' is not NAME=N with N of 1 or more, such as batch=1.", param, ctx)
        return name, int(size)


class Link(click.ParamType[tuple[str, str]]):
    """``stateN=state``: an output, and the input that it is given back as."""

    name = "OUTPUT=INPUT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        output, _, input_name = str(value).rpartition("=")
        if not output or not input_name:
            self.fail(f"'{value}' is not OUTPUT=INPUT, such as stateN=state.", param, ctx)
        return output, input_name


class OutputTolerance(click.ParamType[tuple[str, float, float]]):
    """``scores=1e-3`` or ``scores=1e-3,1e-6``: an output, its relative tolerance and, if given, its absolute one."""

    name = "OUTPUT=REL[,ABS]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float, float]:
        name, _, numbers = str(value).rpartition("=")
        try:
            parts = [float(part) for part in numbers.split(",")]
        except ValueError:
            parts = []
        if not name or len(parts) not in (1, 2) or not all(0 <= part < float("inf") for part in parts):
            self.fail(f"'{value}' is not OUTPUT=RELATIVE or OUTPUT=RELATIVE,ABSOLUTE, such as scores=1e-3.", param, ctx)
        return name, parts[0], parts[1] if len(parts) == 2 else 0.0


class Finite(click.types.FloatParamType):
    """A number; never NaN, which click lets pass every range, nor an infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class FiniteRange(click.FloatRange, Finite):
    """A finite number of a range."""


class Listed(click.ParamType[tuple[Any, ...]]):
    """``chromium,firefox``: one or more values of another type with commas between them."""

    def __init__(self, item: click.ParamType[Any], metavar: str) -> None:
        self.item = item
        self.name = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        parts = [part.strip() for part in str(value).split(",")]
        if len(parts) > 1 and not all(parts):
            self.fail(f"'{value}' has an empty part between its commas.", param, ctx)
        return tuple(dict.fromkeys(self.item.convert(part, param, ctx) for part in parts))


def list_option(*declarations: str, item: click.ParamType[Any], metavar: str, **attributes: Any) -> Callable[[F], F]:
    """An option of several values: ``--variant a,b`` and ``--variant a --variant b`` are the same tuple, each once."""

    def together(ctx: click.Context, param: click.Parameter, lists: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(value for each in lists for value in each))

    return click.option(*declarations, multiple=True, type=Listed(item, metavar), callback=together, **attributes)


def single_option(*declarations: str, default: str | None = None, **attributes: Any) -> Callable[[F], F]:
    """An option of one value where other commands take several: a second value is an error, not the one that counts."""

    def only(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:
        if len(set(values)) > 1:
            raise UsageError(
                f"{declarations[0]} is given {len(values)} times: {', '.join(map(str, values))}.",
                hint=f"'edgekit {ctx.info_name}' takes one. Run it once for each.",
            )
        return values[0] if values else None

    stated: dict[str, Any] = {} if default is None else {"default": [default], "show_default": True}
    return click.option(*declarations, multiple=True, callback=only, **stated, **attributes)


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


def tolerance_option(function: F) -> F:
    """``--tolerance``: what one output may be off by."""
    decorate = click.option(
        "--tolerance",
        "tolerances",
        multiple=True,
        type=OutputTolerance(),
        metavar="OUTPUT=REL[,ABS]",
        help="Let an output be off by REL times its largest magnitude, plus ABS. Default: the target's, by dtype.",
    )
    return decorate(function)


def unique(pairs: Iterable[tuple[str, V]], option: str) -> dict[str, V]:
    """Turn repeated NAME=VALUE options into a dictionary. Raises UsageError when a name is given two values."""
    found: dict[str, V] = {}
    for name, value in pairs:
        if found.get(name, value) != value:
            raise UsageError(
                f"{option}: '{name}' is given two values, {found[name]} and {value}.", hint="Give it once."
            )
        found[name] = value
    return found
