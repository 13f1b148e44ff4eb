"""The options of commands that make golden cases. Apart from ``options``: what they need takes long to import."""

import math
from typing import Any, get_args

import click

from edgekit.cli import options
from edgekit.cli.options import F
from edgekit.golden.images import ImageOptions, Layout
from edgekit.golden.make import CaseOptions


class ImageSize(click.ParamType[tuple[int, int]]):
    """``224x320``: height and width in pixels."""

    name = "HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        height, _, width = str(value).lower().partition("x")
        if not (height.isdigit() and width.isdigit() and 0 < int(height) <= 16384 and 0 < int(width) <= 16384):
            self.fail(f"'{value}' is not HEIGHTxWIDTH in pixels, such as 224x224.", param, ctx)
        return int(height), int(width)


class Numbers(click.ParamType[tuple[float, ...]]):
    """``0.485,0.456,0.406``: numbers with commas between them."""

    name = "N[,N...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            numbers = ()
        if not numbers or not all(map(math.isfinite, numbers)):
            self.fail(f"'{value}' is not a list of numbers with commas, such as 0.485,0.456,0.406.", param, ctx)
        return numbers


_OPTIONS = (
    click.option("--image-size", type=ImageSize(), metavar="HxW", help="Resize pictures. Default: the model's."),
    click.option("--image-scale", type=options.Finite(), default=1 / 255, show_default="1/255",
                 help="Multiply pixels (0 to 255)."),
    click.option("--image-mean", type=Numbers(), default=(0.0,), show_default="0",
                 help="Then subtract: one number, or one a channel."),
    click.option("--image-std", type=Numbers(), default=(1.0,), show_default="1",
                 help="Then divide: one number, or one a channel."),
    click.option("--image-layout", type=click.Choice(get_args(Layout)), help="Default: read off the model's shape."),
    click.option("--feed-back", "feed_back", multiple=True, type=options.Link(), metavar="OUTPUT=INPUT",
                 help="Give an output back as an input, in a loop of --steps runs. Repeatable."),
    click.option("--steps", type=click.IntRange(1, 1000), default=4, show_default=True,
                 help="How many runs a --feed-back loop has."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
                 help="The seed of the generated cases."),
)  # fmt: skip


def case_options(function: F) -> F:
    """``--image-size`` and its kin (how pictures become inputs), ``--feed-back``, ``--steps`` and ``--seed``."""
    for decorate in reversed(_OPTIONS):
        function = decorate(function)
    return function


def cases(values: dict[str, Any]) -> CaseOptions:
    """Return what ``case_options`` and ``--sample`` were given."""
    return CaseOptions(
        samples=values["samples"],
        image=ImageOptions(
            size=values["image_size"],
            mean=values["image_mean"],
            std=values["image_std"],
            scale=values["image_scale"],
            layout=values["image_layout"],
        ),
        feed_back=options.unique(values["feed_back"], "--feed-back"),
        steps=values["steps"],
        seed=values["seed"],
    )
