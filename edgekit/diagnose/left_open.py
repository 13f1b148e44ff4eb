"""What the standard leaves open: elements of which no side can be said to be wrong."""

from collections.abc import Mapping

import numpy as np
import onnx

from edgekit.facts.casts import bounds, is_cast
from edgekit.records.tensors import Array


def left_open(node: onnx.NodeProto, read: Mapping[str, Array], given: Mapping[str, Array]) -> dict[str, Array]:
    """Return, by output, where ONNX leaves a node's result open, as bools; an output without such places is left out.

    ``read``: what the node reads, ``given``: what it gave. Of a Cast of floats to integers these are NaN, infinities,
    and what is beyond the range: see ``edgekit.facts.casts``.
    """
    if not is_cast(node):
        return {}
    source, result = read.get(node.input[0]), given.get(node.output[0])
    if source is None or result is None or result.dtype.kind not in "iu" or source.shape != result.shape:
        return {}
    if not source.dtype.name.startswith(("float", "bfloat")):
        return {}
    below, above = bounds(result.dtype)
    with np.errstate(invalid="ignore"):
        wide = source.astype(np.float64)
        defined = (wide > below) & (wide < above)
    return {} if defined.all() else {node.output[0]: ~defined}


def settled(expected: Mapping[str, Array], given: Mapping[str, Array], places: Mapping[str, Array]) -> dict[str, Array]:
    """Return ``expected`` with what was given at ``places``: any answer is right there."""
    found = dict(expected)
    for name, mask in places.items():
        want, have = expected.get(name), given.get(name)
        if want is not None and have is not None and (want.dtype, want.shape) == (have.dtype, have.shape):
            found[name] = np.where(mask, have, want)
    return found
