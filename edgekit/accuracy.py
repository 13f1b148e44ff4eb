"""The task's own result: what a model's outputs say, beside the labels that are right. Pure arithmetic.

Agreement with the desktop is not correctness: a model may be wrong everywhere alike, and a device that differs within
the tolerance may cross the border between two classes.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from edgekit.errors import UsageError, did_you_mean
from edgekit.records.cases import CaseSet, GoldenCase
from edgekit.records.labels import Label
from edgekit.records.tensors import Array, Value
from edgekit.records.verdict import LabelChange, LabelResult

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_HALF = 0.5
_NOTHING = "nothing"
_INDEX = "A label of scores is the index of the right class, from 0."

Outputs = Mapping[str, Value]


def predictions(value: Value) -> tuple[str, ...]:
    """Return what an output says, a text for each row.

    Scores say the index of the highest of the last axis ("NaN" where one is NaN); a single score says "1" from 0.5 on;
    whole numbers, bools and texts say themselves.
    """
    array = value.array
    if array is None or array.size == 0:
        return ()
    if value.dtype == "string":
        return tuple(str(text) for text in array.ravel())
    if value.dtype not in _FLOATS:
        return tuple(str(int(number)) for number in array.ravel())
    numbers = array.astype(np.float64)
    width = _width(numbers)
    rows = numbers.reshape(-1, width)
    if width == 1:
        said = [str(int(number >= _HALF)) for number in rows[:, 0]]
    else:
        said = [str(int(index)) for index in rows.argmax(axis=1)]
    unknown = np.isnan(rows.max(axis=1)).tolist()  # a row with a NaN has none but NaN for its largest
    return tuple("NaN" if nan else one for one, nan in zip(said, unknown, strict=True))


def results(
    case_set: CaseSet, labels: Sequence[Label], cases: Sequence[str], given: Mapping[str, Outputs]
) -> tuple[LabelResult, ...]:
    """Count how many samples desktop and device get right, by output, in the order of the labels.

    ``cases``: the ids that were asked for; labels of others are left aside. ``given``: by case, the outputs of the
    device; a case that is not there gave nothing.

    Raises UsageError for a label of a case or output that the set does not have, or that says nothing a label could be
    compared with.
    """
    grouped = _grouped(case_set, labels)
    by_output: dict[str, list[tuple[GoldenCase, Sequence[str]]]] = {}
    for (case_id, output), own in grouped.items():
        if case_id in cases:
            case = next(case for case in case_set.cases if case.id == case_id)
            by_output.setdefault(output, []).append((case, own))
    return tuple(_result(output, members, given) for output, members in by_output.items())


def _grouped(case_set: CaseSet, labels: Sequence[Label]) -> dict[tuple[str, str], list[str]]:
    """Return the labels of each case and output, checked against what these can say."""
    known = {
        case.id: {value.name: value for value in case.outputs if value.array is not None} for case in case_set.cases
    }
    found: dict[tuple[str, str], list[str]] = {}
    for label in labels:
        if label.case not in known:
            raise UsageError(
                f"A label is given for '{label.case}', which is not a case.{did_you_mean(label.case, known)}",
                hint=f"Cases: {', '.join(known)}.",
            )
        found.setdefault((label.case, _output(label, known[label.case])), []).append(label.label)
    for (case, output), own in found.items():
        said = predictions(known[case][output])
        if len(said) != len(own):
            raise UsageError(
                f"Case '{case}' has {len(own)} labels, and output '{output}' gives {len(said)} answers.",
                hint="Give a label for each row of the output.",
            )
        if known[case][output].dtype != "string" and not all(_is_whole(label) for label in own):
            raise UsageError(
                f"Output '{output}' of case '{case}' says numbers, and a label is {own[0]!r}.",
                hint=_INDEX,
            )
        classes = _classes(known[case][output])
        if classes is not None and (beyond := [label for label in own if not 0 <= int(label) < classes]):
            raise UsageError(
                f"Output '{output}' of case '{case}' tells {classes} classes apart, 0 to {classes - 1}, and a label is "
                f"{beyond[0]!r}.",
                hint=_INDEX,
            )
    return found


def _classes(value: Value) -> int | None:
    """Return how many classes scores tell apart; None for what names its classes itself."""
    if value.array is None or value.dtype not in _FLOATS:
        return None
    return max(2, _width(value.array))


def _width(array: Array) -> int:
    return int(array.shape[-1]) if array.ndim else 1


def _output(label: Label, outputs: Outputs) -> str:
    if label.output is None and len(outputs) == 1:
        return next(iter(outputs))
    if label.output is None:
        raise UsageError(
            f"A label of case '{label.case}' does not say of which output it is.",
            hint=f"Outputs: {', '.join(outputs) or 'none that can be compared'}. Add a column 'output' to the file.",
        )
    if label.output not in outputs:
        raise UsageError(
            f"A label is given for '{label.output}', which is not an output of case '{label.case}'."
            f"{did_you_mean(label.output, outputs)}",
            hint=f"Outputs: {', '.join(outputs)}.",
        )
    return label.output


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _same(label: str, said: str) -> bool:
    return label == said or (_is_whole(label) and _is_whole(said) and int(label) == int(said))


def _result(
    output: str, members: Sequence[tuple[GoldenCase, Sequence[str]]], given: Mapping[str, Outputs]
) -> LabelResult:
    labelled = desktop_right = device_right = not_computed = 0
    changed: list[LabelChange] = []
    for case, labels in members:
        desktop = predictions(next(value for value in case.outputs if value.name == output))
        value = given.get(case.id, {}).get(output)
        device = predictions(value) if value is not None else ()
        if len(device) != len(desktop):
            device = (_NOTHING,) * len(desktop)
            not_computed += len(desktop)
        for row, (label, a, b) in enumerate(zip(labels, desktop, device, strict=True)):
            labelled += 1
            desktop_right += _same(label, a)
            device_right += _same(label, b)
            if a != b:
                changed.append(LabelChange(case.id, row, label, a, b))
    return LabelResult(output, labelled, desktop_right, device_right, not_computed, tuple(changed))
