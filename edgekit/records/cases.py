"""Golden cases: inputs, and the outputs that the desktop reference gave. They travel in every bundle."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from edgekit.records import tensors
from edgekit.records.tensors import Array, Value
from edgekit.records.validate import validated

FORMAT = 1


@dataclass(frozen=True)
class Grade:
    """What a case can prove.

    ``ulp_shift``: the largest change of any output, relative to that output's scale, when every float input and weight
    moves by one unit in the last place, or when more threads take part. ``weight_shift``: the same when the weights are
    disturbed by 1 %. None: not measured. ``weak`` lists in words why the case proves little; a case with an empty list
    is strong.
    """

    ulp_shift: float | None = None
    weight_shift: float | None = None
    weak: tuple[str, ...] = ()

    @property
    def strong(self) -> bool:
        return not self.weak


@dataclass(frozen=True)
class FeedBack:
    """A stateful loop: run ``steps`` times, each time giving output ``links[input]`` back as that input."""

    steps: int
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class GoldenCase:
    """Inputs, and the reference outputs (of the last step, where the case feeds outputs back).

    ``left_open``: by output, bools of its shape: what the ONNX standard does not define, which every device may answer
    as it likes. An output that is not named is defined as a whole.
    """

    id: str
    origin: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    grade: Grade = Grade()
    feed_back: FeedBack | None = None
    left_open: Mapping[str, Array] = field(default_factory=dict)

    def defined(self, value: Value) -> Value:
        """Return an output, a device's or the reference's, with 0 (or "") where the standard leaves it open."""
        mask = self.left_open.get(value.name)
        if mask is None or value.array is None or mask.shape != value.array.shape:
            return value
        nothing = "" if value.dtype == "string" else np.zeros((), dtype=value.array.dtype)
        return replace(value, array=np.where(mask, nothing, value.array))

    def is_left_open(self, name: str) -> bool:
        """Whether the standard leaves open all of an output."""
        return name in self.left_open and bool(self.left_open[name].all())


@dataclass(frozen=True)
class Tolerance:
    """An error passes when it is at most ``absolute + relative * scale``; see ``edgekit.compare``."""

    relative: float
    absolute: float


@dataclass(frozen=True)
class Reference:
    """Where reference outputs came from: runtime and version, optimization level, and its timings on that machine."""

    name: str
    runtime: str
    runtime_version: str
    optimization: str


@dataclass(frozen=True, eq=False)
class CaseSet:
    """Everything in ``cases.json`` and ``cases.safetensors``.

    ``tolerance`` is by dtype; ``output_tolerance`` overrides it for single outputs. ``left_out`` says in words which
    cases were tried and are not here, and why. ``model_sha256`` is of the model that the bundle ships;
    ``original_sha256`` of the one that it was trimmed from, which gave the reference outputs; None where it is shipped
    as it came.
    """

    model_sha256: str
    reference: Reference
    tolerance: Mapping[str, Tolerance]
    output_tolerance: Mapping[str, Tolerance]
    cases: tuple[GoldenCase, ...]
    left_out: tuple[str, ...] = ()
    original_sha256: str | None = None


def to_files(case_set: CaseSet) -> tuple[dict[str, Any], bytes]:
    """Return ``cases.json`` (as a JSON value) and the bytes of ``cases.safetensors``."""
    arrays: dict[str, Array] = {}
    cases = []
    for case in case_set.cases:
        inputs, input_arrays = tensors.split(f"{case.id}/input", case.inputs)
        outputs, output_arrays = tensors.split(f"{case.id}/output", case.outputs)
        masks = (Value(name, "bool", mask) for name, mask in case.left_open.items())
        left_open, mask_arrays = tensors.split(f"{case.id}/left_open", masks)
        arrays |= input_arrays | output_arrays | mask_arrays
        cases.append(
            {
                "id": case.id,
                "origin": case.origin,
                "grade": {
                    "ulp_shift": case.grade.ulp_shift,
                    "weight_shift": case.grade.weight_shift,
                    "weak": list(case.grade.weak),
                },
                "feed_back": None
                if case.feed_back is None
                else {"steps": case.feed_back.steps, "links": dict(case.feed_back.links)},
                "inputs": inputs,
                "outputs": outputs,
                **({"left_open": left_open} if left_open else {}),
            }
        )
    document = {
        "format": FORMAT,
        "model_sha256": case_set.model_sha256,
        "original_sha256": case_set.original_sha256,
        "reference": vars(case_set.reference),
        "tolerance": {key: vars(value) for key, value in case_set.tolerance.items()},
        "output_tolerance": {key: vars(value) for key, value in case_set.output_tolerance.items()},
        "left_out": list(case_set.left_out),
        "cases": cases,
    }
    return document, tensors.encode(arrays)


def from_files(document: Any, data: bytes) -> CaseSet:
    """Undo ``to_files``. Raises UsageError when the document does not fit its schema or the tensors."""
    document = validated(document, "cases", "cases.json")
    arrays = tensors.decode(data, "cases.safetensors")
    return CaseSet(
        model_sha256=document["model_sha256"],
        original_sha256=document["original_sha256"],
        reference=Reference(**document["reference"]),
        tolerance={key: Tolerance(**value) for key, value in document["tolerance"].items()},
        output_tolerance={key: Tolerance(**value) for key, value in document["output_tolerance"].items()},
        left_out=tuple(document["left_out"]),
        cases=tuple(_case(case, arrays) for case in document["cases"]),
    )


def _case(case: Mapping[str, Any], arrays: Mapping[str, Array]) -> GoldenCase:
    grade, feed_back = case["grade"], case["feed_back"]
    masks = tensors.join(case.get("left_open", ()), arrays)  # absent where all is defined
    return GoldenCase(
        id=case["id"],
        origin=case["origin"],
        inputs=tensors.join(case["inputs"], arrays),
        outputs=tensors.join(case["outputs"], arrays),
        grade=Grade(grade["ulp_shift"], grade["weight_shift"], tuple(grade["weak"])),
        feed_back=None if feed_back is None else FeedBack(feed_back["steps"], feed_back["links"]),
        left_open={mask.name: mask.array for mask in masks if mask.array is not None and mask.dtype == "bool"},
    )
