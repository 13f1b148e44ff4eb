"""What is diagnosed: a bundle's model with its weights, and the golden cases on which it fails."""

from collections.abc import Mapping, Sequence

import onnx
from onnx import numpy_helper

from edgekit.bundle.open import Bundle
from edgekit.diagnose.lab import Lab, arrays_of, case_of
from edgekit.diagnose.why import Failing
from edgekit.errors import LimitError
from edgekit.model import external_data, io, walk
from edgekit.parity import Opened
from edgekit.records.cases import CaseSet, GoldenCase, Tolerance
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import Value
from edgekit.records.verdict import OutputVerdict, Verdict

MOST_BYTES = 1 << 30
_MOST_CASES = 3
_MOST_STEPS = 16
_EXACT = Tolerance(0.0, 0.0)


def load(bundle: Bundle) -> onnx.ModelProto:
    """Read the model that a bundle ships, external data too. Raises LimitError when it has more than 1 GiB."""
    loaded = io.load(bundle.folder / bundle.manifest.model.path)
    tensors = list(walk.all_tensors(loaded.proto))
    size = sum(external_data.tensor_bytes(tensor) for tensor in tensors)
    if size > MOST_BYTES:
        raise LimitError(
            f"The model's weights take {size:,} bytes; edgekit diagnose takes models of up to {MOST_BYTES:,}.",
            hint="Diagnose a smaller model of the same architecture.",
        )
    for tensor in tensors:
        if external_data.is_external(tensor):
            tensor.CopyFrom(numpy_helper.from_array(io.to_array(loaded, tensor), tensor.name))
    return loaded.proto


def failed_outputs(verdict: Verdict) -> list[OutputVerdict]:
    """Return the outputs that are not as they must be, the worst first."""
    bad = [output for output in verdict.outputs if output.status not in ("match", "not_comparable")]
    return sorted(bad, key=lambda output: -_size(output))


def _size(output: OutputVerdict) -> float:
    if output.metrics is None:
        return float("inf")
    return output.metrics.passing_relative


def smallest_first(opened: Opened, ids: Sequence[str]) -> list[str]:
    """Sort case ids by how many numbers their inputs hold: small ones are tried faster."""
    cases = {case.id: case for case in opened.case_set.cases}
    elements = {name: sum(v.array.size for v in cases[name].inputs if v.array is not None) for name in ids}
    return sorted(ids, key=lambda name: elements[name])


def failing(
    opened: Opened, ids: Sequence[str], model: onnx.ModelProto, lab: Lab, settings: SessionSettings
) -> list[Failing]:
    """Return the cases called ``ids`` (at most three) as single runs.

    Of a case that feeds back, it is the first step that fails by itself, given what the desktop gave before.
    """
    cases = {case.id: case for case in opened.case_set.cases}
    return [_single(opened.case_set, cases[name], model, lab, settings) for name in ids[:_MOST_CASES]]


def _single(
    case_set: CaseSet, case: GoldenCase, model: onnx.ModelProto, lab: Lab, settings: SessionSettings
) -> Failing:
    tolerances = _tolerances(case_set, case.outputs)
    if case.feed_back is None:
        return Failing(case.id, 0, case.inputs, case.outputs, tolerances)
    steps = _steps(case, model, lab, case.feed_back.links)
    replies = lab.browser([case_of(model, step.inputs, settings) for step in steps])
    errors = [step.error(reply) for step, reply in zip(steps, replies, strict=True)]
    number = next((i for i, error in enumerate(errors) if error.wrong), None)
    if number is None:
        number = max(range(len(errors)), key=lambda i: errors[i].relative)
    found = steps[number]
    return Failing(found.case, found.step, found.inputs, found.expected, tolerances)


def _steps(case: GoldenCase, model: onnx.ModelProto, lab: Lab, links: Mapping[str, str]) -> list[Failing]:
    count = 1 if case.feed_back is None else min(case.feed_back.steps, _MOST_STEPS)
    inputs, found = case.inputs, list[Failing]()
    tolerances = {value.name: Tolerance(0.0, 0.0) for value in case.outputs}
    for step in range(count):
        (reply,) = lab.desktop([case_of(model, inputs)])
        tolerances = {value.name: lab.tolerance.get(value.dtype, _EXACT) for value in reply.outputs}
        found.append(Failing(case.id, step, inputs, reply.outputs, tolerances))
        given = arrays_of(reply)
        inputs = tuple(
            Value(value.name, value.dtype, given.get(links.get(value.name, ""), value.array)) for value in inputs
        )
    return found


def _tolerances(case_set: CaseSet, outputs: Sequence[Value]) -> dict[str, Tolerance]:
    return {
        value.name: case_set.output_tolerance.get(value.name, case_set.tolerance.get(value.dtype, _EXACT))
        for value in outputs
    }
