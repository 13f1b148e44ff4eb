"""Hostile models made by hand: each parses, or nearly does, and asks for more than any machine has."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import onnx
from onnx import AttributeProto, TensorProto, helper

node = helper.make_node
Made = tuple[str, str, Callable[[], onnx.ModelProto]]

HUGE = (
    [1 << 62] * 3,
    [1 << 31, 1 << 31],
    [1 << 20] * 2,
    [(1 << 63) - 1],
    [-1, -1],
    [-(1 << 63)],
    [0, 1 << 62],
    [1] * 70,
)
NAMES = {
    "a million characters": "n" * 1_000_000, "empty": "", "NUL": "a\0b", "terminal escapes": "\x1b[2J\x1b]0;owned\a",
    "newlines": "a\nerror: b", "right to left": "\u202etxt.exe", "beyond the BMP": "\U0001f600" * 100,
    "a path": "../../../../tmp/x", "markup": "<script>alert(1)</script>", "format": "%s{0}{x!r}", "spaces": " \t ",
    "brackets": "[bold red]x[/] [link=http://x]", "C1 controls": "\x9b31m", "combining": "e" + "\u0301" * 2000,
}  # fmt: skip


def info(
    name: str, shape: Sequence[int | str] | None = ("N", 4), dtype: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    """Declare a value."""
    return helper.make_tensor_value_info(name, dtype, shape)


def made(
    nodes: Iterable[onnx.NodeProto],
    *stored: onnx.TensorProto,
    x: Sequence[int | str] | None = ("N", 4),
    output: str = "y",
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """Make a model of an input x, a condition c, and nodes that give ``output``."""
    inputs = [info("x", x), info("c", [], TensorProto.BOOL)]
    graph = helper.make_graph(list(nodes), "g", inputs, [info(output, None)], stored)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def numbers(name: str, values: Sequence[int], dims: Sequence[int] | None = None) -> onnx.TensorProto:
    """Store whole numbers."""
    return helper.make_tensor(name, TensorProto.INT64, [len(values)] if dims is None else dims, values)


def varint(value: int) -> bytes:
    """Return a number in base 128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def models() -> Iterator[Made]:
    """Yield kind, name and maker of every model."""
    yield from _huge_shapes()
    yield from _folding()
    yield from _nesting()
    yield from _circles()
    yield from _functions()
    yield from _names()
    yield from _tensors()
    yield from _many()
    yield from _loops()


def _huge_shapes() -> Iterator[Made]:
    for number, dims in enumerate(HUGE):
        for op, inputs in (("Relu", "x"), ("MatMul", "xx"), ("Transpose", "x"), ("Flatten", "x"), ("Shape", "x")):
            model = partial(made, [node(op, list(inputs), ["y"])], x=dims)
            yield "huge shapes", f"input {number} of {op}", model
        for dtype in (TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT4, 99):
            tensor = TensorProto(name="w", data_type=dtype, dims=dims, raw_data=b"1234")
            yield "huge shapes", f"weight {number} of type {dtype}", partial(made, [node("Add", "xw", "y")], tensor)
        value = helper.make_attribute("value", numbers("", [1], [1]))
        value.t.dims[:] = dims
        constant = node("Constant", [], ["k"])
        constant.attribute.append(value)
        yield "huge shapes", f"constant {number}", partial(made, [constant, node("Add", "xk", "y")])
        graph = made([node("Relu", "x", "y")])
        graph.graph.value_info.append(info("h", dims))
        graph.graph.output[0].CopyFrom(info("y", dims))
        yield "huge shapes", f"output {number}", partial(onnx.ModelProto.FromString, graph.SerializeToString())


def _folding() -> Iterator[Made]:
    for exponent in (16, 28, 32, 40, 62):
        big = 1 << exponent
        for name, call, stored in (
            ("ConstantOfShape", node("ConstantOfShape", "s", "k"), [numbers("s", [big])]),
            ("ConstantOfShape of two", node("ConstantOfShape", "s", "k"), [numbers("s", [big, big])]),
            ("Expand", node("Expand", "os", "k"), [numbers("o", [1]), numbers("s", [big])]),
            ("Tile", node("Tile", "os", "k"), [numbers("o", [1] * 8), numbers("s", [big])]),
            (
                "Range",
                node("Range", "azo", "k"),
                [numbers(n, [v], []) for n, v in zip("azo", (0, big, 1), strict=True)],
            ),
            ("Pad", node("Pad", "os", "k"), [numbers("o", [1]), numbers("s", [big, big])]),
            ("OneHot", node("OneHot", "ods", "k"), [numbers("o", [1]), numbers("d", [big], []), numbers("s", [0, 1])]),
            ("EyeLike", node("EyeLike", "e", "k"), [TensorProto(name="e", data_type=7, dims=[big, big])]),
            ("Reshape", node("Reshape", "os", "k"), [numbers("o", [1]), numbers("s", [big])]),
        ):
            yield "folding bombs", f"{name} 2^{exponent}", partial(made, [call, node("Cast", "k", "y", to=1)], *stored)
        scale = helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, float(big), float(big)])
        resize = node("Resize", ["i", "", "s"], ["y"], mode="nearest")
        image = helper.make_tensor("i", TensorProto.FLOAT, [1, 1, 2, 2], [1, 2, 3, 4])
        yield "folding bombs", f"Resize 2^{exponent}", partial(made, [resize], image, scale)
    doubling = [node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(40)]
    yield "folding bombs", "Concat that doubles", partial(made, doubling, numbers("v0", [1, 2]), output="v40")
    adding = [node("Mul", [f"v{i}", f"v{i}"], [f"v{i + 1}"]) for i in range(200)]
    yield "folding bombs", "Mul that overflows", partial(made, adding, numbers("v0", [3]), output="v200")
    axes = partial(made, [node("Relu", "x", "y")], x=[1 << 62] * 100_000)
    yield "huge shapes", "a hundred thousand huge axes", axes
    yield "folding bombs", "Einsum", partial(made, [node("Einsum", "xx", "y", equation="...,->" * 5000)])


def nested(depth: int, wide: int = 1) -> onnx.NodeProto:
    """Branches in branches; ``wide`` equal ones side by side at each level."""
    inner = node("Relu", ["x"], ["y0"])
    for level in range(depth):
        branch = helper.make_graph([inner] * wide, "b", [], [info(f"y{level}")])
        other = helper.make_graph([node("Relu", ["x"], ["e"])], "e", [], [info("e")])
        inner = node("If", ["c"], [f"y{level + 1}"], then_branch=branch, else_branch=other)
    return inner


def typed(depth: int, kind: str) -> onnx.ModelProto:
    """An input whose type is nested."""
    model = made([node("Identity", "x", "y")])
    inner = onnx.TypeProto()
    inner.tensor_type.elem_type = 1
    for _ in range(depth):
        outer = onnx.TypeProto()
        field = getattr(outer, f"{kind}_type")
        (field.value_type if kind == "map" else field.elem_type).CopyFrom(inner)
        inner = outer
    model.graph.input[0].type.CopyFrom(inner)
    return model


def deep_bytes(depth: int) -> onnx.ModelProto:
    """A graph in an attribute of a node in a graph, and so on, deeper than Python's own protobuf would make."""
    data = b""
    for _ in range(depth):
        attribute = b"\x0a\x01b" + b"\x32" + varint(len(data)) + data + b"\xa0\x01\x05"
        call = b"\x0a\x01c\x12\x01y\x22\x02If\x2a" + varint(len(attribute)) + attribute
        data = b"\x0a" + varint(len(call)) + call
    model = made([node("Relu", "x", "y")])
    return _Raw(model.SerializeToString() + b"\x3a" + varint(len(data)) + data)  # type: ignore[return-value]


class _Raw:
    """Bytes in the place of a model."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def SerializeToString(self) -> bytes:  # noqa: N802  as protobuf spells it
        return self.data


def _nesting() -> Iterator[Made]:
    for depth in (5, 15, 24, 30, 31):
        yield "deep nesting", f"branches {depth}", lambda depth=depth: made([nested(depth)], output=f"y{depth}")
    for depth, wide in ((5, 8), (8, 4), (14, 2), (10, 3)):
        yield (
            "deep nesting",
            f"branches {depth} by {wide}",
            lambda d=depth, w=wide: made([nested(d, w)], output=f"y{d}"),
        )
    for depth in (20, 33, 60, 99, 1000, 20_000):
        yield "deep nesting", f"bytes {depth}", partial(deep_bytes, depth)
    for kind in ("sequence", "optional", "map"):
        for depth in (1, 10, 40):
            yield "deep nesting", f"{kind} types {depth}", partial(typed, depth, kind)


def chain(count: int, op: str = "Relu") -> onnx.ModelProto:
    """``count`` nodes, one after another."""
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    return made([node(op, [a], [b]) for a, b in itertools.pairwise(names)])


def fan(count: int) -> onnx.ModelProto:
    """``count`` values, all of which live until the last node reads them."""
    names = [f"v{i}" for i in range(count)]
    return made([*(node("Relu", "x", [name]) for name in names), node("Sum", names, "y")])


def _circles() -> Iterator[Made]:
    for length in (1, 2, 3, 10, 1000, 20_000):
        ring = [node("Relu", [f"v{(i - 1) % length}"], [f"v{i}"]) for i in range(length)]
        yield "circles", f"of {length} nodes", partial(made, ring, output="v0")
        yield "circles", f"of {length} beside", partial(made, [*ring, node("Relu", "x", "y")])
    backwards = chain(3000)
    nodes = list(backwards.graph.node)[::-1]
    yield "circles", "a chain backwards", lambda: made(nodes)
    branch = helper.make_graph([node("Relu", ["y"], ["t"])], "b", [], [info("t")])
    yield "circles", "through a branch", lambda: made([node("If", "c", "y", then_branch=branch, else_branch=branch)])
    yield "circles", "initializer that is an output", lambda: made([], numbers("y", [1]))
    yield "circles", "output that is nowhere", lambda: made([], output="nowhere")
    yield "circles", "input that is nowhere", lambda: made([node("Add", ["x", "nowhere"], "y")])
    yield "circles", "one name for all", lambda: made([node("Relu", "x", "x") for _ in range(5)], output="x")
    yield "circles", "a node twice", lambda: made([node("Relu", "x", "y", name="n")] * 2)


def _function(name: str, called: Sequence[str], attributes: Sequence[str] = ()) -> onnx.FunctionProto:
    values = ["v", *(f"u{i}" for i in range(len(called) - 1)), "w"]
    body = [
        node(op, [a], [b], domain="f" if op[0] == "F" else "")
        for op, a, b in zip(called, values[:-1], values[1:], strict=True)
    ]
    opsets = [helper.make_opsetid("f", 1), helper.make_opsetid("", 17)]
    return helper.make_function("f", name, ["v"], ["w"], body, opsets, attributes)


def _functions() -> Iterator[Made]:
    call = [node("F0", "x", "y", domain="f")]
    for ring in (1, 2, 50, 150):
        bodies = [_function(f"F{i}", [f"F{(i + 1) % ring}"]) for i in range(ring)]
        yield "functions", f"a ring of {ring}", partial(made, call, functions=bodies)
    for levels in (10, 20, 60):
        bodies = [_function(f"F{i}", [f"F{i + 1}"] * 2) for i in range(levels)] + [_function(f"F{levels}", ["Relu"])]
        yield "functions", f"doubling {levels} times", partial(made, call, functions=bodies)
    for levels in (90, 120, 2000):
        bodies = [_function(f"F{i}", [f"F{i + 1}"]) for i in range(levels)] + [_function(f"F{levels}", ["Relu"])]
        yield "functions", f"{levels} in a line", partial(made, call, functions=bodies)
    yield "functions", "twice", partial(made, call, functions=[_function("F0", ["Relu"])] * 2)
    yield "functions", "missing", partial(made, call)
    yield (
        "functions",
        "named as an operator",
        partial(made, [node("Relu", "x", "y")], functions=[_function("Relu", ["Relu"])]),
    )
    bare = onnx.FunctionProto(name="F0", domain="f", output=["w"] * 3, input=["v"] * 3)
    yield "functions", "without a body", partial(made, call, functions=[bare])
    many = node("F0", ["x"] * 5, ["y", "", "z"], domain="f")
    yield "functions", "wrong arguments", partial(made, [many], functions=[_function("F0", ["Relu"])])
    reference = _function("F0", ["Relu"], ["a", "a"])
    reference.node[0].attribute.add(name="a", ref_attr_name="nothing", type=AttributeProto.INT)
    yield "functions", "an attribute that nobody gives", partial(made, call, functions=[reference])


def _names() -> Iterator[Made]:
    for title, name in NAMES.items():
        yield "names", f"value {title}", lambda n=name: made([node("Relu", ["x"], [n]), node("Relu", [n], ["y"])])
        yield "names", f"node {title}", lambda n=name: made([node("Foo", ["x"], ["y"], name=n)])
        yield "names", f"operator {title}", lambda n=name: made([node(n, ["x"], ["y"], domain=n)])
        yield "names", f"output {title}", lambda n=name: made([node("Relu", ["x"], [n])], output=n)
        yield "names", f"dimension {title}", lambda n=name: made([node("Relu", "x", "y")], x=[n, n, 4])
        yield "names", f"weight {title}", lambda n=name: made([node("Add", ["x", n], ["y"])], numbers(n, [1]))
    marked = made([node("Relu", ["MARK"], ["y"])]).SerializeToString()
    for title, word in (
        ("invalid UTF-8", b"\xff\xfe\xfd\xfc"),
        ("a surrogate", b"\xed\xa0\x80!"),
        ("overlong", b"\xc0\xaf!!"),
    ):
        yield "names", title, lambda w=word: _Raw(marked.replace(b"MARK", w))  # type: ignore[misc,return-value]


def sparse(
    dims: Sequence[int], indices: Sequence[int], values: int = 2, shape: Sequence[int] | None = None
) -> onnx.ModelProto:
    """A model with a sparse weight s."""
    model = made([node("Add", "xs", "y")])
    data = helper.make_tensor("s", TensorProto.FLOAT, [values], [1.0] * values)
    model.graph.sparse_initializer.add(values=data, indices=numbers("i", indices, shape), dims=dims)
    return model


def sparse_base() -> onnx.ModelProto:
    """A sound model with a sparse weight."""
    return sparse([1, 4], [0, 3])


def _tensors() -> Iterator[Made]:
    for title, dims, indices, shape in (
        ("bomb", [1 << 20, 1 << 20], [0, 1], None), ("huge bomb", [1 << 62, 1 << 62], [0, 1], None),
        ("middling bomb", [1 << 15, 1 << 15], [0, 1], None), ("index outside", [1, 4], [0, 99], None),
        ("negative index", [1, 4], [-9, 1], None), ("unsorted", [1, 4], [3, 0], None), ("twice", [1, 4], [1, 1], None),
        ("no indices", [1, 4], [], None), ("wrong rank", [1, 4], [0, 0, 1, 1, 2, 2], [2, 3]),
        ("no dims", [], [0, 1], None),
        ("negative dims", [-1, 4], [0, 1], None), ("a million dims", [1] * 1_000_000, [0, 1], None),
    ):  # fmt: skip
        yield "sparse tensors", title, partial(sparse, dims, indices, 2, shape)
    for dtype in (0, 1, 4, 7, 8, 10, 14, 16, 17, 21, 22, 23, 99, -1):
        for title, dims, raw in (("short", [9], b"12"), ("long", [1], b"x" * 99), ("none", [3], b"")):
            tensor = TensorProto(name="w", data_type=dtype, dims=dims, raw_data=raw)
            yield "broken tensors", f"type {dtype} {title}", partial(made, [node("Add", "xw", "y")], tensor)
    both = helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])
    both.raw_data = b"12345678"
    yield "broken tensors", "values twice", partial(made, [node("Add", "xw", "y")], both)
    segment = TensorProto(name="w", data_type=1, dims=[4], raw_data=b"x" * 16)
    segment.segment.begin, segment.segment.end = -1, 1 << 62
    yield "broken tensors", "a segment", partial(made, [node("Add", "xw", "y")], segment)
    axes = TensorProto(name="w", data_type=1, dims=[1] * 1_000_000, raw_data=b"1234")
    yield "broken tensors", "a million axes", partial(made, [node("Add", "xw", "y")], axes)


def listed(kind: str, count: int) -> onnx.ModelProto:
    """A node with a long list in an attribute."""
    hostile = node("Foo", ["x"], ["y"], domain="f")
    attribute = hostile.attribute.add(name="axes", type=AttributeProto.AttributeType.Value(kind.upper()))
    filler = {"ints": 1, "floats": 1.0, "strings": b"", "tensors": TensorProto(), "graphs": onnx.GraphProto()}
    getattr(attribute, kind).extend([filler[kind]] * count)
    return made([hostile])


def _many() -> Iterator[Made]:
    for kind, most in (
        ("ints", 4_000_000),
        ("floats", 4_000_000),
        ("strings", 2_000_000),
        ("tensors", 400_000),
        ("graphs", 200_000),
    ):
        for count in (10_000, most // 4, most):
            yield "long lists", f"{count} {kind}", partial(listed, kind, count)
    yield "valid and large", "20000 nodes in a chain", partial(chain, 20_000)
    yield "many of a thing", "101000 nodes in a chain", partial(chain, 101_000)
    yield "many of a thing", "20000 values alive", partial(fan, 20_000)
    yield "many of a thing", "200000 empty nodes", lambda: made([onnx.NodeProto()] * 200_000)
    yield "many of a thing", "30000 empty nodes", lambda: made([onnx.NodeProto()] * 30_000)
    yield "many of a thing", "200000 nodes of one value", lambda: made([node("Relu", "x", ["y"])] * 200_000)
    yield "many of a thing", "100000 empty weights", lambda: made([node("Relu", "x", "y")], *[TensorProto()] * 100_000)
    yield (
        "many of a thing",
        "100000 weights",
        lambda: made([node("Relu", "x", "y")], *[numbers(f"w{i}", [1] * 9) for i in range(100_000)]),
    )
    yield "many of a thing", "100000 inputs", lambda: made([node("Sum", ["x"] * 100_000, "y")])
    yield (
        "many of a thing",
        "100000 outputs",
        lambda: made([node("Split", "x", [f"o{i}" for i in range(100_000)])], output="o1"),
    )
    yield (
        "many of a thing",
        "50000 attributes",
        lambda: made([node("Foo", "x", "y", **{f"a{i}": i for i in range(50_000)})]),
    )
    for name, count in (
        ("opset_import", 100_000),
        ("metadata_props", 100_000),
        ("functions", 50_000),
        ("training_info", 50_000),
    ):
        yield "many of a thing", f"{count} {name}", partial(_repeated, name, count)
    for name in ("input", "output", "value_info", "quantization_annotation", "sparse_initializer"):
        yield "many of a thing", f"50000 empty {name}", partial(_repeated_in_graph, name, 50_000)


def _repeated(name: str, count: int) -> onnx.ModelProto:
    model = made([node("Relu", "x", "y")])
    for _ in range(count):
        getattr(model, name).add()
    return model


def _repeated_in_graph(name: str, count: int) -> onnx.ModelProto:
    model = made([node("Relu", "x", "y")])
    for _ in range(count):
        getattr(model.graph, name).add()
    return model


def loop(trips: int, op: str, *, growing: bool = False) -> onnx.ModelProto:
    """A loop that runs ``trips`` times; its state may double each time."""
    step = node("Concat", "vv", "w", axis=0) if growing else node(op, "v", "w")
    body = helper.make_graph(
        [node("Identity", "d", "e"), step], "b",
        [info("i", [], TensorProto.INT64), info("d", [], TensorProto.BOOL), info("v", None)],
        [info("e", [], TensorProto.BOOL), info("w", None)],
    )  # fmt: skip
    true = helper.make_tensor("go", TensorProto.BOOL, [], [True])
    return made([node("Loop", ["n", "go", "x"], ["y"], body=body)], numbers("n", [trips], []), true)


def _loops() -> Iterator[Made]:
    for trips in (-1, 0, 3, 1 << 62):
        yield "loops", f"{trips} trips", partial(loop, trips, "Relu")
        yield "loops", f"{trips} trips that double", partial(loop, trips, "Relu", growing=True)
    for versions in ((0, 17), (8, 0), (-1, -1), (1 << 62, 17), (8, 1 << 62), (1, 1), (3, 999)):
        model = made([node("Relu", "x", "y")])
        model.ir_version, model.opset_import[0].version = versions
        yield "versions", f"{versions}", partial(onnx.ModelProto.FromString, model.SerializeToString())
