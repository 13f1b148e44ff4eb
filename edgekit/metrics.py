"""How far one array is from another: the arithmetic under ``edgekit.compare``, and nothing else.

Everything is computed in float64, whatever the dtype; differences of integers are exact before they become floats, so
that two int64 values beyond 2**53 that differ by one differ here too.
"""

import math

import numpy as np
import numpy.typing as npt

from edgekit.records.tensors import Array
from edgekit.records.verdict import Metrics

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SMALLEST = math.ulp(0.0)


def measure(values: Array, reference: Array, *, absolute: float = 0.0) -> Metrics:
    """Measure ``values`` against ``reference``: numbers or bools, of one dtype and shape (0-d and empty ones too).

    ``absolute`` is the part of an error that is forgiven before ``passing_relative`` is computed, so that
    ``passing_relative <= relative`` *is* the test ``|value - reference| <= absolute + relative * scale`` of every
    element; it is infinite where a NaN or an infinity stands against anything but its like.
    """
    a, b = _wide(values).ravel(), _wide(reference).ravel()
    both = np.isfinite(a) & np.isfinite(b)
    unlike = ~both & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    scale = _largest(b[np.isfinite(b)])
    errors = np.where(both, _differences(values, reference), 0.0)
    max_abs = _largest(errors)
    worst = int(unlike.argmax()) if unlike.any() else int(errors.argmax()) if max_abs > 0 else None
    top1_agrees, top1_margin = _top1(values, reference, scale)
    return Metrics(
        max_abs=max_abs,
        max_rel=_ratio(max_abs, scale),
        rmse=_rms(errors[both]),
        cosine=_cosine(a[both], b[both]),
        snr_db=_snr_db(errors[both], b[both]),
        scale=scale,
        nan_count=int(np.isnan(a).sum()),
        inf_count=int(np.isinf(a).sum()),
        reference_nan_count=int(np.isnan(b).sum()),
        reference_inf_count=int(np.isinf(b).sum()),
        first_nonfinite=int(unlike.argmax()) if unlike.any() else None,
        worst_index=None if worst is None else tuple(int(i) for i in np.unravel_index(worst, reference.shape)),
        worst_value=None if worst is None else float(a[worst]),
        worst_reference=None if worst is None else float(b[worst]),
        passing_relative=math.inf if unlike.any() else _ratio(max(0.0, max_abs - absolute), scale),
        top1_agrees=top1_agrees,
        top1_margin=top1_margin,
    )


def _wide(array: Array) -> Floats:
    """Return an array in float64. Memory that nobody wrote may hold NaNs that signal, of which the cast warns."""
    with np.errstate(invalid="ignore"):
        wide: Floats = array.astype(np.float64)
        return wide


def _differences(values: Array, reference: Array) -> Floats:
    """Return ``|values - reference|``, flat. Where one side is not finite the result means nothing."""
    # Flat before the arithmetic: a 0-d array turns into a scalar, which warns where an array wraps around.
    values, reference = values.ravel(), reference.ravel()
    if reference.dtype.kind in "iu":
        # The larger minus the smaller fits in uint64 and, modulo 2**64, is right whatever the signs were.
        high, low = np.maximum(values, reference).astype(np.uint64), np.minimum(values, reference).astype(np.uint64)
        exact: Floats = (high - low).astype(np.float64).ravel()
        return exact
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf; two float64 near the opposite ends
        difference: Floats = np.abs(_wide(values) - _wide(reference)).ravel()
    return difference


def _largest(numbers: Floats) -> float:
    return float(np.abs(numbers).max()) if numbers.size else 0.0


def _ratio(error: float, scale: float) -> float:
    """Return ``error / scale``; above zero for every error above zero, infinite where there is no scale."""
    if error == 0:
        return 0.0
    return math.inf if scale == 0 else max(error / scale, _SMALLEST)


def _rms(numbers: Floats) -> float:
    """Return the root of the mean square, without overflow on the way."""
    largest = _largest(numbers)
    if largest == 0 or math.isinf(largest):
        return largest
    return largest * float(np.sqrt(np.mean(np.square(numbers / largest))))


def _cosine(a: Floats, b: Floats) -> float:
    """Return the cosine of the angle between two vectors; 1 for two zero vectors, 0 where only one is zero."""
    largest_a, largest_b = _largest(a), _largest(b)
    if largest_a == 0 or largest_b == 0:
        return 1.0 if largest_a == largest_b else 0.0
    a, b = a / largest_a, b / largest_b
    cosine = float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))
    return min(1.0, max(-1.0, cosine))


def _snr_db(errors: Floats, reference: Floats) -> float:
    noise, signal = _rms(errors), _rms(reference)
    if noise == 0:
        return math.inf
    if signal == 0 or math.isinf(noise):
        return -math.inf
    return 20 * (math.log10(signal) - math.log10(noise))


def _top1(values: Array, reference: Array, scale: float) -> tuple[float | None, float | None]:
    """Return the fraction of rows whose largest entry agrees, and the smallest relative gap to the runner-up.

    Rows lie along the last axis; rows whose reference holds NaN are not counted. Any of several equal largest
    entries of the reference will do, for none of them is more right than the other.
    """
    if reference.dtype.kind in "iub" or reference.ndim == 0 or reference.shape[-1] < 2 or not reference.size:
        return None, None
    width = reference.shape[-1]
    a, b = _wide(values).reshape(-1, width), _wide(reference).reshape(-1, width)
    rows: Flags = ~np.any(np.isnan(b), axis=1)
    if not rows.any():
        return None, None
    a, b = a[rows], b[rows]
    picked = b[np.arange(len(b)), np.argmax(a, axis=1)]
    agrees = (picked == b.max(axis=1)) & ~np.isnan(a).any(axis=1)
    return float(agrees.mean()), _margin(np.partition(b, width - 2, axis=1)[:, -2:], scale)


def _margin(two_largest: Floats, scale: float) -> float:
    second, first = two_largest[:, 0], two_largest[:, 1]
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.where(first == second, 0.0, first - second)
    return _ratio(float(gaps.min()), scale)
