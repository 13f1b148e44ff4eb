"""Convolutions and what a runtime fuses into them or lays out anew with them, over channels, dimensions and strides."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import case, floats, used
from edgekit.conformance.cases import Case
from edgekit.records.tensors import Array

# What may follow c = Conv(...): each gives y. "w4" is a constant of one number a channel.
_AFTER = {
    "nothing": "y = Identity(c)",
    "Relu": "y = Relu(c)",
    "Clip": "y = Clip(c, low, high)",
    "Relu+Clip": "r = Relu(c) y = Clip(r, low, high)",
    "Sigmoid": "y = Sigmoid(c)",
    "Tanh": "y = Tanh(c)",
    "LeakyRelu": "y = LeakyRelu<alpha = 0.2>(c)",
    "HardSigmoid": "y = HardSigmoid<alpha = 0.2, beta = 0.5>(c)",
    "HardSwish": "y = HardSwish(c)",
    "HardSwish in parts": "a = Add(c, three) h = Clip(a, low, high) m = Mul(c, h) y = Div(m, high)",
    "Silu": "s = Sigmoid(c) y = Mul(c, s)",
    "Elu": "y = Elu<alpha = 0.5>(c)",
    "PRelu": "y = PRelu(c, w4)",
    "Add": "y = Add(c, w4)",
    "Mul": "y = Mul(c, w4)",
    "Mul+Add": "m = Mul(c, w4) y = Add(m, w4)",
    "Sub+Div": "m = Sub(c, w4) y = Div(m, high)",
    "BatchNormalization": "y = BatchNormalization(c, bn_scale, bn_shift, bn_mean, bn_var)",
    "BatchNormalization+Relu": "b = BatchNormalization(c, bn_scale, bn_shift, bn_mean, bn_var) y = Relu(b)",
    "Dropout+Relu": "d = Dropout(c) y = Relu(d)",
    "MaxPool": "r = Relu(c) y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)",
    "AveragePool": "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(c)",
    "GlobalAveragePool": "r = Relu(c) y = GlobalAveragePool(r)",
    "GlobalMaxPool": "y = GlobalMaxPool(c)",
    "Resize": "r = Relu(c) y = Resize<mode = \"nearest\">(r, , scales)",
    "Upsample linear": "y = Resize<mode = \"linear\">(c, , scales)",
    "Transpose": "y = Transpose<perm = [0, 2, 3, 1]>(c)",
    "Flatten+Gemm": "g = GlobalAveragePool(c) f = Flatten(g) y = Gemm<transB = 1>(f, dense)",
    "ReduceMean": "y = ReduceMean<keepdims = 1>(c, axes)",
    "Concat": "r = Relu(c) y = Concat<axis = 1>(c, r)",
    "Split+Mul": "a, b = Split<axis = 1, num_outputs = 2>(c) s = Sigmoid(b) y = Mul(a, s)",
    "squeeze and excitation": "g = GlobalAveragePool(c) e = Conv(g, point) h = HardSigmoid(e) y = Mul(c, h)",
    "InstanceNormalization": "y = InstanceNormalization(c, bn_scale, bn_shift)",
    "Shape+Reshape": "n = Shape<start = 0, end = 2>(c) m = Concat<axis = 0>(n, minus) y = Reshape(c, m)",
    "DepthToSpace": "y = DepthToSpace<blocksize = 2>(c)",
}  # fmt: skip

# Channels in, channels out, groups.
_CHANNELS = ((3, 8, 1), (16, 16, 16))
_FURTHER = ((8, 16, 1), (4, 4, 1), (1, 4, 1), (3, 16, 1), (3, 32, 1), (8, 8, 8), (32, 32, 32), (32, 16, 2),
            (8, 16, 4), (32, 32, 1), (129, 8, 1),
            (4, 8, 4), (12, 12, 12))  # fmt: skip
_FEW = ("nothing", "BatchNormalization+Relu")


def cases() -> tuple[Case, ...]:
    """Return the cases, about 240."""
    return (*_followed(), *_residual(), *_shapes(), *_chains(), *_padded(), *_transposed(), *_float16())


def _weights(channels: int, out: int, group: int, kernel: tuple[int, ...] = (3, 3)) -> dict[str, Array]:
    return {
        "w": floats(out, channels // group, *kernel, scale=0.2),
        "bias": floats(out),
        "w4": floats(out, *(1 for _ in kernel)),
        "low": np.array(0, dtype=np.float32),
        "high": np.array(6, dtype=np.float32),
        "three": np.array(3, dtype=np.float32),
        "bn_scale": np.abs(floats(out)) + 1,
        "bn_shift": floats(out),
        "bn_mean": floats(out),
        "bn_var": np.abs(floats(out)) + 1,
        "scales": np.array([1, 1, 2, 2], dtype=np.float32),
        "dense": floats(5, out),
        "point": floats(out, out, 1, 1),
        "axes": np.array([2, 3]),
        "minus": np.array([-1]),
    }


def _one(name: str, text: str, x: Array, weights: dict[str, Array], opset: int = 21) -> Case:
    return case(f"fusion conv {name}", text, {"x": x}, used(text, weights), opset=opset)


def _followed() -> Iterator[Case]:
    """Yield a Conv with each thing behind it, by channels."""
    for what, after in _AFTER.items():
        for channels in _CHANNELS + (_FURTHER if what in _FEW else ()):
            text = f"c = Conv<pads = [1, 1, 1, 1], group = {channels[2]}>(x, w, bias) {after}"
            label = "{}-{}-{}".format(*channels)
            opset = 14 if what in ("HardSwish", "Dropout+Relu", "BatchNormalization") else 21
            yield _one(f"{what} {label}", text, floats(1, channels[0], 8, 8), _weights(*channels), opset)


def _residual() -> Iterator[Case]:
    for channels in (4, 16):
        for what, after in {"": "y = Identity(a)", "+Relu": "y = Relu(a)", "+Clip": "y = Clip(a, low, high)"}.items():
            for order in ("c, x", "c, d"):
                second = "d = Conv<pads = [1, 1, 1, 1]>(x, w)" if order == "c, d" else ""
                text = f"{second} c = Conv<pads = [1, 1, 1, 1]>(x, w, bias) a = Add({order}) {after}"
                x = floats(1, channels, 6, 6)
                yield _one(f"Add{what} ({order}) {channels}", text, x, _weights(channels, channels, 1))


def _shapes() -> Iterator[Case]:
    """Yield Convs of one, two and three dimensions, dilated, strided, padded in each way, of several batch sizes."""
    attributes = ("", "strides = {2}", "dilations = {2}", "auto_pad = \"SAME_UPPER\"", "auto_pad = \"SAME_LOWER\"",
                  "auto_pad = \"VALID\"", "auto_pad = \"SAME_UPPER\", strides = {2}", "pads = {p}")  # fmt: skip
    for rank in (1, 2, 3):
        for channels in ((3, 8, 1), (8, 8, 8), (16, 16, 1)):
            for stated in attributes if channels[0] == 3 else attributes[:3]:
                twos, ones = [2] * rank, [1] * (2 * rank)
                written = stated.replace("{2}", str(twos)).replace("{p}", str(ones))
                listed = ", ".join(filter(None, [f"group = {channels[2]}", written]))
                text = f"c = Conv<{listed}>(x, w, bias) y = Relu(c)"
                x = floats(2 if rank == 1 else 1, channels[0], *[9] * rank)
                label = "{}-{}-{}".format(*channels)
                yield _one(f"{rank}-D {label} {written}", text, x, _weights(*channels, kernel=(3,) * rank))
    for kernel in ((1, 1), (5, 5), (1, 3), (7, 1)):
        for channels in ((3, 8, 1), (16, 32, 1), (8, 8, 8)):
            text = f"c = Conv<group = {channels[2]}>(x, w) y = Relu(c)"
            label = "{}-{}-{}".format(*channels)
            weights = _weights(*channels, kernel=kernel)
            yield _one(f"kernel {kernel} {label}", text, floats(1, channels[0], 9, 9), weights)
    for size in (32, 56):
        weights = _weights(16, 32, 1)
        text = "c = Conv<pads = [1, 1, 1, 1]>(x, w, bias) y = Relu(c)"
        yield _one(f"large {size}", text, floats(1, 16, size, size), weights)
        computed = "z = Mul(w, w) c = Conv<pads = [1, 1, 1, 1]>(x, z, bias) y = Relu(c)"
        yield _one(f"computed weights {size}", computed, floats(1, 16, size, size), weights)


def _chains() -> Iterator[Case]:
    """Yield several Convs, which a blocked layout spans, and pools between them."""
    pool = "MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"
    average = "AveragePool<kernel_shape = [2, 2], strides = [2, 2], count_include_pad = 1>"
    for channels in (8, 32):
        w = _weights(channels, channels, 1)
        conv, deep = "Conv<pads = [1, 1, 1, 1]>", f"Conv<pads = [1, 1, 1, 1], group = {channels}>"
        depth = {"depth": floats(channels, 1, 3, 3)}
        steps = f"a = {conv}(x, w, bias) b = Relu(a)"
        for what, text in {
            "max pool": f"{steps} p = {pool}(b) c = {conv}(p, w) y = Relu(c)",
            "average pool": f"{steps} p = {average}(b) y = {conv}(p, w)",
            "global pool": f"{steps} p = GlobalAveragePool(b) q = Conv(p, point) s = Sigmoid(q) y = Mul(b, s)",
            "depthwise": f"{steps} d = {deep}(b, depth) e = Clip(d, low, high) f = Conv(e, point) y = Add(f, x)",
            "upsampled": f"{steps} u = Resize<mode = \"nearest\">(b, , scales) y = {conv}(u, w)",
            "upsampled linear": f"{steps} u = Resize<mode = \"linear\">(b, , scales) y = {conv}(u, w)",
            "concatenated": f"{steps} d = {conv}(b, w) e = Concat<axis = 1>(b, d) y = Relu(e)",
            "normalized": f"{steps} n = BatchNormalization(b, bn_scale, bn_shift, bn_mean, bn_var) y = {conv}(n, w)",
            "transposed": f"t = Transpose<perm = [0, 2, 3, 1]>(x)"
            f" u = Transpose<perm = [0, 3, 1, 2]>(t) y = {conv}(u, w)",
            "hard swish": f"{steps} t = Add(b, three) h = Clip(t, low, high) m = Mul(b, h) v = Div(m, high)"
            f" y = {conv}(v, w)",
            "scaled": f"{steps} m = Mul(b, high) n = Add(m, three) y = {conv}(n, w)",
            "added three": f"{steps} d = {conv}(b, w) e = Add(b, d) f = Add(e, x) y = Relu(f)",
            "dense": f"{steps} p = GlobalAveragePool(b) q = Flatten(p) r = Gemm<transB = 1>(q, dense) y = Softmax(r)",
            "squeezed": f"{steps} p = GlobalAveragePool(b) q = Squeeze(p, axes) s = Softmax(q) y = Unsqueeze(s, axes)",
        }.items():  # fmt: skip
            yield _one(f"chain {what} {channels}", text, floats(1, channels, 8, 8), w | depth)


def _padded() -> Iterator[Case]:
    for channels in (3,):
        for mode in ("constant", "reflect", "edge"):
            for pool in ("Conv(p, w)", "MaxPool<kernel_shape = [2, 2]>(p)", "AveragePool<kernel_shape = [2, 2]>(p)"):
                text = f'p = Pad<mode = "{mode}">(x, pads) y = {pool}'
                weights = _weights(channels, 8, 1) | {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
                yield _one(f"Pad {mode} {pool.partition('(')[0]} {channels}", text, floats(1, channels, 6, 6), weights)


def _transposed() -> Iterator[Case]:
    for rank in (1, 2, 3):
        for channels, out, group in ((4, 8, 1), (8, 8, 8)):
            for stated in ("", f"strides = {[2] * rank}", f"strides = {[2] * rank}, output_padding = {[1] * rank}",
                           "auto_pad = \"SAME_UPPER\""):  # fmt: skip
                listed = ", ".join(filter(None, [f"group = {group}", stated]))
                weights = {"w": floats(channels, out // group, *[3] * rank), "bias": floats(out)}
                text = f"c = ConvTranspose<{listed}>(x, w, bias) y = Relu(c)"
                label = f"{channels}-{out}-{group}"
                yield _one(f"transpose {rank}-D {label} {stated}", text, floats(1, channels, *[5] * rank), weights)


def _float16() -> Iterator[Case]:
    for what in ("Relu", "Add", "MaxPool", "GlobalAveragePool", "Flatten+Gemm", "Resize", "Clip"):
        for channels in ((3, 8, 1), (16, 16, 16)):
            text = f"c = Conv<pads = [1, 1, 1, 1], group = {channels[2]}>(x, w, bias) {_AFTER[what]}"
            kept = {"axes", "minus", "scales"}
            weights = {n: a if n in kept else a.astype(np.float16) for n, a in used(text, _weights(*channels)).items()}
            x = floats(1, channels[0], 8, 8).astype(np.float16)
            yield case(f"fusion conv float16 {what} {channels[0]}", text, {"x": x}, weights, outputs="y:float16")
