"""A wasm of onnxruntime-web in node, beside the pinned JavaScript: one session, one run, on one thread."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wasm_modules import node

from edgekit.runtime import pins
from edgekit.runtime.fetch import fetch

CPU = pins.load().chosen(["wasm"], "test")[0]
_SCRIPT = """
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const [api, mjs, wasm, model, feeds] = process.argv.slice(1);
// What onnxruntime says beside its errors is not the answer.
for (const way of ['log', 'warn', 'error']) console[way] = () => {};
const ort = await import(pathToFileURL(api).href);
Object.assign(ort.env.wasm, {
  numThreads: 1, wasmBinary: readFileSync(wasm), wasmPaths: { mjs: pathToFileURL(mjs).href },
});
const answer = {};
try {
  const session = await ort.InferenceSession.create(readFileSync(model));
  const given = Object.entries(JSON.parse(feeds)).map(
    ([name, { dims, values }]) => [name, new ort.Tensor('float32', Float32Array.from(values), dims)]);
  const outputs = await session.run(Object.fromEntries(given));
  for (const [name, { data }] of Object.entries(outputs)) answer[name] = [...data];
} catch (error) {
  answer.error = error.message;
}
process.stdout.write(JSON.stringify(answer));
"""


def answer(wasm: bytes, model: Path, feeds: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what ``model`` gives for ``feeds`` (float32 arrays): values by output, or ``error`` in its own words.

    ``folder``: where to put the wasm.
    """
    dist = fetch().folder
    place = folder / "ort.wasm"
    place.write_bytes(wasm)
    given = {name: {"dims": array.shape, "values": array.ravel().tolist()} for name, array in feeds.items()}
    said: dict[str, Any] = node(_SCRIPT, dist / CPU.api, dist / CPU.mjs, place, model, json.dumps(given))
    return said
