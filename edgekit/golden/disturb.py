"""A copy of a model with other weights: wrong by 1 %, which a case must see, or by rounding, which it must not."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnx.numpy_helper

from edgekit.golden.inputs import FLOATS, one_ulp
from edgekit.model import external_data, walk
from edgekit.model import io as models
from edgekit.model.detach import move_out
from edgekit.model.external_data import is_external
from edgekit.model.io import LoadedModel
from edgekit.records.tensors import Array

Change = Literal["percent", "ulp"]

_RELATIVE = 0.01
_INFINITE = 1e30

FLOAT_TYPES = {onnx.TensorProto.DataType.Value(n) for n in ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16")}
INT8_TYPES = {onnx.TensorProto.DataType.Value(n) for n in ("INT8", "UINT8")}
# Their float constants are sizes, exponents, bounds or thresholds. One percent more there is another graph (a scale of
# 2.02 in Resize is an error, an exponent of 2.02 is NaN for negative values), not a small error in it.
NOT_WEIGHTS = {
    "Resize", "Upsample", "Range", "Pow", "Pad", "OneHot", "Dropout", "Clip", "Equal", "Less", "LessOrEqual", "Greater",
    "GreaterOrEqual", "NonMaxSuppression", "Cast", "Max", "Min", "Ceil", "Floor", "Round", "RandomNormal", "Where",
}  # fmt: skip
ML_WEIGHTS = re.compile(r"coefficient|intercept|weight|values|offset|scale|vectors|rho|prob", re.IGNORECASE)


def write_disturbed(
    model: LoadedModel, folder: Path, change: Change, *, seed: int, matrices_only: bool = False
) -> Path | None:
    """Write a copy of the model into ``folder``, every float weight disturbed at random.

    "percent" multiplies it by ``1 + 0.01 n``, n normal; "ulp" moves it by one unit in the last place.

    Weights are the initializers, Constant nodes and ai.onnx.ml attributes of the main graph, its subgraphs and local
    functions; the scales of quantized models are among them. Where a model has none, "percent" moves its int8 weights
    by one step. What stands for infinity (1e30 and more) stays. ``matrices_only`` leaves tensors of less than two
    dimensions alone. External data is copied into one file beside the copy, tensor by tensor.

    Returns None when no tensor has more than one element: the -3.4e38 of an attention mask is no weight.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    rng = np.random.default_rng([seed, len(change)])
    spared = _spared(proto)
    tensors = [t for t in _weights(proto) if t.name not in spared and len(t.dims) >= (2 if matrices_only else 0)]
    floats = [tensor for tensor in tensors if tensor.data_type in FLOAT_TYPES]
    small = [] if change == "ulp" else [t for t in tensors if t.data_type in INT8_TYPES and len(t.dims) >= 1]
    chosen = floats or small
    changed = _disturb_attributes(proto, change, rng)
    if not changed and not any(math.prod(t.dims) > 1 for t in tensors if t.data_type in FLOAT_TYPES | INT8_TYPES):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    location = _fresh_name({file.location for file in model.external_files})
    with (folder / location).open("wb") as stream:
        for tensor in chosen:
            external = is_external(tensor)
            array = disturbed(models.to_array(model, tensor), change, rng)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
            if external:
                move_out(tensor, tensor.raw_data, stream, location)
        for tensor in walk.all_tensors(proto):
            if is_external(tensor) and external_data.span(tensor).location != location:
                move_out(tensor, b"".join(models.raw_bytes(model, tensor)), stream, location)
    path = folder / "model.onnx"
    models.save(proto, path)
    return path


def _weights(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield initializers and Constant nodes, a Constant's tensor under the name of the node's output."""
    for graph in walk.all_graphs(proto):
        yield from graph.initializer
    for node in walk.all_nodes(proto):
        if node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    attribute.t.name = node.output[0]
                    yield attribute.t


def _spared(proto: onnx.ModelProto) -> set[str]:
    """Return the names that an operator reads as something else than weights."""
    names: set[str] = set()
    for node in walk.all_nodes(proto):
        if node.op_type in NOT_WEIGHTS:
            names.update(name for name in node.input if name)
    return names


def _disturb_attributes(proto: onnx.ModelProto, change: Change, rng: np.random.Generator) -> bool:
    """Disturb the float lists that classical models (ai.onnx.ml) keep their weights in."""
    changed = False
    for node in walk.all_nodes(proto):
        if node.domain != "ai.onnx.ml":
            continue
        for attribute in node.attribute:
            if attribute.floats and ML_WEIGHTS.search(attribute.name):
                moved = disturbed(np.array(attribute.floats, dtype=np.float32), change, rng)
                del attribute.floats[:]
                attribute.floats.extend(moved.tolist())
                changed = True
    return changed


def disturbed(array: Array, change: Change, rng: np.random.Generator) -> Array:
    """Return a weight as ``write_disturbed`` makes it: floats changed, int8 moved by one step at most."""
    if array.dtype.name not in FLOATS:
        steps = rng.integers(-1, 1, size=array.shape, endpoint=True)
        limits = np.iinfo(array.dtype)
        return np.asarray(np.clip(array.astype(np.int64) + steps, limits.min, limits.max), dtype=array.dtype)
    if change == "ulp":
        return one_ulp(array, rng)
    factors = 1 + _RELATIVE * rng.standard_normal(array.shape, dtype=np.float32)
    wide = np.asarray(array, dtype=np.float64 if array.dtype.itemsize == 8 else np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.multiply(wide, factors).astype(array.dtype)
    kept = ~np.isfinite(moved) | (np.abs(wide) >= _INFINITE)
    return np.asarray(np.where(kept, array, moved), dtype=array.dtype)


def _fresh_name(taken: set[str]) -> str:
    name = "weights.bin"
    while name in taken:
        name = f"_{name}"
    return name
