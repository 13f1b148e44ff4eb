"""Trim every model that the onnx package tests backends with; none may answer otherwise than before.

Run ``python benchmarks/trim_sweep.py [--group GROUP] [--output FILE]``. Groups: node (all conformance cases), simple,
pytorch-converted, pytorch-operator, light. For each model the passes run as in ``edgekit trim``; then the recorded
inputs go through the runtime, optimization off, before and after. Every bit must be the same.

What ``edgekit trim`` does in child processes is done in the process here, a batch of models at a time, because starting
five processes for each of two thousand models would take an hour. A batch that crashes goes on after the model that
crashed, which counts as such.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime as ort

from edgekit.child.process import ChildLimits
from edgekit.errors import EdgekitError
from edgekit.files import json_bytes, write_atomic
from edgekit.model import io
from edgekit.trim import native_child, output
from edgekit.trim.native import Native, NativeFailedError, _Work
from edgekit.trim.passing import Passing, Snapshot, seeded
from edgekit.trim.prove_child import _difference
from edgekit.trim.steps import Work
from edgekit.trim.weights import Store

RESULTS = Path(__file__).resolve().parent / "results"
MOST_UNDONE = 6
GROUPS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")


@dataclass(frozen=True, eq=False)
class Sample:
    """A model and its recorded inputs, one list for each data set."""

    name: str
    model: onnx.ModelProto
    inputs: list[list[Any]]
    outputs: list[list[Any]]


class InProcess(Native):
    """Does native work in this process."""

    def _task(self, task: Any, proto: onnx.ModelProto, request: dict[str, Any]) -> Any:
        class Inside(_Work):
            def _run(self) -> None:
                try:
                    native_child.main(self.path)
                except Exception as error:
                    raise NativeFailedError(str(error)[:300]) from error

        return Inside(self, task, proto, request)


def samples(group: str) -> Iterator[Sample]:
    """Yield the models of a group."""
    from onnx.backend.test.loader import load_model_tests

    if group in ("node", "simple"):
        yield from _generated(group)
        return
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / group
    if group == "light":
        for path in sorted(folder.glob("*.onnx")):
            yield Sample(path.stem, onnx.load(path), [], [])
        return
    for case in sorted(load_model_tests(kind=group), key=lambda case: case.name):
        place = Path(case.model_dir)
        model = onnx.load(place / "model.onnx")
        sets = sorted(place.glob("test_data_set_*"))
        inputs = [_stored(each, "input", model.graph.input) for each in sets]
        yield Sample(case.name, model, inputs, [_stored(each, "output", model.graph.output) for each in sets])


def _generated(group: str) -> Iterator[Sample]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if group == "node":
            from onnx.backend.test.case.node import collect_testcases

            found = collect_testcases(None)
        else:
            from onnx.backend.test.case.model import collect_testcases as collect_models

            found = [case for case in collect_models() if case.model is not None]
    for case in sorted(found, key=lambda case: case.name):
        # Some state a newer IR version than they need, and would be refused for that alone.
        needed = onnx.helper.find_min_ir_version_for(case.model.opset_import)
        case.model.ir_version = min(case.model.ir_version, needed)
        yield Sample(case.name, case.model, [list(d[0]) for d in case.data_sets], [list(d[1]) for d in case.data_sets])


def _stored(folder: Path, what: str, infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    values: list[Any] = []
    for path in sorted(folder.glob(f"{what}_*.pb"), key=lambda path: int(path.stem.split("_")[1])):
        data = path.read_bytes()
        if infos[len(values)].type.HasField("sequence_type"):
            values.append(onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
        else:
            values.append(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    return values


def trim(sample: Sample, folder: Path, skip: frozenset[str]) -> tuple[onnx.ModelProto, list[Snapshot], Store]:
    """Run all passes but some on a model; return what they left, with its weights, and what each left without."""
    folder.mkdir()
    path = folder / "model.onnx"
    path.write_bytes(sample.model.SerializeToString())
    store = Store(folder)
    lean = store.detach(io.load(path))
    work = Work(InProcess(folder, ChildLimits()), store)
    passing = Passing(work, skip, structural_only=False, opset=None, rounding=False, seeds=False)
    done = passing.run([("the model", lean)])
    if work.failures:
        raise RuntimeError(f"failed: {work.failures}")
    return whole(done[-1], store), done, store


def whole(snapshot: Snapshot, store: Store) -> onnx.ModelProto:
    """Return a model with its weights."""
    with tempfile.TemporaryDirectory(dir=store.folder) as name:
        output.write(snapshot.proto, store, Path(name), "out.onnx", external=False, most=None)
        return onnx.load(Path(name) / "out.onnx")


def answers(model: onnx.ModelProto, inputs: list[list[Any]]) -> list[list[Any]]:
    """Run a model with optimization off; random nodes get seeds."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(seeded(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    known = {info.name: index for index, info in enumerate(model.graph.input)}
    run_options = ort.RunOptions()
    run_options.log_severity_level = 4
    results = []
    for values in inputs or [_made(session)]:
        feed = {n: values[known[n] if inputs else i] for i, n in enumerate(names)}
        given = {n: _value(v) for n, v in feed.items() if v is not None}
        results.append(session.run(None, given, run_options))
    return results


def _value(value: Any) -> Any:
    """Return a recorded input as the runtime takes it: the package also has bare scalars and messages."""
    if isinstance(value, onnx.TensorProto):
        array = onnx.numpy_helper.to_array(value)
        if array.dtype.kind == "V":  # bfloat16 and smaller floats, which numpy alone does not have
            return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, value.data_type)
        return array
    return np.asarray(value) if isinstance(value, np.generic) else value


def _made(session: ort.InferenceSession) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal([size if isinstance(size, int) else 1 for size in argument.shape]).astype(np.float32)
        for argument in session.get_inputs()
    ]


def judge(sample: Sample) -> tuple[str, str, int, int]:
    """Trim one model and compare. Returns the verdict, why, and the bytes before and after.

    As in ``edgekit trim``, the first pass that changes an answer is undone, and the passes begin again without it.
    """
    before = sample.model.ByteSize()
    right, reason = None, ""
    try:
        right = answers(sample.model, sample.inputs)
    except Exception as error:
        reason = str(error).splitlines()[0][:200]
    undone: list[str] = []
    with tempfile.TemporaryDirectory(prefix="edgekit-sweep-") as name:
        for attempt in range(MOST_UNDONE):
            try:
                trimmed, snapshots, store = trim(sample, Path(name) / str(attempt), frozenset(undone))
            except EdgekitError as error:
                return ("refused" if right is None else "error"), error.message, before, 0
            except Exception as error:
                return "error", f"{type(error).__name__}: {error}"[:300], before, 0
            if right is None:
                return "not run", reason, before, trimmed.ByteSize()
            if not difference(trimmed, sample.inputs, right):
                return ("undone" if undone else "identical"), ", ".join(undone), before, trimmed.ByteSize()
            undone.append(_guilty(snapshots, store, sample.inputs, right))
    return "wrong", ", ".join(undone), before, trimmed.ByteSize()


def _guilty(snapshots: list[Snapshot], store: Store, inputs: list[list[Any]], right: list[list[Any]]) -> str:
    """Return the pass that first changed an answer."""
    return next((one.name for one in snapshots if difference(whole(one, store), inputs, right)), "the file")


def difference(model: onnx.ModelProto, inputs: list[list[Any]], right: list[list[Any]]) -> str:
    """Say how a model answers otherwise than ``right``; an empty text for the same bits."""
    try:
        given = answers(model, inputs)
    except Exception as error:
        return str(error)[:300] or "refused"
    for a, b in zip(given, right, strict=True):
        for x, y in zip(a, b, strict=True):
            if _difference(x, y) != 0:
                return f"differs by {_difference(x, y)}"
    return ""


def batch(group: str, start: int) -> None:
    """Judge the models of a group from ``start`` on; a line of JSON for each, and one before it."""
    for number, sample in enumerate(samples(group)):
        if number < start:
            continue
        print(json.dumps({"begin": number, "name": sample.name}), flush=True)
        verdict, why, before, after = judge(sample)
        line = {"number": number, "name": sample.name, "verdict": verdict, "why": why, "before": before, "after": after}
        print(json.dumps(line), flush=True)


def sweep(group: str) -> list[dict[str, Any]]:
    """Judge a group, batch by batch."""
    rows: list[dict[str, Any]] = []
    start = 0
    while True:
        command = [sys.executable, __file__, "--group", group, "--from", str(start)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        rows += [line for line in lines if "verdict" in line]
        if done.returncode == 0:
            return rows
        if not lines:
            raise RuntimeError(done.stderr[-1000:])
        last = lines[-1]
        if "begin" in last:
            why = str(done.returncode)
            rows.append({"number": last["begin"], "name": last["name"], "verdict": "crash", "why": why})
        start = rows[-1]["number"] + 1


def main() -> None:
    """Sweep, print what is not identical and the counts, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=GROUPS, action="append")
    parser.add_argument("--from", dest="start", type=int)
    parser.add_argument("--output", type=Path, default=RESULTS / "trim_sweep.json")
    asked = parser.parse_args()
    if asked.start is not None:
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        ort.set_default_logger_severity(4)
        batch(asked.group[0], asked.start)
        sys.stdout.flush()
        os._exit(0)  # native libraries may crash in their clean-up
    document: dict[str, Any] = {"onnx": onnx.__version__, "onnxruntime": ort.__version__, "groups": {}}
    for group in asked.group or GROUPS:
        rows = sweep(group)
        counts = Counter(row["verdict"] for row in rows)
        document["groups"][group] = {
            "models": len(rows),
            "verdicts": dict(counts),
            "bytes_before": sum(row.get("before", 0) for row in rows),
            "bytes_after": sum(row.get("after", 0) for row in rows),
            "grown": [row["name"] for row in rows if row.get("after", 0) > row.get("before", 0)],
            "not_identical": [row for row in rows if row["verdict"] not in ("identical", "not run")],
            "not_run": dict(Counter(row["why"][:80] for row in rows if row["verdict"] == "not run")),
        }
        print(group, dict(counts))
        for row in document["groups"][group]["not_identical"]:
            print("  ", row["verdict"], row["name"], row["why"])
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(asked.output, json_bytes(document))


if __name__ == "__main__":
    main()
