"""The same model in another precision: every float of one kind becomes one of another."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgekit.model import walk
from edgekit.records.tensors import NUMPY_DTYPES, Value

_FLOATS = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type")


def promote(proto: onnx.ModelProto, sources: Sequence[str], target: str) -> onnx.ModelProto:
    """Return a copy in which all floats of the dtypes ``sources`` are ``target``: weights, inputs, outputs, casts."""
    old = {int(_FLOATS[name]) for name in sources}
    new = int(_FLOATS[target])
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for graph in walk.all_graphs(copy):
        del graph.value_info[:]
        for info in (*graph.input, *graph.output):
            if info.type.tensor_type.elem_type in old:
                info.type.tensor_type.elem_type = new
    for tensor in walk.all_tensors(copy):
        if tensor.data_type in old:
            wide = numpy_helper.to_array(tensor).astype(NUMPY_DTYPES[target])
            tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
    for node in walk.all_nodes(copy):
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.i in old:
                attribute.i = new
        if node.op_type == "Constant" and "float32" in sources:
            _promote_constant(node, target)
    return copy


def _promote_constant(node: onnx.NodeProto, target: str) -> None:
    """Turn the attributes that hold float32 without a tensor into tensors."""
    for attribute in node.attribute:
        if attribute.name in ("value_float", "value_floats"):
            array = np.asarray(helper.get_attribute_value(attribute), NUMPY_DTYPES[target])
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(array)))


def promoted(values: Sequence[Value], sources: Sequence[str], target: str) -> tuple[Value, ...]:
    """Return values in which floats of the dtypes ``sources`` are ``target``."""
    return tuple(
        Value(value.name, target, value.array.astype(NUMPY_DTYPES[target]))
        if value.array is not None and value.dtype in sources
        else value
        for value in values
    )
