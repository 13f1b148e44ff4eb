"""Move the values of tensors out of a graph, into one file beside it, so that changed copies of the graph are small."""

from pathlib import Path
from typing import BinaryIO

import onnx

from edgekit.model import external_data, walk
from edgekit.model import io as models
from edgekit.model.io import LoadedModel

WEIGHTS = "weights.bin"
_SMALL_BYTES = 4096


def detached(model: LoadedModel, folder: Path) -> onnx.ModelProto:
    """Return a copy of the model's graph whose large initializers lie in ``folder/weights.bin``.

    Each changed model is then a small file beside them.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    with (folder / WEIGHTS).open("wb") as stream:
        for graph in walk.all_graphs(proto):
            for tensor in graph.initializer:
                if tensor.data_type != onnx.TensorProto.STRING and _is_large(tensor):
                    move_out(tensor, b"".join(models.raw_bytes(model, tensor)), stream, WEIGHTS)
        for tensor in walk.all_tensors(proto):  # the rest of what lies elsewhere
            if external_data.is_external(tensor) and external_data.span(tensor).location != WEIGHTS:
                move_out(tensor, b"".join(models.raw_bytes(model, tensor)), stream, WEIGHTS)
    return proto


def _is_large(tensor: onnx.TensorProto) -> bool:
    return external_data.is_external(tensor) or external_data.tensor_bytes(tensor) > _SMALL_BYTES


def move_out(tensor: onnx.TensorProto, raw: bytes, stream: BinaryIO, location: str) -> None:
    """Append ``raw`` to the file of external data, and let the tensor point there."""
    for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        tensor.ClearField(name)
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(stream.tell())), ("length", str(len(raw)))):
        tensor.external_data.add(key=key, value=value)
    stream.write(raw)
