"""What moves elements and computes nothing: slices, pads, transposes, parts, shapes, indices."""

import math

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.fuzz.author import Generator, Graph
from edgekit.fuzz.draw import Draw
from edgekit.fuzz.families_dense import LENGTHS, shape_of
from edgekit.records.tensors import Array

_KINDS = ("float32", "int32", "float32", "int64", "bool", "uint8")


def _array(draw: Draw, graph: Graph, shape: list[int], name: str = "x") -> str:
    return graph.give(name, draw.numbers(name, shape, draw.pick("dtype", _KINDS)))


def _slice(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 11, 10)))
    shape = shape_of(draw)
    x = _array(draw, graph, shape)
    axes = draw.some("axes", range(len(shape)), least=1)
    starts: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    for axis in axes:
        size = shape[axis]
        step = draw.pick(f"step.{axis}", (1, 2, 3, -1, -2))
        first = draw.pick(f"start.{axis}", (0, 1, size // 2, -1, -2, -size))
        last = draw.pick(f"end.{axis}", (2**31 - 1, size, -1, size - 1, size // 2 + 1, 1))
        if step < 0:
            first = draw.pick(f"start.{axis}", (size - 1, -1, size // 2, 2**31 - 1, size - 2, size))
            last = draw.pick(f"end.{axis}", (-(2**31), 0, -size - 1, -size, 1, 0))
        starts, ends, steps = [*starts, first], [*ends, last], [*steps, step]
    if draw.flag("negative axes"):
        axes = [axis - len(shape) for axis in axes]
    if draw.flag("turned"):
        axes, starts, ends, steps = axes[::-1], starts[::-1], ends[::-1], steps[::-1]
    kind = draw.pick("indices", ("int64", "int32"))
    names = [graph.ints(name, v, kind) for name, v in (("starts", starts), ("ends", ends), ("axes", axes))]
    if any(step != 1 for step in steps) or draw.flag("steps stated"):
        names.append(graph.ints("steps", steps, kind))
    return graph.case(graph.node("Slice", [x, *names]))


def _pad(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 11)))
    shape = shape_of(draw)
    dtype = draw.pick("dtype", _KINDS)
    mode = draw.pick("mode", (None, "edge", "reflect", "wrap", "constant"))
    most = (0, 1, 2, 3) if mode in ("reflect", "wrap") else (0, 1, 2, 5, -1)
    x = graph.give("x", draw.numbers("x", shape, dtype))
    pads = draw.picks("pad", 2 * len(shape), most)
    held = [graph.ints("pads", pads)]
    if mode in (None, "constant") and draw.flag("value"):
        held.append(graph.hold("value", draw.numbers("value", [], dtype, 1, 3)))
    return graph.case(graph.node("Pad", [x, *held], mode=mode))


def _transpose(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 9)))
    shape = shape_of(draw, ranks=(2, 3, 4, 5, 6, 1))
    perm = None if draw.flag("perm left out") else draw.order("perm", len(shape))
    return graph.case(graph.node("Transpose", [_array(draw, graph, shape)], perm=perm))


def _concat(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 11)))
    shape, dtype = shape_of(draw), draw.pick("dtype", _KINDS)
    axis = draw.pick("axis", range(len(shape)))
    names = []
    for place in range(draw.pick("count", (2, 3, 1, 4, 5, 9))):
        part = [*shape[:axis], draw.pick(f"part.{place}", (1, 2, 3, 4, 5)), *shape[axis + 1 :]]
        array = draw.numbers(f"x{place}", part, dtype)
        names.append(graph.weight(f"x{place}", array) if place else graph.give("x0", array))
    return graph.case(graph.node("Concat", names, axis=axis - len(shape) * draw.flag("negative")))


def _split(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 18, 13)))
    shape = shape_of(draw)
    axis = draw.pick("axis", range(len(shape)))
    parts = draw.picks("part", draw.pick("count", (2, 1, 3, 4, 6)), (1, 2, 3, 4))
    shape[axis] = sum(parts)
    x = _array(draw, graph, shape)
    equal = len(set(parts)) == 1 and draw.flag("equal") and draw.pick("opset", (21, 18, 13)) >= 18
    stated = {"num_outputs": len(parts)} if equal else {}
    held = [] if equal else [graph.ints("split", parts)]
    return graph.case(
        *graph.node("Split", [x, *held], len(parts), axis=axis - len(shape) * draw.flag("negative"), **stated)
    )


def _reshaped(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (21, 14, 13)))
        shape = shape_of(draw)
        x = _array(draw, graph, shape)
        if op_type == "Flatten":
            return graph.case(
                graph.node("Flatten", [x], axis=draw.pick("axis", (None, *range(-len(shape), len(shape)))))
            )
        if op_type == "Reshape":
            to = list(draw.pick("to", ([-1], [1, -1], shape[::-1], [0, -1], [-1, shape[-1]], [*shape, 1])))
            return graph.case(graph.node("Reshape", [x, graph.ints("to", to)]))
        if op_type == "Unsqueeze":
            axes = draw.some("axes", range(len(shape) + 1), least=1)
            rank = len(shape) + len(axes)
            axes = [axis - rank for axis in axes] if draw.flag("negative") else axes
            return graph.case(graph.node("Unsqueeze", [x, graph.ints("axes", axes)]))
        ones = draw.some("ones", range(len(shape)), least=1)
        x = _array(draw, graph, [1 if axis in ones else size for axis, size in enumerate(shape)])
        axes = [axis - len(shape) for axis in ones] if draw.flag("negative") else ones
        return graph.case(graph.node("Squeeze", [x, graph.ints("axes", axes)]))

    return Generator(op_type, make)


def _repeated(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, 13)
        shape = shape_of(draw, ranks=(2, 1, 3, 4))
        if op_type == "Tile":
            x = _array(draw, graph, shape)
            return graph.case(graph.node("Tile", [x, graph.ints("n", draw.picks("n", len(shape), (1, 2, 3)))]))
        small = [1 if draw.flag(f"one.{axis}") else size for axis, size in enumerate(shape)]
        small = small[draw.pick("shorter", (0, 1)) :]
        to = [2, *shape] if draw.flag("longer") else shape
        return graph.case(graph.node("Expand", [_array(draw, graph, small), graph.ints("to", to)]))

    return Generator(op_type, make, 2)


def _blocks(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (13, 11)))
        block, channels = draw.pick("block", (2, 1, 3)), draw.pick("channels", (1, 2, 3, 4))
        height, width = draw.picks("size", 2, LENGTHS[:7])
        batch = draw.pick("batch", (1, 2))
        if op_type == "DepthToSpace":
            x = graph.give("x", draw.numbers("x", [batch, channels * block * block, height, width]))
            return graph.case(graph.node(op_type, [x], blocksize=block, mode=draw.pick("mode", (None, "CRD", "DCR"))))
        x = graph.give("x", draw.numbers("x", [batch, channels, height * block, width * block]))
        return graph.case(graph.node(op_type, [x], blocksize=block))

    return Generator(op_type, make, 2)


def _indices(draw: Draw, shape: list[int], size: int, name: str = "i") -> Array:
    """Draw indices into an axis of ``size``, some of them negative where the draw says so."""
    found = draw.numbers(name, shape, "int64", 0, 1_000) % size
    return np.where(found % 2, found - size, found) if draw.flag("negative indices") else found


def _gather(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 11)))
    shape = shape_of(draw)
    axis = draw.pick("axis", range(len(shape)))
    at = _indices(draw, draw.pick("to", ([2], [], [1], [2, 3], [5], [1, 2, 2])), shape[axis])
    x, i = _array(draw, graph, shape), graph.weight("i", at.astype(draw.pick("indices", ("int64", "int32"))))
    return graph.case(graph.node("Gather", [x, i], axis=axis - len(shape) * draw.flag("negative")))


def _elements(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (18, 16, 13)))
        shape = shape_of(draw, ranks=(2, 1, 3, 4))
        axis = draw.pick("axis", range(len(shape)))
        count = [max(1, size - draw.pick(f"less.{at}", (0, 1))) for at, size in enumerate(shape)]
        stated = {"axis": axis - len(shape) * draw.flag("negative")}
        if op_type == "GatherElements":
            i = graph.weight("i", _indices(draw, count, shape[axis]))
            return graph.case(graph.node(op_type, [_array(draw, graph, shape), i], **stated))
        dtype = draw.pick("dtype", ("float32", "int32"))
        reduction = draw.pick("reduction", (None, "add", "mul", "max", "min"))
        if reduction is None:  # each place once: the order of others is not defined
            count[axis] = min(count[axis], shape[axis])
            at = np.broadcast_to(
                np.arange(count[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))]), count
            )
        else:
            at = _indices(draw, count, shape[axis])
        names = [graph.give("x", draw.numbers("x", shape, dtype)), graph.weight("i", at.astype(np.int64)),
                 graph.give("u", draw.numbers("u", count, dtype, -2, 2))]  # fmt: skip
        return graph.case(graph.node(op_type, names, reduction=reduction, **stated))

    return Generator(op_type, make, 2)


def _nd(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (18, 16, 13)))
        shape = shape_of(draw, ranks=(2, 1, 3, 4))
        depth = draw.pick("depth", range(1, len(shape) + 1))
        many = math.prod(shape[:depth])
        count = min(many, draw.pick("count", (1, 2, 3, 5)))
        reduction = draw.pick("reduction", (None, "add", "mul", "max")) if op_type == "ScatterND" else None
        places = np.arange(count) if reduction is None else draw.numbers("i", [count], "int64", 0, 1_000) % many
        at = np.stack(np.unravel_index(places[::-1], shape[:depth]), axis=-1).astype(np.int64)
        if op_type == "GatherND":
            return graph.case(graph.node(op_type, [_array(draw, graph, shape), graph.weight("i", at)]))
        dtype = draw.pick("dtype", ("float32", "int32"))
        names = [graph.give("x", draw.numbers("x", shape, dtype)), graph.weight("i", at),
                 graph.give("u", draw.numbers("u", [count, *shape[depth:]], dtype, -2, 2))]  # fmt: skip
        return graph.case(graph.node(op_type, names, reduction=reduction))

    return Generator(op_type, make, 2)


def _one_hot(draw: Draw) -> Case | None:
    graph = Graph(draw, 11)
    depth = draw.pick("depth", (2, 3, 5, 8))
    shape = shape_of(draw, ranks=(1, 2, 3))
    i = graph.give("i", _indices(draw, shape, depth).astype(draw.pick("indices", ("int64", "int32"))))
    held = [graph.hold("depth", np.array(depth)), graph.hold("values", draw.numbers("values", [2]))]
    return graph.case(graph.node("OneHot", [i, *held], axis=draw.pick("axis", (None, *range(len(shape) + 1)))))


def _top_k(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 11)))
    shape = shape_of(draw)
    axis = draw.pick("axis", range(len(shape)))
    order = draw.numbers("x", shape).ravel().argsort(kind="stable")  # no two alike: ties may come in any order
    x = graph.give("x", order.astype(np.float32).reshape(shape))
    k = graph.ints("k", [min(shape[axis], draw.pick("k", (1, 2, 3, 64)))])
    return graph.case(*graph.node("TopK", [x, k], 2, axis=axis, largest=draw.pick("largest", (None, 0))))


def _trilu(draw: Draw) -> Case | None:
    graph = Graph(draw, 14)
    x = _array(draw, graph, shape_of(draw, ranks=(2, 3, 4)))
    held = [graph.hold("k", np.array(draw.pick("k", (0, 1, -1, 3))))] if draw.flag("k stated") else []
    return graph.case(graph.node("Trilu", [x, *held], upper=draw.pick("upper", (None, 0))))


GENERATORS = (
    Generator("Slice", _slice, 5),
    Generator("Pad", _pad, 5),
    Generator("Transpose", _transpose, 4),
    Generator("Concat", _concat, 3),
    Generator("Split", _split, 3),
    *(_reshaped(name) for name in ("Reshape", "Flatten", "Squeeze", "Unsqueeze")),
    *(_repeated(name) for name in ("Expand", "Tile")),
    *(_blocks(name) for name in ("DepthToSpace", "SpaceToDepth")),
    Generator("Gather", _gather, 3),
    *(_elements(name) for name in ("GatherElements", "ScatterElements")),
    *(_nd(name) for name in ("GatherND", "ScatterND")),
    Generator("OneHot", _one_hot),
    Generator("TopK", _top_k),
    Generator("Trilu", _trilu),
)
