"""Gather what native code and the disk say of a model. Each part runs in a child process, with limits."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx

from edgekit.check.subject import Evidence, ExternalKind, ExternalProblem
from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.desktop import run as desktop
from edgekit.desktop.run import Optimization
from edgekit.errors import LimitError, ModelError
from edgekit.facts import shapes
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent

LIMITS = ChildLimits(seconds=60.0)
# Creating a session takes 2 s for a model of 20,000 nodes, each of which is about 50 bytes; this allows ten times that.
_BYTES_PER_NODE = 1000
_CONTEXT = re.compile(r"\s*==> Context:.*", re.DOTALL)
_LONGEST = 500


def gather(path: Path, proto: onnx.ModelProto, progress: Progress = silent) -> tuple[LoadedModel, Evidence]:
    """Return the model with what of its external data is sound, and everything that can be learned about it."""
    problems = tuple(_external(path, proto))
    bad = {problem.tensor for problem in problems}
    good = [tensor for tensor in walk.all_tensors(proto) if tensor.name not in bad]
    model = LoadedModel(path, proto, external_data.resolve(path, good))
    progress("Inferring shapes")
    table, problem = None, None
    try:
        table = shapes.infer(model)
        problem = table.problem
    except (ModelError, LimitError) as error:
        problem = error.message
    if problems:  # no native code opens a file whose weights lead elsewhere
        return model, Evidence(problems, table, problem)
    progress("Asking onnx's checker")
    nodes = sum(1 for _ in walk.all_nodes(proto))
    stored = path.stat().st_size + sum(file.bytes for file in model.external_files)
    limits = LIMITS.for_model(stored + nodes * _BYTES_PER_NODE)
    said = _checker(path, limits)
    progress("Creating a session on the desktop")
    return model, Evidence((), table, problem, said, _refusals(path, limits))


def _external(path: Path, proto: onnx.ModelProto) -> Iterator[ExternalProblem]:
    for tensor in walk.all_tensors(proto):
        if not external_data.is_external(tensor):
            continue
        try:
            external_data.resolve(path, [tensor])
        except ModelError as error:
            yield ExternalProblem(_kind(path, tensor), tensor.name, error.message, error.hint)


def _kind(path: Path, tensor: onnx.TensorProto) -> ExternalKind:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    try:
        part = external_data.span(tensor)
    except ModelError:
        leads_out = ".." in location.split("/") or location.startswith("/") or "\\" in location
        return "outside" if leads_out else "malformed"
    try:
        size = (path.parent / part.location).stat().st_size
    except FileNotFoundError:
        return "missing"
    except OSError:  # a name that no file can have, a loop of links
        return "malformed"
    return "short" if size < part.offset + external_data.tensor_bytes(tensor) else "outside"


def _checker(path: Path, limits: ChildLimits) -> str | None:
    with tempfile.TemporaryDirectory(prefix="edgekit-checker-") as name:
        folder = Path(name)
        exchange.write_json(folder / "request.json", {"model": str(path.absolute())})
        try:
            child.run_module("edgekit.check.checker_child", folder, limits=limits, what=f"checking {path.name}")
        except ChildFailedError as error:
            return f"onnx's checker ended: {error.reason}"
        except LimitError as error:
            return error.message
        said: str | None = exchange.read_json(folder / "answer.json")
    return None if said is None else " ".join(_CONTEXT.sub("", said).split())[:_LONGEST]


def _refusals(path: Path, limits: ChildLimits) -> dict[Optimization, str]:
    """Why no session can be created: with optimization off, and as a browser does it, with all of it."""
    refused: dict[Optimization, str] = {}
    levels: tuple[Optimization, ...] = ("disabled", "all")
    for level in levels:
        try:
            desktop.run(path, [], optimization=level, limits=limits)
        except (ModelError, LimitError) as error:
            refused[level] = error.message.removeprefix(f"{path} ").removeprefix(f"{path}: ")
            break  # what is refused as it is will be refused optimized
    return refused
