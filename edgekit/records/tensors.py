"""Values of a model's inputs and outputs, in memory and in files.

Numbers travel as safetensors, never as JSON numbers: NaN, infinities, -0, int64 and float16 must survive. What
safetensors cannot hold (strings) travels as JSON beside it. What no device can return as a tensor (sequences, maps)
is an entry without data, and says why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgekit.errors import UsageError
from edgekit.records import tensor_file

Array = npt.NDArray[Any]

# The names that edgekit uses for ONNX element types: numpy's own, and bfloat16.
NUMPY_DTYPES: dict[str, np.dtype[Any]] = tensor_file.DTYPES


@dataclass(frozen=True, eq=False)
class Value:
    """One input or output of a model.

    ``dtype`` is a name of ``NUMPY_DTYPES``, ``"string"``, or an ONNX type text such as
    ``seq(map(int64,tensor(float)))``. ``array`` holds the numbers (or, for strings, an object array of str); it is
    None where the value is not a tensor, and ``note`` then says why it cannot be compared.
    """

    name: str
    dtype: str
    array: Array | None
    note: str | None = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None if self.array is None else tuple(int(n) for n in self.array.shape)


def value_of(name: str, array: Array) -> Value:
    """Wrap a numpy array; arrays of text (any kind) become strings. Raises UsageError for another dtype."""
    if array.dtype.kind in "OUST":
        return Value(name, "string", np.array([str(x) for x in array.ravel()], dtype=object).reshape(array.shape))
    if array.dtype.name not in NUMPY_DTYPES:
        raise UsageError(
            f"'{name}' has dtype {array.dtype}, which ONNX models do not take.", hint="Save it as another dtype."
        )
    return Value(name, array.dtype.name, array)


def same_bits(a: Value, b: Value) -> bool:
    """Whether two values are equal in dtype, shape and every bit: NaN equals the same NaN, and -0 differs from 0."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.array is None or b.array is None:
        return a.array is b.array
    if a.dtype == "string":
        return bool(a.array.tolist() == b.array.tolist())
    return np.ascontiguousarray(a.array).tobytes() == np.ascontiguousarray(b.array).tobytes()


def split(prefix: str, values: Iterable[Value]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Split values into JSON entries and arrays keyed ``prefix/name``."""
    entries: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for value in values:
        entry: dict[str, Any] = {"name": value.name, "dtype": value.dtype, "shape": None}
        if value.array is not None:
            entry["shape"] = list(value.array.shape)
            if value.dtype == "string":
                entry["strings"] = [str(x) for x in value.array.ravel()]
            else:
                entry["key"] = f"{prefix}/{value.name}"
                arrays[entry["key"]] = value.array
        if value.note is not None:
            entry["note"] = value.note
        entries.append(entry)
    return entries, arrays


def join(entries: Iterable[Mapping[str, Any]], arrays: Mapping[str, Array]) -> tuple[Value, ...]:
    """Undo ``split``. Raises UsageError when an entry and its array disagree, or the array is not there."""
    return tuple(_join_one(entry, arrays) for entry in entries)


def _join_one(entry: Mapping[str, Any], arrays: Mapping[str, Array]) -> Value:
    name, dtype, shape, note = entry["name"], entry["dtype"], entry.get("shape"), entry.get("note")
    if "strings" in entry:
        strings = np.array(entry["strings"], dtype=object)
        if shape is None or strings.size != int(np.prod(shape)):
            raise UsageError(f"The strings of '{name}' do not fill its shape {shape}.")
        return Value(name, dtype, strings.reshape(shape), note)
    if "key" not in entry:
        return Value(name, dtype, None, note)
    array = arrays.get(entry["key"])
    if array is None:
        raise UsageError(f"The tensor '{entry['key']}' is named but not stored.")
    if array.dtype.name != dtype or list(array.shape) != shape:
        raise UsageError(
            f"The tensor '{entry['key']}' is {array.dtype.name} {list(array.shape)} but said to be {dtype} {shape}."
        )
    return Value(name, dtype, array, note)


def encode(arrays: Mapping[str, Array]) -> bytes:
    """Write arrays as safetensors bytes: the same arrays give the same bytes."""
    return tensor_file.encode(arrays)


def decode(data: bytes, what: str) -> dict[str, Array]:
    """Read safetensors bytes. ``what`` names them in the UsageError that malformed bytes raise."""
    try:
        return tensor_file.decode(data)
    except ValueError as error:
        raise UsageError(f"{what} is not a safetensors file: {error}") from error
