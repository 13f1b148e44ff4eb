"""The child process of ``edgekit.diagnose.exact``: the reference evaluator of the onnx package, in float64."""

import contextlib
import io
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from edgekit.desktop.exchange import read_json, write_json
from edgekit.isolate.promote import promote, promoted
from edgekit.records import tensors
from edgekit.records.tensors import Value, value_of

_NARROW = ("float16", "bfloat16", "float32")
_RECURRENT = ("LSTM", "GRU", "RNN")


def main(folder: Path) -> None:
    """Evaluate what ``folder/suite.json`` lists, until its seconds are over."""
    request = read_json(folder / "suite.json")
    arrays = tensors.decode((folder / "suite.safetensors").read_bytes(), "suite.safetensors")
    end = time.monotonic() + request["seconds"]
    document: list[dict[str, Any]] = []
    outputs: dict[str, tensors.Array] = {}
    for entry in request["entries"]:
        error, values = "there was no time left", list[Value]()
        if time.monotonic() < end:
            error, values = evaluate(entry, arrays)
        listed, output_arrays = tensors.split(f"{entry['index']}/output", values)
        outputs |= output_arrays
        outcome = "failed" if error else "done"
        document.append({"index": entry["index"], "outcome": outcome, "error": error or None, "outputs": listed})
    (folder / "replies.safetensors").write_bytes(tensors.encode(outputs))
    write_json(folder / "replies.json", document)


def evaluate(entry: dict[str, Any], arrays: dict[str, Any]) -> tuple[str, list[Value]]:
    """Return why it failed ("" where it did not) and the outputs of one entry of a suite."""
    inputs = tensors.join(entry["inputs"], arrays)
    with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            model = onnx.load_from_string(arrays[entry["model"]].tobytes())
            if reason := _untrusted(model):
                return reason, []
            wide = _run(promote(model, _NARROW, "float64"), promoted(inputs, _NARROW, "float64"))
            if all(array.dtype.kind == "f" for array in wide.values()):
                return "", [value_of(name, array) for name, array in wide.items()]
            # Integers and bools are what the model's own precision rounds to: in float64 a tie may fall the other way.
            plain = _run(model, inputs)
            chosen = {name: array if array.dtype.kind == "f" else plain[name] for name, array in wide.items()}
            return "", [value_of(name, array) for name, array in chosen.items()]
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:500] or "it failed", []


def _run(model: onnx.ModelProto, inputs: tuple[Value, ...]) -> dict[str, tensors.Array]:
    from onnx.reference import ReferenceEvaluator

    results = ReferenceEvaluator(model).run(None, {value.name: value.array for value in inputs})
    names = [info.name for info in model.graph.output]
    return {name: np.asarray(each) for name, each in zip(names, results, strict=True)}


def _untrusted(model: onnx.ModelProto) -> str:
    """Say what the evaluator of onnx 1.23 computes without a look at one of its inputs; "" where it is to be trusted.

    Of the package's own 1,662 cases it agrees with all but those of ties.
    """
    lengths = any(node.op_type in _RECURRENT and len(node.input) > 4 and node.input[4] for node in model.graph.node)
    return "the evaluator does not know the lengths of sequences" if lengths else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
