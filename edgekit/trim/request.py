"""What of a model is wanted: which outputs, from which inputs, at which sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekit.errors import UsageError
from edgekit.facts.survey import Argument, Facts


@dataclass(frozen=True)
class Shape:
    """``inputs`` and ``outputs``: names of values to cut at, None to leave them. ``freeze``: sizes of dimensions.

    ``ranges``: the smallest and largest size of a dimension, for golden cases. ``batch``: the size of the first axis
    of every input. ``tensors``: make outputs that are maps tensors.
    """

    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    freeze: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    batch: int | None = None
    tensors: bool = False


def frozen(shape: Shape, facts: Facts) -> dict[str, int]:
    """Return all sizes to freeze, those of ``batch`` too. Raises UsageError for a dimension that does not exist."""
    sizes = dict(shape.freeze)
    known = {name for argument in facts.inputs for name in _dimensions(argument)}
    for name in (*shape.freeze, *shape.ranges):
        if name not in known:
            listed = ", ".join(sorted(known)) or "none: every size is fixed"
            raise UsageError(f"The model has no free dimension '{name}'.", hint=f"Its free dimensions: {listed}.")
    if shape.batch is not None:
        for argument in facts.inputs:
            if not argument.shape:
                continue
            first = argument.shape[0]
            if isinstance(first, int) and first != shape.batch:
                raise UsageError(
                    f"Input '{argument.name}' has a first axis of {first}, which is fixed: it cannot be {shape.batch}.",
                    hint="Leave --batch out, or freeze dimensions by name with --dim.",
                )
            if not isinstance(first, int):
                sizes.setdefault(first or f"{argument.name}[0]", shape.batch)
    return sizes


def _dimensions(argument: Argument) -> list[str]:
    return [
        size or f"{argument.name}[{axis}]"
        for axis, size in enumerate(argument.shape or ())
        if not isinstance(size, int)
    ]
