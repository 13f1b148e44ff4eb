"""The child process of ``edgekit.desktop.optimize``: onnxruntime writes the graph that it made of a model."""

import logging
import sys
from pathlib import Path

import onnxruntime as ort

from edgekit.desktop.child import LEVELS
from edgekit.desktop.exchange import read_json, write_json


def main(folder: Path) -> None:
    """Write what ``folder/request.json`` asks for, then ``done.json``, which is the last."""
    request = read_json(folder / "request.json")
    ort.set_default_logger_severity(4)
    ort.disable_telemetry_events()
    _session(request, folder / "optimized" / "model.onnx", "ONNX")
    problem = None
    try:
        _operators(request, folder)
    except Exception as error:  # the model runs without this list
        problem = str(error)
    write_json(folder / "done.json", {"runtime_version": ort.__version__, "operators": problem})


def _session(request: dict[str, str], written: Path, form: str) -> None:
    written.parent.mkdir(exist_ok=True)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[request["level"]])
    options.optimized_model_filepath = str(written)
    options.add_session_config_entry("session.save_model_format", form)
    if form == "ONNX" and request["external"]:
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", f"{written.name}.data"
        )
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    ort.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])


def _operators(request: dict[str, str], folder: Path) -> None:
    """Let onnxruntime's own tool list the operators and types of the graph in its own format."""
    from onnxruntime.tools.ort_format_model import create_config_from_models

    logging.disable(logging.CRITICAL)
    _session(request, folder / "ort" / "model.ort", "ORT")
    create_config_from_models([folder / "ort" / "model.ort"], folder / "operators.config", True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
