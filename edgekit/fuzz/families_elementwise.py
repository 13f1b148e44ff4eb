"""Element by element: one input with its attributes, two and more that are broadcast, comparisons, casts."""

from collections.abc import Sequence

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.conformance.schemas import DTYPES
from edgekit.fuzz.author import Generator, Graph
from edgekit.fuzz.draw import Draw
from edgekit.fuzz.families_dense import shape_of
from edgekit.records.tensors import NUMPY_DTYPES

# Operators of one input: the range of numbers on which they are defined and far from what float32 cannot hold.
_UNARY: dict[str, tuple[int, int]] = {
    "Abs": (-4, 4), "Neg": (-4, 4), "Floor": (-4, 4), "Ceil": (-4, 4), "Round": (-4, 4), "Sign": (-4, 4),
    "Sqrt": (0, 9), "Exp": (-3, 3), "Log": (1, 9), "Erf": (-3, 3), "Reciprocal": (1, 8), "Sigmoid": (-4, 4),
    "Tanh": (-4, 4), "Softplus": (-4, 4), "Softsign": (-4, 4), "Relu": (-4, 4), "Mish": (-4, 4), "Identity": (-4, 4),
    "HardSwish": (-4, 4), "Sin": (-3, 3), "Cos": (-3, 3), "Tan": (-1, 1), "Asin": (-1, 1), "Acos": (-1, 1),
    "Atan": (-4, 4), "Sinh": (-3, 3), "Cosh": (-3, 3), "Asinh": (-4, 4), "Acosh": (1, 9), "IsNaN": (-4, 4),
    "IsInf": (-4, 4), "Not": (0, 1), "BitwiseNot": (-9, 9),
}  # fmt: skip
_WITH_NUMBERS: dict[str, tuple[str, ...]] = {
    "Elu": ("alpha",), "Selu": ("alpha", "gamma"), "LeakyRelu": ("alpha",), "ThresholdedRelu": ("alpha",),
    "Celu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Shrink": ("lambd", "bias"), "Swish": ("alpha",),
}  # fmt: skip
_BINARY: dict[str, tuple[str, ...]] = {
    "Add": ("float32", "int32"), "Sub": ("float32", "int32"), "Mul": ("float32", "int32"),
    "Div": ("float32", "int32"), "Pow": ("float32", "int32"), "Mod": ("float32", "int32", "int64"),
    "PRelu": ("float32",), "And": ("bool",), "Or": ("bool",), "Xor": ("bool",),
    "Equal": ("float32", "int32", "bool", "int64"), "Greater": ("float32", "int32", "int64"),
    "Less": ("float32", "int32", "int64"), "GreaterOrEqual": ("float32", "int32"),
    "LessOrEqual": ("float32", "int32"), "BitwiseAnd": ("int32", "uint8"), "BitwiseOr": ("int32", "uint8"),
    "BitwiseXor": ("int32", "uint8"), "BitShift": ("uint32", "uint8"),
}  # fmt: skip
_VARIADIC = ("Max", "Min", "Sum", "Mean")
_CASTS = ("float32", "int32", "bool", "uint8", "int8", "int64", "uint32", "float16", "float64", "int16")


def _unary(op_type: str) -> Generator:
    low, high = _UNARY[op_type]
    dtype = {"Not": "bool", "BitwiseNot": "int32"}.get(op_type, "float32")
    also = ("int32", "int64") if op_type in ("Abs", "Neg", "Sign", "Identity") else ()

    def make(draw: Draw) -> Case | None:
        newest = 22 if op_type in ("Mish", "HardSwish") else 21
        graph = Graph(draw, draw.pick("opset", (newest, 20) if op_type in ("IsNaN", "IsInf") else (newest, 18)))
        chosen = draw.pick("dtype", (dtype, *also))
        array = draw.numbers("x", shape_of(draw), chosen, low, high)
        if op_type in ("IsNaN", "IsInf") and array.size:
            array.ravel()[:: draw.pick("every", (2, 3))] = np.nan if op_type == "IsNaN" else np.inf
        return graph.case(graph.node(op_type, [graph.give("x", array)]))

    return Generator(op_type, make)


def _with_numbers(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, 24 if op_type == "Swish" else 16)
        stated = {name: draw.pick(name, (None, 0.5, 0.25, 2.0)) for name in _WITH_NUMBERS[op_type]}
        return graph.case(graph.node(op_type, [graph.give("x", draw.numbers("x", shape_of(draw)))], **stated))

    return Generator(op_type, make)


def broadcast(draw: Draw, name: str, shape: Sequence[int]) -> list[int]:
    """Draw a shape that is broadcast to ``shape``."""
    kind = draw.pick(f"{name} like", ("same", "last", "one", "some ones", "shorter", "scalar", "first"))
    if kind == "last":
        return list(shape[-1:])
    if kind == "one":
        return [1]
    if kind == "scalar":
        return []
    if kind == "shorter":
        return list(shape[1:])
    if kind == "first":
        return [*shape[:1], *[1] * (len(shape) - 1)]
    if kind == "some ones":
        return [1 if draw.flag(f"{name} one.{axis}") else size for axis, size in enumerate(shape)]
    return list(shape)


def _binary(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (21, 18)))
        dtype, shape = draw.pick("dtype", _BINARY[op_type]), shape_of(draw)
        low, high = (1, 3) if op_type in ("Div", "Pow", "Mod", "BitShift") else (-4, 4)
        stated: dict[str, object] = {}
        if op_type == "Mod":
            stated["fmod"] = 1 if dtype == "float32" or draw.flag("fmod") else None
        if op_type == "BitShift":
            stated["direction"] = draw.pick("direction", ("LEFT", "RIGHT"))
        first = draw.numbers("a", shape, dtype, low if op_type in ("Pow", "BitShift") else -4, high)
        second = draw.numbers("b", broadcast(draw, "b", shape), dtype, low, high)
        names = [graph.give("a", first), graph.weight("b", second)]
        if op_type != "PRelu" and draw.flag("turned"):
            names = names[::-1]
            if op_type in ("Div", "Pow", "Mod") and not np.all(first):
                return None
        return graph.case(graph.node(op_type, names, **stated))

    return Generator(op_type, make, 2)


def _variadic(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, draw.pick("opset", (21, 12)))
        shape = shape_of(draw)
        kinds = ("float32", "int32", "int64") if op_type in ("Max", "Min") else ("float32",)
        dtype = draw.pick("dtype", kinds)
        names = [graph.give("x0", draw.numbers("x0", shape, dtype))]
        shapes = {f"x{n}": broadcast(draw, f"x{n}", shape) for n in range(1, draw.pick("count", (2, 1, 3, 4)))}
        names += [graph.weight(name, draw.numbers(name, of, dtype)) for name, of in shapes.items()]
        return graph.case(graph.node(op_type, names))

    return Generator(op_type, make)


def _where(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 9)))
    shape, dtype = shape_of(draw), draw.pick("dtype", ("float32", "int32", "bool", "int64"))
    c = graph.give("c", draw.numbers("c", broadcast(draw, "c", shape), "bool"))
    a = graph.give("a", draw.numbers("a", broadcast(draw, "a", shape), dtype))
    return graph.case(graph.node("Where", [c, a, graph.weight("b", draw.numbers("b", shape, dtype))]))


def _clip(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 12, 11)))
    dtype = draw.pick("dtype", ("float32", "int32"))
    kind = NUMPY_DTYPES[dtype]
    x = graph.give("x", draw.numbers("x", shape_of(draw), dtype))
    low = graph.weight("low", np.array(-1, dtype=kind)) if draw.flag("least") else ""
    high = graph.weight("high", np.array(draw.pick("high", (2, -2)), dtype=kind)) if draw.flag("most") else ""
    return graph.case(graph.node("Clip", [x, low, high]))


def _cast(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 9)))
    given, to = draw.pick("from", _CASTS), draw.pick("to", _CASTS)
    low = 0 if to.startswith("u") else -4
    x = graph.give("x", draw.numbers("x", shape_of(draw), given, low, 4))
    if draw.flag("CastLike"):
        graph = Graph(draw, 19)
        x = graph.give("x", draw.numbers("x", shape_of(draw), given, low, 4))
        return graph.case(graph.node("CastLike", [x, graph.give("like", draw.numbers("like", [1], to))]))
    return graph.case(graph.node("Cast", [x], to=DTYPES[to]))


def _gelu(draw: Draw) -> Case | None:
    graph = Graph(draw, 20)
    x = graph.give("x", draw.numbers("x", shape_of(draw)))
    return graph.case(graph.node("Gelu", [x], approximate=draw.pick("approximate", (None, "tanh"))))


GENERATORS = (
    *(_unary(name) for name in _UNARY),
    *(_with_numbers(name) for name in _WITH_NUMBERS),
    *(_binary(name) for name in _BINARY),
    *(_variadic(name) for name in _VARIADIC),
    Generator("Where", _where, 2),
    Generator("Clip", _clip, 2),
    Generator("Cast", _cast, 2),
    Generator("Gelu", _gelu),
)
