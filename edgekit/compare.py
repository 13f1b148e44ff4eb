"""The only judge: golden cases and a run record to a verdict. Pure arithmetic, and nothing passes by default.

An element matches when ``|value - reference| <= absolute + relative * scale``, where the scale is the largest finite
magnitude of that reference output: an error of 1e-4 on values near 300 is not an error. NaN must meet NaN, and an
infinity the same infinity. What has no tolerance (integers, bools, strings) must be equal.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from edgekit import accuracy, reasons, steadiness
from edgekit.errors import UsageError, did_you_mean
from edgekit.metrics import measure
from edgekit.records.cases import CaseSet, GoldenCase, Tolerance
from edgekit.records.run_record import CaseRun, RunRecord
from edgekit.records.store import Conditions
from edgekit.records.tensors import Value
from edgekit.records.verdict import OutputStatus, OutputVerdict, Verdict, VerdictStatus

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_EXACT = Tolerance(0.0, 0.0)


def judge(
    case_set: CaseSet,
    record: RunRecord | None,
    *,
    title: str,
    target: str | None,
    cases: Sequence[str] | None = None,
    tolerance: Mapping[str, Tolerance] | None = None,
    allow_fallback: bool = False,
    manifest_sha256: str | None = None,
    no_record: str | None = None,
    execution_provider: str | None = None,
    runtime_version: str | None = None,
) -> Verdict:
    """Compare what a device reported with what the reference gave, and conclude.

    ``cases``: the ids that are expected (default: all). ``tolerance``: by output name, over that of the case set.
    ``allow_fallback``: another execution provider than the one asked for may pass, with a warning. ``manifest_sha256``:
    the bundle that must have been run. ``no_record``: why there is no record. ``execution_provider``: of the target's
    first variant; a record of another is judged as a run of its variant. ``runtime_version``: what must have run.

    Raises UsageError for a case or an output that the case set does not have.
    """
    expected = _expected_cases(case_set, cases)
    tolerances = {**case_set.output_tolerance, **_checked(tolerance or {}, case_set)}
    runs = {} if record is None else {run.id: run for run in record.cases}
    cases_judged = [judge_case(case, runs.get(case.id), case_set.tolerance, tolerances) for case in expected]
    outputs = tuple(chain.from_iterable(cases_judged))
    expected_outputs = sum(_comparable(case, value) for case in expected for value in case.outputs)
    compared = sum(verdict.status in ("match", "mismatch") for verdict in outputs)
    ran = any(runs[case.id].status != "skipped" for case in expected if case.id in runs)
    fallback = None if record is None or not ran else reasons.fallback(record)
    foreign = _foreign(case_set, record, manifest_sha256, runtime_version)
    wrong = foreign + reasons.wrong_outputs(outputs) + _wrong_record(case_set, expected, record)
    wrong += steadiness.wrong(record, expected, lambda case, run: judge_case(case, run, case_set.tolerance, tolerances))
    steady = steadiness.steadiness(record) if record is not None and ran else None
    allowed = fallback if allow_fallback else None
    status, why = _concluded(
        wrong,
        fallback,
        complete=compared == expected_outputs,
        allowed=allow_fallback and record is not None and record.environment.execution_provider is not None,
        nothing=_why_nothing(expected, record, no_record, ran or bool(foreign), expected_outputs, wrong),
        refused=bool(expected and record and not ran and any(one.status == "refused" for one in record.attempts)),
    )
    return Verdict(
        status=status,
        title=title,
        target=target,
        reference=case_set.reference,
        environment=record.environment if record else None,
        attempts=record.attempts if record else (),
        expected=expected_outputs,
        compared=compared,
        outputs=outputs,
        reasons=tuple(why),
        warnings=tuple(reasons.warnings(expected, record, allowed, execution_provider, steady)),
        variant=_other_variant(record, execution_provider, status),
        steadiness=steady,
    )


def _concluded(
    wrong: list[str], fallback: str | None, *, complete: bool, allowed: bool, nothing: list[str], refused: bool
) -> tuple[VerdictStatus, list[str]]:
    """Conclude. ``nothing``: why nothing was compared; empty where something was. ``allowed``: a fallback may pass."""
    if nothing:
        return "refused" if refused else "not_run", nothing
    if wrong or not complete:
        return "failed", wrong + ([fallback] if fallback and not allowed else [])
    if fallback and not allowed:
        return "refused", [fallback]
    return "passed", []


def judge_under(
    conditions: Conditions,
    case_set: CaseSet,
    record: RunRecord | None,
    *,
    execution_provider: str | None = None,
    runtime_version: str | None = None,
) -> Verdict:
    """Judge a record under the conditions of its run. What else is given, and what is raised: see ``judge``.

    Labels fail nothing: they are counted, by the desktop and by the device.
    """
    verdict = judge(
        case_set,
        record,
        title=conditions.title,
        target=conditions.target,
        cases=conditions.cases,
        tolerance=conditions.tolerance,
        allow_fallback=conditions.allow_fallback,
        manifest_sha256=conditions.manifest_sha256,
        no_record=conditions.no_record,
        execution_provider=execution_provider,
        runtime_version=runtime_version,
    )
    asked = conditions.cases if conditions.cases is not None else tuple(case.id for case in case_set.cases)
    given = steadiness.first_outputs(record)
    return replace(verdict, labels=accuracy.results(case_set, conditions.labels, asked, given))


def _expected_cases(case_set: CaseSet, ids: Sequence[str] | None) -> tuple[GoldenCase, ...]:
    known = {case.id: case for case in case_set.cases}
    if ids is None:
        return case_set.cases
    for wanted in ids:
        if wanted not in known:
            raise UsageError(
                f"There is no case '{wanted}'.{did_you_mean(wanted, known)}", hint=f"Cases: {reasons.listed(known)}."
            )
    return tuple(known[wanted] for wanted in dict.fromkeys(ids))


def _checked(tolerance: Mapping[str, Tolerance], case_set: CaseSet) -> Mapping[str, Tolerance]:
    known = dict.fromkeys(value.name for case in case_set.cases for value in case.outputs)
    for name in tolerance:
        if name not in known:
            raise UsageError(
                f"A tolerance is given for '{name}', which is not an output.{did_you_mean(name, known)}",
                hint=f"Outputs: {reasons.listed(known)}.",
            )
    return tolerance


def judge_case(
    case: GoldenCase, run: CaseRun | None, by_dtype: Mapping[str, Tolerance], by_output: Mapping[str, Tolerance]
) -> list[OutputVerdict]:
    """Judge the outputs of one case; the tolerances are by dtype, and over them by output name."""
    if run is None:
        return [_without(case, value, "missing", "The record does not hold this case.") for value in case.outputs]
    if run.status != "done":
        reason = f"The case {'failed' if run.status == 'failed' else 'was skipped'}: {run.error or 'no reason given'}"
        return [_without(case, value, "case_failed", reason) for value in case.outputs]
    given = {value.name: value for value in run.outputs}
    return [
        _judge_output(case, value, given.get(value.name), by_output.get(value.name, by_dtype.get(value.dtype)))
        for value in case.outputs
    ]


def _without(case: GoldenCase, reference: Value, status: OutputStatus, reason: str | None) -> OutputVerdict:
    return OutputVerdict(case.id, reference.name, reference.dtype, status, reason=reason)


def _comparable(case: GoldenCase, value: Value) -> bool:
    return value.array is not None and not case.is_left_open(value.name)


def _judge_output(
    case: GoldenCase, reference: Value, given: Value | None, tolerance: Tolerance | None
) -> OutputVerdict:
    if reference.array is None:
        return _without(case, reference, "not_comparable", reference.note or f"{reference.dtype} is not a tensor.")
    if case.is_left_open(reference.name):
        return _without(case, reference, "not_comparable", "The ONNX standard leaves all of it open.")
    if given is None:
        return _without(case, reference, "missing", "The record does not hold this output.")
    if given.array is None:
        return _without(case, reference, "missing", f"The device gave no tensor: {given.note or given.dtype}")
    shapes = f"shape {list(given.array.shape)}, and must be {list(reference.array.shape)}"
    if given.dtype != reference.dtype:
        also = f"; it also has {shapes}" if given.array.shape != reference.array.shape else ""
        reason = f"It is {given.dtype}, and must be {reference.dtype}{also}."
        return _without(case, reference, "wrong_dtype", reason)
    if given.array.shape != reference.array.shape:
        return _without(case, reference, "wrong_shape", f"It has {shapes}.")
    given, reference = case.defined(given), case.defined(reference)
    assert given.array is not None and reference.array is not None  # noqa: S101  only elements were changed
    if reference.dtype == "string":
        difference = reasons.different_string(given.array, reference.array)
        return _without(case, reference, "match" if difference is None else "mismatch", difference)
    if tolerance is None and reference.dtype in _FLOATS:
        tolerance = _EXACT
    metrics = measure(given.array, reference.array, absolute=(tolerance or _EXACT).absolute)
    matches = metrics.passing_relative <= (tolerance or _EXACT).relative
    why = None if matches else reasons.why_mismatch(given.array, reference.array, metrics, tolerance)
    status: OutputStatus = "match" if matches else "mismatch"
    return OutputVerdict(case.id, reference.name, reference.dtype, status, tolerance, metrics, why)


def _foreign(
    case_set: CaseSet, record: RunRecord | None, manifest_sha256: str | None, runtime_version: str | None
) -> list[str]:
    """Say in what the record is of something else than what is judged."""
    if record is None:
        return []
    found, model, bundle = [], record.hashes.model, record.hashes.manifest
    if model != case_set.model_sha256:
        before = " That one is the model before it was trimmed." if model == case_set.original_sha256 else ""
        found.append(
            f"The record is of another model: sha256 {model[:16]}…, and must be {case_set.model_sha256[:16]}….{before}"
        )
    if manifest_sha256 is not None and bundle != manifest_sha256:
        named = "no bundle" if bundle is None else f"manifest sha256 {bundle[:16]}…"
        found.append(f"The record is of another bundle: it names {named}, and must name {manifest_sha256[:16]}….")
    ran = record.environment.runtime_version
    if runtime_version is not None and ran != runtime_version and record.environment.variant is not None:
        found.append(f"The record is of another runtime: version {ran[:40]}, and must be {runtime_version}.")
    return found


def _wrong_record(case_set: CaseSet, expected: Sequence[GoldenCase], record: RunRecord | None) -> list[str]:
    """Say what in the record should not be there: an error, unknown or repeated cases and outputs."""
    if record is None:
        return []
    found = [] if record.error is None else [f"The run ended in an error: {record.error}"]
    known = {case.id for case in case_set.cases}
    if unknown := [run.id for run in record.cases if run.id not in known]:
        found.append(f"The record holds cases that do not exist: {reasons.listed(unknown)}.")
    if repeated := [id_ for id_, count in Counter(run.id for run in record.cases).items() if count > 1]:
        found.append(f"The record holds cases more than once: {reasons.listed(repeated)}.")
    outputs_of = {case.id: Counter(value.name for value in case.outputs) for case in expected}
    for run in record.cases:
        if run.id not in outputs_of or run.status != "done":
            continue
        if extra := list(Counter(value.name for value in run.outputs) - outputs_of[run.id]):
            found.append(
                f"Case '{run.id}' has outputs that the reference does not have, or twice: {reasons.listed(extra)}."
            )
    return found


def _other_variant(record: RunRecord | None, first: str | None, status: VerdictStatus) -> str | None:
    """Return the variant that a verdict is of where it is not of the target's first execution provider."""
    if record is None:
        return None
    environment = record.environment
    asked = environment.execution_provider_asked
    # A fallback that was not allowed is a verdict of what was asked for.
    of = environment.execution_provider if status == "passed" else asked
    if of == (first or asked):
        return None
    ran = environment.variant if environment.execution_provider == of else None
    return ran or next((a.variant for a in record.attempts if a.execution_provider == of), of)


def _why_nothing(
    expected: Sequence[GoldenCase],
    record: RunRecord | None,
    no_record: str | None,
    answered: bool,
    outputs: int,
    wrong: list[str],
) -> list[str]:
    """Say why nothing can be compared; nothing where something can. ``outputs``: how many can be compared at all."""
    if record is None or not answered:
        return reasons.why_not_run(expected, record, no_record)
    return [] if outputs else ["No output of these cases can be compared.", *wrong]
