"""Types as a model declares them: ONNX's spelling, edgekit's dtype, the shape."""

from dataclasses import dataclass
from functools import lru_cache

import onnx

from edgekit.model import external_data
from edgekit.records.tensors import NUMPY_DTYPES

Shape = tuple[int | str | None, ...]

# The names of onnx.TensorProto.DataType that are spelled differently as a dtype.
_DTYPES = {"float": "float32", "double": "float64"}


@dataclass(frozen=True)
class ValueType:
    """What is known of a value: ``type`` as ONNX spells it, and for a tensor its dtype and shape.

    ``dtype``: edgekit's name ("float32", "string"), None for what is not a tensor. ``shape``: per axis a number, the
    name of a symbolic dimension, or None where it is unknown; None when even the rank is unknown.
    """

    type: str
    dtype: str | None
    shape: Shape | None


def value_type(kind: onnx.TypeProto) -> ValueType:
    """Read a type. What is no tensor has neither dtype nor shape."""
    if not kind.HasField("tensor_type"):
        return ValueType(type_text(kind), None, None)
    text, dtype = _tensor(kind.tensor_type.elem_type)
    return ValueType(text, dtype, shape_of(kind.tensor_type))


@lru_cache(maxsize=256)  # large models have a hundred thousand values of three dtypes
def _tensor(data_type: int) -> tuple[str, str | None]:
    """The type of tensors of a TensorProto.DataType as text, and their dtype where there is such a one."""
    dtype = dtype_name(data_type)
    known = dtype == "string" or dtype in NUMPY_DTYPES or data_type in external_data.BITS
    return f"tensor({element_name(data_type)})", dtype if known else None


def dtype_name(data_type: int) -> str:
    """Return edgekit's name of a TensorProto.DataType: "float32", "string", "int4"; "type 99" for one unheard of."""
    element = element_name(data_type)
    return _DTYPES.get(element, element)


def element_name(data_type: int) -> str:
    """Return ONNX's name of a TensorProto.DataType, in lower case: "float", "string"."""
    try:
        name: str = onnx.TensorProto.DataType.Name(data_type)
        return name.lower()
    except ValueError:
        return f"type {data_type}"


def shape_of(tensor: onnx.TypeProto.Tensor) -> Shape | None:
    """Read a shape; None when the model does not say even the rank."""
    return tuple(_dimension(dimension) for dimension in tensor.shape.dim) if tensor.HasField("shape") else None


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dimension.HasField("dim_value"):
        # Some exporters store an unknown size as the value -1.
        return dimension.dim_value if dimension.dim_value >= 0 else None
    # Some name it "?", several axes of one model alike, which does not mean that their sizes are equal.
    return None if dimension.dim_param in ("", "?") else dimension.dim_param


def type_text(kind: onnx.TypeProto) -> str:
    """Spell a type as ONNX and onnxruntime do: "tensor(float)", "seq(map(int64,tensor(float)))", "optional(...)"."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return _tensor(kind.tensor_type.elem_type)[0]
    if which == "sparse_tensor_type":
        return f"sparse_tensor({element_name(kind.sparse_tensor_type.elem_type)})"
    if which == "sequence_type":
        return f"seq({type_text(kind.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({type_text(kind.optional_type.elem_type)})"
    if which == "map_type":
        return f"map({element_name(kind.map_type.key_type)},{type_text(kind.map_type.value_type)})"
    if which == "opaque_type":
        return f"opaque({kind.opaque_type.domain},{kind.opaque_type.name})"
    return "unknown"
