"""Matrix products, normalizations, reductions, and what runs along one axis."""

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.fuzz.author import Generator, Graph
from edgekit.fuzz.draw import Draw

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 32, 33, 64, 65)
_REDUCES = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
_EQUATIONS = (
    "ij,jk->ik", "ij->ji", "ij->i", "ij,ij->ij", "bij,bjk->bik", "ii->i", "bhij,bhjk->bhik", "ij,kj->ik",
    "i,j->ij", "bhwc,hkc->bhwk", "ijk->kji", "ij->", "ij,jk", "b...i,b...i->b...",
)  # fmt: skip


def shape_of(draw: Draw, name: str = "shape", *, ranks: tuple[int, ...] = (2, 1, 3, 4, 5)) -> list[int]:
    """Draw a shape; long axes only where there are few."""
    rank = draw.pick(f"{name} rank", ranks)
    return draw.picks(name, rank, LENGTHS if rank < 4 else LENGTHS[:9])


def _matmul(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 13, 9)))
    m, k, n = (draw.pick(name, LENGTHS) for name in "mkn")
    batch = draw.picks("batch", draw.pick("batches", (0, 1, 2)), (2, 1, 3))
    kind = draw.pick("kind", ("plain", "batched left", "batched both", "broadcast", "vector left", "vector right"))
    left, right = [m, k], [k, n]
    if kind in ("batched left", "batched both", "broadcast"):
        left = [*batch, *left]
    if kind == "batched both":
        right = [*batch, *right]
    if kind == "broadcast":
        right = [*([1] * len(batch)), *right]
    left, right = ([k] if kind == "vector left" else left), ([k] if kind == "vector right" else right)
    dtype = draw.pick("dtype", ("float32", "float32", "float32", "int32"))
    a = graph.give("a", draw.numbers("a", left, dtype))
    return graph.case(graph.node("MatMul", [a, graph.weight("b", draw.numbers("b", right, dtype))]))


def _gemm(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 11, 9)))
    m, k, n = (draw.pick(name, LENGTHS) for name in "mkn")
    over, across = draw.flag("transA"), draw.flag("transB")
    a = graph.give("a", draw.numbers("a", [k, m] if over else [m, k]))
    b = graph.weight("b", draw.numbers("b", [n, k] if across else [k, n]))
    shape = draw.pick("c", (None, [n], [m, n], [1, n], [m, 1], [1], []))
    c = "" if shape is None else graph.weight("c", draw.numbers("c", shape))
    return graph.case(
        graph.node(
            "Gemm", [a, b, c], transA=int(over) or None, transB=int(across) or None,
            alpha=draw.pick("alpha", (None, 0.5, 2.0)), beta=draw.pick("beta", (None, 0.5, 0.0, 2.0)),
        )
    )  # fmt: skip


def _einsum(draw: Draw) -> Case | None:
    graph = Graph(draw, 12)
    equation = draw.pick("equation", _EQUATIONS)
    sizes = {letter: draw.pick(f"size {letter}", LENGTHS[:9]) for letter in "bchijkw"}
    names = []
    for place, term in enumerate(equation.partition("->")[0].split(",")):
        axes = [sizes[letter] for letter in term.replace("...", "k")]
        names.append(graph.give(f"x{place}", draw.numbers(f"x{place}", axes)))
    return graph.case(graph.node("Einsum", names, equation=equation))


def _batch_norm(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 14, 9)))
    shape = shape_of(draw, ranks=(4, 3, 2, 5))
    return graph.case(batch_norm_node(draw, graph, graph.give("x", draw.numbers("x", shape)), shape[1]))


def batch_norm_node(draw: Draw, graph: Graph, x: str, channels: int) -> str:
    """Add a BatchNormalization with variances near one."""
    names = [graph.hold(name, draw.numbers(name, [channels])) for name in ("scale", "shift", "mean")]
    variance = graph.hold("variance", draw.numbers("variance", [channels], low=1, high=3))
    found: str = graph.node(
        "BatchNormalization", [x, *names, variance], epsilon=draw.pick("epsilon", (None, 0.1, 1e-3))
    )
    return found


def _instance_norm(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 6)))
    shape = shape_of(draw, ranks=(4, 3, 5))
    names = [graph.weight(name, draw.numbers(name, [shape[1]])) for name in ("scale", "shift")]
    x = graph.give("x", draw.numbers("x", shape))
    return graph.case(graph.node("InstanceNormalization", [x, *names], epsilon=draw.pick("epsilon", (None, 0.1))))


def _layer_norm(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        graph = Graph(draw, 17 if op_type == "LayerNormalization" else 23)
        shape = shape_of(draw, ranks=(3, 2, 4, 1))
        axis = draw.pick("axis", (None, *range(-len(shape), len(shape))))
        tail = shape[-1 if axis is None else axis :]
        x = graph.give("x", draw.numbers("x", shape))
        names = [x, graph.weight("scale", draw.numbers("scale", tail))]
        bias = op_type == "LayerNormalization" and draw.flag("bias")
        names += [graph.weight("bias", draw.numbers("bias", tail))] if bias else []
        return graph.case(graph.node(op_type, names, axis=axis, epsilon=draw.pick("epsilon", (None, 0.1))))

    return Generator(op_type, make, 4)


def _group_norm(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 18)))
    groups, each = draw.pick("groups", (1, 2, 3, 4)), draw.pick("each", (1, 2, 3, 4, 6))
    length = groups * each if draw.pick("opset", (21, 18)) == 21 else groups
    shape = [draw.pick("batch", (1, 2)), groups * each, *draw.picks("size", draw.pick("rank", (2, 1, 3)), LENGTHS[:9])]
    names = [graph.weight(name, draw.numbers(name, [length])) for name in ("scale", "shift")]
    x = graph.give("x", draw.numbers("x", shape))
    return graph.case(
        graph.node("GroupNormalization", [x, *names], num_groups=groups, epsilon=draw.pick("epsilon", (None, 0.1)))
    )


def _along(op_type: str) -> Generator:
    """Operators with one axis, and perhaps a flag or two."""

    def make(draw: Draw) -> Case | None:
        flags = {"ArgMax": ("keepdims", "select_last_index"), "ArgMin": ("keepdims", "select_last_index")}
        opset = draw.pick("opset", (21, 13, 11))
        graph = Graph(draw, 12 if op_type.startswith("Arg") and opset == 11 else opset)
        shape = shape_of(draw)
        axis = draw.pick("axis", (None, *range(-len(shape), len(shape))))
        stated = {flag: draw.pick(flag, (None, 1 - (flag == "keepdims"))) for flag in flags.get(op_type, ())}
        if op_type == "LpNormalization":
            stated["p"] = draw.pick("p", (None, 1))
        x = graph.give("x", draw.numbers("x", shape))
        return graph.case(graph.node(op_type, [x], axis=axis, **stated))

    return Generator(op_type, make, 3)


def _cum_sum(draw: Draw) -> Case | None:
    graph = Graph(draw, draw.pick("opset", (21, 11)))
    shape = shape_of(draw)
    x = graph.give("x", draw.numbers("x", shape, draw.pick("dtype", ("float32", "int32", "int64"))))
    axis = graph.hold("axis", np.array(draw.pick("axis", range(-len(shape), len(shape))), dtype=np.int64))
    stated = {flag: draw.pick(flag, (None, 1)) for flag in ("exclusive", "reverse")}
    return graph.case(graph.node("CumSum", [x, axis], **stated))


def _reduce(op_type: str) -> Generator:
    def make(draw: Draw) -> Case | None:
        old = draw.flag("axes as attribute")
        graph = Graph(draw, (11 if op_type == "ReduceSum" else 13) if old else 21)
        shape = shape_of(draw)
        dtype = draw.pick("dtype", ("float32", "float32", "int32"))
        low = 1 if op_type in ("ReduceLogSum", "ReduceLogSumExp") else -2
        x = graph.give("x", draw.numbers("x", shape, dtype, low, 2))
        axes = draw.some("axes", range(len(shape)))
        axes = [axis - len(shape) for axis in axes] if draw.flag("negative") else axes
        stated = {"keepdims": draw.pick("keepdims", (None, 0))}
        if old:
            return graph.case(graph.node(op_type, [x], axes=axes or None, **stated))
        stated["noop_with_empty_axes"] = draw.pick("noop", (None, 1))
        held = [graph.ints("axes", axes)] if axes else []
        return graph.case(graph.node(op_type, [x, *held], **stated))

    return Generator(op_type, make, 2)


def _lrn(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    x = graph.give("x", draw.numbers("x", shape_of(draw, ranks=(4, 3, 5))))
    stated = {"alpha": draw.pick("alpha", (None, 0.5)), "beta": draw.pick("beta", (None, 0.5)),
              "bias": draw.pick("bias", (None, 2.0))}  # fmt: skip
    return graph.case(graph.node("LRN", [x], size=draw.pick("size", (1, 3, 5, 7)), **stated))


def _mean_variance(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    shape = shape_of(draw, ranks=(4, 3))
    axes = draw.some("axes", range(len(shape)), least=1)
    return graph.case(graph.node("MeanVarianceNormalization", [graph.give("x", draw.numbers("x", shape))], axes=axes))


GENERATORS = (
    Generator("MatMul", _matmul, 6),
    Generator("Gemm", _gemm, 5),
    Generator("Einsum", _einsum, 3),
    Generator("BatchNormalization", _batch_norm, 3),
    Generator("InstanceNormalization", _instance_norm, 3),
    Generator("GroupNormalization", _group_norm, 2),
    Generator("LRN", _lrn),
    Generator("MeanVarianceNormalization", _mean_variance),
    Generator("CumSum", _cum_sum, 2),
    _layer_norm("LayerNormalization"),
    _layer_norm("RMSNormalization"),
    *(_along(name) for name in ("Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "LpNormalization")),
    *(_reduce(name) for name in _REDUCES),
)
