"""Operators that onnxruntime has beside ONNX (com.microsoft), run with real inputs: vectors, images, whole numbers."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import case, floats, integers, used
from edgekit.conformance.cases import Case
from edgekit.records.tensors import Array

_FLOATS = ("float32", "float16")


def cases() -> tuple[Case, ...]:
    """Return the cases, about 280."""
    return (*_activations(), *_normalizations(), *_products(), *_images(), *_quantized(), *_indexing(), *_text())


def run(
    name: str, call: str, inputs: dict[str, Array], weights: dict[str, Array] | None = None, *, outputs: str = "y"
) -> Case:
    """Return the case of one call of an operator of com.microsoft, such as ``y = Gelu(x)``."""
    left, _, right = call.partition(" = ")
    whole = inputs | (weights or {})
    text = f"{left} = com.microsoft.{right}"
    given = {key: array for key, array in used(call, whole).items() if key in inputs}
    held = {key: array for key, array in used(call, whole).items() if key not in inputs}
    return case(f"contrib {right.partition('(')[0].partition('<')[0]} {name}", text, given, held, outputs=outputs)


def _activations() -> Iterator[Case]:
    for dtype in (*_FLOATS, "float64"):
        for shape in ((2, 3, 4), (8, 64)):
            x = {"x": floats(*shape).astype(dtype), "bias": floats(shape[-1]).astype(dtype)}
            for call in ("Gelu(x)", "BiasGelu(x, bias)", "FastGelu(x)", "FastGelu(x, bias)", "QuickGelu(x)"):
                if call[0] in "GB" and dtype != "float32":
                    continue
                label = f"{dtype} {shape}{' bias' if 'bias' in call else ''}"
                yield run(label, f"y = {call}", x, outputs=f"y:{dtype}")


def _normalizations() -> Iterator[Case]:
    for dtype in _FLOATS:
        for shape in ((1, 3, 8), (2, 5, 64)):
            hidden = shape[-1]
            known = {"x": floats(*shape), "skip": floats(*shape, scale=0.3), "flat": floats(*shape[1:])}
            weights = {"gain": floats(hidden) + 1, "shift": floats(hidden), "bias": floats(hidden, scale=0.2)}
            x = {key: array.astype(dtype) for key, array in known.items()}
            held = {key: array.astype(dtype) for key, array in weights.items()}
            both = f"y:{dtype}, s:{dtype}:3"
            for what, call, outputs in (
                ("", "y = SkipLayerNormalization(x, skip, gain, shift)", f"y:{dtype}"),
                ("bias", "y = SkipLayerNormalization(x, skip, gain, shift, bias)", f"y:{dtype}"),
                ("sum", "y, , , s = SkipLayerNormalization(x, skip, gain, shift, bias)", both),
                ("broadcast", "y = SkipLayerNormalization(x, flat, gain, shift)", f"y:{dtype}"),
                ("", "y = SkipSimplifiedLayerNormalization(x, skip, gain)", f"y:{dtype}"),
                ("bias, sum", "y, , , s = SkipSimplifiedLayerNormalization(x, skip, gain, bias)", both),
            ):
                yield run(f"{dtype} {hidden} {what}".strip(), call, x, held, outputs=outputs)
                constant = held | {"skip": x["skip"]}
                if what == "":
                    yield run(f"{dtype} {hidden} constant", call, {"x": x["x"]}, constant, outputs=outputs)


def _products() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        for size in (6, 48):
            x = {"x": floats(2, size, size).astype(dtype), "x2": floats(2, size, size, scale=0.3).astype(dtype)}
            flat = {"x": x["x"][0], "w": x["x2"][0], "c": floats(size).astype(dtype)}
            for flags in ("alpha = 0.5", "transA = 1, alpha = 2.0", "transB = 1", "transA = 1, transB = 1"):
                yield run(f"{dtype} {size} {flags}", f"y = FusedMatMul<{flags}>(x, x2)", x, outputs=f"y:{dtype}")
            swapped = {key: array.transpose(1, 0, 2).copy() for key, array in x.items()}
            call = "y = FusedMatMul<transBatchA = 1, transBatchB = 1>(x, x2)"
            yield run(f"{dtype} {size} batches", call, swapped, outputs=f"y:{dtype}")
            if dtype == "float32":
                yield run(f"{size}", "y = TransposeMatMul<transA = 1>(x, x2)", x)
            yield run(
                f"{dtype} {size}", "y = Inverse(x)", {"x": x["x"] + 3 * np.eye(size, dtype=dtype)}, outputs=f"y:{dtype}"
            )
            for metric in ("euclidean", "sqeuclidean"):
                call = f'y = CDist<metric = "{metric}">(x, w)'
                yield run(f"{metric} {dtype} {size}", call, flat, outputs=f"y:{dtype}")
        for activation in ("Relu", "LeakyRelu", "Sigmoid", "Tanh") if dtype == "float32" else ():
            call = f'y = FusedGemm<activation = "{activation}", activation_alpha = 0.1, transB = 1>(x, w, c)'
            yield run(f"{activation}", call, {"x": flat["x"]}, {"w": flat["w"], "c": flat["c"]})
    for rows in (3, 40):
        whole = {"x": integers(rows, 4, high=99, dtype="int16"), "w": integers(4, 5, high=99, dtype="int16")}
        yield run(f"{rows}", "y = MatMulInteger16(x, w)", whole, outputs="y:int32")
    for activation in ("Relu", "Clip", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"):
        parameters = {"Clip": "0.0, 6.0", "LeakyRelu": "0.1", "HardSigmoid": "0.2, 0.5"}.get(activation)
        listed = f", activation_params = [{parameters}]" if parameters else ""
        call = f'y = FusedConv<activation = "{activation}"{listed}>(x, w, bias)'
        given, held = {"x": floats(1, 3, 6, 6)}, {"w": floats(4, 3, 3, 3), "bias": floats(4)}
        yield run(activation, call, given, held)
        yield run(f"{activation} added", call.replace("bias)", "bias, z)"), given | {"z": floats(1, 4, 4, 4)}, held)


def _images() -> Iterator[Case]:
    x = floats(1, 2, 6, 6)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            call = f'y = GridSample<mode = "{mode}", padding_mode = "{padding}">(x, grid)'
            yield run(f"{mode} {padding}", call, {"x": x, "grid": floats(1, 3, 4, 2)})
    rois = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9]], dtype=np.float32)
    for mode in ("bilinear", "nearest"):
        call = f'y = CropAndResize<mode = "{mode}">(x, rois, which, size)'
        further = {"rois": rois, "which": np.zeros(2, dtype=np.int32), "size": np.array([3, 4], dtype=np.int32)}
        yield run(mode, call, {"x": x} | further)
    for dtype in _FLOATS[:1]:
        pads = np.array([0, 0, 1, 1, 0, 0, 1, 1])
        for mode in ("constant", "reflect", "edge"):
            call = f'y = Pad<mode = "{mode}">(x, pads, value)'
            yield run(mode, call, {"x": x, "pads": pads, "value": np.array([0.5], dtype=dtype)})
        mask = np.ones((1, 2, 6, 6), dtype=np.int32)
        yield run("", "y = MaxpoolWithMask<kernel_shape = [2, 2], strides = [2, 2]>(x, mask)", {"x": x, "mask": mask})
        small = {"x": x, "w": floats(2, 3, 3, 3), "pads": np.array([1, 1, 1, 1])}
        for size in (6, 12):
            given = small | {"x": floats(1, 2, size, size)}
            yield run(f"{size}", "y = ConvTransposeWithDynamicPads(x, w, pads)", given, outputs="y::4")
    for size in (2, 4):
        yield run(
            f"{size}", f"y = UnfoldTensor<dim = 1, size = {size}, step = 2>(x)", {"x": floats(3, 8)}, outputs="y::3"
        )


def _quantized() -> Iterator[Case]:
    known = {"s": np.array(0.02, dtype=np.float32), "s2": np.array(0.03, dtype=np.float32)}
    for dtype in ("uint8", "int8"):
        low = 0 if dtype == "uint8" else -90
        held = known | {"z": np.array(5, dtype=dtype), "z2": np.array(9, dtype=dtype)}
        for shape in ((1, 4, 6, 6), (2, 16, 8, 8)):
            x = {
                "x": integers(*shape, low=low, high=99).astype(dtype),
                "x2": integers(*shape, low=low, high=90).astype(dtype),
            }
            x |= {"one": integers(1, low=low, high=90).astype(dtype), "choice": integers(*shape, high=2).astype(bool)}
            out = f"y:{dtype}"
            for what, call in {
                "": "y = QLinearAdd(x, s, z, x2, s2, z2, s, z)",
                "broadcast": "y = QLinearAdd(x, s, z, one, s2, z2, s, z)",
                "first broadcast": "y = QLinearMul(one, s, z, x, s2, z2, s, z)",
                " ": "y = QLinearMul(x, s, z, x2, s2, z2, s, z)",
                "  ": "y = QLinearSigmoid(x, s, z, s2, z2)",
                "   ": "y = QLinearLeakyRelu<alpha = 0.1>(x, s, z, s2, z2)",
                "    ": "y = QLinearSoftmax<axis = 1, opset = 13>(x, s, z, s2, z2)",
                "old": "y = QLinearSoftmax<axis = 1, opset = 11>(x, s, z, s2, z2)",
                "     ": "y = QLinearAveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x, s, z, s2, z2)",
                "padded": "y = QLinearAveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1>"
                "(x, s, z, s2, z2)",
                "last": "y = QLinearAveragePool<kernel_shape = [2, 2], channels_last = 1>(x, s, z, s2, z2)",
                "      ": "y = QLinearGlobalAveragePool(x, s, z, s2, z2)",
                "last ": "y = QLinearGlobalAveragePool<channels_last = 1>(x, s, z, s2, z2)",
                "axis": "y = QLinearConcat<axis = 1>(s, z, x, s2, z2, x2, s, z)",
                "       ": "y = QLinearWhere(choice, x, s, z, x2, s2, z2, s, z)",
                "        ": "y = NhwcMaxPool<kernel_shape = [2, 2]>(x)",
                "strided": "y = NhwcMaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(x)",
            }.items():  # fmt: skip
                yield run(f"{dtype} {shape[1]} {what.strip()}".strip(), call, x, held, outputs=out)
        for k, n in ((4, 3), (64, 48)):
            w = {
                "w": integers(k, n, low=low, high=99).astype(dtype),
                "c": integers(n, high=99, dtype="int32"),
                "b": floats(n),
            }
            x = {"x": integers(5, k, low=low, high=99).astype(dtype)}
            yield run(f"{dtype} {k}", "y = QGemm(x, s, z, w, s2, z2, c, s, z)", x, w | held, outputs=f"y:{dtype}")
            yield run(f"{dtype} {k} float", "y = QGemm(x, s, z, w, s2, z2, c)", x, w | held)
            call = "y = MatMulIntegerToFloat(x, w, s, s2, z, z2, b)"
            yield run(f"{dtype} {k}", call, x, w | held)
            call = "y = DynamicQuantizeMatMul(x, w, s2, z2, b)"
            yield run(f"{dtype} {k}", call, {"x": floats(5, k)}, w | held)
        yield from _linear(dtype, held)
        yield from _conv_last(dtype, held)


def _linear(dtype: str, held: dict[str, Array]) -> Iterator[Case]:
    for shape in ((3, 4), (2, 8, 16)):
        x = floats(*shape)
        yield run(f"{dtype} {shape}", "y = QuantizeLinear(x, s, z)", {"x": x}, held, outputs=f"y:{dtype}")
        whole = integers(*shape, high=99).astype(dtype)
        yield run(f"{dtype} {shape}", "y = DequantizeLinear(x, s, z)", {"x": whole}, held)
        wide = dtype.replace("8", "16")
        zero = {"z": held["z"].astype(wide)}
        yield run(f"{wide} {shape}", "y = QuantizeLinear(x, s, z)", {"x": x}, held | zero, outputs=f"y:{wide}")
        yield run(f"{wide} {shape}", "y = DequantizeLinear(x, s, z)", {"x": whole.astype(wide)}, held | zero)
        yield run(f"int32 {shape} beside {dtype}", "y = DequantizeLinear(x, s)", {"x": whole.astype(np.int32)}, held)
        axis = {"s": np.full(shape[-1], 0.1, dtype=np.float32), "z": np.full(shape[-1], 3, dtype=dtype)}
        call = "y = QuantizeLinear<axis = -1>(x, s, z)"
        yield run(f"{dtype} {shape} by axis", call, {"x": x}, axis, outputs=f"y:{dtype}")


def _conv_last(dtype: str, held: dict[str, Array]) -> Iterator[Case]:
    for channels, group in ((4, 1), (16, 16), (8, 2)):
        x = {"x": integers(1, 7, 7, channels, high=99).astype(dtype)}
        w = {"w": integers(channels, channels // group, 3, 3, high=50).astype(dtype)}
        call = f"y = QLinearConv<channels_last = 1, group = {group}>(x, s, z, w, s2, z2, s, z)"
        yield run(f"{dtype} {channels}-{group}", call, x, w | held, outputs=f"y:{dtype}")


def _indexing() -> Iterator[Case]:
    for dtype in ("float32", "int32", "int64"):
        x = integers(4, 5, low=-9, high=20).astype(dtype)
        for k in (0, 1) if dtype != "int32" else ():
            yield run(f"{dtype} {k}", f"y = Trilu<upper = {k}>(x, k)", {"x": x, "k": np.array(k)}, outputs=f"y:{dtype}")
        at = np.array([[0, 1], [3, 4]])
        yield run(dtype, "y = GatherND(x, at)", {"x": x, "at": at}, outputs=f"y:{dtype}:1")
        axis = np.array(1, dtype=np.int32)
        yield run(dtype, "y = ExpandDims(x, axis)", {"x": x}, {"axis": axis}, outputs=f"y:{dtype}:3")
        bounds = {name: np.array(value, dtype=dtype) for name, value in {"a": 1, "b": 9, "d": 2}.items()}
        yield run(dtype, "y = Range(a, b, d)", bounds, outputs=f"y:{dtype}:1")
    yield run("float32", "y = SampleOp(x)", {"x": floats(3)})
    for shape in ((6,), (40,)):
        x = integers(*shape, high=5).astype(np.float32)
        yield run(f"{shape}", "y, i, c = Unique(x)", {"x": x}, outputs="y, i:int64:1, c:int64:1")
    for dtype in ("int32", "int64", "uint32", "uint64", "float32", "float64", "string"):
        x = integers(5).astype(dtype) if dtype != "string" else np.array(["a", "bc", ""], dtype=object)
        for positive, wanted in ((0, "int32"), (1, "uint32")):
            yield run(
                f"{dtype} {wanted}", f"y = MurmurHash3<positive = {positive}>(x)", {"x": x}, outputs=f"y:{wanted}"
            )
    for size in (2, 3):
        tokens = {"x": integers(2, 6, high=4), "scores": floats(2, 4)}
        yield run(f"{size}", f"y = NGramRepeatBlock<ngram_size = {size}>(x, scores)", tokens)
    tokens = {"a": np.array([2, 2, 1, 5]), "b": np.array([3, 2, 1]), "at": np.array(0), "p": np.array([2, 1, 5, 3, 3])}
    for call in ("y, m = BifurcationDetector(a, b, at)", "y, m = BifurcationDetector(a, b, at, p)"):
        yield run(f"{call.count(',')}", call, tokens, outputs="y:int64:1, m:int64:0")
    for costs in (floats(3, 4), floats(1, 9, 7)):
        yield run(f"{costs.shape}", "y = DynamicTimeWarping(x)", {"x": costs}, outputs="y:int32:2")
    words = {"x": integers(2, 3, 4, low=1, high=9, dtype="int32")}
    held = {"w": floats(6, 1, 2, 5), "b": floats(6), "c": floats(9, 5)}
    for length in (4, 6):
        given = {"x": integers(2, 3, length, low=1, high=9, dtype="int32")} if length > 4 else words
        call = "y = WordConvEmbedding<char_embedding_size = 5, conv_window_size = 2, embedding_size = 6>(x, w, b, c)"
        yield run(f"{length}", call, given, held)


def _text() -> Iterator[Case]:
    sentences = np.array(["the small model", "a b", "héllo  wörld"], dtype=object)
    for what, attributes in {
        "separators": 'separators = [" "]',
        "expression": 'tokenexp = "[a-z]+"',
        "characters": 'separators = [""]',
        "two separators": 'separators = [" ", "m"]',
    }.items():
        for mark in (0, 1):
            call = f'y = Tokenizer<mark = {mark}, mincharnum = 1, pad_value = "#", {attributes}>(x)'
            yield run(f"{what} {mark}", call, {"x": sentences}, outputs="y:string:2")
