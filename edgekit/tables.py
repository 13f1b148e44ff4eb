"""Read a TOML table into a frozen dataclass, strictly: a mistake in a file is named, and never passed over."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from edgekit.errors import UsageError, did_you_mean

T = TypeVar("T")

# What the types are called by those who write the file, who need not know Python.
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes", tuple: "a list"}
_MOST_SHOWN = 60


def read(path: Path, hint: str | None = None) -> dict[str, Any]:
    """Read a TOML file. Raises UsageError for one that cannot be read (with ``hint``), or is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not valid TOML: the byte at {error.start} is not of UTF-8.", hint="Save it as UTF-8 text."
        ) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", hint=hint) from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path} cannot be read: its lists or tables are nested too deeply.") from error


def build(kind: type[T], document: Mapping[str, Any], file: str, place: str = "") -> T:
    """Make a dataclass of ``kind`` from a table. ``file`` and ``place`` name it in messages.

    Raises UsageError for an unknown key (it names the nearest one), a missing key, or a value of the wrong type.
    """
    hints, values = get_type_hints(kind), {}
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for key in document:
        if key not in known:
            raise UsageError(
                f"{file}: unknown key '{place}{key}'.{did_you_mean(key, known)}", hint=f"Keys here: {', '.join(known)}."
            )
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name in document:
            values[f.name] = _value(hints[f.name], document[f.name], file, f"{place}{f.name}")
    try:
        return kind(**values)
    except TypeError as error:
        missing = [name for name in known if name not in values and f"'{name}'" in str(error)]
        raise UsageError(f"{file}: missing key {', '.join(place + name for name in missing)}.") from error


def _value(hint: Any, value: Any, file: str, place: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hasattr(hint, "__dataclass_fields__") and isinstance(value, dict):
        return build(hint, value, file, f"{place}.")
    if origin is tuple and isinstance(value, list):
        return tuple(_value(arguments[0], item, file, f"{place}[]") for item in value)
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
        return {key: _value(arguments[1], item, file, f"{place}.{key}") for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    wanted = _NAMES.get(origin or hint, "a table")
    raise UsageError(f"{file}: '{place}' must be {wanted}, not {_said(value)}.")


def _said(value: Any) -> str:
    """Say a value as the file does."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        text = f"[{', '.join(map(_said, value))}]"
    elif isinstance(value, (bool, str)):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value)  # a number, or a date
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
