"""Convolutions and pools: ranks, kernels, padding of every kind, strides, dilations, groups, odd sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.fuzz.author import Generator, Graph
from edgekit.fuzz.draw import Draw

CHANNELS = (1, 2, 3, 4, 6, 8, 5, 7, 9, 12, 15, 16, 18, 21, 24, 33)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17)
_KERNELS = (1, 3, 2, 5, 0, 4)  # 0: as large as the input
_PADS = ("none", "same", "behind", "before", "one", "uneven", "SAME_UPPER", "SAME_LOWER", "VALID")
_OPSETS = (21, 13, 11)
_MOST_PRODUCTS = 400_000


def _window(draw: Draw, sizes: Sequence[int], *, dilates: bool = True) -> tuple[list[int], dict[str, object]]:
    """Draw a kernel and the attributes of how it moves over ``sizes``."""
    rank = len(sizes)
    kinds = draw.picks("kernel", rank, _KERNELS) if draw.flag("kernel uneven") else [
        draw.pick("kernel.0", _KERNELS)
    ] * rank  # fmt: skip
    kernel = [size if kind == 0 else kind for kind, size in zip(kinds, sizes, strict=True)]
    found: dict[str, object] = {}
    if draw.flag("strided"):
        found["strides"] = draw.picks("stride", rank, (2, 1, 3))
    kind = draw.pick("pads", _PADS)
    if dilates and draw.flag("dilated") and not kind.startswith("SAME_"):  # which the desktop refuses together
        found["dilations"] = draw.picks("dilation", rank, (2, 1, 3))
    if kind.isupper():
        found["auto_pad"] = kind
    elif kind != "none":
        found["pads"] = _pads(draw, kind, kernel)
    return kernel, found


def _pads(draw: Draw, kind: str, kernel: Sequence[int]) -> list[int]:
    rank = len(kernel)
    if kind == "same":
        return [(k - 1) // 2 for k in kernel] + [k // 2 for k in kernel]
    if kind == "behind":
        return [0] * rank + draw.picks("pad", rank, (1, 0, 2))
    if kind == "before":
        return draw.picks("pad", rank, (1, 0, 2)) + [0] * rank
    if kind == "one":
        return [1] * (2 * rank)
    return draw.picks("pad", 2 * rank, (1, 0, 2, 3))


def _grouped(draw: Draw) -> tuple[int, int, int]:
    """Draw channels in, channels out and groups that fit."""
    kind = draw.pick("group", ("one", "one ", "one  ", "depthwise", "some"))
    channels, outputs = draw.pick("channels", CHANNELS), draw.pick("outputs", CHANNELS)
    if kind == "depthwise":
        return channels, channels * draw.pick("multiplier", (1, 2, 3)), channels
    if kind == "some":
        groups = draw.pick("groups", (2, 3, 4))
        return channels * groups, outputs * groups, groups
    return channels, outputs, 1


def sizes_of(draw: Draw) -> list[int]:
    """Draw the sizes of the axes that a window moves over."""
    rank = draw.pick("rank", (2, 1, 2, 3))
    return draw.picks("size", rank, SIZES[: {1: 13, 2: 10}.get(rank, 5)])


def too_much(*factors: int | Sequence[int]) -> bool:
    """Whether a convolution of these channels, kernel and sizes takes a software GPU the time of many cases."""
    return math.prod(math.prod(each) if isinstance(each, Sequence) else each for each in factors) > _MOST_PRODUCTS


@dataclass(frozen=True)
class _Convolution:
    """``kernel``, ``sizes``: by axis. ``attributes``: the group, and how the kernel moves."""

    sizes: list[int]
    channels: int
    outputs: int
    groups: int
    kernel: list[int]
    attributes: dict[str, Any]

    @property
    def weights(self) -> list[int]:
        """The shape of its weights."""
        return [self.outputs, self.channels // self.groups, *self.kernel]

    @property
    def transposed_weights(self) -> list[int]:
        """The shape of its weights where it is a transposed one."""
        return [self.channels, self.outputs // self.groups, *self.kernel]


def _convolution(draw: Draw) -> _Convolution | None:
    """Draw the shape of a convolution; None where it would take too long."""
    sizes = sizes_of(draw)
    channels, outputs, groups = _grouped(draw)
    kernel, attributes = _window(draw, sizes)
    if too_much(channels // groups, outputs, kernel, sizes):
        return None
    return _Convolution(
        sizes, channels, outputs, groups, kernel, {"group": None if groups == 1 else groups, **attributes}
    )


def conv_node(draw: Draw, graph: Graph) -> str | None:
    """Add a Conv of drawn shape; returns its output, or None where it would take too long."""
    drawn = _convolution(draw)
    if drawn is None:
        return None
    x = graph.give("x", draw.numbers("x", [draw.pick("batch", (1, 2)), drawn.channels, *drawn.sizes]))
    w = graph.weight("w", draw.numbers("w", drawn.weights, low=-2, high=2))
    b = graph.weight("b", draw.numbers("b", [drawn.outputs])) if draw.flag("bias") else ""
    stated = drawn.kernel if draw.flag("kernel_shape stated") else None
    found: str = graph.node("Conv", [x, w, b], kernel_shape=stated, **drawn.attributes)
    return found


def _conv(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", _OPSETS))
    y = conv_node(draw, graph)
    return None if y is None else graph.case(y)


def _conv_transpose(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", _OPSETS))
    drawn = _convolution(draw)
    if drawn is None:
        return None
    if draw.flag("output_padding") and "strides" in drawn.attributes:
        drawn.attributes["output_padding"] = draw.picks("output_padding", len(drawn.sizes), (0, 1))
    x = graph.give("x", draw.numbers("x", [draw.pick("batch", (1, 2)), drawn.channels, *drawn.sizes]))
    w = graph.weight("w", draw.numbers("w", drawn.transposed_weights, low=-2, high=2))
    b = graph.weight("b", draw.numbers("b", [drawn.outputs])) if draw.flag("bias") else ""
    return graph.case(graph.node("ConvTranspose", [x, w, b], **drawn.attributes))


def _pool(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        opset = draw.pick("opset", (21, 19, 13, 11))
        graph = Graph(draw, opset)
        sizes = sizes_of(draw)
        dilates = op_type == "MaxPool" or opset >= 19
        kernel, attributes = _window(draw, sizes, dilates=dilates and op_type != "LpPool")
        if draw.flag("ceil_mode") and (op_type != "LpPool" or opset >= 18):
            attributes["ceil_mode"] = 1
        if op_type == "AveragePool" and draw.flag("count_include_pad"):
            attributes["count_include_pad"] = 1
        if op_type == "LpPool" and draw.flag("p"):
            attributes["p"] = draw.pick("p of", (1, 2, 3))
        x = graph.give("x", draw.numbers("x", [draw.pick("batch", (1, 2)), draw.pick("channels", CHANNELS), *sizes]))
        if op_type == "MaxPool" and draw.flag("indices"):
            return graph.case(*graph.node(op_type, [x], 2, kernel_shape=kernel, **attributes))
        return graph.case(graph.node(op_type, [x], kernel_shape=kernel, **attributes))

    return Generator(op_type, make, 4)


def _global_pool(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (21, 13)))
        shape = [draw.pick("batch", (1, 2)), draw.pick("channels", CHANNELS), *sizes_of(draw)]
        p = draw.pick("p", (None, 1, 3)) if op_type == "GlobalLpPool" else None
        return graph.case(graph.node(op_type, [graph.give("x", draw.numbers("x", shape))], p=p))

    return Generator(op_type, make, 2)


def _integer_conv(draw: Draw) -> Case | None:
    graph = Graph(draw)
    drawn = _convolution(draw)
    if drawn is None:
        return None
    kind, weights = draw.pick("dtype", ("uint8", "int8")), draw.pick("weights", ("uint8", "int8"))
    x = graph.give("x", draw.numbers("x", [1, drawn.channels, *drawn.sizes], kind, -20, 20))
    w = graph.weight("w", draw.numbers("w", drawn.weights, weights, -9, 9))
    zeros = [
        graph.hold(name, np.array(zero, dtype=of)) if draw.flag(f"{name} stated") else ""
        for name, zero, of in (("xz", 3, kind), ("wz", 2, weights))
    ]
    return graph.case(graph.node("ConvInteger", [x, w, *zeros], **drawn.attributes))


def _qlinear_conv(draw: Draw) -> Case | None:
    graph = Graph(draw)
    drawn = _convolution(draw)
    if drawn is None:
        return None
    kind, weights = draw.pick("dtype", ("uint8", "int8")), draw.pick("weights", ("int8", "uint8"))
    x = graph.give("x", draw.numbers("x", [1, drawn.channels, *drawn.sizes], kind, -20, 20))
    w = graph.hold("w", draw.numbers("w", drawn.weights, weights, -9, 9))
    one, scale = np.array(0.5, dtype=np.float32), np.full(drawn.outputs, 0.25, dtype=np.float32)
    b = graph.hold("b", draw.numbers("b", [drawn.outputs], "int32")) if draw.flag("bias") else ""
    by_channel = draw.flag("by channel")
    names = [
        x, graph.hold("xs", one), graph.hold("xz", np.array(3, dtype=kind)),
        w, graph.hold("ws", scale if by_channel else scale[0]),
        graph.hold("wz", np.zeros(drawn.outputs if by_channel else (), dtype=weights)),
        graph.hold("ys", np.array(4, dtype=np.float32)), graph.hold("yz", np.array(100, dtype=kind)), b,
    ]  # fmt: skip
    return graph.case(graph.node("QLinearConv", names, **drawn.attributes))


GENERATORS = (
    Generator("Conv", _conv, 12),
    Generator("ConvTranspose", _conv_transpose, 6),
    Generator("ConvInteger", _integer_conv, 2),
    Generator("QLinearConv", _qlinear_conv, 2),
    *(_pool(op_type) for op_type in ("MaxPool", "AveragePool", "LpPool")),
    *(_global_pool(op_type) for op_type in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
)
