"""Does a device say the same twice? What a record tells of cases that were run again, as figures. Pure arithmetic."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from edgekit.figures import figure
from edgekit.metrics import measure
from edgekit.records.cases import GoldenCase
from edgekit.records.run_record import AgainRun, CaseRun, RunRecord, SoakRun
from edgekit.records.tensors import Value
from edgekit.records.verdict import OutputVerdict, SoakResult, Steadiness

# Growth below this is the runtime's own rounding up.
_GREW = 1.01
_WHERE = {"same": "in the same session", "new": "in a new session"}

Judged = Callable[[GoldenCase, CaseRun], Sequence[OutputVerdict]]


def steadiness(record: RunRecord) -> Steadiness:
    """Count the cases that were run again and gave the same bits; measure how far the others are from the first run."""
    first = {run.id: run.outputs for run in record.cases}
    furthest, case = 0.0, None
    for one in record.again:
        distance = 0.0 if one.equal else math.inf if one.error else difference(first.get(one.id, ()), one.outputs)
        if distance > furthest:
            furthest, case = distance, one.id
    same = [one for one in record.again if one.session == "same"]
    new = [one for one in record.again if one.session == "new"]
    return Steadiness(
        same_session=len(same),
        same_session_equal=sum(one.equal for one in same),
        new_session=len(new),
        new_session_equal=sum(one.equal for one in new),
        furthest=furthest,
        furthest_case=case,
        soak=None if record.soak is None else _soak(record.soak, first.get(record.soak.id, ())),
    )


def difference(a: Sequence[Value], b: Sequence[Value]) -> float:
    """Return the largest difference of two runs' outputs, relative to their scale; infinite where they are unlike."""
    others = {value.name: value for value in b}
    return max((_of(value, others.get(value.name)) for value in a if value.array is not None), default=0.0)


def _of(a: Value, b: Value | None) -> float:
    if a.array is None or b is None or b.array is None or a.dtype != b.dtype or a.shape != b.shape:
        return math.inf
    if a.dtype == "string":
        return 0.0 if a.array.tolist() == b.array.tolist() else math.inf
    metrics = measure(b.array, a.array)
    return math.inf if metrics.first_nonfinite is not None else metrics.max_rel


def _soak(soak: SoakRun, first: Sequence[Value]) -> SoakResult:
    runs = len(soak.run_ms)
    quarter = max(1, runs // 4)
    early = next((sample for sample in soak.memory if sample.run >= quarter), None)
    late = soak.memory[-1] if soak.memory else None
    early_bytes = None if early is None else early.wasm_bytes
    late_bytes = None if late is None else late.wasm_bytes
    return SoakResult(
        case=soak.id,
        asked=soak.asked,
        runs=runs,
        different=soak.different,
        first_different=soak.first_different,
        drift=difference(first, soak.outputs) if soak.different else 0.0,
        early_ms=median(soak.run_ms[:quarter]) if runs else None,
        late_ms=median(soak.run_ms[-quarter:]) if runs else None,
        early_bytes=early_bytes,
        late_bytes=late_bytes,
        early_heap_bytes=None if early is None else early.heap_bytes,
        late_heap_bytes=None if late is None else late.heap_bytes,
        grew=early_bytes is not None and late_bytes is not None and late_bytes > _GREW * early_bytes,
    )


def wrong(record: RunRecord | None, cases: Sequence[GoldenCase], judged: Judged) -> list[str]:
    """Say where a case that matched the first time does not when it is run again. ``judged``: ``edgekit.compare``."""
    if record is None:
        return []
    known = {case.id: case for case in cases}
    runs = {run.id: run for run in record.cases}
    found: list[str] = []
    for one in _repeated(record):
        case, run = known.get(one.id), runs.get(one.id)
        if case is None or run is None or one.equal:
            continue
        where = f"when it was run again {_WHERE[one.session]}" if one in record.again else "in a long series of runs"
        if one.error is not None:
            found.append(f"Case '{one.id}' failed {where}, after it had run: {one.error}")
            continue
        matched = {verdict.output for verdict in judged(case, run) if verdict.status == "match"}
        worse = [verdict for verdict in judged(case, CaseRun(one.id, "done", one.outputs)) if verdict.reason]
        lost = [verdict for verdict in worse if verdict.output in matched and verdict.status != "match"]
        found += [f"Output '{v.output}' of case '{one.id}' matched, and did not {where}: {v.reason}" for v in lost]
    return found


def _repeated(record: RunRecord) -> Sequence[AgainRun]:
    """Return every repetition of a case in one form."""
    soak = record.soak
    if soak is None:
        return record.again
    equal = soak.different == 0 and soak.error is None
    return (*record.again, AgainRun(soak.id, "same", equal, soak.outputs, soak.error))


def warnings(found: Steadiness | None) -> list[str]:
    """Say what is no error and should be known: other bits from run to run, memory that grows."""
    if found is None:
        return []
    said = []
    differed = found.same_session + found.new_session - found.same_session_equal - found.new_session_equal
    if differed:
        of = f"{differed} of {found.same_session + found.new_session} cases that were run again"
        how = f"by up to {figure(found.furthest, 2)} of scale (case '{found.furthest_case}')"
        said.append(f"The device does not say the same twice: {of} gave other bits, {how}.")
    if (soak := found.soak) is not None:
        if soak.different:
            said.append(
                f"{soak.different} of {soak.runs} runs of case '{soak.case}' gave other bits than the first, from run "
                f"{soak.first_different} on; the last by {figure(soak.drift, 2)} of scale."
            )
        if soak.grew:
            said.append(
                f"The runtime's memory grew from {soak.early_bytes:,} to {soak.late_bytes:,} bytes after the first "
                f"quarter of {soak.runs} runs of case '{soak.case}'."
            )
    return said


def first_outputs(record: RunRecord | None) -> Mapping[str, Mapping[str, Value]]:
    """Return, by case and name, the outputs of the cases that ran."""
    runs = () if record is None else record.cases
    return {run.id: {value.name: value for value in run.outputs} for run in runs if run.status == "done"}
