"""The child process of ``edgekit.conformance.desktop``: a session for each case, replies in chunks of files.

``at`` names the case in hand, so that the parent knows which one ended the process.
"""

import sys
from pathlib import Path
from typing import Any

import onnxruntime as ort

from edgekit.desktop import child
from edgekit.desktop.exchange import read_json, write_json
from edgekit.records import tensors
from edgekit.records.tensors import Value

_CHUNK = 100
_FATAL_ONLY = 4


def main(folder: Path) -> None:
    """Replay what ``folder/suite.json`` lists."""
    request = read_json(folder / "suite.json")
    arrays = tensors.decode((folder / "suite.safetensors").read_bytes(), "suite.safetensors")
    ort.set_default_logger_severity(_FATAL_ONLY)
    ort.disable_telemetry_events()
    entries = request["entries"]
    with (folder / "at").open("wb", buffering=0) as at:
        for start in range(0, len(entries), _CHUNK):
            document: list[dict[str, Any]] = []
            outputs: dict[str, tensors.Array] = {}
            for entry in entries[start : start + _CHUNK]:
                at.seek(0)
                at.write(b"%-12d" % entry["index"])
                reply, values = _replay(entry, arrays, request["optimization"])
                listed, output_arrays = tensors.split(f"{entry['index']}/output", values)
                outputs |= output_arrays
                document.append({"index": entry["index"], "outputs": listed, **reply})
            first = entries[start]["index"]
            (folder / f"{first}.safetensors").write_bytes(tensors.encode(outputs))
            write_json(folder / f"{first}.replies.json", document)


def _replay(entry: dict[str, Any], arrays: dict[str, Any], optimization: str) -> tuple[dict[str, Any], list[Value]]:
    options = ort.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, child.LEVELS[optimization])
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(arrays[entry["model"]].tobytes(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return {"outcome": "refused", "error": str(error)}, []
    if not entry["run"]:
        return {"outcome": "loaded", "error": None}, []
    try:
        run_options = ort.RunOptions()
        run_options.log_severity_level = _FATAL_ONLY
        inputs = child.prepare(session, tensors.join(entry["inputs"], arrays))
        kinds = {argument.name: argument.type for argument in session.get_outputs()}
        outputs = child.fetch(session, inputs, kinds, run_options)
        return {"outcome": "done", "error": None}, list(child.read_outputs(session, outputs))
    except Exception as error:
        return {"outcome": "failed", "error": str(error)}, []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
