"""The only judge: golden cases and a run record to a verdict. Pure arithmetic, and nothing passes by default.

An element matches when ``|value - reference| <= absolute + relative * scale``, where the scale is the largest finite
magnitude of that reference output: an error of 1e-4 on values near 300 is not an error. NaN must meet NaN, and an
infinity the same infinity. What has no tolerance (integers, bools, strings) must be equal.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from edgekit import accuracy, steadiness
from edgekit.errors import UsageError, did_you_mean
from edgekit.figures import figure
from edgekit.metrics import measure
from edgekit.records.cases import CaseSet, GoldenCase, Tolerance
from edgekit.records.run_record import CaseRun, Miss, RunRecord
from edgekit.records.store import Conditions
from edgekit.records.tensors import Array, Value
from edgekit.records.verdict import Metrics, OutputStatus, OutputVerdict, Steadiness, Verdict, VerdictStatus

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_EXACT = Tolerance(0.0, 0.0)
_NAMED = 3  # how many of a kind are named in a sentence before "and N more"


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
    outputs = tuple(
        verdict for case in expected for verdict in judge_case(case, runs.get(case.id), case_set.tolerance, tolerances)
    )
    expected_outputs = sum(value.array is not None for case in expected for value in case.outputs)
    compared = sum(verdict.status in ("match", "mismatch") for verdict in outputs)
    ran = any(runs[case.id].status != "skipped" for case in expected if case.id in runs)
    fallback = None if record is None or not ran else _fallback(record)
    foreign = _foreign(case_set, record, manifest_sha256, runtime_version)
    wrong = foreign + _wrong_outputs(outputs) + _wrong_record(case_set, expected, record)
    wrong += steadiness.wrong(record, expected, lambda case, run: judge_case(case, run, case_set.tolerance, tolerances))
    steady = steadiness.steadiness(record) if record is not None and ran else None
    status, reasons = _concluded(
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
        reasons=tuple(reasons),
        warnings=tuple(_warnings(expected, record, fallback if allow_fallback else None, execution_provider, steady)),
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
                f"There is no case '{wanted}'.{did_you_mean(wanted, known)}", hint=f"Cases: {_listed(known)}."
            )
    return tuple(known[wanted] for wanted in dict.fromkeys(ids))


def _checked(tolerance: Mapping[str, Tolerance], case_set: CaseSet) -> Mapping[str, Tolerance]:
    known = dict.fromkeys(value.name for case in case_set.cases for value in case.outputs)
    for name in tolerance:
        if name not in known:
            raise UsageError(
                f"A tolerance is given for '{name}', which is not an output.{did_you_mean(name, known)}",
                hint=f"Outputs: {_listed(known)}.",
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


def _judge_output(
    case: GoldenCase, reference: Value, given: Value | None, tolerance: Tolerance | None
) -> OutputVerdict:
    if reference.array is None:
        return _without(case, reference, "not_comparable", reference.note or f"{reference.dtype} is not a tensor.")
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
    if reference.dtype == "string":
        difference = _first_different_string(given.array, reference.array)
        return _without(case, reference, "match" if difference is None else "mismatch", difference)
    if tolerance is None and reference.dtype in _FLOATS:
        tolerance = _EXACT
    metrics = measure(given.array, reference.array, absolute=(tolerance or _EXACT).absolute)
    matches = metrics.passing_relative <= (tolerance or _EXACT).relative
    why = None if matches else _why_mismatch(given.array, reference.array, metrics, tolerance)
    status: OutputStatus = "match" if matches else "mismatch"
    return OutputVerdict(case.id, reference.name, reference.dtype, status, tolerance, metrics, why)


def _first_different_string(given: Array, reference: Array) -> str | None:
    for index, (a, b) in enumerate(zip(given.ravel(), reference.ravel(), strict=True)):
        if a != b:
            return f"The strings differ first at index {index}: {_short(a)}, and must be {_short(b)}."
    return None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


def _why_mismatch(given: Array, reference: Array, metrics: Metrics, tolerance: Tolerance | None) -> str:
    place = f"at {list(index)}" if (index := metrics.worst_index or ()) else "as a scalar"
    # str and not a format: it gives the shortest digits that tell the numbers of this dtype apart.
    pair = f"{given[index]!s} {place}, and must be {reference[index]!s}"
    if metrics.first_nonfinite is not None:
        return f"NaN or infinity where the reference has another value: {pair}."
    if tolerance is None:
        return f"It must be equal, and is not: {pair}."
    allowed = tolerance.absolute + tolerance.relative * metrics.scale
    return f"The largest error is {figure(metrics.max_abs)}, allowed is {figure(allowed)}: {pair}."


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
        found.append(f"The record holds cases that do not exist: {_listed(unknown)}.")
    if repeated := [id_ for id_, count in Counter(run.id for run in record.cases).items() if count > 1]:
        found.append(f"The record holds cases more than once: {_listed(repeated)}.")
    outputs_of = {case.id: Counter(value.name for value in case.outputs) for case in expected}
    for run in record.cases:
        if run.id not in outputs_of or run.status != "done":
            continue
        if extra := list(Counter(value.name for value in run.outputs) - outputs_of[run.id]):
            found.append(f"Case '{run.id}' has outputs that the reference does not have, or twice: {_listed(extra)}.")
    return found


def _wrong_outputs(outputs: Sequence[OutputVerdict]) -> list[str]:
    """Say what is wrong with the outputs, a sentence for each output name and kind, the worst first."""
    groups: dict[tuple[str, OutputStatus], list[OutputVerdict]] = {}
    for verdict in sorted(outputs, key=lambda one: -(one.metrics.passing_relative if one.metrics else math.inf)):
        if verdict.status not in ("match", "not_comparable"):
            groups.setdefault((verdict.output, verdict.status), []).append(verdict)
    total = Counter(verdict.output for verdict in outputs)
    return [_sentence(found, total[name]) for (name, _), found in groups.items()]


_KINDS: Mapping[OutputStatus, str] = {
    "mismatch": "does not match",
    "missing": "is missing",
    "wrong_shape": "has the wrong shape",
    "wrong_dtype": "has the wrong dtype",
    "case_failed": "was not computed",
}


def _sentence(found: Sequence[OutputVerdict], total: int) -> str:
    worst = found[0]
    where = f"in {len(found)} of {total} cases"
    which = "" if len(found) == 1 else "the worst, " if worst.metrics else "the first, "
    return f"Output '{worst.output}' {_KINDS[worst.status]} {where}; {which}case '{worst.case}': {worst.reason}"


def _fallback(record: RunRecord) -> str | None:
    """Say that another execution provider than the one asked for ran, and why; None when the right one did."""
    asked, ran = record.environment.execution_provider_asked, record.environment.execution_provider
    if ran == asked:
        return None
    if ran is None:
        return f"The record does not say which execution provider ran; {asked} was asked for."
    return f"{asked} did not run the model; {ran} did. {_attempts(record)}".rstrip()


def _other_variant(record: RunRecord | None, first: str | None, status: VerdictStatus) -> str | None:
    """Return the variant that a verdict is of where it is not of the target's first execution provider."""
    if record is None:
        return None
    asked = (environment := record.environment).execution_provider_asked
    # A fallback that was not allowed is a verdict of what was asked for.
    of = environment.execution_provider if status == "passed" else asked
    if of == (first or asked):
        return None
    ran = environment.variant if environment.execution_provider == of else None
    return ran or next((a.variant for a in record.attempts if a.execution_provider == of), of)


def _attempts(record: RunRecord) -> str:
    said = [
        f"{attempt.variant} ({attempt.execution_provider}) {attempt.status}: {attempt.reason or 'no reason given'}"
        for attempt in record.attempts
        if attempt.status != "created"
    ]
    return " ".join(text if text.endswith((".", "!", "?")) else text + "." for text in said)


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
        return _why_not_run(expected, record, no_record)
    return [] if outputs else ["No output of these cases can be compared.", *wrong]


def _why_not_run(expected: Sequence[GoldenCase], record: RunRecord | None, no_record: str | None) -> list[str]:
    if not expected:
        return ["There are no cases to run."]
    if record is None:
        return [no_record or "No run record came back."]
    reasons = ["No case ran."]
    if record.error:
        reasons.append(record.error)
    if tried := _attempts(record):
        reasons.append(tried)
    return reasons


def _warnings(
    expected: Sequence[GoldenCase],
    record: RunRecord | None,
    allowed_fallback: str | None,
    first: str | None,
    steady: Steadiness | None,
) -> list[str]:
    found = []
    if expected and not any(case.grade.strong for case in expected):
        found.append("Every case is weak: parity proves little. Build again with --sample and real inputs.")
    if unread := list(dict.fromkeys(v.name for case in expected for v in case.outputs if v.array is None)):
        found.append(f"Not compared, for they are not tensors: {_listed(unread)}.")
    if allowed_fallback:
        found.append(f"A fallback was allowed: {allowed_fallback}")
    if record is None:
        return found
    found += [missed(miss) for miss in record.misses]
    environment = record.environment
    if first is not None and (asked := environment.execution_provider_asked) != first:
        found.append(f"{asked} was asked for in place of {first}, which the target tries first: {first} was not tried.")
    if environment.adapter and environment.adapter.software and environment.execution_provider == "webgpu":
        found.append(f"The GPU adapter is software ({_adapter(record)}): the times say nothing about a GPU.")
    found += ["The device was emulated: its answers count, its times do not."] if environment.emulated else []
    if environment.cross_origin_isolated is False:
        found.append("The page was not cross-origin isolated: it ran with one thread.")
    return found + steadiness.warnings(steady)


def missed(miss: Miss) -> str:
    """Say in words what a trimmed runtime lacked, and who took over."""
    what = f"group {', '.join(map(str, miss.functions))} of its functions" if miss.functions else "something"
    how = "nothing took over" if miss.recovered_by is None else f"the stock runtime '{miss.recovered_by}' took over"
    return (
        f"The trimmed runtime {miss.variant} missed {what} ({miss.during}, {miss.reason}); {how}. "
        "'edgekit build --add-profile' takes this record and keeps what was missed."
    )


def _adapter(record: RunRecord) -> str:
    adapter = record.environment.adapter
    names = (adapter.architecture, adapter.description, adapter.device, adapter.vendor) if adapter else ()
    return next((name for name in names if name), "unnamed")


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    """Name the first few, and count the rest."""
    every = list(names)
    shown = ", ".join(f"'{name}'" for name in every[:_NAMED])
    return shown + (f" and {len(every) - _NAMED} more" if len(every) > _NAMED else "") if every else "none"
