"""The child process of ``edgekit.trim.prove``: run the right model, then each other one, and compare every bit.

For each model it writes a document when it is done with it, so that the parent knows at which one a crash was.
"""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from edgekit import metrics
from edgekit.desktop import child as desktop
from edgekit.desktop.exchange import StoredFeed, load_feed, read_json, write_json
from edgekit.records import tensors
from edgekit.records.tensors import Value

REFERENCE = -1
_FATAL_ONLY = 4

# Outputs by name: a Value, or what the runtime gives for sequences and maps.
Outputs = Mapping[str, Any]


def verdict_file(folder: Path, index: int) -> Path:
    """Where the verdict about a model stands; about the right model itself under ``REFERENCE``."""
    return folder / f"verdict{index}.json"


def main(folder: Path) -> None:
    """Do what ``folder/request.json`` asks."""
    request = read_json(folder / "request.json")
    ort.set_default_logger_severity(_FATAL_ONLY)
    ort.disable_telemetry_events()
    feeds = [load_feed(folder, index) for index in range(request["feeds"])]
    session = desktop.create_session(request["reference"], "disabled", 1)
    right = [_run(session, feed, {}) for feed in feeds]
    del session
    write_json(verdict_file(folder, REFERENCE), {"feeds": len(right)})
    for index, model in request["models"]:
        write_json(verdict_file(folder, index), _judge(model, feeds, right, request["outputs"]))


def _judge(model: str, feeds: list[StoredFeed], right: list[Outputs], names: list[str]) -> dict[str, Any]:
    compared, difference, worst = 0, 0.0, None
    try:
        session = desktop.create_session(model, "disabled", 1)
        for number, (feed, wanted) in enumerate(zip(feeds, right, strict=True)):
            given = _run(session, feed, wanted)
            for name in names:
                error = _difference(given.get(name), wanted.get(name))
                compared += 1
                if error > difference:
                    difference, worst = error, f"'{name}' of case {number + 1}"
    except Exception as error:
        return {"error": str(error) or type(error).__name__, "compared": 0, "difference": "inf", "worst": None}
    text = "inf" if math.isinf(difference) else difference
    return {"error": None, "compared": compared, "difference": text, "worst": worst}


def _run(session: ort.InferenceSession, feed: StoredFeed, others: Outputs) -> Outputs:
    """Run one feed. Inputs that the feed lacks are taken from ``others``: a part cut out begins at what others gave."""
    options = ort.RunOptions()
    options.log_severity_level = _FATAL_ONLY
    wanted = {argument.name for argument in session.get_inputs()}
    wanted |= {argument.name for argument in session.get_overridable_initializers()}
    given = [value for value in feed.inputs if value.name in wanted]
    names = {value.name for value in given}
    given += [v for v in others.values() if isinstance(v, Value) and v.name in wanted and v.name not in names]
    inputs = desktop.prepare(session, given)
    outputs = desktop.run(session, inputs, feed, options, [])
    found: dict[str, Any] = {
        value.name: value for value in desktop.read_outputs(session, outputs) if value.array is not None
    }
    rest = [argument.name for argument in session.get_outputs() if argument.name not in found]
    if rest:
        plain = {value.name: value.array for value in given if value.array is not None}
        found |= dict(zip(rest, session.run(rest, plain, options), strict=True))
    return found


def _difference(given: Any, wanted: Any) -> float:
    """Return 0 for the same bits, the largest error relative to the scale for other numbers, infinity otherwise."""
    if isinstance(given, Value) and isinstance(wanted, Value):
        return _of_tensors(given, wanted)
    if isinstance(given, Value) and isinstance(wanted, list):
        return _of_maps(given, wanted)
    if given is None and wanted is None:
        return 0.0  # an optional output without a value
    if isinstance(given, np.ndarray) and isinstance(wanted, np.ndarray):
        return _of_tensors(tensors.value_of("part", given), tensors.value_of("part", wanted))
    if isinstance(given, list) and isinstance(wanted, list) and len(given) == len(wanted):
        return max((_difference(a, b) for a, b in zip(given, wanted, strict=True)), default=0.0)
    if isinstance(given, dict) and isinstance(wanted, dict) and list(given) == list(wanted):
        return max((_difference(given[key], wanted[key]) for key in wanted), default=0.0)
    if isinstance(given, (int, float, str)) and type(given) is type(wanted):
        return _difference(np.array(given), np.array(wanted))
    return math.inf


def _of_tensors(given: Value, wanted: Value) -> float:
    if tensors.same_bits(given, wanted):
        return 0.0
    if given.array is None or wanted.array is None or given.dtype != wanted.dtype or given.shape != wanted.shape:
        return math.inf
    if given.dtype == "string":
        return math.inf
    found = metrics.measure(given.array, wanted.array)
    if math.isinf(found.passing_relative):
        return math.inf
    return max(found.max_rel or 0.0, math.ulp(0.0))  # other bits: never 0, though -0 is equal to 0


def _of_maps(given: Value, wanted: list[Any]) -> float:
    """Scores as a tensor against scores as maps from classes: a row for each map, its values in the map's order."""
    if given.array is None or not all(isinstance(row, dict) for row in wanted):
        return math.inf
    table = np.array([list(row.values()) for row in wanted], dtype=given.array.dtype).reshape(len(wanted), -1)
    return _of_tensors(given, Value(given.name, given.dtype, table))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
