"""Put a finding into words, and into a folder that shows it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from edgekit import repro
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.diagnose.confirm import Confirmed
from edgekit.diagnose.lab import Error, Lab, arrays_of, as_dtype, case_of, worst
from edgekit.diagnose.result import Diagnosis, Finding, Trial
from edgekit.figures import figure
from edgekit.isolate import cut
from edgekit.isolate.reduce import Fails, Sample, reduce
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import Array, Value, value_of
from edgekit.repro import Repro, escaped
from edgekit.runners.browsers import CHROMIUM, software_flags

_TIMES = 0.05  # of the error that was found: a reduced model must keep at least so much of it
_LARGEST_BYTES = 256 << 20

_JUDGE = "the float64 evaluation"
_EVALUATOR = "the float64 run of the onnx package's reference evaluator"
SIDES = {
    "engine": "By the float64 evaluation the browser's side is wrong.",
    "desktop": "By the float64 evaluation the desktop's side is wrong, and the browser's is right.",
    "both": "By the float64 evaluation the browser and the desktop are both wrong.",
    "neither": "By the float64 evaluation both sides are within the tolerance.",
    "open": "For these ONNX leaves the result open, so neither side is wrong. Clip to the range before it.",
    "unknown": "This is not in the float64 evaluation, so it cannot say which side is wrong.",
}


def number(error: float | None) -> str:
    """Return an error as text."""
    return "unknown" if error is None else "NaN or infinite" if error == float("inf") else figure(error, 2)


def sentences(finding: Finding, *, filed: bool = False) -> list[str]:
    """Say what a finding says. ``filed``: to someone to whom edgekit's commands say nothing."""
    several = " and ".join(node.label for node in finding.nodes)
    node = finding.nodes[-1]
    place = f" in {node.graph}" if node.graph else ""
    turn = f" turn {node.turn}" if node.turn is not None else ""
    if finding.kind == "amplifies":
        return [f"{several}{place}{turn} enlarges errors {number(finding.gain)} times. {finding.note}"]
    where = f"{several}{place}{turn}"
    said = {
        "refused": f"{where} is refused by the browser.",
        "crashed": f"{where} ends the runtime.",
    }.get(finding.kind, f"{where} is the first that is wrong: alone it adds an error of {number(finding.added)} of its "
                        "output's scale.")  # fmt: skip
    if finding.side in ("both", "desktop"):
        off = number(finding.desktop_off)
        said = f"{where} is not what the standard says: on the desktop it is off by {off} of its output's scale."
    elif finding.side == "open":
        said = (
            f"{where} is where the answers part: it reads NaN, an infinity or a number beyond {node.outputs[0].dtype}."
        )
    found = [said]
    if finding.kind in ("wrong", "nonfinite"):
        side = SIDES[finding.side]
        found.append(side.replace(_JUDGE, _EVALUATOR) if filed else side)
    if finding.note:
        found.append(finding.note)
    if not filed and not all(each.name for each in finding.nodes):
        found.append(
            "It has no name, so no setting of a session can put it on the CPU: give it one, as 'edgekit repair' does."
        )
    if twins := (*finding.twins, *finding.nameless_twins):
        found.append(f"Its twins fail alike, or stand where this case does not lead: {', '.join(twins)}.")
    return found


def told(findings: Sequence[Finding], most: int) -> list[str]:
    """Say what the first ``most`` findings say; of a node that is wrong in several turns of a loop, the first turn."""
    first: dict[tuple[tuple[str, ...], str], Finding] = {}
    turns: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for finding in findings:
        node = finding.nodes[-1]
        key = tuple(each.node for each in finding.nodes), node.graph
        first.setdefault(key, finding)
        turns.setdefault(key, []).extend(() if node.turn is None else [node.turn])
    said = []
    for key, finding in list(first.items())[:most]:
        said += sentences(finding)
        if len(turns[key]) > 1:
            said.append(f"It is wrong in {len(turns[key])} turns.")
    return said


def cure_sentence(trials: Sequence[Trial]) -> str:
    """Say which changes cure it."""
    cures = [trial.change for trial in trials if trial.cures]
    if not trials:
        return ""
    return f"Cured by: {'; '.join(cures)}." if cures else "None of the changes that were tried cures it."


def smallest(
    lab: Lab, found: Confirmed, settings: SessionSettings, enter: Callable[[str], None] = lambda stage: None
) -> Sample | None:
    """Return the smallest model that still shows the finding; None where it does not fail alone.

    ``enter``: told which models are tried next: how many there will be depends on which of them fail.
    """
    if found.sample is None:
        return None
    tried = 0

    def counted(fails: Fails) -> Fails:
        def asked(samples: Sequence[Sample]) -> Sequence[bool]:
            nonlocal tried
            first, tried = tried + 1, tried + len(samples)
            enter(f"Making the smallest model that fails, models {first} to {tried}")
            return fails(samples)

        return asked

    if found.finding.side in ("both", "desktop"):
        # What the evaluator makes of other attributes is another question.
        return reduce(found.sample, counted(lambda samples: _fails_the_standard(lab, samples)), plainer=False)
    added = found.finding.added
    least = _TIMES * added if added is not None and added != float("inf") else 0.0

    def fails(samples: Sequence[Sample]) -> list[bool]:
        cases = [case_of(each.model, each.inputs, settings) for each in samples]
        replies = lab.desktop(cases)
        good = [index for index, reply in enumerate(replies) if reply.outcome == "done"]
        given = lab.browser([cases[index] for index in good])
        bad = {
            index
            for index, reply in zip(good, given, strict=True)
            if _is_like(found.finding, reply, _error(lab, reply, replies[index]), least)
        }
        return [index in bad for index in range(len(samples))]

    return reduce(found.sample, counted(fails))


def _is_like(finding: Finding, reply: Reply, error: Error, least: float) -> bool:
    """Whether a reply shows the same kind of fault."""
    if finding.kind in ("refused", "crashed"):
        return reply.outcome == ("crashed" if finding.kind == "crashed" else reply.outcome) and reply.outcome != "done"
    return reply.outcome == "done" and error.wrong and error.relative >= least


def _error(lab: Lab, reply: Reply, right: Reply) -> Error:
    given = arrays_of(reply)
    return worst([lab.error(given.get(name), array) for name, array in arrays_of(right).items()])


def _fails_the_standard(lab: Lab, samples: Sequence[Sample]) -> list[bool]:
    cases = [case_of(each.model, each.inputs) for each in samples]
    return [
        reply.outcome == exact.outcome == "done" and _is_off(lab, reply, exact)
        for reply, exact in zip(lab.desktop(cases), lab.exact(cases), strict=True)
    ]


def _is_off(lab: Lab, reply: Reply, exact: Reply) -> bool:
    right = arrays_of(exact)
    for name, array in arrays_of(reply).items():
        expected = right.get(name)
        if expected is None or expected.shape != array.shape:
            return False
        expected = as_dtype(expected, array)
        if expected.dtype == array.dtype and lab.error(array, expected).wrong:
            return True
    return False


def write_repro(
    folder: Path,
    lab: Lab,
    sample: Sample,
    diagnosis: Diagnosis,
    finding: Finding,
    settings: SessionSettings,
    known: Sequence[str] = (),
) -> Path | None:
    """Write ``sample`` as a repro; None where it is too large for a page, or nothing knows what is right.

    ``known``: what is known of such nodes, in sentences.
    """
    case = case_of(sample.model, sample.inputs, settings)
    if len(case.model) > _LARGEST_BYTES:
        return None
    (given,), (right,) = lab.browser([case]), lab.desktop([case])
    expected = _expected(lab, case, right, finding)
    if not expected:
        return None
    model = sample.model
    del model.graph.output[:]
    model.graph.output.extend(cut.declared(value.name, value.array) for value in expected if value.array is not None)
    made = Repro(
        title=_title(lab, finding),
        model=model.SerializeToString(deterministic=True),
        inputs=sample.inputs,
        expected=expected,
        got=given.outputs,
        combination=lab.place.label,
        facts=(("Browser", f"{lab.place.engine.name} {lab.browser_version}"), ("Adapter", diagnosis.adapter or "none")),
        text=_text(diagnosis, finding, given, known),
        settings=settings,
        threads=lab.place.threads,
        flags=_flags(lab),
    )
    return repro.write(folder, made, lab.place.variant, lab.place.dist)


def _expected(lab: Lab, case: Case, right: Reply, finding: Finding) -> tuple[Value, ...]:
    """Return what is right: the float64 evaluation rounded where that judged, else the desktop's answers."""
    if right.outcome != "done":
        return ()
    if finding.side not in ("both", "desktop"):
        return right.outputs
    exact = arrays_of(lab.exact([case])[0])
    found: list[tuple[str, Array]] = [(name, as_dtype(exact[name], array)) for name, array in arrays_of(right).items()]
    return tuple(value_of(name, array) for name, array in found)


def _title(lab: Lab, finding: Finding) -> str:
    what = {
        "refused": "is refused",
        "crashed": "ends the runtime",
        "nonfinite": "gives NaN or infinity",
    }.get(finding.kind, "gives wrong values")
    operators = "+".join(node.op_type for node in finding.nodes)
    provider = lab.place.variant.execution_provider
    everywhere = " (and on the desktop)" if finding.side == "both" else ""
    return f"{operators} {what} with {lab.place.dist.package} {lab.place.dist.version} on {provider}{everywhere}"


def _flags(lab: Lab) -> tuple[str, ...]:
    """Return the flags that give Chromium the software adapter, where that was the one."""
    software = lab.adapter is not None and lab.adapter.software and lab.place.engine is CHROMIUM
    return software_flags() if software else ()


def _text(diagnosis: Diagnosis, finding: Finding, given: Reply, known: Sequence[str]) -> str:
    lines = [escaped(sentence) for sentence in (*sentences(finding, filed=True), *known)]
    if given.outcome != "done":
        lines += ["", f"It says: {escaped(given.error or given.outcome)}"]
    if tried := [_tried(trial) for trial in diagnosis.trials[1:]]:
        lines += ["", "The whole model, with one thing changed:", "", *(f"- {escaped(each)}" for each in tried)]
    lines += ["", "In the model that it was found in:", ""]
    lines += [f"    {line}" for line in finding.picture.splitlines()]
    return "\n".join(lines)


def _tried(trial: Trial) -> str:
    if trial.cures is None:
        return f"{trial.change}: not tried, {' '.join(trial.note.split())}"
    if trial.outcome != "done":
        return f"{trial.change}: {trial.outcome}, {' '.join(trial.note.split())}"
    return f"{trial.change}: {'right' if trial.cures else 'still wrong'}, off by {number(trial.error)}"
