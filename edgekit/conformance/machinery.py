"""What a session does beside arithmetic: branches, loops, functions, strings, sequences, shapes, initializers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper, numpy_helper, parser

from edgekit.conformance.authoring import case, floats, model, nodes, of_model
from edgekit.conformance.cases import Case
from edgekit.records.tensors import NUMPY_DTYPES, Array

_OPSETS = range(7, 24)


def cases() -> tuple[Case, ...]:
    """Return the cases, about 200."""
    return (
        *_branches(), *_loops(), *_sequences(), *_strings(), *_initializers(), *_constant_nodes(), *_large(),
        *_odd_shapes(),
        *_versions(), *_functions(),
    )  # fmt: skip


def _branch(condition: str, then: str, other: str, result: str = "y") -> str:
    return (
        f"{result} = If({condition}) <then_branch = t () => (float[] t_out) {{ {then} }},"
        f" else_branch = e () => (float[] e_out) {{ {other} }}>"
    )


def _branches() -> Iterator[Case]:
    """Yield Ifs: of an input, of a computed condition, of a constant; with names from outside; nested."""
    weights = {
        "w": floats(8, 3, 3, 3), "v": floats(4, 4), "k": np.array([1]), "limit": np.array(4), "flag": np.array(True),
        "off": np.array(False), "two": np.array([2]), "half": np.array(0.5, dtype=np.float32), "zero": np.array(0),
        "rate": np.array(16000),
    }  # fmt: skip
    x = floats(1, 3, 4, 4)
    texts = {
        "of input": _branch("c", "t_out = Relu(x)", "e_out = Neg(x)"),
        "with convolutions": _branch("c", "a = Conv(x, w) t_out = Relu(a)", "a = MatMul(x, v) e_out = Sigmoid(a)"),
        "with initializers": _branch("c", "t_out = Squeeze(x, zero1)", "e_out = Mul(x, half)"),
        "of shape": "s = Shape(x) n = Size(s) d = Equal(n, limit)" + _branch("d", "t_out = Relu(x)", "e_out = Neg(x)"),
        "of constant": _branch("flag", "t_out = Relu(x)", "e_out = Neg(x)"),
        "of constant false": _branch("off", "t_out = Relu(x)", "a = Conv(x, w) e_out = Neg(a)"),
        "of Not": "n = Not(c) r = Relu(x)" + _branch("n", "t_out = Add(r, x)", "e_out = Identity(r)"),
        "nested": "y = If(c) <then_branch = t () => (float[] t_out) { t_out = If(flag) <then_branch = tt () =>"
        " (float[] i_out) { i_out = Relu(x) }, else_branch = te () => (float[] j_out) { j_out = Neg(x) }> },"
        " else_branch = e () => (float[] e_out) { e_out = Abs(x) }>",
        "nested of inputs": "r = Relu(x)"
        " y = If(c) <then_branch = t () => (float[] t_out) { q = Add(r, x) t_out = If(c) <then_branch = tt () =>"
        " (float[] i_out) { i_out = Mul(q, r) }, else_branch = te () => (float[] j_out) { j_out = Conv(x, w) }> },"
        " else_branch = e () => (float[] e_out) { e_out = MatMul(r, v) }>",
        "twice": _branch("c", "t_out = Relu(x)", "e_out = Neg(x)", "m")
        + _branch("c", "t2 = Conv(m, w) t_out = Relu(t2)", "e_out = Abs(m)"),
        "empty branches": "r = Relu(x)" + _branch("c", "t_out = Identity(r)", "e_out = Identity(x)"),
        "with Constants": _branch(
            "c",
            "k1 = Constant<value_ints = [1]>() t_out = Unsqueeze(x, k1)",
            "k2 = Constant<value_float = 2.0>() e_out = Mul(x, k2)",
        ),
    }
    weights["zero1"] = np.array([0])
    for what, text in texts.items():
        for taken in (True, False):
            inputs: dict[str, Array] = {"x": x} | ({"c": np.array(taken)} if "(c)" in text else {})
            held = {name: array for name, array in weights.items() if _takes(text, name)}
            if "(c)" in text or taken:
                yield case(f"machinery If {what} {taken}", text, inputs, held, outputs="y::4", opset=16)
    # As voice detectors choose by sample rate.
    text = "d = Equal(sr, rate)" + _branch("d", "a = Conv(x, w) t_out = Relu(a)", "a = Conv(x, w) e_out = Sigmoid(a)")
    for rate in (16000, 8000):
        held = {"w": weights["w"], "rate": weights["rate"]}
        given = {"x": x, "sr": np.array(rate)}
        yield case(f"machinery If rate {rate}", text, given, held, outputs="y::4", opset=16)


def _takes(text: str, name: str) -> bool:
    return any(f"{before}{name}{after}" in text for before in "( " for after in ",)") or f"If({name})" in text


def _loops() -> Iterator[Case]:
    counted = (
        "y, all = Loop(n, go, x) <body = b (int64 i, bool c, float[2,2] s) => (bool c2, float[2,2] s2, float[2,2] o)"
        " {{ c2 = Identity(c) {} o = Identity(s2) }}>"
    )
    steps = {
        "adding": "s2 = Add(s, x)",
        "multiplying": "m = MatMul(s, w) s2 = Tanh(m)",
        "counting": "f = Cast<to = 1>(i) s2 = Add(s, f)",
        "branching": "s2 = If(c) <then_branch = t () => (float[] t_out) { t_out = Relu(s) },"
        " else_branch = e () => (float[] e_out) { e_out = Neg(s) }>",
    }
    for what, step in steps.items():
        for count in (0, 1, 4):
            text = counted.replace("{{", "{").replace("}}", "}").replace("{}", step, 1)
            inputs = {"n": np.array(count), "x": floats(2, 2)}
            held: dict[str, Array] = {"go": np.array(True)}
            if "w)" in step:
                held["w"] = floats(2, 2, scale=0.3)
            yield case(f"machinery Loop {what} {count}", text, inputs, held, outputs="y::2, all::3", opset=16)
    conditional = (
        "y = Loop(, go, x) <body = b (int64 i, bool c, float[2,2] s) => (bool c2, float[2,2] s2)"
        " { s2 = Add(s, w) m = ReduceSum<keepdims = 0>(s2) c2 = Less(m, limit) }>"
    )
    for limit in (2, 40):
        held = {
            "go": np.array(True),
            "w": np.ones((2, 2), dtype=np.float32),
            "limit": np.array(limit, dtype=np.float32),
        }
        yield case(f"machinery Loop until {limit}", conditional, {"x": floats(2, 2)}, held, outputs="y::2", opset=16)
    for length in (1, 5):
        for what, stated in {
            "": "", " reversed": ", scan_input_directions = [1], scan_output_directions = [1]",
        }.items():  # fmt: skip
            text = (
                f"y, all = Scan<num_scan_inputs = 1{stated}, body = b (float[3] s, float[3] i) =>"
                " (float[3] s2, float[3] o) { m = MatMul(i, w) s2 = Add(s, m) o = Tanh(s2) }>(x0, x)"
            )
            inputs = {"x0": floats(3), "x": floats(length, 3)}
            name = f"machinery Scan{what} {length}"
            yield case(name, text, inputs, {"w": floats(3, 3)}, outputs="y::1, all::2", opset=16)


def _sequences() -> Iterator[Case]:
    texts = {
        "made and read": "s = SequenceConstruct(x, x2) y = SequenceAt(s, one)",
        "joined": "s = SequenceConstruct(x, x2) y = ConcatFromSequence<axis = 0>(s)",
        "stacked": "s = SequenceConstruct(x, x2) y = ConcatFromSequence<axis = 0, new_axis = 1>(s)",
        "split": "s = SplitToSequence<axis = 0>(x) y = SequenceAt(s, one)",
        "split by sizes": "s = SplitToSequence<axis = 0>(x, sizes) y = SequenceAt(s, zero)",
        "inserted": "e = SequenceEmpty() a = SequenceInsert(e, x) b = SequenceInsert(a, x2, zero)"
        " y = SequenceAt(b, zero)",
        "erased": "s = SequenceConstruct(x, x2) e = SequenceErase(s, zero) y = SequenceAt(e, zero)",
        "counted": "s = SequenceConstruct(x, x2) k = SequenceLength(s) f = Cast<to = 1>(k) y = Mul(x, f)",
        "in a Loop": "e = SequenceConstruct(x)"
        " s = Loop(n, , e) <body = b (int64 i, bool c, seq(float[2,3]) q) => (bool c2,"
        " seq(float[2,3]) q2) { c2 = Identity(c) q2 = SequenceInsert(q, x2) }> y = ConcatFromSequence<axis = 0>(s)",
        "from an If": "s = If(c) <then_branch = t () => (seq(float) t_out) { t_out = SequenceConstruct(x, x2) },"
        " else_branch = e () => (seq(float) e_out) { e_out = SequenceConstruct(x2) }> y = SequenceAt(s, zero)",
    }
    known = {"one": np.array(1), "zero": np.array(0), "sizes": np.array([1, 1]), "n": np.array(3)}
    for what, text in texts.items():
        for dtype in ("float32", "int64") if " a Loop" not in what and "If" not in what else ("float32",):
            if dtype == "int64" and ("Mul" in text or "Empty" in text):
                continue
            inputs = {"x": (floats(2, 3) * 9).astype(dtype), "x2": (floats(2, 3) * 5).astype(dtype)}
            given = {name: array for name, array in inputs.items() if _takes(text, name)}
            if "If(c)" in text:
                given["c"] = np.array(True)
            held = {name: array for name, array in known.items() if _takes(text, name)}
            rank = {"stacked": 3, "split": 2}.get(what, 2)
            yield case(f"machinery sequence {what} {dtype}", text, given, held, outputs=f"y:{dtype}:{rank}", opset=17)
    for what, text in {
        "present": "h = OptionalHasElement(o) f = Cast<to = 1>(h) y = Mul(x, f)",
        "read": "y = OptionalGetElement(o)",
    }.items():
        whole = f"o = Optional(x) {text}"
        yield case(f"machinery optional {what}", whole, {"x": floats(2, 3)}, outputs="y::2", opset=18)


def _strings() -> Iterator[Case]:
    words = np.array([["one", "two"], ["three", "one"]], dtype=object)
    known = {"v": np.array("one", dtype=object).reshape(()), "k": np.array([0]), "flat": np.array([-1])}
    for what, text, dtype in (
        ("layout", "a = Reshape(x, flat) b = Concat<axis = 0>(a, a) y = Identity(b)", "string"),
        ("Gather", "y = Gather<axis = 0>(x, k)", "string"),
        ("Equal", "y = Equal(x, v)", "bool"),
        ("Where", "e = Equal(x, v) y = Where(e, x, v)", "string"),
        ("Transpose", "t = Transpose(x) y = Identity(t)", "string"),
        ("Unique", "a = Reshape(x, flat) y, i, j, n = Unique(a)", "string"),
        ("StringConcat", "y = StringConcat(x, v)", "string"),
        (
            "StringNormalizer",
            'a = Reshape(x, flat) y = StringNormalizer<case_change_action = "UPPER", locale = "C">(a)',
            "string",
        ),
        ("Expand", "s = Shape(x) y = Expand(v, s)", "string"),
        ("Tile", "s = Shape(x) y = Tile(x, s)", "string"),
    ):
        for rows in (1, 2):
            held = {name: array for name, array in known.items() if _takes(text, name)}
            yield case(
                f"machinery strings {what} {rows}", text, {"x": words[:rows]}, held, outputs=f"y:{dtype}", opset=20
            )
    for what, text in {
        "to": "y = Cast<to = 8>(x)",
        "there and back": "s = Cast<to = 8>(x) y = Cast<to = 1>(s)",
    }.items():
        yield case(
            f"machinery strings Cast {what}",
            text,
            {"x": floats(2, 2)},
            outputs=f"y:{'string' if what == 'to' else 'float32'}",
        )
    text = (
        'y = TfIdfVectorizer<max_gram_length = 2, max_skip_count = 1, min_gram_length = 1, mode = "TF",'
        ' ngram_counts = [0, 2], ngram_indexes = [0, 1, 2], pool_strings = ["one", "two", "three", "one"]>(x)'
    )
    for rows in (1, 2):
        yield case(f"machinery strings TfIdf {rows}", text, {"x": words[:rows]}, outputs="y::2")


def _initializers() -> Iterator[Case]:
    """Yield initializers of every dtype: raw and listed, used once, twice, by no node, as a default of an input."""
    for dtype in (*NUMPY_DTYPES, "string"):
        if dtype == "bfloat16":
            continue
        array = _pair(dtype)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        listing: list[Any] = [b"a", b"b"] if dtype == "string" else array.tolist()
        listed = helper.make_tensor("w", kind, [2], listing)
        text = "a = Identity(w) y = Concat<axis = 0>(a, x)"
        made = model(text, {"x": array}, outputs=f"y:{dtype}", tensors=[listed])
        yield of_model(f"machinery initializer listed {dtype}", made, {"x": array})
        if dtype != "string":
            text = "a = Concat<axis = 0>(w, w) b = Identity(unused) y = Concat<axis = 0>(a, x)"
            yield case(
                f"machinery initializer raw {dtype}",
                text,
                {"x": array},
                {"w": array, "unused": array},
                outputs=f"y:{dtype}",
            )
    for shared in (True, False):
        held = {"w": floats(16, 16)} | ({} if shared else {"v": floats(16, 16)})
        text = f"a = MatMul(x, w) b = Relu(a) c = MatMul(b, {'w' if shared else 'v'}) y = Add(c, x)"
        yield case(f"machinery initializer {'shared' if shared else 'equal'}", text, {"x": floats(16, 16)}, held)
    made = model("y = Add(x, w)", {"x": floats(3), "w": floats(3)}, {})
    made.graph.initializer.append(numpy_helper.from_array(floats(3), "w"))
    for given in (True, False):
        inputs = {"x": floats(3)} | ({"w": floats(3)} if given else {})
        yield of_model(f"machinery initializer as {'given' if given else 'default'}", made, inputs)
    big = {"w": floats(300, 300), "c": floats(1, 300)}
    yield case("machinery initializer large", "m = MatMul(x, w) y = Add(m, c)", {"x": floats(2, 300)}, big)


def _pair(dtype: str) -> Array:
    return np.array(["a", "b"], dtype=object) if dtype == "string" else np.array([1, 2]).astype(NUMPY_DTYPES[dtype])


def _constant_nodes() -> Iterator[Case]:
    """Yield weights that are Constant nodes, as some exporters write them."""
    for what in ("Conv", "MatMul", "Gemm", "Add"):
        w = {"Conv": floats(4, 3, 3, 3), "MatMul": floats(6, 4), "Gemm": floats(6, 4), "Add": floats(6)}[what]
        x = floats(1, 3, 6, 6) if what == "Conv" else floats(2, 6)
        made = model(f"m = {what}(x, w) y = Relu(m)", {"x": x})
        constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w))
        made.graph.node.insert(0, constant)
        yield of_model(f"machinery Constant {what}", made, {"x": x})
    for name, value in {
        "value_float": "2.0", "value_int": "2", "value_floats": "[1.0, 2.0]", "value_ints": "[1, 2]",
    }.items():  # fmt: skip
        text = f"c = Constant<{name} = {value}>() f = Cast<to = 1>(c) y = Mul(x, f)"
        yield case(f"machinery Constant {name}", text, {"x": floats(2, 2)})


def _large() -> Iterator[Case]:
    """Yield sizes at which a runtime hands parts of the work to its threads."""
    for size in (64, 256):
        x = {"x": floats(size, size)}
        for what, text in {
            "MatMul": "y = MatMul(x, w)",
            "MatMul of inputs": "y = MatMul(x, x)",
            "Gemm": "y = Gemm<transB = 1>(x, w, b)",
            "arithmetic": "a = Add(x, w) m = Mul(a, b) s = Sigmoid(m) t = Tanh(s) y = Exp(t)",
            "reductions": "m = ReduceMean(x, last) s = Sub(x, m) p = Softmax<axis = -1>(s) y = ReduceSum(p, last)",
            "layout": "t = Transpose(x) c = Concat<axis = 0>(t, x) g = Gather(c, at) y = Relu(g)",
            "LayerNormalization": "y = LayerNormalization(x, b, b)",
            "Cast": "i = Cast<to = 7>(x) f = Cast<to = 11>(i) y = Cast<to = 1>(f)",
            "comparisons": "g = Greater(x, b) y = Where(g, x, w)",
        }.items():
            known = {
                "w": floats(size, size, scale=0.1),
                "b": floats(size),
                "last": np.array([-1]),
                "at": np.arange(0, size, 3),
            }
            held = {name: array for name, array in known.items() if _takes(text, name)}
            yield case(f"machinery large {what} {size}", text, x, held)
    for channels, size in ((3, 64), (16, 48)):
        known = {"w": floats(16, channels, 3, 3), "b": floats(16)}
        text = (
            "c = Conv<pads = [1, 1, 1, 1]>(x, w, b) r = Relu(c) y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)"
        )
        yield case(f"machinery large Conv {channels}", text, {"x": floats(1, channels, size, size)}, known)
        text = 'y = Resize<mode = "linear">(x, , s)'
        known = {"s": np.array([1, 1, 2, 2], dtype=np.float32)}
        yield case(f"machinery large Resize {channels}", text, {"x": floats(1, channels, size, size)}, known)
        text = "y = InstanceNormalization(x, g, g)"
        yield case(f"machinery large InstanceNormalization {channels}", text, {"x": floats(1, channels, size, size)},
                   {"g": floats(channels)})  # fmt: skip


def _odd_shapes() -> Iterator[Case]:
    """Yield tensors without elements, and without dimensions."""
    for what, text in {
        "Add": "a = Add(x, x) y = Relu(a)",
        "Concat": "a = Concat<axis = 0>(x, x) y = Relu(a)",
        "MatMul": "t = Transpose(x) y = MatMul(x, t)",
        "ReduceSum": "y = ReduceSum(x, one)",
        "Cast": "c = Cast<to = 7>(x) y = Cast<to = 1>(c)",
        "Shape": "s = Shape(x) f = Cast<to = 1>(s) y = Neg(f)",
        "NonZero": "n = NonZero(x) y = Cast<to = 1>(n)",
        "Reshape": "y = Reshape<allowzero = 1>(x, none)",
        "Slice": "y = Slice(x, one, one)",
        "Softmax": "y = Softmax<axis = -1>(x)",
    }.items():
        for shape in ((0, 4), (3, 0)):
            known = {"one": np.array([1]), "none": np.array([0, 7])}
            held = {name: array for name, array in known.items() if _takes(text, name)}
            inputs = {"x": np.zeros(shape, dtype=np.float32)}
            name = f"machinery no elements {what} {shape[0]}x{shape[1]}"
            yield case(name, text, inputs, held, shapes={"x": ["n", "m"]})
    for what, text in {
        "arithmetic": "a = Add(x, x) b = Sqrt(a) y = Mul(b, x)",
        "Unsqueeze": "u = Unsqueeze(x, zero) y = Concat<axis = 0>(u, u)",
        "Expand": "y = Expand(x, shape)",
        "Where": "g = Greater(x, half) y = Where(g, x, half)",
    }.items():
        for dtype in ("float32", "float64"):
            known = {"zero": np.array([0]), "shape": np.array([2, 3]), "half": np.array(0.5).astype(dtype)}
            held = {name: array for name, array in known.items() if _takes(text, name)}
            inputs = {"x": np.array(2).astype(dtype)}
            yield case(f"machinery no dimensions {what} {dtype}", text, inputs, held, outputs=f"y:{dtype}")
    text = "f = Flatten(x) m = MatMul(f, w) r = Relu(m) s = Shape(r) y = Reshape(r, s)"
    for rows in (1, 5):
        inputs = {"x": floats(rows, 2, 3)}
        name = f"machinery open shape {rows}"
        yield case(name, text, inputs, {"w": floats(6, 4)}, shapes={"x": ["batch", 2, 3]})


def _versions() -> Iterator[Case]:
    """Yield one small network as each opset has it."""
    for opset in _OPSETS:
        for activation in ("Relu",):
            axes = "<axes = [2, 3]>(g)" if opset < 13 else "(g, axes)"
            text = (
                f"c = Conv<pads = [1, 1, 1, 1]>(x, w, b) n = BatchNormalization(c, s, b, b, v) r = {activation}(n)"
                " p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r) d = Dropout(p) g = GlobalAveragePool(d)"
                f" q = Squeeze{axes} m = Gemm<transB = 1>(q, k, b) y = Softmax<axis = 1>(m)"
            )
            known = {
                "w": floats(4, 3, 3, 3),
                "b": floats(4),
                "s": floats(4) + 1,
                "v": floats(4) ** 2 + 1,
                "k": floats(4, 4),
            }
            held = known | ({} if opset < 13 else {"axes": np.array([2, 3])})
            yield case(f"machinery opset {opset} {activation}", text, {"x": floats(1, 3, 6, 6)}, held, opset=opset)


def _functions() -> Iterator[Case]:
    """Yield models with functions of their own, one of them in another, and with an attribute."""
    once, opset = '["": 17]', '["": 17, "local": 1]'
    bodies = [
        f'<domain: "local", opset_import: {once}> twice (a) => (b) {{ h = Add(a, a) b = Relu(h) }}',
        f'<domain: "local", opset_import: {opset}> more (a) => (b) {{ h = local.twice(a) b = local.twice(h) }}',
        f'<domain: "local", opset_import: {once}> leaky <s> (a) => (b) {{ b = LeakyRelu<alpha: float = @s>(a) }}',
    ]
    for what, text in {
        "one": "y = local.twice(x)",
        "nested": "y = local.more(x)",
        "several": "a = local.twice(x) b = local.more(a) y = Sub(b, x)",
        "attribute": "a = local.leaky<s = 0.3>(x) y = local.leaky<s = 0.1>(a)",
    }.items():
        for dtype in ("float32", "float16"):
            x = floats(2, 3).astype(dtype)
            made = model("y = Relu(x)", {"x": x}, outputs=f"y:{dtype}", opset=17, versions={"local": 1})
            del made.graph.node[:]
            made.graph.node.extend(nodes(text))
            made.functions.extend(parser.parse_function(body) for body in bodies)
            made.ir_version = 8
            yield of_model(f"machinery function {what} {dtype}", made, {"x": x})
