"""The real runtime, in node: recorded with a model, cut to what ran, it answers the same, and reports what it lacks."""

from pathlib import Path
from typing import Any

import models_text
import pytest
from wasm_modules import node, runtime

from edgekit import resources
from edgekit.runtime import pins
from edgekit.runtime.fetch import fetch
from edgekit.wasm.code import bodies
from edgekit.wasm.edits import cut, record
from edgekit.wasm.layout import flag_base
from edgekit.wasm.module import Module, parse

CPU = pins.load().chosen(["wasm"], "test")[0]
DIGITS = resources.root("examples") / "digits" / "digits.onnx"
MISS_ADDRESS = 16
ACOSH = '<ir_version: 8, opset_import: ["" : 17]> acosh (float[2,3] x) => (float[2,3] y) { y = Acosh(x) }'

_SESSION = """
import { readFileSync } from 'node:fs';
const [api, wasm, model, base, count] = process.argv.slice(1);
// The runtime keeps its memory to itself; this sees it being made.
let memory;
WebAssembly.Memory = new Proxy(WebAssembly.Memory, {
  construct(real, given) { return (memory = new real(...given)); },
});
const ort = await import(api);
Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: readFileSync(wasm) });
const answer = { outputs: null, error: null };
try {
  const session = await ort.InferenceSession.create(readFileSync(model), { logSeverityLevel: 4 });
  const shape = session.inputMetadata[0].shape.map((size) => (typeof size === 'number' ? size : 2));
  const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i));
  const given = { [session.inputNames[0]]: new ort.Tensor('float32', data, shape) };
  const outputs = await session.run(given);
  const bits = ({ data }) => [...new Uint32Array(data.buffer, data.byteOffset, data.length)];
  answer.outputs = Object.values(outputs).map(bits);
} catch (error) {
  answer.error = String(error);
}
const flags = new Uint8Array(memory.buffer, Number(base), Number(count));
answer.ran = [...flags.keys()].filter((k) => flags[k] === 1);
answer.others = flags.filter((flag) => flag > 1).length;
answer.missed = Atomics.load(new Int32Array(memory.buffer), 4);
console.log(JSON.stringify(answer));
process.exit(0);
"""


@pytest.fixture(scope="module")
def stock() -> Module:
    return parse(runtime(CPU.wasm))


def run(module: Module, model: Path, folder: Path) -> Any:
    """Create a session and run it once; outputs are given bit by bit."""
    path = folder / "runtime.wasm"
    path.write_bytes(module.to_bytes())
    base, count = flag_base(module), len(bodies(module))
    return node(_SESSION, fetch().folder / CPU.api, path, model, str(base), str(count))


def test_a_runtime_cut_to_what_a_model_runs_answers_the_same(stock: Module, tmp_path: Path) -> None:
    plain = run(stock, DIGITS, tmp_path)
    assert (plain["error"], plain["ran"], plain["others"], plain["missed"]) == (None, [], 0, 0)
    recorded = run(record(stock, flag_base(stock)), DIGITS, tmp_path)
    assert recorded["outputs"] == plain["outputs"]
    assert (recorded["others"], recorded["missed"]) == (0, 0)
    assert 2_000 < len(recorded["ran"]) < 6_000

    small = cut(stock, recorded["ran"], MISS_ADDRESS)
    assert len(small.to_bytes()) < 0.5 * len(stock.to_bytes())
    again = run(small, DIGITS, tmp_path)
    assert (again["error"], again["outputs"], again["missed"]) == (None, plain["outputs"], 0)

    other = models_text.write(ACOSH, tmp_path, "other.onnx")
    assert run(stock, other, tmp_path)["error"] is None
    missed = run(small, other, tmp_path)
    assert "unreachable" in missed["error"]
    assert missed["missed"] > 0 and missed["missed"] - 1 not in recorded["ran"]
