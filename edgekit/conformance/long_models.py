"""Models of many nodes, and beginnings of real ones: their size alone leads a runtime through code of its own."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import case, floats, integers, used
from edgekit.conformance.cases import Case
from edgekit.records.tensors import Array


def cases() -> tuple[Case, ...]:
    """Return the cases, about 40."""
    return (*_networks(), *_chains(), *_fans(), *_framing(), *_tables(), *_lookups())


def _networks() -> Iterator[Case]:
    """Yield deep mobile networks: depthwise and pointwise Convs, hard swish in parts, squeeze and excitation."""
    for channels in (8, 16):
        for layers in (6, 14, 24):
            held: dict[str, Array] = {
                "three": np.array(3, dtype=np.float32), "none": np.array(0, dtype=np.float32),
                "six": np.array(6, dtype=np.float32), "dense": floats(channels, 5),
            }  # fmt: skip
            steps, last = [], "x"
            for n in range(layers):
                held |= {
                    f"d{n}": floats(channels, 1, 3, 3, scale=0.3),
                    f"p{n}": floats(channels, channels, 1, 1, scale=0.2),
                }
                held |= {f"s{n}": floats(channels) + 1, f"b{n}": floats(channels), f"v{n}": floats(channels) ** 2 + 1}
                steps.append(
                    f"c{n} = Conv<pads = [1, 1, 1, 1], group = {channels}>({last}, d{n})"
                    f" n{n} = BatchNormalization(c{n}, s{n}, b{n}, b{n}, v{n})"
                    f" a{n} = Add(n{n}, three) h{n} = Clip(a{n}, none, six) m{n} = Mul(n{n}, h{n})"
                    f" w{n} = Div(m{n}, six) g{n} = GlobalAveragePool(w{n}) e{n} = Conv(g{n}, p{n}) r{n} = Relu(e{n})"
                    f" f{n} = Conv(r{n}, p{n}, b{n}) q{n} = HardSigmoid<alpha = 0.2>(f{n}) t{n} = Mul(w{n}, q{n})"
                    f" u{n} = Conv(t{n}, p{n}, b{n}) y{n} = Add(u{n}, {last})"
                )
                last = f"y{n}"
            text = (
                " ".join(steps)
                + f" gp = GlobalAveragePool({last}) fl = Flatten(gp) mm = MatMul(fl, dense) y = Softmax(mm)"
            )
            name = f"long network {layers} layers {channels} channels"
            yield case(name, text, {"x": floats(1, channels, 12, 12)}, held, opset=12)


def _chains() -> Iterator[Case]:
    """Yield many operators in a row, with constants and without."""
    for length in (100, 300, 700):
        for what, step in {
            "arithmetic": "a{n} = Mul({x}, k{m}) b{n} = Add(a{n}, k{o}) c{n} = Tanh(b{n})",
            "layout": "a{n} = Transpose({x}) b{n} = Relu(a{n}) c{n} = Transpose(b{n})",
            "products": "a{n} = MatMul({x}, w{m}) b{n} = Add(a{n}, k{o}) c{n} = Relu(b{n})",
        }.items():
            held: dict[str, Array] = {f"k{n}": floats(8, scale=0.1 * (n + 1)) for n in range(20)}
            held |= {f"w{n}": floats(8, 8, scale=0.05 * (n + 1)) for n in range(20)}
            steps, last = [], "x"
            for n in range(length // 3):
                steps.append(step.format(n=n, x=last, m=n % 20, o=(n * 7 + 1) % 20))
                last = f"c{n}"
            text = " ".join(steps) + f" y = Identity({last})"
            yield case(f"long chain of {what} {length}", text, {"x": floats(8, 8)}, used(text, held))


def _fans() -> Iterator[Case]:
    """Yield one value taken by many nodes, all of them joined again."""
    for width in (40, 150):
        for what, step in {
            "Sigmoid": "v{n} = Sigmoid(x)",
            "Mul": "v{n} = Mul(x, k{n})",
            "Slice": "v{n} = Relu(x)",
        }.items():
            held = {f"k{n}": floats(8, scale=0.1 * (n + 1)) for n in range(width)}
            text = " ".join(step.format(n=n) for n in range(width))
            joined = ", ".join(f"v{n}" for n in range(width))
            text += f" s = Sum({joined}) y = Concat<axis = 0>(s, {joined})"
            yield case(f"long fan of {what} {width}", text, {"x": floats(8, 8)}, used(text, held))


def _framing() -> Iterator[Case]:
    """Yield a signal of any length that is padded and cut into windows, as models of speech begin."""
    text = (
        "s = Shape(x) n = Gather<axis = 0>(s, one) h = Div(n, hop) m = Max(h, one) u = Unsqueeze(m, first)"
        " d = Sub(hop, n) e = Max(d, zero) v = Unsqueeze(e, first) p = Concat<axis = 0>(three, v)"
        ' q = Pad<mode = "constant">(x, p)'
        " l = Max(n, hop) k = Add(l, tail) c = Div(k, hop) r = Unsqueeze(c, first) z = Mul(r, whole)"
        " a = Slice(q, first, z, ones) w = Reshape(a, shape) o = Mul(w, window) i = ReduceSum(o, last)"
        " j = Cast<to = 1>(m) y = Div(i, j)"
    )  # fmt: skip
    for length in (16, 100):
        for hop in (4, 8):
            held: dict[str, Array] = {
                "one": np.array(1), "zero": np.array(0), "hop": np.array(hop), "first": np.array([0]),
                "ones": np.array([1]),
                "three": np.array([0, 0, 0]), "tail": np.array(hop - 1), "whole": np.array([1]),
                "shape": np.array([1, -1, 1]),
                "window": floats(hop), "last": np.array([-1]),
            }  # fmt: skip
            inputs = {"x": floats(1, length)}
            name = f"long framing {length} by {hop}"
            yield case(name, text, inputs, used(text, held), outputs="y::3", opset=18, shapes={"x": [1, "samples"]})


def _tables() -> Iterator[Case]:
    """Yield the table of a Fourier transform, computed from whole numbers that are all constants."""
    text = (
        "m = Mul(rows, columns) d = Div(m, n) o = Mul(d, n) s = Sub(m, o) f = Cast<to = 1>(s) t = Mul(f, step)"
        " c = Cos(t) v = Sin(t) a = MatMul(x, c) b = MatMul(x, v) e = Mul(a, a) g = Mul(b, b) h = Add(e, g) y = Sqrt(h)"
    )
    for size in (8, 32):
        held: dict[str, Array] = {
            "rows": np.arange(size).reshape(size, 1), "columns": np.arange(size).reshape(1, size), "n": np.array(size),
            "step": np.array(2 * np.pi / size, dtype=np.float32),
        }  # fmt: skip
        yield case(f"long table {size}", text, {"x": floats(3, size)}, held, opset=18)


def _lookups() -> Iterator[Case]:
    """Yield what makes vectors of token numbers: a table, a quantized one, and a comparison with every number."""
    for length in (3, 16, 60):
        ids = integers(1, length, high=100)
        for width in (48, 128):
            tables = {"t": floats(139, width), "q": integers(139, width, high=200).astype(np.uint8)}
            held = tables | {"s": np.array(0.02, dtype=np.float32), "z": np.array(100, dtype=np.uint8)}
            for what, text in {
                "Gather": "g = Gather<axis = 0>(t, ids) y = Transpose<perm = [0, 2, 1]>(g)",
                "quantized Gather": "g = Gather(q, ids) d = DequantizeLinear(g, s, z)"
                " y = Transpose<perm = [1, 0, 2]>(d)",
            }.items():
                name = f"long lookup {what} {length} {width}"
                shapes: dict[str, list[int | str | None]] = {"ids": ["batch", "length"]}
                yield case(name, text, {"ids": ids}, used(text, held), outputs="y::3", opset=17, shapes=shapes)
        text = (
            "r = Reshape(ids, shape) s = Shape(ids) c = Cast<to = 6>(s) b = Slice(c, first, one, first)"
            " d = Concat<axis = 0>(b, long, wide) e = Cast<to = 7>(d) x = Expand(r, e) o = Equal(x, numbers)"
            " f = Cast<to = 1>(o) y = MatMul(f, table)"
        )
        held = {
            "shape": np.array([-1, length, 1]), "first": np.array([0]), "one": np.array([1]), "table": floats(100, 8),
            "long": np.array([length], dtype=np.int32), "wide": np.array([1], dtype=np.int32),
            "numbers": np.arange(100, dtype=np.int32).reshape(1, 1, 100),
        }  # fmt: skip
        shapes = {"ids": ["batch", length]}
        given = {"ids": ids.astype(np.int32)}
        yield case(f"long lookup comparison {length}", text, given, held, outputs="y::3", opset=15, shapes=shapes)
