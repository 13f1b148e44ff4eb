"""Dataclasses as JSON values: tuples become lists, and what JSON cannot say is spelled out."""

import math
from typing import Any


def jsonable(value: Any) -> Any:
    """Replace tuples by lists, and NaN and infinities by the strings "NaN", "Infinity" and "-Infinity"."""
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value
