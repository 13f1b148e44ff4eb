"""The sentences of a verdict: why it did not pass, and what to know of one that did."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from edgekit import steadiness
from edgekit.figures import figure
from edgekit.records.cases import GoldenCase, Tolerance
from edgekit.records.run_record import Miss, RunRecord
from edgekit.records.tensors import Array
from edgekit.records.verdict import Metrics, OutputStatus, OutputVerdict, Steadiness

_NAMED = 3  # how many of a kind are named in a sentence before "and N more"
_OF_OUTPUT = "Output '"


def different_string(given: Array, reference: Array) -> str | None:
    """Say where two arrays of strings differ first; None where they do not."""
    for index, (a, b) in enumerate(zip(given.ravel(), reference.ravel(), strict=True)):
        if a != b:
            return f"The strings differ first at index {index}: {_short(a)}, and must be {_short(b)}."
    return None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


def why_mismatch(given: Array, reference: Array, metrics: Metrics, tolerance: Tolerance | None) -> str:
    """Say how far off the worst element is, where it is, and what was allowed; both arrays have one shape."""
    index = metrics.worst_index or ()
    place = f"at {list(index)}" if index else "as a scalar"
    # str and not a format: it gives the shortest digits that tell the numbers of this dtype apart.
    pair = f"{given[index]!s} {place}, and must be {reference[index]!s}"
    if metrics.first_nonfinite is not None:
        return f"NaN or infinity where the reference has another value: {pair}."
    if tolerance is None:
        return f"It must be equal, and is not: {pair}."
    allowed = tolerance.absolute + tolerance.relative * metrics.scale
    return f"The largest error is {figure(metrics.max_abs)}, allowed is {figure(allowed)}: {pair}."


def wrong_outputs(outputs: Sequence[OutputVerdict]) -> list[str]:
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
    return f"{_OF_OUTPUT}{worst.output}' {_KINDS[worst.status]} {where}; {which}case '{worst.case}': {worst.reason}"


def is_of_output(reason: str) -> bool:
    """Whether a reason of a verdict is one of ``wrong_outputs``; records keep them as text alone."""
    return reason.startswith(_OF_OUTPUT)


def fallback(record: RunRecord) -> str | None:
    """Say that another execution provider than the one asked for ran, and why; None when the right one did."""
    asked, ran = record.environment.execution_provider_asked, record.environment.execution_provider
    if ran == asked:
        return None
    if ran is None:
        return f"The record does not say which execution provider ran; {asked} was asked for."
    return f"{asked} did not run the model; {ran} did. {_attempts(record)}".rstrip()


def _attempts(record: RunRecord) -> str:
    said = [
        f"{attempt.variant} ({attempt.execution_provider}) {attempt.status}: {attempt.reason or 'no reason given'}"
        for attempt in record.attempts
        if attempt.status != "created"
    ]
    return " ".join(text if text.endswith((".", "!", "?")) else text + "." for text in said)


def why_not_run(expected: Sequence[GoldenCase], record: RunRecord | None, no_record: str | None) -> list[str]:
    """Say why no case ran; ``no_record``: why there is no record at all."""
    if not expected:
        return ["There are no cases to run."]
    if record is None:
        return [no_record or "No run record came back."]
    tried = _attempts(record)
    return ["No case ran.", *([record.error] if record.error else []), *([tried] if tried else [])]


def warnings(
    expected: Sequence[GoldenCase],
    record: RunRecord | None,
    allowed_fallback: str | None,
    first: str | None,
    steady: Steadiness | None,
) -> list[str]:
    """Say what to know of a verdict whatever it is.

    ``allowed_fallback``: what ``fallback`` says, where one was allowed. ``first``: the target's first execution
    provider.
    """
    found = []
    if expected and not any(case.grade.strong for case in expected):
        found.append("Every case is weak: parity proves little. Build again with --sample and real inputs.")
    if unread := list(dict.fromkeys(v.name for case in expected for v in case.outputs if v.array is None)):
        found.append(f"Not compared, for they are not tensors: {listed(unread)}.")
    found += _left_open(expected)
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


def _left_open(expected: Sequence[GoldenCase]) -> list[str]:
    """Say how much of which outputs the standard leaves open."""
    counts, sizes = Counter[str](), Counter[str]()
    for case in expected:
        counts.update({name: int(mask.sum()) for name, mask in case.left_open.items()})
        sizes.update({value.name: value.array.size for value in case.outputs if value.array is not None})
    if not counts:
        return []
    said = [f"{count} of {sizes[name]} in output '{name}'" for name, count in list(counts.items())[:_NAMED]]
    more = f", and some in {len(counts) - _NAMED} more outputs" if len(counts) > _NAMED else ""
    what = f"Not compared are elements that the ONNX standard leaves open ({', '.join(said)}{more})"
    return [f"{what}: a float was cast to integers that cannot hold it, and each device may make of it what it likes."]


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


def listed(names: Sequence[str] | Mapping[str, object]) -> str:
    """Name the first few, and count the rest."""
    every = list(names)
    shown = ", ".join(f"'{name}'" for name in every[:_NAMED])
    return shown + (f" and {len(every) - _NAMED} more" if len(every) > _NAMED else "") if every else "none"
