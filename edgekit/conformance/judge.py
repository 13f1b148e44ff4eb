"""Judge what a device replied to a conformance case. The arithmetic is ``edgekit.metrics``; devices judge nothing."""

import re
from typing import Literal

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.metrics import measure
from edgekit.records.tensors import Array, Value

Status = Literal["passes", "wrong", "loads", "refused", "failed", "crashed"]

_NEEDS_F16 = re.compile(r"requires f16 but the device does not support it")
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def judge(case: Case, reply: Reply) -> tuple[Status, str | None]:
    """Return what the reply shows, and why where it does not pass.

    ``loads``: a session was created, and nothing is known of the answers, as where a GPU adapter without ``shader-f16``
    cannot run float16. ``failed``: the run threw.
    """
    if reply.outcome == "loaded" or (reply.outcome == "failed" and _NEEDS_F16.search(reply.error or "")):
        return "loads", None
    if reply.outcome != "done":
        return reply.outcome, reply.error
    if not case.outputs:
        return "loads", None
    given = {value.name: value for value in reply.outputs}
    for expected in case.outputs:
        problem = difference(given.get(expected.name), expected, case.rtol, case.atol)
        if problem is not None:
            return "wrong", f"{expected.name}: {problem}"
    return "passes", None


def difference(given: Value | None, expected: Value, rtol: float, atol: float) -> str | None:
    """Say in what an output is not the expected one; None where it is.

    Floats: each element within ``atol + rtol * |expected|``, the rule of the onnx package's own runner, or within
    ``rtol`` of the output's scale, the rule of ``edgekit.compare``. Everything else must be equal.
    """
    if given is None or given.array is None or expected.array is None:
        return "it is missing"
    if given.dtype != expected.dtype:
        return f"it is {given.dtype}, and must be {expected.dtype}"
    if given.array.shape != expected.array.shape:
        return f"it has shape {list(given.array.shape)}, and must have {list(expected.array.shape)}"
    if expected.dtype == "string":
        return None if given.array.tolist() == expected.array.tolist() else "its strings differ"
    if given.array.tobytes() == expected.array.tobytes():  # most are; to measure them takes milliseconds
        return None
    relative, absolute = (rtol, atol) if expected.dtype in _FLOATS else (0.0, 0.0)
    metrics = measure(given.array, expected.array, absolute=absolute)
    if metrics.passing_relative <= max(relative, _rounding(expected)):
        return None
    return f"{_text(given.array, metrics.worst_index)} and must be {_text(expected.array, metrics.worst_index)}"


def _rounding(expected: Value) -> float:
    """Return two units in the last place of narrow floats, which the onnx package's tolerance is too strict for."""
    if expected.dtype == "bfloat16":
        return 2.0**-7
    return 2.0**-9 if expected.dtype == "float16" else 0.0


def _text(array: Array, index: tuple[int, ...] | None) -> str:
    if index is None:
        return "another value"
    with np.errstate(all="ignore"):
        return f"{array[index]!s} at {list(index)}" if index else f"{array[()]!s}"
