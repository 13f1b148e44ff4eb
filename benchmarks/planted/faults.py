# ruff: noqa: E501  snippets of code read better whole
"""What is planted. Engine faults change what onnxruntime-web is given, whatever page gives it: to everyone above, the
engine computes one node wrongly. Page faults change a bundle's scripts, whose hashes are then made right again.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planted.model import ARRAY, weights


@dataclass(frozen=True)
class EngineFault:
    """Bytes that the engine takes for others, wherever they stand in a model; ``node``: where it is then wrong."""

    name: str
    node: str
    bytes_: bytes
    others: bytes


@dataclass(frozen=True)
class PageFault:
    """A change of one of a bundle's scripts: ``old`` becomes ``new``; ``said``: what the verdict must then say."""

    name: str
    script: str
    old: str
    new: str
    said: str


def engine_faults() -> list[EngineFault]:
    """Return the faults of single nodes."""
    drawn = weights()
    noise = np.random.default_rng(11)

    def weight(name: str, node: str, key: str, change: Callable[[ARRAY], ARRAY]) -> EngineFault:
        return EngineFault(name, node, drawn[key].tobytes(), np.asarray(change(drawn[key]), np.float32).tobytes())

    def attribute(name: str, node: str, key: str, old: bytes, new: bytes) -> EngineFault:
        head = b"\x0a" + bytes([len(key)]) + key.encode()
        return EngineFault(name, node, head + old, head + new)

    def operator(name: str, node: str, old: str, new: str) -> EngineFault:
        head = b"\x1a" + bytes([len(node)]) + node.encode() + b"\x22" + bytes([len(old)])
        return EngineFault(name, node, head + old.encode(), head + new.encode())

    def first(value: float) -> Callable[[ARRAY], ARRAY]:
        return lambda array: np.concatenate([[value], array.ravel()[1:]]).reshape(array.shape)

    def percent(array: ARRAY) -> ARRAY:
        return array * (1 + 0.01 * noise.standard_normal(array.shape))

    floats = np.float32
    return [
        weight("weights of a convolution 1 % wrong", "conv", "conv_w", percent),
        weight("bias of a convolution dropped", "conv", "conv_b", np.zeros_like),
        weight("scales of a normalization 1 % wrong", "norm", "norm_s", percent),
        weight("weights of a Gemm 1 % wrong", "dense", "dense_w", percent),
        weight("bias of a Gemm dropped", "dense", "dense_b", np.zeros_like),
        weight("weights of a Gemm rounded to 8 bits of mantissa", "dense", "dense_w", _short),
        weight("weights of a MatMul in the wrong layout", "mix", "mix_w", lambda array: array.T),
        weight("NaN among the weights of a MatMul", "mix", "mix_w", first(float("nan"))),
        weight("infinity among the weights of a MatMul", "mix", "mix_w", first(float("inf"))),
        weight("what is added is added with the wrong sign", "shift", "shift_b", np.negative),
        attribute("alpha of a LeakyRelu 10 % wrong", "leaky", "alpha", b"\x15" + floats(0.1).tobytes(),
                  b"\x15" + floats(0.11).tobytes()),
        attribute("axis of a Softmax off by one", "soft", "axis", b"\x18\x02", b"\x18\x01"),
        attribute("axes of a Transpose flipped", "turn", "perm", b"\x40\x00\x40\x01\x40\x03\x40\x02",
                  b"\x40\x00\x40\x01\x40\x02\x40\x03"),
        attribute("pads of a convolution on the wrong side", "conv", "pads", b"\x40\x01\x40\x01\x40\x01\x40\x01",
                  b"\x40\x01\x40\x00\x40\x01\x40\x02"),
        operator("another activation", "bend", "Tanh", "Sinh"),
    ]  # fmt: skip


def _short(array: ARRAY) -> ARRAY:
    return (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


_MATCH = r"does not match"
_OUTPUTS = "this.#outputs.map((output) => valueOf(output, results))"
_LOOP = "for (const [done, entry] of all.entries()) {"


def _outputs(name: str, code: str, said: str = _MATCH) -> PageFault:
    return PageFault(name, "app/session.js", _OUTPUTS, f"((v) => {{ {code}; return v; }})({_OUTPUTS})", said)


def page_faults(cases: int) -> list[PageFault]:
    """Return the faults of a page whose bundle has that many cases."""
    first = "const d = v[0].tensor.data"
    count = "globalThis.nth = (globalThis.nth ?? 0) + 1"
    later = f"if (globalThis.nth > {cases + 1})"
    return [
        _outputs("two outputs swapped", "[v[0].tensor, v[1].tensor] = [v[1].tensor, v[0].tensor]"),
        _outputs("outputs of the right shape and all zeros", "v.forEach((o) => o.tensor.data.fill(0))"),
        _outputs("a NaN in an output", f"{first}; d[5] = NaN", "NaN or infinity"),
        _outputs("float16 overflow", "const d = v[2].tensor.data; d.forEach((x, i) => { d[i] = Math.f16round(x * 4); })",
                 "NaN or infinity"),
        _outputs("outputs rounded to float16", f"{first}; d.forEach((x, i) => {{ d[i] = Math.f16round(x); }})"),
        _outputs("outputs off by a thousandth", f"{first}; d.forEach((x, i) => {{ d[i] = x * 1.001; }})"),
        _outputs("rows and columns confused", f"{first}.slice(); v[0].tensor.data.set(d.map((_, i) => d[4 * (i % 4) + "
                 "Math.floor(i / 4)]))"),
        _outputs("elements off by one", f"{first}; d.set([...d.slice(1), d[0]])"),
        _outputs("negative numbers cut off", f"{first}; d.forEach((x, i) => {{ d[i] = Math.max(0, x); }})"),
        _outputs("answers of the run before", "const n = v.map((o) => o.tensor); if (globalThis.last) "
                 "v.forEach((o, i) => { o.tensor = globalThis.last[i]; }); globalThis.last = n"),
        _outputs("an output of another shape", "v[0] = { ...v[0], tensor: { ...v[0].tensor, shape: [16] } }", "wrong shape"),
        _outputs("an output of another dtype", "const t = v[0].tensor; v[0] = { ...v[0], dtype: 'float64', tensor: { ...t, "
                 "dtype: 'float64', data: Float64Array.from(t.data) } }", "wrong dtype"),
        _outputs("an output that is left out", "v.shift()", "is missing"),
        _outputs("non-determinism within a session", f"{first}; {count}; {later} d[0] += 0.1", "run again in the same session"),
        _outputs("non-determinism from session to session", f"{first}; (globalThis.all ??= new Set()).add(this); "
                 "if (globalThis.all.size > 1) d[0] += 0.1", "run again in a new session"),
        _outputs("failure after the first runs", f"{count}; {later} throw new Error('spent')", "failed when it was run again"),
        _outputs("failure in one of the cases", f"{count}; if (globalThis.nth === 4) throw new Error('one case')",
                 "was not computed"),
        PageFault("a dropped case", "app/parity-agent.js", _LOOP, _LOOP.replace("all.entries()", "all.slice(1).entries()"),
                  "is missing"),
        PageFault("cases in each other's places", "app/parity-agent.js", "runs.push(await replay(bench.opened, entry));",
                  "runs.push({ ...(await replay(bench.opened, all[(done + 1) % all.length])), id: entry.id });", _MATCH),
        PageFault("an input that is reversed", "app/session.js", "feeds.set(name, tensor);",
                  "feeds.set(name, { ...tensor, data: tensor.data.slice().reverse() });", _MATCH),
        PageFault("a record of another model", "app/parity-agent.js", "model: bench.modelSha256 ?? config.model.sha256",
                  "model: 'a'.repeat(64)", "of another model"),
        PageFault("a record of another bundle", "app/parity-agent.js", "manifest: bench.manifestSha256",
                  "manifest: 'b'.repeat(64)", "of another build"),
        PageFault("another execution provider ran", "app/parity-agent.js",
                  "execution_provider: running?.execution_provider ?? null", "execution_provider: 'other'", "did not run"),
    ]  # fmt: skip
