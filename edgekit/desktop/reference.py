"""Where the right answers come from: desktop onnxruntime, unless the user names something else.

Besides the model itself: another model file (the original, before it was quantized, say), outputs that were recorded
elsewhere (.npz or .safetensors), or a Python callable ``module:name`` (the training framework).
"""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edgekit.child import process as child
from edgekit.child.process import DEFAULT_LIMITS, ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.desktop import run as desktop
from edgekit.desktop.exchange import StoredFeed
from edgekit.desktop.run import DesktopResult, DesktopRun, Feed, Optimization
from edgekit.errors import UsageError
from edgekit.facts.survey import Argument
from edgekit.progress import Progress, silent
from edgekit.records import array_files
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of

_CALLABLE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def is_recorded(spec: str | None) -> bool:
    """Whether ``spec`` names recorded outputs, which exist for the recorded cases alone."""
    return spec is not None and Path(spec).suffix.lower() in (".npz", ".safetensors")


def needs(spec: str) -> str:
    """Say what a reference must do to be one: a hint for errors."""
    if is_recorded(spec):
        return "Recorded outputs are keyed 'case/output/name', where the case is named after the file of a --sample."
    if Path(spec).suffix.lower() == ".onnx":
        return "The reference model must take the inputs and give the outputs of the model, by name and dtype."
    return "The callable must take a dict of input name to array, and return one of every output name to array."


def outputs(
    spec: str | None,
    model: Path,
    feeds: Sequence[Feed],
    *,
    case_ids: Sequence[str] = (),
    declared: Sequence[Argument] = (),
    optimization: Optimization = "disabled",
    feed_seconds: float | None = None,
    limits: ChildLimits = DEFAULT_LIMITS,
    progress: Progress = silent,
) -> DesktopRun:
    """Return the reference outputs for ``feeds``, as ``spec`` says.

    ``spec``: None for ``model`` itself; the path of another model (.onnx) with the same inputs and outputs; the path
    of recorded outputs (.npz, .safetensors), keyed ``case/output/name``, where ``case_ids`` gives the case of each
    feed, or, for one feed, by output name alone; or ``module:name``, see ``callable_run``.

    ``declared``: the outputs of ``model``. Where given, what another reference gives is put in their order, floats are
    cast to the declared dtype, and a result that lacks one has an error. What cannot be given for a feed is a result
    with an error.

    Raises UsageError when ``spec`` names nothing that can be used, and what ``desktop.run`` raises.
    """
    if spec is None:
        return desktop.run(
            model, feeds, optimization=optimization, feed_seconds=feed_seconds, limits=limits, progress=progress
        )
    path = Path(spec)
    if is_recorded(spec):
        run = recorded_run(path, len(feeds), case_ids)
    elif path.suffix.lower() == ".onnx":
        if not path.is_file():
            raise UsageError(f"--reference {spec}: there is no such model file.")
        run = desktop.run(
            path, feeds, optimization=optimization, feed_seconds=feed_seconds, limits=limits, progress=progress
        )
    elif _CALLABLE.fullmatch(spec):
        run = callable_run(spec, feeds, limits=limits, progress=progress)
    else:
        raise UsageError(
            f"--reference {spec}: it is not a model (.onnx), recorded outputs (.npz, .safetensors) or module:name.",
            hint="A Python callable is named like 'package.module:function'.",
        )
    return replace(run, results=tuple(_conformed(result, declared) for result in run.results))


def recorded_run(path: Path, count: int, case_ids: Sequence[str] = ()) -> DesktopRun:
    """Read the outputs of ``count`` feeds from a file; see ``outputs``. Raises UsageError when it cannot be read."""
    arrays = array_files.read_arrays(path)
    keyed = any("/output/" in key for key in arrays)
    if not keyed and count != 1:
        raise UsageError(
            f"--reference {path} holds outputs by name alone, which is enough for one case, but there are {count}.",
            hint="Key them 'case/output/name', with the ids of the cases.",
        )
    if keyed and len(case_ids) != count:
        raise UsageError(f"--reference {path} is keyed by case, but the cases have no ids here.")
    results = []
    for index in range(count):
        prefix = f"{case_ids[index]}/output/" if keyed else ""
        found = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        error = None if found else f"{path.name} holds no outputs of the case '{case_ids[index]}'"
        results.append(DesktopResult(_values(found) if found else None, error))
    return DesktopRun("", 0.0, tuple(results), runtime="recorded outputs")


def _values(arrays: Mapping[str, Array]) -> tuple[Value, ...]:
    return tuple(value_of(name, array) for name, array in arrays.items())


def callable_run(
    spec: str, feeds: Sequence[Feed], *, limits: ChildLimits = DEFAULT_LIMITS, progress: Progress = silent
) -> DesktopRun:
    """Call ``module:name`` once for each feed, or step, in a child process that finds modules in this folder too.

    It takes a dict of input name to numpy array and returns a dict of output name to what numpy can turn into an
    array. What it raises is an error of that feed.

    Raises UsageError when it cannot be imported, is not callable, or ends the process.
    """
    with tempfile.TemporaryDirectory(prefix="edgekit-reference-") as name:
        folder = Path(name)
        for index, feed in enumerate(feeds):
            exchange.save_feed(folder, index, StoredFeed(feed.inputs, feed.feed_back, 1))
        exchange.write_json(folder / "request.json", {"spec": spec, "folder": str(Path.cwd()), "count": len(feeds)})

        def tell() -> None:
            progress(f"Asking {spec}", len(exchange.finished(folder)) / max(1, len(feeds)))

        try:
            module = "edgekit.desktop.reference_child"
            child.run_module(module, folder, limits=limits, what=f"asking {spec}", each_look=tell)
        except ChildFailedError as error:
            raise UsageError(
                f"--reference {spec}: {error.reason}",
                hint="It must be importable from this folder and this Python, and take and return a dict of arrays.",
            ) from error
        stored = [exchange.load_result(folder, index) for index in range(len(feeds))]
        session = exchange.read_json(folder / "session.json")
    results = tuple(DesktopResult(None if s.error else s.outputs, s.error, s.run_ms) for s in stored)
    return DesktopRun(session["python"], session["import_ms"], results, os.cpu_count() or 1, runtime="Python callable")


def _conformed(result: DesktopResult, declared: Sequence[Argument]) -> DesktopResult:
    """Put outputs in the model's order and dtypes; a result that cannot be put so becomes an error."""
    if result.outputs is None or not declared:
        return result
    given = {value.name: value for value in result.outputs}
    values = []
    for argument in declared:
        value = given.get(argument.name)
        if argument.dtype is None:
            note = f"It is {argument.type}, which devices do not return as a tensor, so it is not compared."
            values.append(Value(argument.name, argument.type, None, note))
            continue
        if value is None:
            listed = ", ".join(f"'{name}'" for name in given) or "none"
            return DesktopResult(None, f"the reference gives no output '{argument.name}'; it gives {listed}")
        cast = _cast(value, argument.dtype)
        if cast is None:
            return DesktopResult(
                None, f"the reference gives '{argument.name}' as {value.dtype}; the model gives {argument.dtype}"
            )
        values.append(cast)
    return replace(result, outputs=tuple(values))


def _cast(value: Value, dtype: str) -> Value | None:
    """Return ``value`` in another dtype: floats are rounded, integers only where nothing is lost; None otherwise."""
    if value.dtype == dtype:
        return value
    if value.array is None or "string" in (value.dtype, dtype):
        return None
    target = NUMPY_DTYPES[dtype]
    with np.errstate(all="ignore"):
        array = value.array.astype(target)
        both_floats = "float" in value.dtype and "float" in dtype
        if not both_floats and not np.array_equal(array.astype(value.array.dtype), value.array):
            return None
    return Value(value.name, dtype, array)
