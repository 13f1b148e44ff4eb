"""Golden answers that the desktop does not give either: whose they are, and where they are another's."""

from importlib.metadata import PackageNotFoundError, version

import numpy as np

from edgekit.conformance.suite import Reply
from edgekit.diagnose.lab import arrays_of, error_of
from edgekit.diagnose.why import Failing
from edgekit.figures import figure
from edgekit.metrics import measure
from edgekit.records.cases import Reference
from edgekit.records.tensors import Array, Value

_DESKTOP = "onnxruntime"
_OWN = ("desktop onnxruntime", "desktop")
_DIGITS = 6


def are_the_desktops(reference: Reference) -> bool:
    """Whether the cases say that desktop onnxruntime made them."""
    return reference.runtime == _DESKTOP


def changed(reference: Reference, bad: Failing, desktop: Reply, browser: Reply) -> list[str]:
    """Say that golden answers which claim to be the desktop's are not, and where that shows."""
    here = _version()
    other = f" (here it is {here})" if here and here != reference.runtime_version else ""
    named = "" if reference.name in _OWN else f", as the reference {reference.name}"
    made = (
        f"The cases say that desktop {_DESKTOP} {reference.runtime_version}{other} made them{named}: they were changed "
        f"since, or made from another model or build of {_DESKTOP}. Build the bundle again."
    )
    return [
        "The desktop's onnxruntime does not give the golden answers either, so the browser is not at fault.",
        where(bad, desktop, browser),
        made,
    ]


def where(bad: Failing, desktop: Reply, browser: Reply) -> str:
    """Say at which case, output and index the desktop is furthest from the golden answer, and what everyone gives."""
    given, seen = arrays_of(desktop), arrays_of(browser)
    errors = [
        (error_of(given.get(value.name), value.array, bad.tolerances[value.name]), value)
        for value in bad.expected
        if value.array is not None
    ]
    _, value = max(errors, key=lambda each: (each[0].wrong, each[0].relative))
    at = _worst_index(value, given.get(value.name))
    place = f"Case '{bad.case}', output '{value.name}'" + (f", at {list(at)}" if at else "")
    right, here, there = (_told(each, at) for each in (value.array, given.get(value.name), seen.get(value.name)))
    return f"{place}: the golden answer is {right}, the desktop gives {here}, the browser {there}."


def _worst_index(value: Value, array: Array | None) -> tuple[int, ...] | None:
    if array is None or value.array is None or array.shape != value.array.shape:
        return None
    if array.dtype != value.array.dtype or array.dtype.kind in "OUST":
        return None
    return measure(array, value.array).worst_index


def _told(array: Array | None, at: tuple[int, ...] | None) -> str:
    if array is None:
        return "nothing"
    if at is None or array.ndim != len(at) or any(i >= size for i, size in zip(at, array.shape, strict=True)):
        return f"{array.dtype.name}{list(array.shape)}"
    element = array[at]
    return figure(float(element), _DIGITS) if np.issubdtype(array.dtype, np.floating) else str(element)


def _version() -> str:
    try:
        return version(_DESKTOP)
    except PackageNotFoundError:  # a build of another name
        return ""
