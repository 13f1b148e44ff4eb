"""The child process of ``edgekit.desktop.run``: one session, all feeds, results as files.

It reads ``request.json`` and the feeds from its folder. It writes ``session.json`` when the session stands or was
refused, then a result for every feed; see ``edgekit.desktop.exchange``.
"""

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from edgekit.desktop.exchange import LATE, StoredFeed, StoredResult, load_feed, read_json, save_result, write_json
from edgekit.records import tensors
from edgekit.records.tensors import NUMPY_DTYPES, Value

LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}

_DTYPES = {
    "tensor(bool)": "bool", "tensor(int8)": "int8", "tensor(int16)": "int16", "tensor(int32)": "int32",
    "tensor(int64)": "int64", "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32",
    "tensor(uint64)": "uint64", "tensor(float16)": "float16", "tensor(float)": "float32", "tensor(double)": "float64",
    "tensor(bfloat16)": "bfloat16", "tensor(string)": "string",
}  # fmt: skip
_BFLOAT16 = 16  # onnx.TensorProto.BFLOAT16
_FATAL_ONLY = 4
_OUT_OF_MEMORY = ("bad allocation", "bad_alloc", "Failed to allocate memory")


class RefusedError(Exception):
    """A feed cannot be run, for a reason found before the runtime was asked."""


def main(folder: Path) -> None:
    """Do what ``folder/request.json`` asks."""
    request = read_json(folder / "request.json")
    ort.set_default_logger_severity(_FATAL_ONLY)
    ort.disable_telemetry_events()
    before = _count_threads()
    started = time.perf_counter()
    try:
        session = create_session(request["model"], request["optimization"], request["threads"])
    except Exception as error:
        if any(mark in str(error) for mark in _OUT_OF_MEMORY):
            raise MemoryError from error
        write_json(folder / "session.json", {"runtime_version": ort.__version__, "error": str(error)})
        return
    create_ms = (time.perf_counter() - started) * 1000
    threads = request["threads"] or (_count_threads() - before + 1 if before else os.cpu_count() or 1)
    write_json(
        folder / "session.json",
        {"runtime_version": ort.__version__, "error": None, "create_ms": create_ms, "threads": threads},
    )
    for index in request["todo"]:
        save_result(folder, index, run_feed(session, load_feed(folder, index), request["feed_seconds"]))


def create_session(model: str, optimization: str, threads: int | None) -> ort.InferenceSession:
    """Create a CPU session that logs nothing. ``threads``: None leaves the number to the runtime."""
    options = ort.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[optimization])
    if threads is not None:
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = threads
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_feed(session: ort.InferenceSession, feed: StoredFeed, seconds: float | None) -> StoredResult:
    """Run one feed. A refusal, by the runtime or by a look at the inputs, is a result with an error."""
    run_ms: list[float] = []
    options = ort.RunOptions()
    options.log_severity_level = _FATAL_ONLY
    try:
        inputs = prepare(session, feed.inputs)
        with _time_limit(options, seconds):
            outputs = run(session, inputs, feed, options, run_ms)
        return StoredResult(tuple(read_outputs(session, outputs)), None, tuple(run_ms))
    except Exception as error:
        late = seconds is not None and options.terminate
        message = f"{LATE} {seconds:g} s" if late else str(error) or type(error).__name__
        return StoredResult((), message, ())


@contextlib.contextmanager
def _time_limit(options: ort.RunOptions, seconds: float | None) -> Iterator[None]:
    """Ask the runtime to stop, between two nodes, after ``seconds`` of computing: a busy machine makes no feed late."""
    if seconds is None:
        yield
        return
    limit = time.process_time() + seconds
    done = threading.Event()

    def watch() -> None:
        while not done.wait(min(1.0, max(0.02, limit - time.process_time()))):
            if time.process_time() >= limit:
                options.terminate = True
                return

    watcher = threading.Thread(target=watch, daemon=True, name="feed-limit")
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def prepare(session: ort.InferenceSession, values: Sequence[Value]) -> dict[str, Any]:
    """Turn values into what the runtime takes: OrtValues, and numpy arrays for strings.

    Raises RefusedError, naming the input, where names or dtypes are not the model's.
    """
    declared = {argument.name: argument.type for argument in session.get_inputs()}
    known = declared | {argument.name: argument.type for argument in session.get_overridable_initializers()}
    inputs: dict[str, Any] = {}
    for value in values:
        if value.name not in known:
            raise RefusedError(f"the model has no input '{value.name}'; it has {_listed(declared)}")
        if value.array is None:
            continue  # an optional input that is left out
        if _DTYPES.get(_inner(known[value.name])) != value.dtype:
            raise RefusedError(f"input '{value.name}' is {value.dtype} but the model wants {known[value.name]}")
        inputs[value.name] = _runtime_value(value, value.array)
    missing = [name for name, kind in declared.items() if name not in inputs and not kind.startswith("optional(")]
    if missing:
        raise RefusedError(f"no value is given for {_listed(missing)}")
    return inputs


def _runtime_value(value: Value, array: tensors.Array) -> Any:
    if value.dtype == "string":
        return array
    array = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes 0-d arrays 1-d
    if value.dtype == "bfloat16":
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def dtype_of(kind: str) -> str:
    """Return the dtype of what the runtime calls "tensor(float)"; the text as it is where it is no tensor."""
    return _DTYPES.get(_inner(kind), kind)


def _inner(kind: str) -> str:
    return kind[len("optional(") : -1] if kind.startswith("optional(") else kind


def _listed(names: Iterator[str] | Mapping[str, str] | Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def run(
    session: ort.InferenceSession,
    inputs: dict[str, Any],
    feed: StoredFeed,
    options: ort.RunOptions,
    run_ms: list[float],
) -> dict[str, Any]:
    """Run ``feed.repeats`` times with the same inputs, or step by step where it feeds outputs back.

    Appends the milliseconds of every run or step to ``run_ms``; returns the outputs of the last one.
    """
    links = feed.feed_back.links if feed.feed_back else {}
    kinds = {argument.name: argument.type for argument in session.get_outputs()}
    for source in links.values():
        if kinds.get(source) not in _DTYPES:
            raise RefusedError(f"the model has no tensor output '{source}' to feed back; it has {_listed(kinds)}")
    outputs: dict[str, Any] = {}
    for _ in range(feed.runs):
        started = time.perf_counter()
        outputs = fetch(session, inputs, kinds, options)
        run_ms.append((time.perf_counter() - started) * 1000)
        inputs = inputs | {target: outputs[source] for target, source in links.items()}
    return outputs


def fetch(
    session: ort.InferenceSession, inputs: dict[str, Any], kinds: Mapping[str, str], options: ort.RunOptions
) -> dict[str, Any]:
    """Run once; return tensor outputs by name, as OrtValues or numpy arrays.

    The runtime makes no OrtValue of strings, so a feed with strings takes the other call, which cannot return bfloat16.
    """
    strings = any(isinstance(value, np.ndarray) for value in inputs.values())
    unreadable = ("tensor(bfloat16)",) if strings else ()
    names = [name for name, kind in kinds.items() if kind in _DTYPES and kind not in unreadable]
    if not names:  # to the runtime, no names are all of them
        raise RefusedError(f"none of its outputs can be read: {_listed(kinds)}")
    if not strings:
        return dict(zip(names, session.run_with_ort_values(names, inputs, options), strict=True))
    return dict(zip(names, session.run(names, inputs, options), strict=True))


def read_outputs(session: ort.InferenceSession, outputs: Mapping[str, Any]) -> Iterator[Value]:
    """Give one Value for each output of the model, in its order; without an array where it is not a tensor."""
    for argument in session.get_outputs():
        if argument.name in outputs:
            yield _output(argument.name, _DTYPES[argument.type], outputs[argument.name])
        else:
            note = f"It is {argument.type}, which devices do not return as a tensor, so it is not compared."
            yield Value(argument.name, argument.type, None, note)


def _output(name: str, dtype: str, value: Any) -> Value:
    if isinstance(value, np.ndarray):
        array = value
    elif dtype == "bfloat16":  # numpy() of it is not implemented
        data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()) if 0 not in value.shape() else b""
        array = np.frombuffer(data, dtype=NUMPY_DTYPES[dtype]).reshape(value.shape())
    else:
        # A copy: an output that is an input as well lies in that input's memory, which is gone when the result is read.
        array = np.array(value.numpy(), copy=True)
    return tensors.value_of(name, array)


def _count_threads() -> int:
    """Return how many threads this process has; 0 where the system does not say."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
