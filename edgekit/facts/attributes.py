"""The attributes of a node, in words."""

from collections.abc import Sequence

import onnx
from onnx import helper

_SOME_VALUES = 8


def attribute_text(attribute: onnx.AttributeProto) -> str:
    """Return an attribute's value as a person writes it: short, and a graph, a tensor or a long list by its size."""
    if attribute.HasField("g"):
        return f"a graph of {len(attribute.g.node)} nodes"
    if attribute.HasField("t"):
        return f"a tensor {list(attribute.t.dims)}"
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, Sequence) and len(value) <= _SOME_VALUES:
        return str([each.decode(errors="replace") if isinstance(each, bytes) else each for each in value])
    return f"{len(value)} values" if isinstance(value, Sequence) else "…"
