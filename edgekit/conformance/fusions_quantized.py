"""Quantized models: QuantizeLinear and DequantizeLinear around operators, and the operators of whole numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import helper

from edgekit.conformance.authoring import case, floats, integers, model, of_model, used
from edgekit.conformance.cases import Case
from edgekit.conformance.schemas import DTYPES
from edgekit.records.tensors import Array

# Text between the DequantizeLinear of its input, "a" (and of another one, "b"), and the QuantizeLinear of its output.
_UNARY = {
    "nothing": "r = Identity(a)",
    "Relu": "r = Relu(a)",
    "Clip": "r = Clip(a, low, high)",
    "Sigmoid": "r = Sigmoid(a)",
    "LeakyRelu": "r = LeakyRelu<alpha = 0.1>(a)",
    "Softmax": "r = Softmax<axis = 1>(a)",
    "AveragePool": "r = AveragePool<kernel_shape = [2, 2]>(a)",
    "GlobalAveragePool": "r = GlobalAveragePool(a)",
    "MaxPool": "r = MaxPool<kernel_shape = [2, 2]>(a)",
    "Transpose": "r = Transpose<perm = [0, 2, 3, 1]>(a)",
    "Reshape": "r = Reshape(a, flat)",
    "Flatten": "r = Flatten(a)",
    "Squeeze": "r = Squeeze(a, axes)",
    "Unsqueeze": "r = Unsqueeze(a, axes)",
    "Resize": "r = Resize<mode = \"nearest\">(a, , scales)",
    "Resize linear": "r = Resize<mode = \"linear\">(a, , scales)",
    "Slice": "r = Slice(a, one, two, one)",
    "Gather": "r = Gather<axis = 1>(a, one)",
    "Expand": "r = Expand(a, shape)",
    "Pad": "r = Pad(a, pads)",
    "ReduceMean": "r = ReduceMean(a, one)",
    "ArgMax": "r = ArgMax<axis = 1>(a)",
    "DepthToSpace": "r = DepthToSpace<blocksize = 2>(a)",
    "InstanceNormalization": "r = InstanceNormalization(a, gain, gain)",
    "Split": "r, r2 = Split<axis = 1, num_outputs = 2>(a)",
    "TopK": "r, i = TopK<axis = 1>(a, one)",
    "Gelu": "r = Gelu(a)",
    "HardSwish": "r = HardSwish(a)",
    "Tanh": "r = Tanh(a)",
}  # fmt: skip
_BINARY = {
    "Add": "r = Add(a, b)",
    "Mul": "r = Mul(a, b)",
    "Sub": "r = Sub(a, b)",
    "Concat": "r = Concat<axis = 1>(a, b)",
    "MatMul": "r = MatMul(a, b)",
    "Where": "r = Where(choice, a, b)",
    "Min": "r = Min(a, b)",
    "Equal": "r = Equal(a, b)",
}
_FOLLOWED = {"": "r = Identity(c)", "+Relu": "r = Relu(c)", "+Clip": "r = Clip(c, low, high)"}


@dataclass(frozen=True)
class Scheme:
    """How numbers become whole ones: the dtypes of activations and of weights, and whether each channel has a scale."""

    activations: str
    weights: str
    per_channel: bool

    @property
    def label(self) -> str:
        return f"{self.activations} {self.weights}{' per channel' if self.per_channel else ''}"

    def scales(self, channels: int) -> dict[str, Array]:
        signed, few = self.weights == "int8", channels if self.per_channel else 1
        zero = {"uint8": 120, "uint16": 30000, "int8": 3, "int16": 0}[self.activations]
        shape = (few,) if self.per_channel else ()
        return {
            "s": np.array(0.02 if "8" in self.activations else 1e-4, dtype=np.float32),
            "z": np.array(zero, dtype=self.activations),
            "sw": (np.full(few, 0.01) + np.arange(few) * 1e-3).astype(np.float32).reshape(shape),
            "zw": np.full(few, 0 if signed else 128, dtype=self.weights).reshape(shape),
            "sb": (np.full(few, 0.0002) + np.arange(few) * 2e-5).astype(np.float32).reshape(shape),
            "zb": np.zeros(shape, dtype=np.int32),
        }


SCHEMES = (
    Scheme("uint8", "int8", False), Scheme("uint8", "int8", True), Scheme("int8", "int8", True),
    Scheme("int8", "int8", False), Scheme("uint8", "uint8", False),
)  # fmt: skip
_SHARED: dict[str, Array] = {
    "low": np.array(0, dtype=np.float32), "high": np.array(1, dtype=np.float32), "flat": np.array([1, -1]),
    "axes": np.array([0]), "scales": np.array([1, 1, 2, 2], dtype=np.float32), "one": np.array([1]),
    "two": np.array([2]), "shape": np.array([2, 4, 4, 4]), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    "gain": np.ones(4, dtype=np.float32), "choice": np.array([[True, False, True, False]]),
}  # fmt: skip


def cases() -> tuple[Case, ...]:
    """Return the cases, about 270."""
    return (*_around(), *_convolutions(), *_products(), *_integers(), *_dynamic(), *_few_bits(), *_residual())


def _quantized(name: str, source: str) -> str:
    return f"{name}_q = QuantizeLinear({source}, s, z) {name} = DequantizeLinear({name}_q, s, z) "


def _around() -> Iterator[Case]:
    x = {"x": floats(1, 4, 4, 4), "x2": floats(1, 4, 4, 4, scale=0.7)}
    end = " rq = QuantizeLinear(r, s, z) y = DequantizeLinear(rq, s, z)"
    for activations in ("uint8", "int8", "uint16", "int16"):
        known = _SHARED | Scheme(activations, "int8", False).scales(1)
        for what, middle in (_UNARY | _BINARY).items():
            if "16" in activations and what not in ("nothing", "Add", "Mul", "Sigmoid", "Transpose", "MatMul"):
                continue
            text = _quantized("a", "x") + (_quantized("b", "x2") if what in _BINARY else "") + middle
            if what in ("ArgMax", "Equal"):
                dtype = "int64" if what == "ArgMax" else "bool"
                whole, outputs = text.replace("r =", "y ="), f"y:{dtype}"
            elif what == "Split":
                whole = f"{text}{end} r2q = QuantizeLinear(r2, s, z) y2 = DequantizeLinear(r2q, s, z)"
                outputs = "y, y2"
            else:
                whole, outputs = text + end, "y"
            name = f"quantized {what} {activations}"
            yield case(name, whole, used(whole, x), used(whole, known), outputs=outputs)


def _convolutions() -> Iterator[Case]:
    end = " rq = QuantizeLinear(r, s, z) y = DequantizeLinear(rq, s, z)"
    for scheme in SCHEMES:
        for channels, out, group in ((3, 8, 1), (8, 16, 1), (16, 16, 16), (8, 8, 2)):
            known = _SHARED | scheme.scales(out)
            known["wq"] = integers(out, channels // group, 3, 3, low=0, high=100).astype(scheme.weights)
            known["bq"] = integers(out, low=-100, high=100, dtype="int32")
            for what, after in _FOLLOWED.items() if channels == 3 else [("", _FOLLOWED[""])]:
                text = (
                    _quantized("a", "x")
                    + "w = DequantizeLinear<axis = 0>(wq, sw, zw) bias = DequantizeLinear<axis = 0>(bq, sb, zb) "
                    + f"c = Conv<pads = [1, 1, 1, 1], group = {group}>(a, w, bias) {after}{end}"
                )
                name = f"quantized Conv{what} {channels}-{out}-{group} {scheme.label}"
                yield case(name, text, {"x": floats(1, channels, 8, 8)}, used(text, known))
        yield from _linear_convolutions(scheme)


def _linear_convolutions(scheme: Scheme) -> Iterator[Case]:
    for channels, out, group, rank in ((3, 8, 1, 2), (16, 16, 16, 2), (8, 16, 1, 1), (4, 4, 1, 3)):
        known = scheme.scales(out)
        known["w"] = integers(out, channels // group, *[3] * rank, high=100).astype(scheme.weights)
        known["bias"] = integers(out, low=-100, high=100, dtype="int32")
        x = integers(1, channels, *[6] * rank, high=120).astype(scheme.activations)
        text = f"y = QLinearConv<group = {group}>(x, s, z, w, sw, zw, s, z, bias)"
        name = f"quantized QLinearConv {rank}-D {channels}-{out}-{group} {scheme.label}"
        yield case(name, text, {"x": x}, used(text, known), outputs=f"y:{scheme.activations}")
        if not scheme.per_channel and scheme.activations == "uint8":
            text = f"y = ConvInteger<group = {group}>(x, w, z, zw)"
            name = f"quantized ConvInteger {rank}-D {channels}-{out}-{group} {scheme.label}"
            yield case(name, text, {"x": x}, used(text, known), outputs="y:int32")


def _products() -> Iterator[Case]:
    end = " rq = QuantizeLinear(r, s, z) y = DequantizeLinear(rq, s, z)"
    start = "w = DequantizeLinear<axis = 1>(wq, sw, zw) "
    for scheme in SCHEMES[:3]:
        for m, k, n in ((2, 4, 3), (64, 96, 80)):
            known = _SHARED | scheme.scales(n)
            known["wq"] = integers(k, n, high=100).astype(scheme.weights)
            known["bq"] = integers(n, low=-100, high=100, dtype="int32")
            bias = "bias = DequantizeLinear<axis = 0>(bq, sb, zb) "
            for what, middle in {
                "MatMul": "r = MatMul(a, w)",
                "MatMul+Add": f"{bias} m = MatMul(a, w) r = Add(m, bias)",
                "Gemm": f"{bias} r = Gemm(a, w, bias)",
                "Gemm+Relu": f"{bias} g = Gemm(a, w, bias) r = Relu(g)",
                "MatMul to float": "y = MatMul(a, w)",
                "Gemm to float": f"{bias} y = Gemm(a, w, bias)",
            }.items():
                text = _quantized("a", "x") + start + middle + ("" if "to float" in what else end)
                name = f"quantized {what} {m}x{k}x{n} {scheme.label}"
                yield case(name, text, {"x": floats(m, k)}, used(text, known))
            text = "y = QLinearMatMul(x, s, z, wq, sw, zw, s, z)"
            x = integers(m, k, high=120).astype(scheme.activations)
            name = f"quantized QLinearMatMul {m}x{k}x{n} {scheme.label}"
            yield case(name, text, {"x": x}, used(text, known), outputs=f"y:{scheme.activations}")


def _integers() -> Iterator[Case]:
    for left in ("uint8", "int8"):
        for right in ("uint8", "int8"):
            for m, k, n in ((2, 4, 3), (64, 96, 80)):
                x = {"x": integers(m, k, high=120).astype(left)}
                known = {"w": integers(k, n, high=120).astype(right)}
                known |= {"z": np.array(3, dtype=left), "zw": np.array(5, dtype=right)}
                for zeros in ("", ", z, zw"):
                    text = f"y = MatMulInteger(x, w{zeros})"
                    name = f"quantized MatMulInteger {m}x{k}x{n} {left} {right}{' zero points' if zeros else ''}"
                    yield case(name, text, x, used(text, known), outputs="y:int32")


def _dynamic() -> Iterator[Case]:
    """Yield DynamicQuantizeLinear and what a runtime joins with it."""
    for weights in ("uint8", "int8"):
        for m, k, n, per_channel in ((2, 4, 3, False), (32, 64, 48, True)):
            known = {
                "w": integers(k, n, high=120).astype(weights),
                "sw": np.full(n, 0.01, dtype=np.float32) if per_channel else np.array(0.01, dtype=np.float32),
                "zw": np.zeros(n if per_channel else (), dtype=weights),
                "bias": floats(n),
            }
            start = "q, s, z = DynamicQuantizeLinear(x) "
            product = f"{start} i = MatMulInteger(q, w, z, zw) f = Cast<to = 1>(i) "
            for what, text in {
                "MatMul": f"{product} t = Mul(s, sw) y = Mul(f, t)",
                "MatMul, scales in turn": f"{product} t = Mul(sw, s) y = Mul(t, f)",
                "MatMul+Add": f"{product} t = Mul(s, sw) o = Mul(f, t) y = Add(o, bias)",
                "MatMul of two": f"{product} t = Mul(s, sw) o = Mul(f, t) j = MatMulInteger(q, w, z, zw)"
                " h = Cast<to = 1>(j) p = Mul(h, t) y = Add(o, p)",
            }.items():
                for shape in ((m, k), (2, m, k)):
                    name = f"quantized dynamic {what} {len(shape)}-D {m}x{k}x{n} {weights}"
                    yield case(name, text, {"x": floats(*shape)}, used(text, known))
        known = {"w": integers(8, 3, 3, 3, high=120).astype(weights), "zw": np.array(0, dtype=weights),
                 "sw": np.array(0.01, dtype=np.float32), "bias": floats(1, 8, 1, 1)}  # fmt: skip
        text = (
            "q, s, z = DynamicQuantizeLinear(x) i = ConvInteger<pads = [1, 1, 1, 1]>(q, w, z, zw) f = Cast<to = 1>(i)"
            " t = Mul(s, sw) o = Mul(f, t) a = Add(o, bias) y = Relu(a)"
        )
        for size in (6, 16):
            name = f"quantized dynamic Conv {size} {weights}"
            yield case(name, text, {"x": floats(1, 3, size, size)}, used(text, known))


def _few_bits() -> Iterator[Case]:
    """Yield weights of four bits behind a DequantizeLinear, by block and by channel."""
    for dtype in ("int4", "uint4", "int8", "uint8"):
        for k, n, block in ((32, 16, 16), (64, 64, 32)):
            low, high = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-99, 99), "uint8": (0, 199)}[dtype]
            numbers = integers(k, n, low=low, high=high).ravel().tolist()
            scales = np.abs(floats(k // block, n)) * 0.1 + 0.01
            w = helper.make_tensor("w", DTYPES[dtype], [k, n], numbers)
            for what, text in {
                "MatMul": "d = DequantizeLinear<axis = 0, block_size = {}>(w, s) y = MatMul(x, d)",
                "Gather": "d = DequantizeLinear<axis = 0, block_size = {}>(w, s) y = Gather(d, ids)",
            }.items():
                inputs = used(text, {"x": floats(4, k), "ids": integers(5, high=k)})
                made = model(text.format(block), inputs, {"s": scales}, tensors=[w])
                yield of_model(f"quantized {dtype} by block {what} {k}x{n}", made, inputs)


def _residual() -> Iterator[Case]:
    """Yield whole quantized networks of a few layers."""
    for scheme in SCHEMES[:3]:
        known = _SHARED | scheme.scales(8)
        known["wq"] = integers(8, 8, 3, 3, high=60).astype(scheme.weights)
        known["bq"] = integers(8, low=-100, high=100, dtype="int32")
        known["dense"] = floats(5, 8)
        start = (
            _quantized("a", "x") + "w = DequantizeLinear<axis = 0>(wq, sw, zw)"
            " bias = DequantizeLinear<axis = 0>(bq, sb, zb) c = Conv<pads = [1, 1, 1, 1]>(a, w, bias) r = Relu(c) "
        )
        for what, rest in {
            "two Convs": f"{_quantized('b', 'r')} d = Conv<pads = [1, 1, 1, 1]>(b, w, bias) y = Relu(d)",
            "added": f"{_quantized('b', 'r')} t = Add(a, b) {_quantized('e', 't')}"
            " y = AveragePool<kernel_shape = [2, 2]>(e)",
            "pooled": f"{_quantized('b', 'r')} g = GlobalAveragePool(b) {_quantized('e', 'g')} h = Flatten(e)"
            f" {_quantized('f', 'h')} y = Gemm<transB = 1>(f, dense)",
            "upsampled": f"{_quantized('b', 'r')} u = Resize<mode = \"nearest\">(b, , scales) {_quantized('e', 'u')}"
            f" v = Transpose<perm = [0, 2, 3, 1]>(e) {_quantized('f', 'v')} y = Identity(f)",
        }.items():  # fmt: skip
            text = start + rest
            yield case(f"quantized network {what} {scheme.label}", text, {"x": floats(1, 8, 6, 6)}, used(text, known))
