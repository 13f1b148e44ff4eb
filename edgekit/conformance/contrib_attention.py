"""Operators of language models among onnxruntime's own: attention, experts, weights of few bits."""

from collections.abc import Iterator

import numpy as np

from edgekit.conformance.authoring import floats, integers
from edgekit.conformance.cases import Case
from edgekit.conformance.contrib_runs import run
from edgekit.records.tensors import Array

_FLOATS = ("float32", "float16")


def cases() -> tuple[Case, ...]:
    """Return the cases, about 200."""
    return (
        *_attention(), *_multi_head(), *_grouped(), *_rotary(), *_embedding(), *_few_bits(), *_experts(), *_recurrent(),
        *_newer(),
    )  # fmt: skip


def _as(dtype: str, **arrays: Array) -> dict[str, Array]:
    return {name: array.astype(dtype) if array.dtype == np.float32 else array for name, array in arrays.items()}


def _attention() -> Iterator[Case]:
    hidden, heads = 8, 2
    held = {"w": floats(hidden, 3 * hidden), "b": floats(3 * hidden)}
    masks = {
        "": None,
        "lengths": np.array([4, 2], dtype=np.int32),
        "ends": np.array([4, 2, 0, 0], dtype=np.int32),
        "2-D": np.array([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=np.int32),
        "3-D": np.ones((2, 4, 4), dtype=np.int32),
    }
    for size in (1, 8):
        x = {"x": floats(2, 4, hidden * size)}
        wide = hidden * size
        weights = held if size == 1 else {"w": floats(wide, 3 * wide, scale=0.1), "b": floats(3 * wide)}
        for what, mask in masks.items():
            for causal in (0, 1):
                given = x | ({} if mask is None else {"mask": mask})
                call = (
                    f"y = Attention<num_heads = {heads}, unidirectional = {causal}>(x, w, b{', mask' if what else ''})"
                )
                yield run(f"{wide} mask {what} causal {causal}".replace("mask  ", ""), call, given, weights)
        past = {"past": floats(2, 2, heads, 3, wide // heads)}
        call = f"y, p = Attention<num_heads = {heads}, unidirectional = 1>(x, w, b, , past)"
        yield run(f"{wide} past", call, x | past, weights, outputs="y, p::5")
        bias = {"bias": floats(2, heads, 4, 4)}
        yield run(f"{wide} bias", f"y = Attention<num_heads = {heads}>(x, w, b, , , bias)", x | bias, weights)
    for kind in ("int8", "uint8"):
        for masked in ("", "mask"):
            given = {"x": integers(2, 4, 8, high=99, dtype="uint8"), "mask": np.array([4, 2], dtype=np.int32)}
            if not masked:
                del given["mask"]
            weights = {
                "w": integers(8, 24, high=50).astype(kind), "b": floats(24), "s": np.array(0.01, dtype=np.float32),
                "z": np.array(9, dtype=np.uint8), "zw": np.array(3, dtype=kind),
            }  # fmt: skip
            call = f"y = QAttention<num_heads = 2>(x, w, b, s, s, {masked}, z, zw)"
            yield run(f"{kind} {masked}".strip(), call, given, weights)


def _multi_head() -> Iterator[Case]:
    heads = 2
    for hidden in (8, 64):
        q, k, v = floats(2, 3, hidden), floats(2, 5, hidden), floats(2, 5, hidden, scale=0.3)
        split = {"k": floats(2, heads, 5, hidden // heads), "v": floats(2, heads, 5, hidden // heads, scale=0.3)}
        past = {"pk": floats(2, heads, 2, hidden // heads), "pv": floats(2, heads, 2, hidden // heads, scale=0.3)}
        plain = {"q": q, "k": k, "v": v}
        bias = {"b": floats(3 * hidden)}
        start = f"MultiHeadAttention<num_heads = {heads}"
        yield run(f"{hidden}", f"y = {start}>(q, k, v)", plain)
        yield run(f"{hidden} bias", f"y = {start}>(q, k, v, b)", plain, bias)
        yield run(f"{hidden} scale", f"y = {start}, scale = 0.2, unidirectional = 1>(q, k, v)", plain)
        mask = {"mask": np.array([5, 3], dtype=np.int32)}
        yield run(f"{hidden} lengths", f"y = {start}>(q, k, v, , mask)", plain | mask)
        mask = {"mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=np.int32)}
        yield run(f"{hidden} mask", f"y = {start}>(q, k, v, , mask)", plain | mask)
        yield run(f"{hidden} attention bias", f"y = {start}>(q, k, v, , , a)", plain | {"a": floats(1, heads, 3, 5)})
        yield run(f"{hidden} crossed", f"y = {start}>(q, k, v)", {"q": q} | split)
        call = f"y, ok, ov = {start}>(q, k, v, , , , pk, pv)"
        given = {"q": floats(2, 5, hidden), "k": k, "v": v} | past
        yield run(f"{hidden} past", call, given, outputs="y, ok::4, ov::4")
        state = f"DecoderMaskedMultiHeadAttention<num_heads = {heads}, past_present_share_buffer = 1>"
        one = {"q": floats(2, 1, hidden), "k": floats(2, 1, hidden), "v": floats(2, 1, hidden, scale=0.3)}
        long = {"pk": floats(2, heads, 6, hidden // heads), "pv": floats(2, heads, 6, hidden // heads, scale=0.3)}
        further = {"n": np.array([3], dtype=np.int32)}
        call = f"y, ok, ov = {state}(q, k, v, , , pk, pv, n)"
        yield run(f"{hidden}", call, one | long | further, outputs="y, ok::4, ov::4")


def _grouped() -> Iterator[Case]:
    heads, groups, size, longest = 4, 2, 16, 8
    cos, sin = np.cos(floats(longest, size // 2)), np.sin(floats(longest, size // 2))
    for dtype in _FLOATS:
        for length, before in ((1, 3), (4, 0)):
            given = _as(
                dtype, q=floats(1, length, heads * size), k=floats(1, length, groups * size),
                v=floats(1, length, groups * size, scale=0.3), pk=floats(1, groups, before, size),
                pv=floats(1, groups, before, size, scale=0.3), n=np.array([before + length - 1], dtype=np.int32),
                total=np.array(before + length, dtype=np.int32), cos=cos, sin=sin,
            )  # fmt: skip
            outputs = f"y:{dtype}:3, ok:{dtype}:4, ov:{dtype}:4"
            head = f"y, ok, ov = GroupQueryAttention<num_heads = {heads}, kv_num_heads = {groups}"
            for what, call in {
                "": f"{head}>(q, k, v, pk, pv, n, total)",
                "rotary": f"{head}, do_rotary = 1>(q, k, v, pk, pv, n, total, cos, sin)",
                "interleaved": f"{head}, do_rotary = 1, rotary_interleaved = 1>(q, k, v, pk, pv, n, total, cos, sin)",
                "window": f"{head}, local_window_size = 2>(q, k, v, pk, pv, n, total)",
                "capped": f"{head}, softcap = 20.0>(q, k, v, pk, pv, n, total)",
                "smooth": f"{head}, smooth_softmax = 1>(q, k, v, pk, pv, n, total)",
            }.items():
                yield run(f"{dtype} {length} {what}".strip(), call, given, outputs=outputs)
            packed = given | _as(dtype, q=floats(1, length, (heads + 2 * groups) * size))
            call = f"{head}>(q, , , pk, pv, n, total)"
            yield run(f"{dtype} {length} packed", call, packed, outputs=outputs)


def _rotary() -> Iterator[Case]:
    for dtype in _FLOATS:
        for interleaved in (0, 1):
            cos, sin = np.cos(floats(6, 4)), np.sin(floats(6, 4))
            given = _as(dtype, x=floats(2, 3, 16), at=np.tile(np.arange(3), (2, 1)), cos=cos, sin=sin)
            call = f"y = RotaryEmbedding<interleaved = {interleaved}>(x, at, cos, sin)"
            four = given | _as(dtype, x=floats(2, 2, 3, 8))
            yield run(f"{dtype} 4-D {interleaved}", call, four, outputs=f"y:{dtype}")
            partial = given | _as(dtype, cos=cos[:, :2].copy(), sin=sin[:, :2].copy())
            stated = f"num_heads = 2, rotary_embedding_dim = 4, interleaved = {interleaved}"
            call = f"y = RotaryEmbedding<{stated}>(x, at, cos, sin)"
            yield run(f"{dtype} partial {interleaved}", call, partial, outputs=f"y:{dtype}")


def _embedding() -> Iterator[Case]:
    hidden = 16
    held: dict[str, Array] = {
        "words": floats(20, hidden), "places": floats(8, hidden), "kinds": floats(2, hidden),
        "gain": floats(hidden) + 1, "shift": floats(hidden),
    }  # fmt: skip
    for length in (4, 8):
        ids = integers(2, length, high=20, dtype="int32")
        given = {"ids": ids, "seg": ids % 2, "mask": (ids > 3).astype(np.int32)}
        outputs = "y::3, m:int32:1"
        start = "y, m = EmbedLayerNormalization"
        yield run(
            f"{length}", f"{start}(ids, seg, words, places, kinds, gain, shift, mask)", given, held, outputs=outputs
        )
        yield run(f"{length} words", f"{start}(ids, , words, places, , gain, shift)", given, held, outputs=outputs)
        call = "y, m, s = EmbedLayerNormalization(ids, seg, words, places, kinds, gain, shift, mask)"
        yield run(f"{length} sum", call, given, held, outputs=outputs + ", s::3")
        for kind in ("uint8", "int8"):
            whole: dict[str, Array] = {name: integers(*a.shape, high=90).astype(kind) for name, a in held.items()}
            whole |= {"s": np.array(0.02, dtype=np.float32), "z": np.array(7, dtype=kind)}
            call = (
                "y, m = QEmbedLayerNormalization(ids, seg, words, places, kinds, gain, shift, mask, s, s, s, s, s,"
                " z, z, z, z, z)"
            )
            yield run(f"{length} {kind}", call, given, whole, outputs=outputs)


def _few_bits() -> Iterator[Case]:
    """Yield products with weights of two, four and eight bits, packed."""
    for dtype in _FLOATS:
        for bits in (4, 8):
            for k, n, block, rows in ((32, 8, 16, 1), (128, 32, 32, 32)):
                blocks, packed = k // block, block * bits // 8
                held = _as(
                    dtype, w=integers(n, blocks, packed, high=255, dtype="uint8"),
                    s=np.abs(floats(n, blocks)) * 0.1 + 0.01,
                    z=integers(n, blocks * bits // 8 or 1, high=255, dtype="uint8"), b=floats(n),
                )  # fmt: skip
                if bits == 8:
                    held["z"] = integers(n, blocks, high=255, dtype="uint8")
                for level in (0, 4):
                    stated = f"K = {k}, N = {n}, bits = {bits}, block_size = {block}, accuracy_level = {level}"
                    head = f"y = MatMulNBits<{stated}>"
                    x = _as(dtype, x=floats(rows, k))
                    name = f"{dtype} {bits} bits {rows}x{k}x{n} level {level}"
                    for what, rest in {"": "(x, w, s)", " zeros": "(x, w, s, z)", " bias": "(x, w, s, , , b)"}.items():
                        if what == "" or level == 0:
                            yield run(name + what, head + rest, x, held, outputs=f"y:{dtype}")
    for bits, block in ((4, 16), (8, 32)):
        rows, k = 10, 64
        wide = k * bits // 8
        held = {
            "w": integers(rows, wide, high=255, dtype="uint8"), "s": np.abs(floats(rows, k // block)) + 0.1,
            "z": integers(rows, -(-k // block * bits // 8), high=255, dtype="uint8"),
        }  # fmt: skip
        for index in ("int32", "int64"):
            ids = {"ids": integers(4, high=rows).astype(index)}
            head = f"y = GatherBlockQuantized<block_size = {block}, bits = {bits}, gather_axis = 0, quantize_axis = 1>"
            yield run(f"{bits} bits {index}", f"{head}(w, ids, s)", ids, held, outputs="y::2")
            yield run(f"{bits} bits {index} zeros", f"{head}(w, ids, s, z)", ids, held, outputs="y::2")
    for kind in (0, 1):
        k, n, block = 32, 16, 16
        held = {"w": integers(k * n // 2, high=255, dtype="uint8"), "s": np.abs(floats(k * n // block))}
        for rows in (1, 4):
            call = f"y = MatMulBnb4<K = {k}, N = {n}, block_size = {block}, quant_type = {kind}>(x, w, s)"
            yield run(f"{kind} {rows}", call, {"x": floats(rows, k)}, held)


def _experts() -> Iterator[Case]:
    experts, hidden, wide = 4, 8, 16
    held = {
        "w1": floats(experts, wide, hidden), "b1": floats(experts, wide), "w2": floats(experts, hidden, wide),
        "b2": floats(experts, hidden),
    }  # fmt: skip
    given = {"x": floats(6, hidden), "r": floats(6, experts)}
    for activation in ("relu", "gelu", "silu", "identity"):
        for chosen in (1, 2):
            call = f'y = MoE<k = {chosen}, activation_type = "{activation}">(x, r, w1, b1, w2, b2)'
            yield run(f"{activation} {chosen}", call, given, held)
    for bits in (4, 8):
        for chosen in (1, 2):
            size = 8 // bits
            whole = {
                "w1": integers(experts, 2 * wide, hidden // size, high=255, dtype="uint8"),
                "s1": np.abs(floats(experts, 2 * wide)) * 0.1,
                "w2": integers(experts, hidden, wide // size, high=255, dtype="uint8"),
                "s2": np.abs(floats(experts, hidden)) * 0.1,
            }
            call = (
                f'y = QMoE<k = {chosen}, activation_type = "swiglu", swiglu_fusion = 1, expert_weight_bits = {bits}>'
                "(x, r, w1, s1, , w2, s2, )"
            )
            yield run(f"{bits} bits {chosen}", call, given, whole)


def _recurrent() -> Iterator[Case]:
    hidden, wide = 4, 3
    for kind in ("int8", "uint8"):
        for direction, ways in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            held: dict[str, Array] = {
                "w": integers(ways, wide, 4 * hidden, high=90).astype(kind),
                "r": integers(ways, hidden, 4 * hidden, high=90).astype(kind), "b": floats(ways, 8 * hidden),
                "s": np.full(ways, 0.01, dtype=np.float32), "z": np.full(ways, 30, dtype=kind),
                "sc": np.full((ways, 4 * hidden), 0.01, dtype=np.float32), "p": floats(ways, 3 * hidden),
                "zc": np.zeros((ways, 4 * hidden), dtype=kind),
            }  # fmt: skip
            state = {"h": floats(ways, 2, hidden), "c": floats(ways, 2, hidden, scale=0.3)}
            x = {"x": floats(5, 2, wide)}
            head = f'y, yh, yc = DynamicQuantizeLSTM<hidden_size = {hidden}, direction = "{direction}">'
            outputs = "y::4, yh::3, yc::3"
            for what, call in {
                "": f"{head}(x, w, r, b, , , , , s, z, s, z)",
                "states": f"{head}(x, w, r, b, , h, c, , s, z, s, z)",
                "peepholes": f"{head}(x, w, r, b, , h, c, p, s, z, s, z)",
                "per channel": f"{head}(x, w, r, b, , h, c, , sc, zc, sc, zc)",
            }.items():
                if "channel" in what and kind == "uint8":
                    continue
                yield run(f"{kind} {direction} {what}".strip(), call, x | state, held, outputs=outputs)


def _newer() -> Iterator[Case]:
    """Yield operators that newer runtimes alone have."""
    x = floats(1, 4, 6)
    for activation in ("none", "silu"):
        call = f'y, s = CausalConvWithState<activation = "{activation}">(x, w, b, past)'
        held = {"w": floats(4, 1, 3), "b": floats(4)}
        yield run(activation, call, {"x": x, "past": floats(1, 4, 2)}, held, outputs="y, s::3")
    heads, size = 2, 4
    given = {name: floats(1, 5, heads * size, scale=0.1 * (i + 1)) for i, name in enumerate(("q", "k", "v"))}
    for rule in ("linear", "gated", "delta", "gated_delta"):
        further = {"decay": -np.abs(floats(1, 5, heads)), "beta": np.abs(floats(1, 5, heads, scale=0.2))}
        listed = "".join([", decay" if "gated" in rule else ", ", ", beta" if "delta" in rule else ""])
        call = (
            f'y, s = LinearAttention<q_num_heads = {heads}, kv_num_heads = {heads}, update_rule = "{rule}">'
            f"(q, k, v, past{listed})"
        )
        state = {"past": np.zeros((1, heads, size, size), dtype=np.float32)}
        yield run(rule, call, given | further | state, outputs="y, s::4")
    for dtype in _FLOATS:
        outputs = f"y:{dtype}"
        for length in (2, 5):
            given = _as(dtype, x=floats(1, length, 8), z=floats(1, length, 8, scale=0.3), g=floats(1, length, 1))
            held = _as(dtype, w=floats(8) + 1)
            yield run(f"{dtype} {length}", "y = GatedAdd(x, z, g)", given, outputs=outputs)
            yield run(f"{dtype} {length}", "y = GatedRMSNorm(x, w, z)", given, held, outputs=outputs)
            held = {"t": floats(8), "d": -np.abs(floats(8))}
            yield run(f"{dtype} {length}", "y = LinearAttentionGate(x, t, d)", given, held, outputs=outputs)
            places = {"at": np.tile(np.arange(length), (3, 1, 1))}
            held = _as(dtype, c=np.cos(floats(9, 4)), s=np.sin(floats(9, 4)))
            given = _as(dtype, x=floats(1, 2, length, 8)) | places
            yield run(
                f"{dtype} {length}", "y = MRotaryEmbedding<mrope_section = [2, 1, 1]>(x, at, c, s)", given, held,
                outputs=outputs,
            )  # fmt: skip
            given = _as(dtype, k=floats(1, length, 2, 8), q=floats(1, length, 2, 8, scale=0.3), v=floats(1, length, 8))
            held = _as(dtype, kw=floats(2, 8) + 1, qw=floats(2, 8) + 1)
            yield run(f"{dtype} {length}", "y = EngramGate(k, q, v, kw, qw)", given, held, outputs=outputs)
    for kind, size in ((0, 20), (1, 21)):
        held = {"w": integers(16 * size, high=99, dtype="uint8"), "shape": np.array([32, 16])}
        yield run(f"{kind}", f"y = MatMulFpQ4<blk_quant_type = {kind}>(x, w, shape)", {"x": floats(3, 32)}, held)
