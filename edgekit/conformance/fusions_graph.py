"""Graphs that a runtime rewrites without arithmetic: what does nothing, is constant, or can be moved, is taken out."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import case, floats, integers, used
from edgekit.conformance.cases import Case
from edgekit.records.tensors import Array

# By what is rewritten: text, of a float input x of [2, 3, 4, 4], and constants. ToLast and ToFirst stand for the
# Transpose that makes channels the last axis, and for the one back.
_TEXTS = {
    "Identity": "a = Identity(x) b = Identity(a) y = Relu(b)",
    "Identity to output": "a = Relu(x) y = Identity(a)",
    "Dropout": "a = Dropout(x) y = Relu(a)",
    "Dropout with ratio": "a, m = Dropout(x, half) y = Relu(a)",
    "Cast to the same": "a = Cast<to = 1>(x) y = Relu(a)",
    "Cast there and back": "a = Cast<to = 11>(x) b = Cast<to = 1>(a) y = Relu(b)",
    "Cast chain": "a = Cast<to = 6>(x) b = Cast<to = 7>(a) c = Cast<to = 9>(b) y = Cast<to = 1>(c)",
    "Add of zero": "a = Add(x, nought) y = Relu(a)",
    "Sub of zero": "a = Sub(x, nought) y = Relu(a)",
    "Mul of one": "a = Mul(x, unit) y = Relu(a)",
    "Div of one": "a = Div(x, unit) y = Relu(a)",
    "Div+Mul": "a = Div(unit, x) y = Mul(x, a)",
    "Div+Mul of another": "a = Div(unit, half) y = Mul(x, a)",
    "Slice of everything": "a = Slice(x, zero, most, zero) y = Relu(a)",
    "Slice twice": "a = Slice(x, zero, two, one) b = Slice(a, zero, two, three) y = Relu(b)",
    "Slice as Split": "a = Slice(x, zero, two, three) b = Slice(x, two, most, three) y = Mul(a, b)",
    "Slices of one input": "a = Slice(x, zero, one, one) b = Slice(x, one, two, one) c = Slice(x, two, three, one)"
    " y = Concat<axis = 1>(c, a, b)",
    "Gather as Split": "a = Gather<axis = 1>(x, s0) b = Gather<axis = 1>(x, s1) c = Gather<axis = 1>(x, s2)"
    " d = Add(a, b) y = Add(d, c)",
    "Gather as Slice": "a = Gather<axis = 1>(x, ordered) y = Relu(a)",
    "Gather as Split, unsqueezed": "a = Gather<axis = 1>(x, one) b = Gather<axis = 1>(x, zero) y = Add(a, b)",
    "Range+Gather": "r = Range(s0, s2, s1) a = Gather<axis = 1>(x, r) y = Relu(a)",
    "Expand to the same": "a = Expand(x, ones) y = Relu(a)",
    "Transpose twice": "a = ToLast(x) b = ToFirst(a) y = Relu(b)",
    "Transpose through": "a = ToLast(x) b = Relu(a) c = Add(b, half) y = ToFirst(c)",
    "Transpose through Concat": "a = ToLast(x) c = Concat<axis = 3>(a, a) y = ToFirst(c)",
    "Transpose through Split":
    "a = ToLast(x) b, c = Split<axis = 1, num_outputs = 2>(a) d = Add(b, c)"
    " y = ToFirst(d)",
    "Transpose through Softmax": "a = ToLast(x) b = Softmax<axis = 3>(a) y = ToFirst(b)",
    "Transpose through ReduceMean": "a = ToLast(x) b = ReduceMean(a, one) y = ToFirst(b)",
    "Transpose through Reduce, not kept": "a = ToLast(x) y = ReduceSum<keepdims = 0>(a, one)",
    "Transpose through Pad": "a = ToLast(x) b = Pad(a, pads) y = ToFirst(b)",
    "Transpose through Slice": "a = ToLast(x) b = Slice(a, zero, two, one) y = ToFirst(b)",
    "Transpose through Squeeze": "u = Unsqueeze(x, zero) a = Transpose<perm = [0, 1, 3, 4, 2]>(u) b = Squeeze(a, zero)"
    " y = ToFirst(b)",
    "Transpose through Unsqueeze": "a = ToLast(x) b = Unsqueeze(a, zero) y = Transpose<perm = [0, 1, 4, 2, 3]>(b)",
    "Transpose through Resize": 'a = ToLast(x) b = Resize<mode = "nearest">(a, , scales)'
    " y = ToFirst(b)",
    "Transpose through Where": "a = ToLast(x) g = Greater(a, half) b = Where(g, a, half)"
    " y = ToFirst(b)",
    "Transpose through Tile": "a = ToLast(x) b = Tile(a, twice) y = ToFirst(b)",
    "Transpose through Gather": "a = ToLast(x) b = Gather<axis = 3>(a, ordered) y = ToFirst(b)",
    "Transpose through ArgMax": "a = ToLast(x) i = ArgMax<axis = 3>(a) y = Cast<to = 1>(i)",
    "Transpose through MaxPool": "a = Transpose<perm = [0, 1, 3, 2]>(x) b = MaxPool<kernel_shape = [2, 2]>(a)"
    " y = Transpose<perm = [0, 1, 3, 2]>(b)",
    "Transpose of a constant": "t = Transpose<perm = [1, 0]>(table) m = MatMul(x, t) y = Relu(m)",
    "Transpose as Reshape": "u = Unsqueeze(x, zero) y = Transpose<perm = [1, 0, 2, 3, 4]>(u)",
    "Reshape twice": "a = Reshape(x, flat) b = Reshape(a, rows) y = Relu(b)",
    "Reshape to the same": "a = Reshape(x, shape) y = Relu(a)",
    "Reshape+Transpose": "a = Reshape(x, rows) b = Transpose(a) y = Relu(b)",
    "Unsqueeze of constant": "u = Unsqueeze(vector, back) y = Add(x, u)",
    "Unsqueeze+Squeeze": "a = Unsqueeze(x, zero) b = Squeeze(a, zero) y = Relu(b)",
    "Shape+Gather+Reshape": "s = Shape(x) g = Gather(s, zero) c = Concat<axis = 0>(g, minus) y = Reshape(x, c)",
    "Shape+Slice+Reshape": "s = Shape(x) g = Slice(s, zero, one, zero) c = Concat<axis = 0>(g, minus)"
    " y = Reshape(x, c)",
    "Shape of Relu": "r = Relu(x) s = Shape(r) f = ConstantOfShape(s) y = Add(f, r)",
    "Shape+Cast+Mul+Resize": "s = Shape(x) f = Cast<to = 1>(s) m = Mul(f, scales) z = Cast<to = 7>(m)"
    ' y = Resize<mode = "nearest">(x, , , z)',
    "Shape+Gather scalar+Unsqueeze": "s = Shape(x) a = Gather(s, s0) b = Unsqueeze(a, zero)"
    " c = Concat<axis = 0>(b, minus) y = Reshape(x, c)",
    "Shape+Gather products": "s = Shape(x) a = Gather(s, s0) b = Gather(s, s1) m = Mul(a, b) u = Unsqueeze(m, zero)"
    " c = Concat<axis = 0>(u, minus) y = Reshape(x, c)",
    "Size": "n = Size(x) f = Cast<to = 1>(n) y = Div(x, f)",
    "constants": "a = Add(vector, vector) b = Mul(a, vector) c = Sqrt(b) u = Unsqueeze(c, back) y = Add(x, u)",
    "constant Shape": "s = Shape(vector) f = Cast<to = 1>(s) y = Mul(x, f)",
    "constant Range": "r = Range(s0, s3, s1) f = Cast<to = 1>(r) u = Unsqueeze(f, back) y = Add(x, u)",
    "ConstantOfShape": "c = ConstantOfShape(shape) y = Add(x, c)",
    "same twice": "a = Relu(x) b = Relu(x) y = Add(a, b)",
    "same constants": "a = Mul(x, half) b = Mul(x, half2) y = Add(a, b)",
    "Not+Where": "g = Greater(x, half) n = Not(g) y = Where(n, x, half)",
    "Where of constants": "g = Greater(x, half) y = Where(g, unit, nought)",
    "Relu+Clip": "a = Relu(x) y = Clip(a, nought, unit)",
    "Clip+Relu": "a = Clip(x, nought, unit) y = Relu(a)",
    "Clip twice": "a = Clip(x, nought, ) y = Clip(a, , unit)",
    "IsInf+ReduceSum": "a = IsInf(x) b = Cast<to = 1>(a) s = ReduceSum<keepdims = 0>(b, all) y = Greater(s, nought)",
    "Split+Concat": "a, b = Split<axis = 2, num_outputs = 2>(x) y = Concat<axis = 2>(a, b)",
    "Split by sizes": "a, b = Split<axis = 1>(x, sizes) y = Concat<axis = 1>(b, a)",
    "Split into many": "a, b, c, d = Split<axis = 3, num_outputs = 4>(x) e = Add(a, b) f = Add(c, d) y = Sub(e, f)",
    "Concat of one": "a = Concat<axis = 1>(x) y = Relu(a)",
    "Concat of constants": "a = Concat<axis = 0>(vector, vector) b = Reshape(a, pair) y = Mul(x, half)",
    "space to depth by Slice": "a = Slice(x, z2, most2, hw, s2x) b = Slice(x, i2, most2, hw, s2x)"
    " y = Concat<axis = 1>(a, b)",
    "Pow of two": "y = Pow(x, deuce)",
    "Pow of half": "a = Abs(x) y = Pow(a, half)",
    "Exp+Log": "a = Abs(x) b = Add(a, unit) c = Log(b) d = Exp(c) y = Neg(d)",
    "trigonometry": "a = Cos(x) b = Sin(x) c = Mul(a, a) d = Mul(b, b) y = Add(c, d)",
    "Sum+Mean+Max+Min": "a = Sum(x, x, half) b = Mean(x, a) c = Max(a, b, x) d = Min(c, a) y = Sub(d, b)",
    "comparisons": "g = GreaterOrEqual(x, nought) l = LessOrEqual(x, unit) a = And(g, l) y = Where(a, x, half)",
    "logic": "g = Greater(x, nought) l = Less(x, half) o = Or(g, l) e = Xor(g, l) n = Not(e) a = And(o, n)"
    " y = Cast<to = 1>(a)",
    "ArgMax+GatherElements": "i = ArgMax<axis = 1>(x) y = GatherElements<axis = 1>(x, i)",
    "TopK+Gather": "v, i = TopK<axis = 3>(x, two) f = Cast<to = 1>(i) y = Mul(v, f)",
    "ScatterElements": "i = ArgMax<axis = 1>(x) u = ReduceMax(x, one) y = ScatterElements<axis = 1>(x, i, u)",
    "ScatterND": "y = ScatterND(x, place, x1)",
    "NonZero+GatherND": "g = Greater(x, nought) n = NonZero(g) t = Transpose(n) y = GatherND(x, t)",
    "CumSum+Mod": "c = CumSum(x, s1) a = Abs(c) y = Mod<fmod = 1>(a, unit)",
    "OneHot": "i = ArgMax<axis = 1, keepdims = 0>(x) y = OneHot<axis = 1>(i, depth, offon)",
    "ReduceMax+Exp": "m = ReduceMax(x, one) s = Sub(x, m) e = Exp(s) t = ReduceSum(e, one) y = Div(e, t)",
    "ReduceMean+ReduceSum": "a = ReduceMean(x, last2) b = ReduceSum(x, last2) y = Sub(a, b)",
    "every reduction": "a = ReduceL1(x, last2) b = ReduceL2(x, last2) c = ReduceLogSumExp(x, last2)"
    " d = ReduceMin(x, last2) e = ReduceProd(x, last2) f = ReduceSumSquare(x, last2) y = Sum(a, b, c, d, e, f)",
    "GlobalMaxPool+Squeeze": "a = GlobalMaxPool(x) b = Squeeze(a, last2) y = Reciprocal(b)",
    "LSTM squeezed": "r = Reshape(x, sequence) z, h = GRU<hidden_size = 4>(r, gw, gr, gb)"
    " q = Squeeze(z, one) y = Relu(q)",
}  # fmt: skip
# What is tried with two shapes, for the sake of dtypes that have code of their own.
_TWICE = frozenset({"Where", "layout", "arithmetic", "reduction", "activation"})
_TO_LAST, _TO_FIRST = "Transpose<perm = [0, 2, 3, 1]>", "Transpose<perm = [0, 3, 1, 2]>"
_RANKS = {"NonZero+GatherND": "y::1", "IsInf+ReduceSum": "y:bool"}


def cases() -> tuple[Case, ...]:
    """Return the cases, about 310: each with a shape that is known, and with one that is not."""
    return (*_rewritten(), *_recurrent(), *_typed())


def _constants() -> dict[str, Array]:
    found: dict[str, Array] = {
        name: np.array(value, dtype=np.float32)
        for name, value in {"nought": 0, "unit": 1, "half": 0.5, "half2": 0.5, "deuce": 2}.items()
    }
    lists = {
        "zero": [0], "one": [1], "two": [2], "three": [3], "most": [2**63 - 1], "s0": 0, "s1": 1, "s2": 2, "s3": 3,
        "ordered": [0, 1], "ones": [1, 1, 1, 1], "pads": [0, 1, 0, 0, 0, 0, 1, 0], "twice": [1, 2, 1, 1],
        "flat": [2, -1],
        "rows": [-1, 4], "shape": [2, 3, 4, 4], "minus": [-1], "all": [0, 1, 2, 3], "sizes": [1, 2], "pair": [2, 3],
        "z2": [0, 0], "i2": [1, 1], "most2": [9999, 9999], "hw": [2, 3], "s2x": [2, 2], "last2": [2, 3], "back": [1, 2],
        "place": [[0], [1]], "sequence": [6, 4, 4],
    }  # fmt: skip
    found |= {name: np.array(value) for name, value in lists.items()}
    found["sizes"] = np.array([1, 2])
    found |= {
        "vector": floats(3) ** 2, "table": floats(5, 4), "scales": np.array([1, 1, 2, 2], dtype=np.float32),
        "depth": np.array(3), "offon": np.array([0, 1], dtype=np.float32), "gw": floats(1, 12, 4),
        "gr": floats(1, 12, 4), "gb": floats(1, 24),
    }  # fmt: skip
    return found


def _rewritten() -> Iterator[Case]:
    inputs = {"x": floats(2, 3, 4, 4), "x1": floats(2, 3, 4, 4, scale=0.2)}
    for what, short in _TEXTS.items():
        text = short.replace("ToLast", _TO_LAST).replace("ToFirst", _TO_FIRST)
        known, given = used(text, _constants()), used(text, inputs)
        outputs = _RANKS.get(what, "y")
        yield case(f"rewritten {what}", text, given, known, outputs=outputs, opset=18)
        shapes: dict[str, list[int | str | None]] = {name: ["batch", 3, "height", "width"] for name in given}
        named = f"rewritten {what}, open shape"
        yield case(named, text, given, known, outputs=outputs, opset=18, shapes=shapes)


def _recurrent() -> Iterator[Case]:
    """Yield LSTM, GRU and RNN, each way round, with what they may take."""
    hidden, wide, length, batch = 4, 3, 5, 2
    for op_type, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction, ways in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            known: dict[str, Array] = {
                "w": floats(ways, gates * hidden, wide), "r": floats(ways, gates * hidden, hidden),
                "b": floats(ways, 2 * gates * hidden), "p": floats(ways, 3 * hidden),
            }  # fmt: skip
            inputs: dict[str, Array] = {
                "x": floats(length, batch, wide), "n": np.array([5, 3], dtype=np.int32),
                "h": floats(ways, batch, hidden),
                "c": floats(ways, batch, hidden, scale=0.2),
            }  # fmt: skip
            variants = {
                "plain": ("(x, w, r)", ""), "bias": ("(x, w, r, b)", ""), "lengths": ("(x, w, r, b, n)", ""),
                "states": ("(x, w, r, b, , h, c)" if op_type == "LSTM" else "(x, w, r, b, , h)", ""),
                "clipped": ("(x, w, r, b)", ", clip = 0.5"),
            }  # fmt: skip
            if op_type == "LSTM":
                variants |= {
                    "peepholes": ("(x, w, r, b, n, h, c, p)", ""),
                    "joined": ("(x, w, r, b)", ", input_forget = 1"),
                }
            if op_type == "GRU":
                variants["before"] = ("(x, w, r, b)", ", linear_before_reset = 1")
            for what, (arguments, stated) in variants.items():
                outputs, named = ("z, h1, c1", "y, h1, c1") if op_type == "LSTM" else ("z, h1", "y, h1")
                head = f'{op_type}<hidden_size = {hidden}, direction = "{direction}"{stated}>'
                text = f"{outputs} = {head}{arguments} y = Relu(z)"
                name = f"recurrent {op_type} {direction} {what}"
                yield case(name, text, used(text, inputs), used(text, known), outputs=named, opset=14)
            names = {"LSTM": ("Sigmoid", "Tanh", "Relu"), "GRU": ("HardSigmoid", "Softsign"), "RNN": ("Relu",)}[op_type]
            listed = ", ".join(f'"{name}"' for name in names * ways)
            head = f'{op_type}<hidden_size = {hidden}, direction = "{direction}", activations = [{listed}]>'
            text = f"z, h1 = {head}(x, w, r) y = Relu(h1)"
            name = f"recurrent {op_type} {direction} activations"
            yield case(name, text, used(text, inputs), used(text, known), opset=14)
    for size in (64, 128):
        known = {
            "w": floats(1, 4 * size, size, scale=0.1),
            "r": floats(1, 4 * size, size, scale=0.1),
            "b": floats(1, 8 * size),
        }
        text = f"z, h1, c1 = LSTM<hidden_size = {size}>(x, w, r, b) q = Squeeze(z, one) y = Sigmoid(q)"
        inputs = {"x": floats(7, 1, size)}
        yield case(f"recurrent LSTM large {size}", text, inputs, known | {"one": np.array([1])})


def _typed() -> Iterator[Case]:
    """Yield small graphs in other dtypes, which Casts are put into where there is no kernel."""
    for dtype in ("float16", "float64", "int32", "int64", "uint8", "int8"):
        known = {"one": np.array([1]), "k": np.array([2]), "v": np.array([3]).astype(dtype)}
        texts = {
            "layout": "t = Transpose<perm = [1, 0, 2]>(x) r = Squeeze(t) u = Unsqueeze(r, one)"
            " y = Concat<axis = 0>(u, u)",
            "Gather": "g = Gather<axis = 1>(x, one) y = Tile(g, three)",
            "Where": "e = Equal(x, v) y = Where(e, x, v)",
            "Slice": "s = Slice(x, one, k, one) y = Identity(s)",
            "Pad": "y = Pad(x, pads)",
        }
        if dtype not in ("uint8", "int8"):
            texts["arithmetic"] = "a = Add(x, v) m = Mul(a, x) s = Sub(m, v) y = Div(s, v)"
            texts["reduction"] = "m = ReduceMax(x, one) s = ReduceSum(x, one) y = Sub(s, m)"
        if dtype.startswith("float"):
            texts["activation"] = (
                "a = Sigmoid(x) b = Tanh(a) c = Relu(b) d = Exp(c) e = Sqrt(d) y = Softmax<axis = -1>(e)"
            )
            texts["products"] = "t = Transpose<perm = [0, 2, 1]>(x) y = MatMul(x, t)"
        further = {"three": np.array([1, 2, 3]), "pads": np.array([0, 1, 0, 0, 0, 1])}
        for what, text in texts.items():
            for shape in ((2, 3, 4), (5, 3, 12)) if what in _TWICE else ((2, 3, 4),):
                x = {"x": integers(*shape, high=9).astype(dtype)}
                name = f"typed {what} {dtype} {shape[0]}"
                yield case(name, text, x, used(text, known | further), outputs=f"y:{dtype}")
