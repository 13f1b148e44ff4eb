"""Casts of floats to integers: what of their result the standard leaves open.

The table of Cast in the ONNX operator schemas calls the result undefined for NaN, infinities, and what is beyond the
range of the integer type when its fraction is cut off.
"""

import math

import numpy as np
import onnx

from edgekit.model import walk


def is_cast(node: onnx.NodeProto) -> bool:
    """Whether a node is a Cast or CastLike of ai.onnx."""
    return walk.domain_name(node.domain) == walk.DEFAULT_DOMAIN and node.op_type in ("Cast", "CastLike")


def bounds(dtype: np.dtype[np.signedinteger] | np.dtype[np.unsignedinteger]) -> tuple[float, float]:
    """Return the float64 between which, both excluded, a number has a defined result in an integer ``dtype``."""
    limits = np.iinfo(dtype)
    least, most = int(limits.min), int(limits.max)
    # Of 64 bits the number below the least has no float64 of its own; the one before the least takes its place.
    below = float(least - 1) if int(float(least - 1)) == least - 1 else math.nextafter(float(least), -math.inf)
    return below, float(most + 1)
