"""Matrix products, normalizations and the parts of transformers, written out as exporters write them."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import case, floats, integers, used
from edgekit.conformance.cases import Case
from edgekit.records.tensors import Array

_HIDDEN = 16
_LAYER_NORM = """
    mean = ReduceMean<axes = [-1]>({0}) centred = Sub({0}, mean) square = Pow(centred, two)
    variance = ReduceMean<axes = [-1]>(square) stable = Add(variance, epsilon) root = Sqrt(stable)
    normal = Div(centred, root) scaled = Mul(normal, gain) {1} = Add(scaled, shift)
"""
_GELU = """
    scaled{0} = Div({0}, root_two) error{0} = Erf(scaled{0}) raised{0} = Add(error{0}, one)
    half{0} = Mul({0}, raised{0}) {1} = Mul(half{0}, one_half)
"""
_TANH_GELU = """
    cube = Pow({0}, three) part = Mul(cube, cubic) inner = Add({0}, part) outer = Mul(inner, root_pi)
    tanh = Tanh(outer) raised = Add(tanh, one) half = Mul({0}, one_half) {1} = Mul(half, raised)
"""

# Text by what it is; "x" is the input, of [batch, length, hidden] where no other shape is stated.
_TRANSFORMER = {
    "LayerNormalization": _LAYER_NORM.format("x", "y"),
    "LayerNormalization by Mul": _LAYER_NORM.format("x", "y").replace("Pow(centred, two)", "Mul(centred, centred)"),
    "SkipLayerNormalization": f"s = Add(x, x2) {_LAYER_NORM.format('s', 'y')}",
    "SkipLayerNormalization with bias": f"a = Add(x, bias) s = Add(a, x2) {_LAYER_NORM.format('s', 'y')}",
    "SkipLayerNormalization, sum used": f"s = Add(x, x2) {_LAYER_NORM.format('s', 'n')} y = Add(n, s)",
    "RMSNormalization": "p = Pow(x, two) m = ReduceMean<axes = [-1]>(p) e = Add(m, epsilon) r = Sqrt(e) d = Div(x, r)"
    " y = Mul(d, gain)",
    "RMSNormalization by Reciprocal": "p = Mul(x, x) m = ReduceMean<axes = [-1]>(p) e = Add(m, epsilon) r = Sqrt(e)"
    " q = Reciprocal(r) d = Mul(x, q) y = Mul(d, gain)",
    "SkipRMSNormalization": "s = Add(x, x2) p = Pow(s, two) m = ReduceMean<axes = [-1]>(p) e = Add(m, epsilon)"
    " r = Sqrt(e) d = Div(s, r) y = Mul(d, gain)",
    "Gelu": _GELU.format("x", "y"),
    "Gelu by Mul": _GELU.format("x", "y").replace("Div(x, root_two)", "Mul(x, one_half)"),
    "BiasGelu": f"b = Add(x, bias) {_GELU.format('b', 'y')}",
    "BiasGelu after MatMul": f"m = MatMul(x, square_w) b = Add(m, bias) {_GELU.format('b', 'y')}",
    "FastGelu": _TANH_GELU.format("x", "y"),
    "FastGelu with bias": f"b = Add(x, bias) {_TANH_GELU.format('b', 'y')}",
    "FastGelu after MatMul": f"m = MatMul(x, square_w) b = Add(m, bias) {_TANH_GELU.format('b', 'y')}",
    "QuickGelu": "a = Mul(x, quick) s = Sigmoid(a) y = Mul(x, s)",
    "QuickGelu of one": "s = Sigmoid(x) y = Mul(x, s)",
    "BiasSoftmax": "b = Add(x, x2) y = Softmax<axis = -1>(b)",
    "BiasSoftmax broadcast": "b = Add(x, bias) y = Softmax<axis = -1>(b)",
    "Softmax in parts": "m = ReduceMax<axes = [-1]>(x) s = Sub(x, m) e = Exp(s) t = ReduceSum(e, last)"
    " y = Div(e, t)",
    "LogSoftmax": "m = MatMul(x, square_w) y = LogSoftmax<axis = -1>(m)",
    "Softmax inner axis": "m = MatMul(x, square_w) y = Softmax<axis = 1>(m)",
    "ReduceSum of squares": "p = Mul(x, x) s = ReduceSum(p, last) r = Sqrt(s) y = Div(x, r)",
    "L2 normalization": "n = ReduceL2<axes = [-1]>(x) c = Clip(n, epsilon) y = Div(x, c)",
    "feed-forward": f"m = MatMul(x, square_w) b = Add(m, bias) {_GELU.format('b', 'g')} n = MatMul(g, square_w)"
    " o = Add(n, bias) y = Add(o, x)",
}  # fmt: skip

_PRODUCTS = {
    "MatMul": "y = MatMul(x, w)",
    "MatMul+Add": "m = MatMul(x, w) y = Add(m, bias)",
    "MatMul+Add scalar": "m = MatMul(x, w) y = Add(m, scalar)",
    "MatMul+Add+Relu": "m = MatMul(x, w) a = Add(m, bias) y = Relu(a)",
    "MatMul+Mul": "m = MatMul(x, w) y = Mul(m, scalar)",
    "MatMul+Div": "m = MatMul(x, w) y = Div(m, scalar)",
    "Mul+MatMul": "s = Mul(x, scalar) y = MatMul(s, w)",
    "MatMul of computed": "p = Mul(w, scalar) y = MatMul(x, p)",
    "MatMul of input": "y = MatMul(x, x3)",
    "Transpose+MatMul of input": "t = Transpose(x3) u = Transpose(t) y = MatMul(x, u)",
    "MatMul+BatchNormalization": "m = MatMul(x, w) y = BatchNormalization(m, bias, bias, bias, variance)",
    "Transpose+MatMul": "t = Transpose<perm = [1, 0]>(v) y = MatMul(x, t)",
    "Gemm": "y = Gemm(x, w, bias)",
    "Gemm without bias": "y = Gemm(x, w)",
    "Gemm scaled": "y = Gemm<alpha = 0.5, beta = 2.0>(x, w, bias)",
    "Gemm transposed": "y = Gemm<transB = 1>(x, v, bias)",
    "Gemm of column bias": "y = Gemm(x, w, column)",
    "Gemm of scalar bias": "y = Gemm(x, w, single)",
    "Gemm of full bias": "y = Gemm(x, w, full)",
    "Transpose+Gemm": "t = Transpose(v) y = Gemm(x, t, bias)",
    "Transpose+Gemm transposed": "t = Transpose(x) y = Gemm<transA = 1>(t, w, bias)",
    "Gemm+Relu": "g = Gemm(x, w, bias) y = Relu(g)",
    "Gemm+LeakyRelu": "g = Gemm(x, w, bias) y = LeakyRelu(g)",
    "Gemm+Sigmoid": "g = Gemm(x, w, bias) y = Sigmoid(g)",
    "Gemm+Tanh": "g = Gemm(x, w, bias) y = Tanh(g)",
    "Gemm+Softplus": "g = Gemm(x, w, bias) y = Softplus(g)",
    "Gemm+Elu": "g = Gemm(x, w, bias) y = Elu(g)",
    "Gemm+Transpose": "g = Gemm(x, w, bias) y = Transpose(g)",
    "Gemm+Sum": "g = Gemm(x, w) y = Sum(g, full)",
    "Gemm+Gemm": "g = Gemm(x, w, bias) r = Relu(g) y = Gemm<transA = 0, transB = 1>(r, w, )",
    "Gemm+Dropout+Softmax": "g = Gemm(x, w, bias) d = Dropout(g) y = Softmax<axis = 1>(d)",
    "Gemm of computed": "p = Mul(w, scalar) y = Gemm(x, p, bias)",
}


def cases() -> tuple[Case, ...]:
    """Return the cases, about 180."""
    return (*_transformers(), *_products(), *_batched(), *_attentions(), *_embeddings(), *_precisions())


def _constants(hidden: int = _HIDDEN) -> dict[str, Array]:
    numbers = {
        "two": 2, "three": 3, "one": 1, "one_half": 0.5, "epsilon": 1e-5, "root_two": np.sqrt(2), "cubic": 0.044715,
        "root_pi": np.sqrt(2 / np.pi), "quick": 1.702,
    }  # fmt: skip
    found: dict[str, Array] = {name: np.array(value, dtype=np.float32) for name, value in numbers.items()}
    vectors = {"gain": floats(hidden) + 1, "shift": floats(hidden), "bias": floats(hidden, scale=0.3)}
    return found | vectors | {"square_w": floats(hidden, hidden, scale=0.2), "last": np.array([-1])}


def _transformers() -> Iterator[Case]:
    for what, text in _TRANSFORMER.items():
        for hidden, shape in ((_HIDDEN, (2, 4, _HIDDEN)), (64, (1, 32, 64))):
            inputs = used(text, {"x": floats(*shape), "x2": floats(*shape, scale=0.7)})
            for dtype in ("float32", "float16") if hidden == _HIDDEN else ("float32",):
                constants = used(text, _constants(hidden))
                if dtype == "float16":
                    inputs = {name: array.astype(dtype) for name, array in inputs.items()}
                    constants = {n: a.astype(dtype) if a.dtype == "float32" else a for n, a in constants.items()}
                name = f"fusion {what} {hidden} {dtype}"
                yield case(name, text, inputs, constants, outputs=f"y:{dtype}", opset=17)


def _products() -> Iterator[Case]:
    for what, text in _PRODUCTS.items():
        for m, k, n in ((2, 4, 3), (64, 96, 80)):
            known = {
                "w": floats(k, n), "v": floats(n, k), "bias": floats(n), "scalar": np.array(0.5, dtype=np.float32),
                "column": floats(m, 1), "single": floats(1), "full": floats(m, n), "variance": np.abs(floats(n)) + 1,
            }  # fmt: skip
            inputs = used(text, {"x": floats(m, k), "x3": floats(k, n)})
            yield case(f"fusion {what} {m}x{k}x{n}", text, inputs, used(text, known), opset=13)


def _batched() -> Iterator[Case]:
    texts = {
        "MatMul": "y = MatMul(x, w)",
        "MatMul+Add": "m = MatMul(x, w) y = Add(m, bias)",
        "MatMul of input": "y = MatMul(x, x2)",
        "Transpose+MatMul": "t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(t, x2)",
        "MatMul+Transpose": "t = Transpose<perm = [0, 2, 1]>(x2) y = MatMul(x, t)",
        "Transpose of both": "t = Transpose<perm = [0, 2, 1]>(x) u = Transpose<perm = [0, 2, 1]>(x2) y = MatMul(t, u)",
        "scaled MatMul": "t = Transpose<perm = [0, 2, 1]>(x2) m = MatMul(x, t) y = Div(m, eight)",
        "MatMul of vector": "y = MatMul(x, bias)",
        "Einsum": 'y = Einsum<equation = "bij,bjk->bik">(x, x2)',
        "Einsum transposed": 'y = Einsum<equation = "bij,bkj->bki">(x, x2)',
        "Cast+Transpose+MatMul": "c = Cast<to = 1>(x) t = Transpose<perm = [0, 2, 1]>(c) y = MatMul(t, x2)",
    }
    for what, text in texts.items():
        for batch, size in ((3, 40),):
            inputs = used(text, {"x": floats(batch, size, size), "x2": floats(batch, size, size, scale=0.7)})
            known = {"w": floats(size, size), "bias": floats(size), "eight": np.array(8, dtype=np.float32)}
            yield case(f"fusion batched {what} {size}", text, inputs, used(text, known))


def _heads(name: str, source: str, perm: str = "[0, 2, 1, 3]") -> str:
    return (
        f"m{name} = MatMul({source}, w{name}) b{name} = Add(m{name}, bias{name}) r{name} = Reshape(b{name}, heads)"
        f" {name} = Transpose<perm = {perm}>(r{name}) "
    )


def _attentions() -> Iterator[Case]:
    """Yield self-attention as exporters of BERT, GPT and vision models write it."""
    hidden, heads, length = 16, 2, 4
    size = hidden // heads
    weights: dict[str, Array] = {
        "heads": np.array([0, 0, heads, size]), "flat": np.array([0, 0, hidden]), "wo": floats(hidden, hidden),
        "scale": np.array(np.sqrt(size), dtype=np.float32), "one": np.array(1, dtype=np.float32),
        "far": np.array(-10000, dtype=np.float32), "axes": np.array([1]), "axes2": np.array([2]),
        "wqkv": floats(hidden, 3 * hidden, scale=0.2), "biasqkv": floats(3 * hidden),
    }  # fmt: skip
    for name in "qkv":
        weights |= {f"w{name}": floats(hidden, hidden, scale=0.2), f"bias{name}": floats(hidden)}
    weights |= {name: array for name, array in _constants(hidden).items() if name not in weights}
    layer = _LAYER_NORM.format("x", "n")
    packed = "p = MatMul({0}, wqkv) pb = Add(p, biasqkv) q0, k0, v0 = Split<axis = 2>(pb)" + "".join(
        f" r{name} = Reshape({name}0, heads) {name} = Transpose<perm = {perm}>(r{name})"
        for name, perm in (("q", "[0, 2, 1, 3]"), ("k", "[0, 2, 3, 1]"), ("v", "[0, 2, 1, 3]"))
    )
    separate = _heads("q", "{0}") + _heads("k", "{0}", "[0, 2, 3, 1]") + _heads("v", "{0}")
    mask = (
        "u1 = Unsqueeze(mask, axes) u2 = Unsqueeze(u1, axes2) f = Cast<to = 1>(u2) i = Sub(one, f) far_f = Mul(i, far)"
    )
    scores = " s = MatMul(q, k) d = Div(s, scale)"
    ending = (
        " pr = Softmax<axis = -1>({0}) c = MatMul(pr, v) t = Transpose<perm = [0, 2, 1, 3]>(c) o = Reshape(t, flat)"
    )
    final = " ob = MatMul(o, wo) oc = Add(ob, biasq) y = Add(oc, {0})"
    for what, projected in {"separate": separate, "packed": packed}.items():
        for normal in (True, False):
            source = "n" if normal else "x"
            head = (layer if normal else "") + projected.format(source)
            for masked in (True, False):
                middle = f"{mask} {scores} e = Add(d, far_f)" if masked else scores
                text = head + middle + ending.format("e" if masked else "d") + final.format(source)
                inputs = {"x": floats(2, length, hidden)}
                if masked:
                    inputs["mask"] = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
                label = f"{what}{' normalized' if normal else ''}{' masked' if masked else ''}"
                yield case(f"fusion attention {label}", text, inputs, used(text, weights), opset=13)


def _embeddings() -> Iterator[Case]:
    """Yield what makes a sequence of vectors from token numbers, with a LayerNormalization behind."""
    hidden, length = 16, 6
    weights = _constants(hidden) | {
        "words": floats(30, hidden),
        "positions": floats(1, length, hidden),
        "table": floats(length, hidden),
        "segments": floats(2, hidden),
        "order": np.arange(length)[None],
    }
    ids = integers(2, length, high=30)
    for dtype in ("int64", "int32"):
        for what, text in {
            "words": "s = Gather(words, ids)",
            "words and positions": "g = Gather(words, ids) p = Gather(table, order) s = Add(g, p)",
            "words, positions, segments": "g = Gather(words, ids) p = Gather(table, order) t = Gather(segments, kinds)"
            " a = Add(g, p) s = Add(a, t)",
            "words and constant positions": "g = Gather(words, ids) s = Add(g, positions)",
        }.items():
            whole = f"{text} {_LAYER_NORM.format('s', 'y')}"
            inputs = {"ids": ids.astype(dtype)}
            if "kinds" in whole:
                inputs["kinds"] = (ids % 2).astype(dtype)
            yield case(
                f"fusion embedding of {what} {dtype}", whole, inputs, used(whole, weights), opset=13, outputs="y::3"
            )


def _precisions() -> Iterator[Case]:
    """Yield products in other dtypes, and with Casts that can move or vanish."""
    for dtype in ("float16", "float64"):
        for m, k, n in ((48, 64, 40),):
            x, w, bias = (a.astype(dtype) for a in (floats(m, k), floats(k, n), floats(n)))
            for what in ("MatMul", "MatMul+Add", "Gemm", "Gemm+Relu", "Transpose+Gemm", "Gemm transposed"):
                known = {"w": w, "bias": bias, "v": w.T.copy()}
                text = _PRODUCTS[what]
                name = f"fusion {what} {dtype} {m}x{k}x{n}"
                yield case(name, text, {"x": x}, used(text, known), outputs=f"y:{dtype}")
    for what, text in {
        "around MatMul": "a = Cast<to = 10>(x) b = Cast<to = 1>(a) m = MatMul(b, w) c = Cast<to = 10>(m)"
        " y = Cast<to = 1>(c)",
        "of float16 parts": "h = Cast<to = 10>(x) v = Cast<to = 10>(w) m = MatMul(h, v) r = Relu(m)"
        " y = Cast<to = 1>(r)",
        "through shapes": "h = Cast<to = 10>(x) t = Transpose(h) r = Reshape(t, flat) y = Cast<to = 1>(r)",
    }.items():  # fmt: skip
        known = {"w": floats(8, 8), "flat": np.array([-1])}
        yield case(f"fusion Cast {what}", text, {"x": floats(8, 8)}, used(text, known))
