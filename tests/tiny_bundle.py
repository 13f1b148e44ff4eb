"""Tiny bundles and records, made by hand, for the tests of what serves, runs and judges them."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

from edgekit.bundle.open import CASES, TENSORS, Bundle, open_bundle
from edgekit.files import json_bytes, sha256_bytes
from edgekit.records import cases, manifest, run_record
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.records.run_record import CaseRun, Environment, Hashes, RunRecord, Timings
from edgekit.records.tensors import Value

# y = x * [1, -1]; with x = [1, 2] that is the [1, -2] that the page below posts.
MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
tiny (float[2] x) => (float[2] y) <float[2] w = {1, -1}> { y = Mul(x, w) }
""").SerializeToString()

# A page that posts a record: real in all but the model, which it does not run. What a test puts in place of
# OUTPUT, BEFORE and HASH bends it.
PAGE = b"""<!doctype html><meta charset="utf-8"><title>tiny</title><script type="module" src="page.js"></script>"""
SCRIPT = """
const query = new URLSearchParams(location.search);
const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const fetched = async (path) => (await fetch(path)).arrayBuffer();
const sha256 = async (path) => hex(await crypto.subtle.digest('SHA-256', await fetched(path)));
const model = await sha256('model/model.onnx');
const manifest = await sha256('manifest.json');
console.log(`asked: ${query}`);
BEFORE
const adapter = navigator.gpu ? await navigator.gpu.requestAdapter() : null;
const record = {
  format: 1, run: query.get('run'), error: null, attempts: [],
  hashes: { manifest, model: HASH, runtime: null },
  environment: {
    runner: 'page', runtime: 'none', runtime_version: '0', variant: 'wasm', execution_provider_asked: 'wasm',
    execution_provider: 'wasm', threads: 1, cross_origin_isolated: crossOriginIsolated, device: null,
    user_agent: navigator.userAgent,
    adapter: adapter && {
      vendor: adapter.info.vendor, architecture: adapter.info.architecture, device: '', description: '',
      software: adapter.info.isFallbackAdapter === true, features: [...adapter.features],
    },
  },
  timings: { fetch_ms: 1, compile_ms: 1, create_ms: 1, first_run_ms: 1, later_run_ms: [1, 2] },
  cases: [{ id: 'only', status: 'done', error: null, run_ms: 1,
    outputs: [{ name: 'y', dtype: 'float32', shape: [2], key: 'only/output/y' }] }],
};
const header = new TextEncoder().encode('{"only/output/y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}');
const form = new FormData();
form.append('record', new Blob([JSON.stringify(record)], { type: 'application/json' }));
form.append('tensors', new Blob([new BigUint64Array([BigInt(header.length)]), header, new Float32Array(OUTPUT)]));
await fetch('records', { method: 'POST', body: form });
"""


def script(*, output: str = "[1, -2]", before: str = "", model_hash: str = "model") -> bytes:
    """The page's script; ``before`` runs before anything is posted."""
    return SCRIPT.replace("OUTPUT", output).replace("BEFORE", before).replace("HASH", model_hash).encode()


def golden(model: bytes = MODEL) -> CaseSet:
    """One case, whose only output is [1, -2]."""
    case = GoldenCase(
        id="only",
        origin="by hand",
        inputs=(Value("x", "float32", np.array([1, 2], np.float32)),),
        outputs=(Value("y", "float32", np.array([1, -2], np.float32)),),
    )
    return CaseSet(
        model_sha256=sha256_bytes(model),
        reference=Reference("by hand", "none", "0", "disabled"),
        tolerance={"float32": Tolerance(1e-3, 1e-6)},
        output_tolerance={},
        cases=(case,),
    )


def make(
    folder: Path,
    files: Mapping[str, bytes] = {},
    *,
    title: str = "tiny",
    target: str = "wasm",
    variants: tuple[str, ...] = ("wasm",),
) -> Bundle:
    """Write a bundle of ``files`` (over a default page, model and cases) and open it."""
    document, tensors = cases.to_files(golden(files.get("model/model.onnx", MODEL)))
    contents = {
        "index.html": PAGE,
        "page.js": script(),
        "model/model.onnx": MODEL,
        CASES: json_bytes(document),
        TENSORS: tensors,
        **files,
    }
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    made = Manifest(
        edgekit_version="0",
        kind="web",
        target=target,
        title=title,
        model=ModelEntry("model/model.onnx", sha256_bytes(contents["model/model.onnx"])),
        runtime=RuntimeEntry("none", "0", variants),
        files=tuple(FileEntry(path, sha256_bytes(data), len(data)) for path, data in sorted(contents.items())),
    )
    (folder / manifest.NAME).write_bytes(json_bytes(manifest.to_json(made)))
    return open_bundle(folder)


def record(bundle: Bundle, **changes: Any) -> RunRecord:
    """A record of ``bundle`` in which everything is right."""
    environment = Environment("page", "none", "0", "wasm", "wasm", "wasm", 1, True, None, None, None)
    right = RunRecord(
        run="r1",
        hashes=Hashes(bundle.manifest_sha256, bundle.manifest.model.sha256, None),
        environment=environment,
        attempts=(),
        timings=Timings(),
        cases=(CaseRun("only", "done", (Value("y", "float32", np.array([1, -2], np.float32)),), run_ms=1.0),),
    )
    return replace(right, **changes)


def form(posted: RunRecord) -> dict[str, tuple[io.BytesIO, str]]:
    """The two parts of the post of a record, for a Flask test client."""
    document, tensors = run_record.to_files(posted)
    return parts(json.dumps(document).encode(), tensors)


def parts(document: bytes, tensors: bytes) -> dict[str, tuple[io.BytesIO, str]]:
    return {"record": (io.BytesIO(document), "record.json"), "tensors": (io.BytesIO(tensors), "record.safetensors")}
