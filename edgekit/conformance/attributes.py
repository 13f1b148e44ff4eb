"""Operators under attributes, shapes and versions of which the standard cases have but one, or none."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import case, floats, integers, used
from edgekit.conformance.cases import Case
from edgekit.records.tensors import Array

_COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
_TRIGONOMETRY = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan")


def cases() -> tuple[Case, ...]:
    """Return the cases, about 250."""
    return (
        *_resized(),
        *_pools(),
        *_scattered(),
        *_control(),
        *_optional(),
        *_elementwise(),
        *_expanded(),
        *_further(),
    )


def _resized() -> Iterator[Case]:
    x = {"x": floats(1, 2, 4, 6)}
    for coordinates in _COORDINATES:
        for mode in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"):
            stated = f'coordinate_transformation_mode = "{coordinates}", nearest_mode = "{mode}", mode = "nearest"'
            for sizes in ([1, 2, 7, 8], [1, 2, 3, 3]):
                text = f"y = Resize<{stated}>(x, , , sizes)"
                yield case(f"Resize {coordinates} {mode} {sizes[2]}", text, x, {"sizes": np.array(sizes)})
        for mode in ("linear", "cubic"):
            for opset in (11, 19):
                text = f'y = Resize<coordinate_transformation_mode = "{coordinates}", mode = "{mode}">(x, roi, , sizes)'
                for sizes in ([1, 2, 7, 8], [1, 2, 3, 3]):
                    held = {"sizes": np.array(sizes), "roi": np.zeros(8, dtype=np.float32)}
                    if opset == 11:  # an empty name is no scales there
                        text, held["s"] = text.replace("roi, ,", "roi, s,"), np.zeros(0, dtype=np.float32)
                    yield case(f"Resize {coordinates} {mode} {sizes[2]} of {opset}", text, x, held, opset=opset)
    for size in (2, 4):
        held = {"s": np.array([1, 1, size, size], dtype=np.float32)}
        for mode in ("nearest", "linear"):
            text = f'y = Upsample<mode = "{mode}">(x, s)'
            yield case(f"Upsample {mode} {size}", text, x, held, opset=9)
            whole = f'y = Upsample<mode = "{mode}", scales = [1.0, 1.0, {size}.0, {size}.0]>(x)'
            yield case(f"Upsample {mode} {size} of 7", whole, x, opset=7)


def _pools() -> Iterator[Case]:
    for rank in (1, 2, 3):
        x = {"x": floats(2, 3, *[7] * rank)}
        for stated in ("", f", strides = {[2] * rank}", f", pads = {[1] * (2 * rank)}", ', auto_pad = "SAME_UPPER"'):
            for op_type in ("MaxPool", "LpPool"):
                text = f"y = {op_type}<kernel_shape = {[2] * rank}{stated}>(x)"
                yield case(f"{op_type} {rank}-D {stated[2:]}".strip(), text, x)
    for dtype in ("uint8", "int8", "float64"):
        for stated in ("kernel_shape = [3, 3]", "kernel_shape = [2, 2], strides = [2, 2]"):
            x = {"x": integers(1, 2, 6, 6, high=99).astype(dtype)}
            yield case(f"MaxPool {dtype} {stated}", f"y = MaxPool<{stated}>(x)", x, outputs=f"y:{dtype}")
    for size in (4, 6):
        x = {"x": floats(1, 1, size, size)}
        text = (
            "m, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)"
            " y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(m, i, shape)"
        )
        yield case(f"MaxUnpool to shape {size}", text, x, {"shape": np.array([1, 1, size, size])})
        given = {"m": floats(1, 1, 2, 2), "i": np.array([[[[0, 2], [8, 10]]]]), "shape": np.array([1, 1, size, size])}
        text = "y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(m, i, shape)"
        yield case(f"MaxUnpool alone {size}", text, given)
        columns = {"x": floats(1, 5, 4 * size), "image": np.array([4, size, 5]), "block": np.array([1, 1, 5])}
        yield case(f"Col2Im 3-D {size}", "y = Col2Im(x, image, block)", columns, outputs="y::5")
        given = {"x": floats(1, 1, size, size), "w": floats(1, 1, 2, 2), "o": floats(1, 8, size - 1, size - 1)}
        given |= {"b": floats(1), "m": np.abs(floats(1, 4, size - 1, size - 1))}
        text = "y = DeformConv<kernel_shape = [2, 2]>(x, w, o, b, m)"
        yield case(f"DeformConv {size}", text, given, opset=19)


def _scattered() -> Iterator[Case]:
    for reduction in ("none", "add", "mul", "min", "max"):
        for dtype in ("float32", "int64"):
            given = {
                "x": integers(3, 4, high=9).astype(dtype), "i": np.array([[0, 2, 2], [1, 1, 0]]),
                "u": integers(2, 3, high=9).astype(dtype),
            }  # fmt: skip
            for axis in (0, 1):
                text = f'y = ScatterElements<axis = {axis}, reduction = "{reduction}">(x, i, u)'
                yield case(f"ScatterElements {reduction} {dtype} {axis}", text, given, outputs=f"y:{dtype}", opset=18)
            given = {"x": given["x"], "i": np.array([[0], [2]]), "u": integers(2, 4, high=9).astype(dtype)}
            text = f'y = ScatterND<reduction = "{reduction}">(x, i, u)'
            yield case(f"ScatterND {reduction} {dtype}", text, given, outputs=f"y:{dtype}", opset=18)


def _control() -> Iterator[Case]:
    """Yield the control flow of older versions."""
    for opset in (7, 11, 13, 19):
        text = (
            "y = If(c) <then_branch = t () => (float[] a) { a = Relu(x) },"
            " else_branch = e () => (float[] b) { b = Neg(x) }>"
        )
        for taken in (True, False):
            given = {"c": np.array(taken), "x": floats(2, 3)}
            yield case(f"If {taken} of {opset}", text, given, outputs="y::2", opset=opset)
        text = (
            "y, all = Loop(n, go, x) <body = b (int64 i, bool c, float[2,3] s) =>"
            " (bool c2, float[2,3] s2, float[2,3] o) { c2 = Identity(c) s2 = Add(s, s) o = Identity(s2) }>"
        )
        for count in (1, 3):
            given = {"n": np.array(count), "go": np.array(True), "x": floats(2, 3)}
            yield case(f"Loop {count} of {opset}", text, given, outputs="y::2, all::3", opset=opset)
    body = "body = b (float[2] s, float[2] i) => (float[2] s2, float[2] o) { s2 = Add(s, i) o = Identity(s2) }"
    for length in (3, 5):
        given = {"s0": floats(1, 2), "x": floats(1, length, 2)}
        text = f"y, all = Scan<num_scan_inputs = 1, {body}>(, s0, x)"
        yield case(f"Scan {length} of 8", text, given, outputs="y::2, all::3", opset=8)
        for opset in (9, 11):
            given = {"s0": floats(2), "x": floats(length, 2)}
            text = f"y, all = Scan<num_scan_inputs = 1, {body}>(s0, x)"
            yield case(f"Scan {length} of {opset}", text, given, outputs="y::1, all::2", opset=opset)
    for count in (2, 4):
        text = (
            "e = SequenceEmpty() s = Loop(n, go, e) <body = b (int64 i, bool c, seq(float[2,3]) q) => (bool c2,"
            " seq(float[2,3]) q2) { c2 = Identity(c) q2 = SequenceInsert(q, x) }> y = ConcatFromSequence<axis = 0>(s)"
        )
        given = {"n": np.array(count), "go": np.array(True), "x": floats(2, 3)}
        yield case(f"Loop of sequence {count} of 13", text, given, outputs="y::2", opset=13)


def _optional() -> Iterator[Case]:
    x = floats(2, 3)
    for opset in (16, 18):
        for what, text in {
            "Identity": "o = Optional(x) p = Identity(o) y = OptionalGetElement(p)",
            "sequence": "s = SequenceConstruct(x, x) o = Optional(s) g = OptionalGetElement(o) y = SequenceAt(g, zero)",
            "If": "o = If(c) <then_branch = t () => (optional(float[2,3]) a) { a = Optional(x) }, else_branch = e () =>"
            " (optional(float[2,3]) b) { n = Neg(x) b = Optional(n) }> y = OptionalGetElement(o)",
        }.items():
            given: dict[str, Array] = {"x": x} | ({"c": np.array(True)} if what == "If" else {})
            held = used(text, {"zero": np.array(0)})
            yield case(f"optional {what} of {opset}", text, given, held, outputs="y::2", opset=opset)
    for what, text in {
        "tensor": "y = OptionalHasElement(x)",
        "nothing": "y = OptionalHasElement()",
        "of sequence": "s = SequenceConstruct(x, x) y = OptionalHasElement(s)",
    }.items():
        yield case(f"optional has {what}", text, {"x": x}, outputs="y:bool:0", opset=18)


def _elementwise() -> Iterator[Case]:
    for op_type in _TRIGONOMETRY:
        for shape in ((5,), (2, 40)):
            x = {"x": np.abs(floats(*shape, scale=0.2)) + (1 if op_type == "Acosh" else 0)}
            yield case(f"{op_type} {shape}", f"y = {op_type}(x)", x)
    for op_type in ("ReduceMax", "ReduceMin"):
        for axis in (0, 1):
            given = {"x": integers(3, 4, high=2).astype(bool), "axes": np.array([axis])}
            yield case(f"{op_type} bool {axis}", f"y = {op_type}(x, axes)", given, outputs="y:bool", opset=20)
    words = np.array(["ab", "b", "mail@host.org"], dtype=object)
    for pattern in ("a.*", "[a-z]+@[a-z.]+"):
        text = f'y = RegexFullMatch<pattern = "{pattern}">(x)'
        yield case(f"RegexFullMatch {pattern}", text, {"x": words}, outputs="y:bool", opset=20)
    for first in (words, words[0:1].reshape(())):
        given = {"x": first, "z": np.array("!", dtype=object).reshape(())}
        yield case(f"StringConcat {first.shape}", "y = StringConcat(x, z)", given, outputs="y:string", opset=20)
    for action in ("UPPER", "LOWER", "NONE"):
        for matters in (0, 1):
            stated = f'case_change_action = "{action}", is_case_sensitive = {matters}, locale = "C"'
            text = f'y = StringNormalizer<{stated}, stopwords = ["b"]>(x)'
            yield case(f"StringNormalizer {action} {matters}", text, {"x": words[None, :]}, outputs="y:string:2")
    for opset in (7, 9, 13):
        for matrix in (floats(2, 3), floats(4, 2, 3)):
            given = {"x": matrix, "w": floats(3, 5)}
            yield case(f"MatMul {matrix.ndim}-D of {opset}", "y = MatMul(x, w)", given, opset=opset)
            counts = np.array([2] * matrix.ndim)
            yield case(f"Tile {matrix.ndim}-D of {opset}", "y = Tile(x, n)", {"x": matrix, "n": counts}, opset=opset)
    for kinds in (("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8")):
        given = {"x": integers(3, 4).astype(kinds[0]), "w": integers(4, 5).astype(kinds[1])}
        yield case(
            f"MatMulInteger of inputs {kinds[0]} {kinds[1]}", "y = MatMulInteger(x, w)", given, outputs="y:int32"
        )


def _expanded() -> Iterator[Case]:
    """Yield graphs as the functions of ONNX expand to, in float16 and float32."""
    for dtype in ("float32", "float16"):
        for heads in (2, 3):
            given = {"x": floats(1, heads, 4, 8).astype(dtype), "c": floats(1, 1, 4, 4).astype(dtype)}
            given["s"] = (given["c"] * 2).astype(dtype)
            held = {"n": np.array([4, 4]), "axis": np.array([3])}
            text = (
                "a, b = Split<axis = -1>(x, n) ac = Mul(c, a) bs = Mul(s, b) r = Sub(ac, bs) as1 = Mul(s, a)"
                " bc = Mul(c, b) i = Add(as1, bc) y = Concat<axis = -1>(r, i)"
            )
            yield case(f"expanded rotary {dtype} {heads}", text, given, used(text, held), outputs=f"y:{dtype}")
            given = {name: floats(1, heads, 4, 8, scale=k).astype(dtype) for k, name in enumerate("qkv", 1)}
            text = (
                "t = Transpose<perm = [0, 1, 3, 2]>(k) m = MatMul(q, t) r = Range(zero, four, one)"
                " u = Unsqueeze(r, last) g = GreaterOrEqual(u, r) l = Where(g, none, far) f = CastLike(l, q)"
                " a = Add(m, f) p = Softmax<axis = -1>(a) y = MatMul(p, v)"
            )
            held = {
                "zero": np.array(0), "four": np.array(4), "one": np.array(1), "last": np.array([-1]),
                "none": np.array(0, dtype=np.float32), "far": np.array(-1e4, dtype=np.float32),
            }  # fmt: skip
            yield case(f"expanded attention {dtype} {heads}", text, given, held, outputs=f"y:{dtype}")


def _further() -> Iterator[Case]:
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], dtype=np.float32)
    scores = np.array([[[0.9, 0.75, 0.6]]], dtype=np.float32)
    for opset in (10, 11):
        for centred in (0, 1):
            text = f"y = NonMaxSuppression<center_point_box = {centred}>(boxes, scores, most, overlap, least)"
            given: dict[str, Array] = {"boxes": boxes, "scores": scores, "most": np.array([2])}
            given |= {"overlap": np.array([0.5], dtype=np.float32), "least": np.array([0.1], dtype=np.float32)}
            yield case(f"NonMaxSuppression {centred} of {opset}", text, given, outputs="y:int64", opset=opset)
    for dtype, number in (("int4", 22), ("uint4", 21)):
        for shape in ((4,), (3, 5)):
            text = f"q = QuantizeLinear<output_dtype = {number}>(x, s) y = DequantizeLinear(q, s)"
            held = {"s": np.array(0.1, dtype=np.float32)}
            yield case(f"QuantizeLinear {dtype} {len(shape)}-D", text, {"x": floats(*shape)}, held)
    for op_type in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for size in (5, 8):
            yield case(f"{op_type} {size}", f"y = {op_type}(n)", {"n": np.array(size)}, outputs="y::1", opset=17)
    for size in (8, 16):
        given = {"x": floats(1, size, 1)}
        yield case(f"DFT {size}", "y = DFT<onesided = 1>(x)", given, opset=17)
