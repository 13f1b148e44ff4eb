"""Inputs and outputs of requests: JSON for people, safetensors for programs. What a client sends is untrusted."""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from edgekit.errors import UsageError
from edgekit.records import tensors
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value

JSON, SAFETENSORS = "application/json", "application/vnd.safetensors"
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_MOST_SHOWN = 40
_ODD = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def from_safetensors(data: bytes, what: str = "The body") -> tuple[Value, ...]:
    """Read inputs: a tensor for each, under its name. ``what`` names the bytes in the UsageError that they raise."""
    return tuple(tensors.value_of(name, array) for name, array in tensors.decode(data, what).items())


def to_safetensors(values: Iterable[Value]) -> bytes:
    """Write outputs. Raises UsageError for text, which the format does not hold."""
    arrays: dict[str, Array] = {}
    for value in values:
        if value.dtype == "string":
            raise UsageError(f"'{value.name}' is text, which safetensors does not hold.", hint=f"Accept {JSON}.")
        if value.array is not None:
            arrays[value.name] = value.array
    return tensors.encode(arrays)


def from_json(data: bytes, dtypes: Mapping[str, str], what: str = "The body") -> tuple[Value, ...]:
    """Read ``{"inputs": {NAME: numbers in nested lists}}``; ``dtypes``: what the model takes, by name.

    In place of the lists may stand ``{"shape": [...], "data": [...]}`` with all numbers in a row, and with the "dtype"
    beside it, as outputs are written. "NaN", "Infinity" and "-Infinity" are written as texts. ``what`` names the bytes
    in messages. Raises UsageError that names the input.
    """
    try:
        document = json.loads(data.decode(), parse_constant=_no_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {_told(error)}.") from error
    if not isinstance(document, dict) or set(document) != {"inputs"} or not isinstance(document["inputs"], dict):
        raise UsageError(f'{what} must be {{"inputs": {{NAME: VALUES}}}}.')
    return tuple(_value(name, given, dtypes) for name, given in document["inputs"].items())


def _value(name: str, given: Any, dtypes: Mapping[str, str]) -> Value:
    dtype = dtypes.get(name)
    if dtype is None:
        raise UsageError(f"The model has no input '{name}'.", hint=f"It has: {', '.join(dtypes)}.")
    shape: Sequence[int] | None = None
    if isinstance(given, dict):
        said = given.get("dtype", dtype)
        if set(given) - {"dtype"} != {"shape", "data"} or not _is_shape(given["shape"]) or not _is_row(given["data"]):
            raise UsageError(f'\'{name}\' must be nested lists, or {{"shape": [...], "data": [...]}}.')
        if said != dtype:
            raise UsageError(f"'{name}' says that it is {_shown(said)}, and the model takes {dtype}.")
        shape, given = given["shape"], given["data"]
    try:
        array = _array(given, dtype)
        if shape is not None and math.prod(shape) != array.size:
            raise ValueError(f"{array.size:,} values do not fill the shape {_shown(shape)}")
        return Value(name, dtype, array if shape is None else array.reshape(shape))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        reason = f"a number is beyond {dtype}" if isinstance(error, OverflowError) else error
        raise UsageError(f"'{name}' does not hold values of {dtype} in lists of equal length: {reason}.") from error


def _is_row(data: Any) -> bool:
    """Whether these are values in a row: what holds lists would be taken apart by a shape that fits them as well."""
    return isinstance(data, list) and not any(isinstance(item, list) for item in data)


def _is_shape(shape: Any) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) <= 32
        and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 31 for n in shape)
    )


def _array(given: Any, dtype: str) -> Array:
    kinds: tuple[type, ...] = (int, float)
    if dtype == "string":
        kinds = (str,)
    elif dtype == "bool":
        kinds = (bool,)
    elif dtype not in _FLOATS:
        kinds = (int,)
    checked = _checked(given, kinds, 0)
    _check_lengths(checked)
    if dtype == "string":
        return np.array(checked, dtype=object)
    exact = np.array(checked)
    kind = NUMPY_DTYPES[dtype]
    if exact.size == 0:
        return exact.astype(kind)
    if kind.kind in "iu":
        exact = np.array(checked, dtype=object)
        limits = np.iinfo(kind)
        if min(exact.ravel()) < limits.min or max(exact.ravel()) > limits.max:
            raise ValueError(f"a number is outside of {limits.min} to {limits.max}")
    with np.errstate(over="ignore"):
        found = exact.astype(kind)
    if dtype in _FLOATS and (~np.isfinite(found) & np.isfinite(exact.astype(np.float64))).any():
        raise OverflowError
    return found


def _check_lengths(given: Any) -> tuple[int, ...]:
    """Return the shape of nested lists. Raises ValueError where those of one depth are not of one length."""
    if not isinstance(given, list):
        return ()
    if not any(isinstance(item, list) for item in given):
        return (len(given),)
    shapes = {_check_lengths(item) for item in given}
    if len(shapes) > 1:
        shown = " and ".join(_shown(list(shape)) for shape in sorted(shapes)[:2])
        raise ValueError(f"lists beside each other have the shapes {shown}")
    return (len(given), *shapes.pop())


def _checked(given: Any, kinds: tuple[type, ...], depth: int) -> Any:
    """Return nested lists whose leaves are of ``kinds``; texts for odd floats become floats."""
    if isinstance(given, list):
        if depth >= 32:
            raise ValueError("lists are nested deeper than any tensor")
        return [_checked(item, kinds, depth + 1) for item in given]
    if float in kinds and isinstance(given, str) and given in _ODD:
        return _ODD[given]
    if not isinstance(given, kinds) or (isinstance(given, bool) and bool not in kinds):
        raise ValueError(f"{_shown(given)} is none")
    if isinstance(given, float) and math.isinf(given):  # a number with a large exponent becomes one
        raise ValueError("a number is beyond every float; write infinity as a text")
    if isinstance(given, str) and any("\ud800" <= c <= "\udfff" for c in given):
        raise ValueError(f"{_shown(given)} holds half a character")
    return given


def _shown(given: Any) -> str:
    """Show a value as JSON does."""
    text = json.dumps(given)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def to_json(values: Iterable[Value], run_ms: float) -> bytes:
    """Write ``{"outputs": {NAME: {"dtype", "shape", "data"}}, "run_ms"}``; ``data`` holds all numbers in a row.

    Floats are written so that they read back to the same bits. What is no tensor is null.
    """
    outputs = {
        value.name: None
        if value.array is None
        else {"dtype": value.dtype, "shape": list(value.array.shape), "data": _numbers(value)}
        for value in values
    }
    return json.dumps({"outputs": outputs, "run_ms": round(run_ms, 3)}, allow_nan=False).encode()


def _numbers(value: Value) -> list[Any]:
    if value.array is None:
        return []
    array = value.array.ravel()
    if value.dtype == "bfloat16":
        array = array.astype(np.float32)
    listed: list[Any] = array.tolist()
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return listed
    return [_text(x) for x in listed]


def _text(number: float) -> float | str:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is none of it; write it as a text")


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object. Of two values under one key, readers take the first or the last, as they please."""
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {_shown(counts.most_common(1)[0][0])} stands in it twice")
    return found


def _told(error: Exception) -> str:
    """Say what is wrong with JSON, in words that are not Python's."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"the byte at {error.start} is not of UTF-8"
    if not isinstance(error, json.JSONDecodeError) and "integer string conversion" in str(error):
        return f"a number in it has more than {sys.get_int_max_str_digits():,} digits"
    return str(error)[:200]
