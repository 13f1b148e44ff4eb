"""Passes run in the process of the tests, and models run before and after. Shared by the tests of passes and trim.

``edgekit trim`` itself does native work in child processes; with a process for each of hundreds of tiny models these
tests would take minutes.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort

from edgekit.child.process import ChildLimits
from edgekit.model import io, walk
from edgekit.records.tensors import Array
from edgekit.trim import native_child, output
from edgekit.trim.native import Native, NativeFailedError, Task, _Work
from edgekit.trim.passing import Passing, Snapshot, seeded
from edgekit.trim.steps import Work
from edgekit.trim.weights import Store

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '


class _Inside(_Work):
    def _run(self) -> None:
        try:
            native_child.main(self.path)
        except Exception as error:
            raise NativeFailedError(str(error)) from error


class InProcess(Native):
    """Does native work in this process."""

    def _task(self, task: Task, proto: onnx.ModelProto, request: dict[str, Any]) -> _Work:
        return _Inside(self, task, proto, request)


@dataclass(frozen=True)
class Trimmed:
    """What the passes left, and the snapshots on the way."""

    proto: onnx.ModelProto
    snapshots: Sequence[Snapshot]
    work: Work

    @property
    def changed_by(self) -> list[str]:
        return [snapshot.name for snapshot in self.snapshots[1:]]

    @property
    def operators(self) -> list[str]:
        return [node.op_type for node in walk.all_nodes(self.proto)]


def parse(model: str | onnx.ModelProto) -> onnx.ModelProto:
    """Read a model from text; a text that begins with a name gets an IR version and opset 17."""
    if isinstance(model, onnx.ModelProto):
        return model
    return onnx.parser.parse_model(model if model.lstrip().startswith("<") else HEAD + model)


def passes(
    model: str | onnx.ModelProto,
    *,
    skip: Sequence[str] = (),
    rounding: bool = False,
    int32: bool = False,
    **settings: Any,
) -> Trimmed:
    """Run all passes on a model. ``settings`` are those of ``Work``."""
    with tempfile.TemporaryDirectory(prefix="edgekit-test-") as name:
        folder = Path(name)
        (folder / "model.onnx").write_bytes(parse(model).SerializeToString())
        store = Store(folder)
        lean = store.detach(io.load(folder / "model.onnx"))
        work = Work(InProcess(folder, ChildLimits()), store, **settings)
        passing = Passing(
            work, frozenset(skip), structural_only=False, opset=None, rounding=rounding, seeds=False, int32=int32
        )
        snapshots = passing.run([("the model", lean)])
        assert not work.failures, work.failures
        (folder / "out").mkdir()
        output.write(snapshots[-1].proto, store, folder / "out", "out.onnx", external=False, most=None)
        proto = onnx.load(folder / "out" / "out.onnx")
    return Trimmed(proto, snapshots, work)


def run(model: onnx.ModelProto, feed: Mapping[str, Array]) -> list[Any]:
    """Run a model with optimization off and one thread; random nodes get seeds."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(seeded(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    result: list[Any] = session.run(None, dict(feed))
    return result


def assert_same_bits(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Fail unless two lists of outputs are the same, bit by bit."""
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes() if a.dtype != object else a.tolist() == b.tolist()


def kept(model: str | onnx.ModelProto, feed: Mapping[str, Any], **settings: Any) -> Trimmed:
    """Run all passes; fail unless the model answers ``feed`` with the same bits as before."""
    done = passes(model, **settings)
    onnx.checker.check_model(done.proto)
    arrays = {name: np.asarray(value) for name, value in feed.items()}
    assert_same_bits(run(parse(model), arrays), run(done.proto, arrays))
    return done
