"""The safetensors format: read strictly, written as its own library writes it. Standard library and numpy alone.

It travels to devices, which do not have that library, and ml_dtypes only where a model needs it. Format: eight bytes
that count the header's bytes (little-endian), a JSON header with the dtype, shape and place of each tensor, then the
tensors without gaps.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import ml_dtypes
except ModuleNotFoundError:  # on a device whose bundle has no use for bfloat16
    ml_dtypes = None  # type: ignore[assignment]

Array = npt.NDArray[Any]

# In the order in which the format's library lays tensors out: those of wide elements first, so that all are aligned.
_ORDER = {
    "U64": "uint64", "I64": "int64", "F64": "float64", "F32": "float32", "U32": "uint32", "I32": "int32",
    "BF16": "bfloat16", "F16": "float16", "U16": "uint16", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip
DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64",
    )
}  # fmt: skip
if ml_dtypes is not None:
    DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
_CODES = {name: code for code, name in _ORDER.items()}
_RANKS = {name: rank for rank, name in enumerate(_ORDER.values())}
_MOST_HEADER_BYTES = 100_000_000
_ALIGN = 8


def encode(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of a file that holds ``arrays``; the same arrays give the same bytes."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    place = 0
    for key in sorted(arrays, key=lambda key: (_RANKS[arrays[key].dtype.name], key)):
        array = arrays[key]
        data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        header[key] = {
            "dtype": _CODES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [place, place + len(data)],
        }
        parts.append(data)
        place += len(data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGN)
    return b"".join((len(text).to_bytes(8, "little"), text, *parts))


def decode(data: bytes) -> dict[str, Array]:
    """Return the arrays of a file, which share its memory. Raises ValueError that says what is wrong with it.

    Every byte must belong to one tensor, as the format demands: what is hidden in gaps would be nobody's.
    """
    header, start = _header(data)
    found: dict[str, Array] = {}
    places: list[tuple[int, int]] = []
    for key, entry in header.items():
        if key == "__metadata__":
            continue
        name, shape, first, last = _entry(key, entry)
        dtype = DTYPES[name]
        if last - first != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"'{key}' is {name} {list(shape)} and has {last - first} bytes")
        if last > len(data) - start:
            raise ValueError(f"'{key}' ends behind the end of the file")
        places.append((first, last))
        array = np.frombuffer(data, dtype.newbyteorder("<"), math.prod(shape), start + first if math.prod(shape) else 0)
        found[key] = _native(array, dtype).reshape(shape)
    end = 0
    for first, last in sorted(places):
        if first != end:
            raise ValueError("its tensors overlap, or leave a gap")
        end = last
    if end != len(data) - start:
        raise ValueError(f"{len(data) - start - end} bytes behind its tensors are of none of them")
    return found


def _native(array: Array, dtype: np.dtype[Any]) -> Array:
    # A copy where it does not lie at a multiple of its element's size: runtimes read it by its address.
    if not array.flags.aligned:
        array = array.copy()
    return array.astype(dtype, copy=False)


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    if len(data) < 8:
        raise ValueError("it is too short for a header")
    count = int.from_bytes(data[:8], "little")
    if count > _MOST_HEADER_BYTES:
        raise ValueError("its header is too large")
    if count > len(data) - 8:
        raise ValueError("its header is cut off")
    text = data[8 : 8 + count]
    if not text.startswith(b"{"):
        raise ValueError("its header is not a JSON object")
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("its header is nested too deep") from error
    return header, 8 + count


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("its header names something twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _entry(key: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Return dtype, shape and the place of a tensor in the data."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"'{key}' is not described as the format demands")
    name = _ORDER.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if name in _CODES and name not in DTYPES:
        raise ValueError(
            f"'{key}' is of type {name}, which needs the package ml-dtypes, and that is not installed here"
        )
    if name not in DTYPES:
        raise ValueError(f"'{key}' is of type {entry['dtype']}, which ONNX models do not take")
    shape, places = entry["shape"], entry["data_offsets"]
    if not _counts(shape) or not _counts(places) or len(places) != 2 or places[0] > places[1]:
        raise ValueError(f"the shape or the place of '{key}' is none")
    return name, tuple(shape), places[0], places[1]


def _counts(value: Any) -> bool:
    # Below 2**48, so that no product of what a header may hold takes long.
    return (
        isinstance(value, list)
        and len(value) <= 64
        and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 48 for n in value)
    )
