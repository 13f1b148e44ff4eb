"""Sampling and quantization: Resize and its relatives, and numbers of eight bits."""

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.fuzz.author import Generator, Graph
from edgekit.fuzz.draw import Draw
from edgekit.fuzz.families_dense import LENGTHS, shape_of

_COORDINATES = (None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
_NEAREST = (None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def _resize(draw: Draw) -> Case | None:
    opset = draw.pick("opset", (21, 19, 13, 11))
    graph = Graph(draw, opset)
    mode = draw.pick("mode", ("nearest", "linear", "cubic"))
    coordinates = draw.pick("coordinates", _COORDINATES[: 6 if opset >= 19 else 5])
    sizes = draw.picks("size", 2, (4, 1, 2, 3, 5, 7, 8))
    shape = [draw.pick("batch", (1, 2)), draw.pick("channels", (1, 2, 3, 4)), *sizes]
    x = graph.give("x", draw.numbers("x", shape))
    stated: dict[str, object] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        stated["nearest_mode"] = draw.pick("nearest_mode", _NEAREST)
    if mode == "cubic":
        stated["cubic_coeff_a"] = draw.pick("cubic_coeff_a", (None, -0.5))
        stated["exclude_outside"] = draw.pick("exclude_outside", (None, 1))
    if opset >= 19 and mode != "nearest":
        stated["antialias"] = draw.pick("antialias", (None, None, 1))
    roi = graph.hold("roi", np.zeros(0, dtype=np.float32)) if opset < 13 else ""
    if draw.flag("by sizes"):
        scales = graph.hold("scales", np.zeros(0, dtype=np.float32)) if opset < 13 else ""
        to = [*shape[:2], *draw.picks("to", 2, (8, 1, 2, 3, 4, 5, 7, 9))]
        return graph.case(graph.node("Resize", [x, roi, scales, graph.ints("sizes", to)], **stated))
    by = np.array([1, 1, *draw.picks("scale", 2, (2.0, 1.0, 0.5, 3.0, 1.5, 0.75))], dtype=np.float32)
    return graph.case(graph.node("Resize", [x, roi, graph.hold("scales", by)], **stated))


def _upsample(draw: Draw) -> Case | None:
    graph = Graph(draw, 9)
    x = graph.give("x", draw.numbers("x", [1, draw.pick("channels", (1, 2, 3)), *draw.picks("size", 2, LENGTHS[:7])]))
    scales = np.array([1, 1, *draw.picks("scale", 2, (2.0, 1.0, 3.0, 1.5))], dtype=np.float32)
    mode = draw.pick("mode", (None, "linear"))
    return graph.case(graph.node("Upsample", [x, graph.hold("scales", scales)], mode=mode))


def _grid_sample(draw: Draw) -> Case | None:
    new = draw.flag("new")
    graph = Graph(draw, 20 if new else 16)
    modes = ("linear", "nearest", "cubic") if new else ("bilinear", "nearest", "bicubic")
    batch = draw.pick("batch", (1, 2))
    x = graph.give(
        "x", draw.numbers("x", [batch, draw.pick("channels", (1, 2, 3)), *draw.picks("size", 2, LENGTHS[1:8])])
    )
    # Thirds are never halfway between two elements, where the nearest may be either.
    grid = draw.numbers("grid", [batch, *draw.picks("to", 2, (1, 2, 3, 5)), 2], low=-2, high=2) / 3
    stated = {
        "mode": draw.pick("mode", (None, *modes)),
        "padding_mode": draw.pick("padding_mode", (None, "border", "reflection")),
        "align_corners": draw.pick("align_corners", (None, 1)),
    }
    return graph.case(graph.node("GridSample", [x, graph.give("grid", grid.astype(np.float32))], **stated))


def _by_axis(draw: Draw, shape: list[int]) -> tuple[int | None, list[int]]:
    """Draw an axis of scales, or one scale for all."""
    if not draw.flag("by axis"):
        return None, []
    axis = draw.pick("axis", range(len(shape)))
    return axis, [shape[axis]]


def _quantize(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13)))
    shape, kind = shape_of(draw), draw.pick("dtype", ("uint8", "int8"))
    axis, per = _by_axis(draw, shape)
    # Halves over powers of two: what is a tie is one exactly, and the standard says how it is rounded.
    scale = np.where(draw.numbers("scale", per, "int32", 0, 1) > 0, 0.5, 0.25).astype(np.float32)
    x = graph.give("x", draw.numbers("x", shape, low=-20, high=20))
    zero = [graph.hold("z", draw.numbers("z", per, kind, 0, 9))] if draw.flag("zero stated") else []
    return graph.case(graph.node("QuantizeLinear", [x, graph.hold("s", scale), *zero], axis=axis))


def _dequantize(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13)))
    shape, kind = shape_of(draw), draw.pick("dtype", ("uint8", "int8", "int32"))
    axis, per = _by_axis(draw, shape)
    x = graph.weight("x", draw.numbers("x", shape, kind, -20, 20))
    if not draw.flag("x given"):
        graph = Graph(draw, draw.pick("opset", (21, 13)))
        x = graph.give("x", draw.numbers("x", shape, kind, -20, 20))
    scale = draw.numbers("scale", per, low=1, high=3)
    zero = [graph.hold("z", draw.numbers("z", per, kind, 0, 9))] if draw.flag("zero stated") and kind != "int32" else []
    return graph.case(graph.node("DequantizeLinear", [x, graph.hold("s", scale), *zero], axis=axis))


def _integer_matmul(draw: Draw) -> Case | None:
    graph = Graph(draw, 10)
    m, k, n = (draw.pick(name, LENGTHS[:12]) for name in "mkn")
    left, right = draw.pick("left", ("uint8", "int8")), draw.pick("right", ("uint8", "int8"))
    batch = draw.picks("batch", draw.pick("batches", (0, 1)), (2, 3))
    a = graph.give("a", draw.numbers("a", [*batch, m, k], left, -20, 20))
    b = graph.weight("b", draw.numbers("b", [k, n], right, -20, 20))
    zeros = [
        graph.hold(name, np.array(3, dtype=kind)) if draw.flag(f"{name} stated") else ""
        for name, kind in (("az", left), ("bz", right))
    ]
    return graph.case(graph.node("MatMulInteger", [a, b, *zeros]))


def _dynamic(draw: Draw) -> Case | None:
    graph = Graph(draw, 11)
    return graph.case(*graph.node("DynamicQuantizeLinear", [graph.give("x", draw.numbers("x", shape_of(draw)))], 3))


GENERATORS = (
    Generator("Resize", _resize, 6),
    Generator("Upsample", _upsample),
    Generator("GridSample", _grid_sample, 3),
    Generator("QuantizeLinear", _quantize, 2),
    Generator("DequantizeLinear", _dequantize, 2),
    Generator("MatMulInteger", _integer_matmul, 2),
    Generator("DynamicQuantizeLinear", _dynamic),
)
