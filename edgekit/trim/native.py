"""What native code does for trimming, each in a child process with limits: infer shapes, compute constants, convert.

A crash, a hang or a refusal is an answer here: the pass that asked goes without.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnx
import onnx_ir as ir

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.desktop.messages import readable
from edgekit.errors import LimitError
from edgekit.passes.values import Dims, Known
from edgekit.records.tensors import Array
from edgekit.trim import carry
from edgekit.trim.carry import Carried

Task = Literal["infer", "evaluate", "convert", "optimize"]

_DATA_TYPES = {int(dtype): dtype for dtype in ir.DataType}


class NativeFailedError(Exception):
    """A child process did not do what was asked; the text says why, for a person."""


@dataclass(frozen=True)
class Native:
    """Runs tasks on models whose weights lie in ``folder``. Raises NativeFailedError only."""

    folder: Path
    limits: ChildLimits

    def infer(self, carried: Carried) -> Known:
        """Infer the shapes of every value from the inputs alone.

        What the model records is not believed: exporters record sizes of the sample that they traced with. A name of
        a dimension means nothing either, because runtimes do not hold two inputs to it: each axis is its own symbol.
        """
        proto = carry.to_proto(carried)
        _doubt(proto)
        with self._task("infer", proto, {}) as work:
            inferred = work.model()
        shapes: dict[ir.Value, Dims] = {}
        dtypes: dict[ir.Value, ir.DataType] = {}
        _match(carried.model.graph, inferred.graph, shapes, dtypes)
        return Known(shapes, dtypes)

    def evaluate(
        self,
        nodes: Sequence[onnx.NodeProto],
        tensors: Sequence[onnx.TensorProto],
        names: Sequence[str],
        imports: Sequence[onnx.OperatorSetIdProto],
        ir_version: int,
    ) -> Mapping[str, Array]:
        """Compute nodes in the runtime; return what could be computed, by name."""
        graph = onnx.GraphProto(name="constants", node=nodes, initializer=tensors)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        proto = onnx.ModelProto(ir_version=max(ir_version, 4), opset_import=imports, graph=graph)
        with self._task("evaluate", proto, {"names": list(names)}) as work:
            return {
                value.name: value.array
                for value in exchange.load_result(work.path, 0).outputs
                if value.array is not None
            }

    def convert(self, proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
        """Convert to another opset of the default domain, with onnx's version converter."""
        with self._task("convert", proto, {"opset": opset}) as work:
            return work.model()

    def optimize(self, proto: onnx.ModelProto) -> onnx.ModelProto:
        """Let onnxruntime's basic optimizations, which give standard operators on every machine, rewrite the graph."""
        with self._task("optimize", proto, {}) as work:
            return work.model()

    def _task(self, task: Task, proto: onnx.ModelProto, request: dict[str, Any]) -> "_Work":
        return _Work(self, task, proto, request)


class _Work:
    """One task: a folder inside the work folder, so that the model's weights lie one step up."""

    def __init__(self, native: Native, task: Task, proto: onnx.ModelProto, request: dict[str, Any]) -> None:
        self._native, self._task, self._proto, self._request = native, task, proto, request
        self._folder = tempfile.TemporaryDirectory(prefix=f"{task}-", dir=native.folder)
        self.path = Path(self._folder.name)
        self._model = native.folder / f"{self.path.name}.onnx"

    def __enter__(self) -> "_Work":
        try:
            self._model.write_bytes(self._proto.SerializeToString())
            exchange.write_json(
                self.path / "request.json", {"task": self._task, "model": str(self._model)} | self._request
            )
            self._run()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._model.unlink(missing_ok=True)
        self._folder.cleanup()

    def model(self) -> onnx.ModelProto:
        """Return the model that the task made."""
        made: onnx.ModelProto = onnx.ModelProto.FromString((self.path / "result.onnx").read_bytes())
        return made

    def _run(self) -> None:
        stored = sum(file.stat().st_size for file in self._native.folder.iterdir() if file.is_file())
        limits = self._native.limits.for_model(stored)
        try:
            child.run_module("edgekit.trim.native_child", self.path, limits=limits, what=f"the task '{self._task}'")
        except (ChildFailedError, LimitError) as error:
            raise NativeFailedError(readable(getattr(error, "reason", None) or error.message)) from error


def axis_symbol(number: int, axis: int) -> str:
    """Name an unknown axis of an input in what ``Native.infer`` finds."""
    return f"input{number}axis{axis}"


def _doubt(proto: onnx.ModelProto) -> None:
    """Forget recorded shapes, and give each unknown axis of each input a symbol of its own."""
    del proto.graph.value_info[:]
    for number, info in enumerate(proto.graph.input):
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                if not dim.HasField("dim_value") or dim.dim_value < 0:
                    dim.Clear()
                    dim.dim_param = axis_symbol(number, axis)
    for info in proto.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")


def _match(
    graph: ir.Graph, proto: onnx.GraphProto, shapes: dict[ir.Value, Dims], dtypes: dict[ir.Value, ir.DataType]
) -> None:
    """Read what was inferred for each value of a graph, and of the graphs nested in it, which are in the same order."""
    infos = {info.name: info.type for info in (*proto.input, *proto.output, *proto.value_info)}
    for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
        kind = infos.get(value.name or "")
        if kind is None or kind.WhichOneof("value") != "tensor_type":
            continue
        if kind.tensor_type.elem_type in _DATA_TYPES and kind.tensor_type.elem_type:
            dtypes[value] = _DATA_TYPES[kind.tensor_type.elem_type]
        if kind.tensor_type.HasField("shape"):
            shapes[value] = tuple(_dimension(dim) for dim in kind.tensor_type.shape.dim)
    sparse = sum(node.domain == carry.DOMAIN and node.op_type == "SparseInitializer" for node in graph)
    inner = list(graph)[sparse:]
    if len(inner) != len(proto.node):
        return
    for node, node_proto in zip(inner, proto.node, strict=True):
        for attribute in node_proto.attribute:
            held = node.attributes.get(attribute.name)
            if held is None or held.is_ref():
                continue
            if held.type == ir.AttributeType.GRAPH and attribute.HasField("g"):
                _match(held.as_graph(), attribute.g, shapes, dtypes)


def _dimension(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    # "unk__3" is how shape inference says that it does not know.
    return dim.dim_param if dim.dim_param and not dim.dim_param.startswith("unk__") else None
