"""What a golden case can prove: how far its outputs move, and whether there is anything in them. Pure arithmetic.

Every distance is counted in tolerances: an output at distance 1 from its reference is just on the edge of passing
``edgekit.compare``. A case is weak when weights that are 1 % wrong would pass it, and chaotic when a change of one unit
in the last place, or more threads, would fail it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from edgekit.figures import figure
from edgekit.golden.inputs import FLOATS
from edgekit.metrics import measure
from edgekit.records.cases import Grade, Tolerance
from edgekit.records.tensors import NUMPY_DTYPES, Value

_EXACT = Tolerance(0.0, 0.0)
# JSON has no infinity; a shift this large says that a NaN, or a value where there was zero, appeared.
_LARGEST_SHIFT = 1e9
_SATURATED = 1e-6
_CALM = 0.1
_STRICT_ULPS = 16
_EPSILON = {name: float(ml_dtypes.finfo(NUMPY_DTYPES[name]).eps) for name in FLOATS}  # type: ignore[no-untyped-call]
# PP-OCRv4 det gives some noise scores up to 2e-6: not zero, but one ulp of the input moves them by a tenth.
_NEARLY_ZERO = 10.0


@dataclass(frozen=True)
class Judge:
    """The tolerances of a case set: by dtype, and over them by output name."""

    tolerance: Mapping[str, Tolerance]
    output_tolerance: Mapping[str, Tolerance]

    def of(self, value: Value) -> Tolerance:
        return self.output_tolerance.get(value.name, self.tolerance.get(value.dtype, _EXACT))


@dataclass(frozen=True)
class Shift:
    """How far outputs are from a reference: relative to the scale of the output, and in tolerances.

    ``strict``: the tolerance allows less than sixteen units in the last place of the scale, which sums alone take.
    """

    relative: float
    in_tolerances: float
    strict: bool = False


@dataclass(frozen=True)
class Graded:
    """A grade and what selection needs beside it.

    ``chaotic``: one ulp, or more threads, fail this case. ``calm``: neither moves an output by more than a
    tenth of its tolerance; a network rounds in each of its layers, so where one ulp takes half of it, a right device
    may fail.
    """

    grade: Grade
    chaotic: bool = False
    calm: bool = True


def shift(reference: Sequence[Value], moved: Sequence[Value], judge: Judge) -> Shift | None:
    """Measure the shift of the output that moved most, in tolerances. None: nothing could be compared.

    Outputs that are not tensors, or whose shape or dtype changed, are not counted.
    """
    others = {value.name: value for value in moved}
    found = [_shift_of(value, others[value.name], judge.of(value)) for value in reference if value.name in others]
    measured = [one for one in found if one is not None]
    return max(measured, key=lambda one: (one.in_tolerances, one.relative), default=None)


def _shift_of(reference: Value, moved: Value, tolerance: Tolerance) -> Shift | None:
    a, b = reference.array, moved.array
    if a is None or b is None or reference.dtype != moved.dtype or a.shape != b.shape or a.size == 0:
        return None
    if reference.dtype == "string":
        differ = float(a.tolist() != b.tolist())
        return Shift(differ, math.inf if differ else 0.0)
    metrics = measure(b, a)
    if metrics.first_nonfinite is not None:
        return Shift(_LARGEST_SHIFT, math.inf)
    allowed = tolerance.absolute + tolerance.relative * metrics.scale
    in_tolerances = 0.0 if metrics.max_abs == 0 else math.inf if allowed == 0 else metrics.max_abs / allowed
    strict = reference.dtype in FLOATS and allowed < _STRICT_ULPS * _EPSILON[reference.dtype] * metrics.scale
    return Shift(min(metrics.max_rel, _LARGEST_SHIFT), in_tolerances, strict)


def grade(
    reference: Sequence[Value],
    *,
    rounded: Mapping[str, Sequence[Value] | None],
    disturbed: Sequence[Value] | None,
    others: Sequence[Sequence[Value]],
    judge: Judge,
) -> Graded:
    """Grade one case from its reference outputs.

    ``rounded``: the outputs of experiments that a right device may differ by, by what they were in words: every float
    input and weight moved by one unit in the last place; more threads. ``disturbed``: the outputs of the model whose
    weights are disturbed by 1 %. None there: not measured. ``others``: the outputs of cases with other values of the
    same shapes. The ``ulp_shift`` of the grade is that of the experiment that moved most.
    """
    cause, rounding = _largest(reference, rounded, judge)
    weight_shift = None if disturbed is None else shift(reference, disturbed, judge)
    chaotic = rounding is not None and rounding.in_tolerances > 1
    calm = rounding is None or rounding.in_tolerances <= _CALM
    weak = list(_degenerate(reference, judge))
    if chaotic and rounding is not None:
        what = "the tolerance is below what one ulp moves" if rounding.strict else "chaotic"
        weak.append(f"{what}: {cause} moved an output by {figure(rounding.relative, 2)} of its scale")
    if not weak and _blind(reference, others, judge):
        weak.append("blind: other inputs give the same outputs")
    if not weak and weight_shift is not None and weight_shift.in_tolerances <= 1:
        weak.append("insensitive: weights disturbed by 1 % pass the tolerance")
    relative = [None if found is None else found.relative for found in (rounding, weight_shift)]
    return Graded(Grade(relative[0], relative[1], tuple(weak)), chaotic, calm)


def _largest(
    reference: Sequence[Value], experiments: Mapping[str, Sequence[Value] | None], judge: Judge
) -> tuple[str, Shift | None]:
    """Return the experiment that moved the outputs most, in tolerances, and by how much; None: nothing was measured."""
    measured: list[tuple[str, Shift]] = [
        (cause, found)
        for cause, moved in experiments.items()
        if moved is not None and (found := shift(reference, moved, judge)) is not None
    ]
    return max(measured, key=lambda pair: (pair[1].in_tolerances, pair[1].relative), default=("", None))


def _blind(reference: Sequence[Value], others: Sequence[Sequence[Value]], judge: Judge) -> bool:
    shifts = [found for other in others if (found := shift(reference, other, judge)) is not None]
    return bool(shifts) and all(found.in_tolerances <= 1 for found in shifts)


def _degenerate(outputs: Sequence[Value], judge: Judge) -> tuple[str, ...]:
    """Say what is wrong when not one output holds anything worth comparing."""
    if all(value.array is None for value in outputs):
        return ("not comparable: no output is a tensor",)
    reasons = [_emptiness(value, judge.of(value).absolute) for value in outputs if value.array is not None]
    if any(reason is None for reason in reasons):
        return ()
    return tuple(dict.fromkeys(f"degenerate: {reason}" for reason in reasons))


def _emptiness(value: Value, absolute: float) -> str | None:
    """Say why an output proves nothing, or None. A number, a text or a label alone may well prove something."""
    array = value.array
    if array is None or array.size == 0:
        return "an output has no elements"
    if value.dtype not in FLOATS:
        return None
    numbers = array.astype(np.float64).ravel()
    if not np.isfinite(numbers).any():
        return "an output is NaN or infinite everywhere"
    finite = numbers[np.isfinite(numbers)]
    if np.all(np.abs(finite) <= _NEARLY_ZERO * absolute):
        return "an output is zero everywhere" if not finite.any() else "an output is nearly zero everywhere"
    if numbers.size > 1 and np.all(finite == finite[0]) and finite.size == numbers.size:
        return "an output is the same everywhere"
    if numbers.size > 1 and np.all((np.abs(finite) <= _SATURATED) | (np.abs(finite - 1) <= _SATURATED)):
        return "an output is saturated at 0 and 1"
    return None
