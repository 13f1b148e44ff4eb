"""Short chains that onnxruntime fuses into one operator of its own: wrong there, and right node by node."""

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.fuzz.author import Generator, Graph
from edgekit.fuzz.draw import Draw
from edgekit.fuzz.families_conv import CHANNELS, conv_node
from edgekit.fuzz.families_dense import LENGTHS, batch_norm_node, shape_of

_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")


def _activate(draw: Draw, graph: Graph, x: str) -> str:
    kind = draw.pick("activation", _ACTIVATIONS)
    if kind == "Clip":
        held = [graph.hold(name, np.array(value, dtype=np.float32)) for name, value in (("low", 0), ("high", 6))]
        return str(graph.node("Clip", [x, *held]))
    return str(graph.node(kind, [x]))


def _conv_activation(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    y = conv_node(draw, graph)
    return None if y is None else graph.case(_activate(draw, graph, y))


def _conv_norm(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    y = conv_node(draw, graph)
    if y is None:
        return None
    if draw.pick("group", ("one", "one ", "one  ", "depthwise", "some")).startswith("one"):
        y = batch_norm_node(draw, graph, y, draw.pick("outputs", CHANNELS))
    return graph.case(_activate(draw, graph, y) if draw.flag("activated") else y)


def _conv_add(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    y = conv_node(draw, graph)
    if y is None:
        return None
    y = graph.node("Add", [y, graph.hold("more", draw.numbers("more", [1]))])
    return graph.case(_activate(draw, graph, y) if draw.flag("activated") else y)


def _pad_conv(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    channels, outputs = draw.pick("channels", CHANNELS), draw.pick("outputs", CHANNELS)
    x = graph.give("x", draw.numbers("x", [1, channels, *draw.picks("size", 2, LENGTHS[:9])]))
    padded = graph.node(
        "Pad", [x, graph.ints("pads", [0, 0, *draw.picks("b", 2, (1, 0)), 0, 0, *draw.picks("e", 2, (1, 0))])]
    )
    w = graph.hold("w", draw.numbers("w", [outputs, channels, *draw.picks("kernel", 2, (1, 2, 3))], low=-2, high=2))
    return graph.case(graph.node("Conv", [padded, w]))


def _matmul_add(draw: Draw) -> Case | None:
    graph = Graph(draw, 20)
    m, k, n = (draw.pick(name, LENGTHS) for name in "mkn")
    a = graph.give("a", draw.numbers("a", [*draw.picks("batch", draw.pick("batches", (0, 1)), (2, 1)), m, k]))
    y = graph.node("MatMul", [a, graph.weight("b", draw.numbers("b", [k, n], low=-2, high=2))])
    y = graph.node("Add", [y, graph.hold("bias", draw.numbers("bias", draw.pick("bias", ([n], [1], [m, n]))))])
    after = draw.pick("after", ("nothing", "Gelu", "Relu"))
    return graph.case(y if after == "nothing" else graph.node(after, [y]))


def _matmul_scaled(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    m, k, n = (draw.pick(name, LENGTHS[:12]) for name in "mkn")
    batch = draw.picks("batch", draw.pick("batches", (1, 2, 0)), (2, 1, 3))
    a, b = graph.give("a", draw.numbers("a", [*batch, m, k])), graph.give("b", draw.numbers("b", [*batch, n, k]))
    turned = graph.node("Transpose", [b], perm=[*range(len(batch)), len(batch) + 1, len(batch)])
    y = graph.node("MatMul", [a, turned])
    if draw.flag("scaled"):
        y = graph.node(draw.pick("by", ("Mul", "Div")), [y, graph.hold("by", np.array(2, dtype=np.float32))])
    return graph.case(y)


def _layer_norm(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    shape = shape_of(draw, ranks=(3, 2, 4))
    x = graph.give("x", draw.numbers("x", shape))
    centred = graph.node("Sub", [x, graph.node("ReduceMean", [x], axes=[-1])])
    squared = graph.node("Pow", [centred, graph.hold("two", np.array(2, dtype=np.float32))])
    variance = graph.node("ReduceMean", [squared], axes=[-1])
    shifted = graph.node("Add", [variance, graph.hold("epsilon", np.array(0.5, dtype=np.float32))])
    y = graph.node("Div", [centred, graph.node("Sqrt", [shifted])])
    y = graph.node("Mul", [y, graph.hold("scale", draw.numbers("scale", shape[-1:]))])
    return graph.case(graph.node("Add", [y, graph.hold("bias", draw.numbers("bias", shape[-1:]))]))


def _skip_norm(draw: Draw) -> Case | None:
    graph = Graph(draw, 17)
    shape = shape_of(draw, ranks=(3, 2))
    names = [graph.give(name, draw.numbers(name, shape)) for name in ("x", "skip")]
    held = [graph.hold(name, draw.numbers(name, shape[-1:])) for name in ("scale", "bias")]
    summed = graph.node("Add", names)
    y = graph.node("LayerNormalization", [summed, *held], axis=-1, epsilon=0.1)
    return graph.case(y, summed) if draw.flag("sum too") else graph.case(y)


def _gelu(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    x = graph.give("x", draw.numbers("x", shape_of(draw)))
    held = {name: graph.hold(name, np.array(value, dtype=np.float32))
            for name, value in (("root", 2**0.5), ("one", 1), ("half", 0.5))}  # fmt: skip
    erf = graph.node("Erf", [graph.node("Div", [x, held["root"]])])
    product = graph.node("Mul", [x, graph.node("Add", [erf, held["one"]])])
    return graph.case(graph.node("Mul", [product, held["half"]]))


def _two_moves(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    shape = shape_of(draw, ranks=(3, 4, 2))
    x = graph.give("x", draw.numbers("x", shape))
    y = graph.node("Transpose", [x], perm=draw.order("perm", len(shape)))
    y = graph.node(draw.pick("between", ("Relu", "Sqrt", "Softmax")), [graph.node("Abs", [y])])
    return graph.case(graph.node("Transpose", [y], perm=draw.order("again", len(shape))))


def _attention(draw: Draw) -> Case | None:
    graph = Graph(draw, 13)
    batch, heads, length, size = (draw.pick(n, o) for n, o in zip(
        ("batch", "heads", "length", "size"), ((1, 2), (1, 2, 3), LENGTHS[:10], (4, 2, 3, 8, 16)), strict=True,
    ))  # fmt: skip
    q, k, v = (graph.give(n, draw.numbers(n, [batch, heads, length, size], low=-1, high=1)) for n in "qkv")
    scores = graph.node("MatMul", [q, graph.node("Transpose", [k], perm=[0, 1, 3, 2])])
    scaled = graph.node("Div", [scores, graph.hold("root", np.array(2, dtype=np.float32))])
    if draw.flag("masked"):
        mask = np.where(np.tril(np.ones([length, length])), 0, -9).astype(np.float32)
        scaled = graph.node("Add", [scaled, graph.hold("mask", mask)])
    return graph.case(graph.node("MatMul", [graph.node("Softmax", [scaled], axis=-1), v]))


GENERATORS = (
    Generator("Conv+activation", _conv_activation, 4),
    Generator("Conv+BatchNormalization", _conv_norm, 4),
    Generator("Conv+Add", _conv_add, 2),
    Generator("Pad+Conv", _pad_conv, 2),
    Generator("MatMul+Add", _matmul_add, 3),
    Generator("Transpose+MatMul", _matmul_scaled, 2),
    Generator("LayerNormalization pattern", _layer_norm, 2),
    Generator("Add+LayerNormalization", _skip_norm, 2),
    Generator("Gelu pattern", _gelu),
    Generator("Transpose+Transpose", _two_moves, 2),
    Generator("Attention pattern", _attention, 2),
)
