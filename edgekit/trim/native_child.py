"""The child process of ``edgekit.trim.native``: one task on one model, the result as a file beside the request."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
import onnx.version_converter
import onnxruntime as ort

from edgekit.desktop import child as desktop
from edgekit.desktop.exchange import StoredResult, read_json, save_result
from edgekit.records import tensors
from edgekit.records.tensors import Value

_FATAL_ONLY = 4
# What is computed for one model may take so many bytes in files.
_MOST_BYTES = 1 << 30


def main(folder: Path) -> None:
    """Do what ``folder/request.json`` asks."""
    request = read_json(folder / "request.json")
    model = Path(request["model"])
    ort.set_default_logger_severity(_FATAL_ONLY)
    ort.disable_telemetry_events()
    if request["task"] == "infer":
        inferred = onnx.shape_inference.infer_shapes(
            onnx.load(model, load_external_data=False), check_type=False, strict_mode=False, data_prop=True
        )
        _write(folder, inferred)
    elif request["task"] == "convert":
        proto = onnx.load(model, load_external_data=False)
        _write(folder, onnx.version_converter.convert_version(proto, request["opset"]))
    elif request["task"] == "optimize":
        _optimize(model, folder)
    else:
        save_result(folder, 0, StoredResult(tuple(_evaluate(model, request["names"])), None, ()))


def _write(folder: Path, proto: onnx.ModelProto) -> None:
    (folder / "result.onnx").write_bytes(proto.SerializeToString())


def _optimize(model: Path, folder: Path) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "result.onnx")
    ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def _evaluate(model: Path, names: list[str]) -> list[Value]:
    """Compute all at once; where the runtime refuses that, node by node, without those that it refuses."""
    try:
        return _run(str(model), names)
    except Exception:
        return _one_by_one(onnx.load(model, load_external_data=False), model, names)


def _run(model: str, names: list[str]) -> list[Value]:
    session = desktop.create_session(model, "disabled", 1)
    kinds = {argument.name: argument.type for argument in session.get_outputs()}
    found: list[Value] = []
    total = 0
    for value in desktop.read_outputs(session, session_outputs(session, kinds)):
        if value.name not in names or value.array is None:
            continue
        total += value.array.nbytes
        if total <= _MOST_BYTES:
            found.append(value)
    return found


def session_outputs(session: Any, kinds: dict[str, str]) -> dict[str, Any]:
    """Run a session without inputs."""
    options = ort.RunOptions()
    options.log_severity_level = _FATAL_ONLY
    return desktop.fetch(session, {}, kinds, options)


def _one_by_one(proto: onnx.ModelProto, model: Path, names: list[str]) -> list[Value]:
    known = {tensor.name: tensor for tensor in proto.graph.initializer}
    found: list[Value] = []
    for number, node in enumerate(proto.graph.node):
        if not all(name in known for name in node.input if name):
            continue
        wanted = [name for name in node.output if name]
        graph = onnx.GraphProto(name="one", node=[node], initializer=[known[n] for n in dict.fromkeys(node.input) if n])
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
        one = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, graph=graph)
        place = model.with_name(f"{model.stem}-{number}.onnx")
        try:
            place.write_bytes(one.SerializeToString())
            values = _run(str(place), wanted)
        except Exception:  # noqa: S112  what the runtime refuses is not folded
            continue
        finally:
            place.unlink(missing_ok=True)
        for value in values:
            if value.array is not None:
                known[value.name] = onnx.numpy_helper.from_array(np.asarray(value.array), value.name)
        found += [tensors.value_of(v.name, v.array) for v in values if v.array is not None and v.name in names]
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
