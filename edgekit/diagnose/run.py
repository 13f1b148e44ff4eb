"""Diagnose a bundle: which node goes wrong in a browser, on which side, what cures it, and the least that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from edgekit import parity
from edgekit.bundle.open import require_kind
from edgekit.conformance.suite import Reply
from edgekit.diagnose import confirm, golden_answers, standard, subject, warned, where, why, write_up
from edgekit.diagnose.confirm import Confirmed
from edgekit.diagnose.lab import Lab, Place, arrays_of, case_of
from edgekit.diagnose.result import Diagnosis, Failure, Outcome, Trial
from edgekit.diagnose.scene import Scene
from edgekit.diagnose.warned import Warned
from edgekit.diagnose.why import Failing
from edgekit.errors import UsageError
from edgekit.isolate import straight
from edgekit.model.io import LoadedModel
from edgekit.parity import Opened, ParityOptions, ParityResult
from edgekit.progress import Progress, Stage, Tell, silent, untold
from edgekit.records.run_record import Adapter
from edgekit.records.settings import DEFAULT, SessionSettings
from edgekit.records.tensors import Array
from edgekit.records.verdict import Verdict
from edgekit.runners.browsers import CHROMIUM, FIREFOX
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.targets import load as targets
from edgekit.targets.options import WEB

_ENGINES = {engine.id: engine for engine in (CHROMIUM, FIREFOX)}
_MOST_ALONE = 300
_SAID = 3


@dataclass(frozen=True, eq=False)
class Options:
    """What is asked. ``parity``: the combination, and how parity judges it. ``dist``: the published runtime, whole.

    ``others``: other versions of the runtime to try. ``elsewhere``: try other variants, threads and the other browser
    engine too. ``repro``: the
    folder to write; None: none is written.
    """

    parity: ParityOptions
    dist: RuntimeDist
    others: tuple[RuntimeDist, ...] = ()
    elsewhere: bool = True
    repro: Path | None = None


@dataclass(frozen=True, eq=False)
class _Work:
    opened: Opened
    options: Options
    result: ParityResult
    lab: Lab
    model: onnx.ModelProto
    settings: SessionSettings
    stage: Stage
    tell: Tell

    @property
    def title(self) -> str:
        return self.opened.bundle.manifest.title


def diagnose(folder: Path, options: Options, *, progress: Progress = silent, tell: Tell = untold) -> Diagnosis:
    """Run parity of the bundle in ``folder``, and say why it fails where it does.

    ``tell`` is told which node it is as soon as that is known: minutes may pass until it is known what cures it.
    Trials use the published runtime in ``options.dist``, whatever the bundle ships. Raises what ``parity.verify`` and
    ``conformance.replay`` raise, UsageError for a browser that trials do not run in, LimitError for a model whose
    weights take more than 1 GiB.
    """
    opened = parity.open_folder(folder, progress)
    require_kind(opened.bundle, WEB, "diagnose")
    runner = options.parity.runner or parity.target_runner(opened.bundle, options.parity.targets_dir)
    if runner not in _ENGINES:
        raise UsageError(
            f"edgekit diagnose has no trials for the browser '{runner}'.", hint=f"Browsers: {', '.join(_ENGINES)}."
        )
    stage = Stage(progress)
    stage.enter("Replaying the golden cases")
    result = parity.verify_opened(opened, replace(options.parity, runner=runner), progress=stage)
    verdict = result.verdict
    variant = _variant(opened, verdict, options.parity)
    threads = verdict.environment.threads if verdict.environment else options.parity.threads or 1
    place = Place(_ENGINES[runner], variant, options.dist, max(1, threads))
    lab = Lab(place, opened.case_set.tolerance, options.parity.gpu, options.parity.browser_path, stage)
    settings = opened.bundle.manifest.sessions.get(variant.id, DEFAULT)
    work = _Work(opened, options, result, lab, subject.load(opened.bundle), settings, stage, tell)
    if verdict.status == "not_run":
        return _diagnosis(work, "not_run", (), [], [], [*verdict.reasons, *([result.hint] if result.hint else [])])
    if verdict.passed:
        return _passing(work)
    return _failing(work)


def _variant(opened: Opened, verdict: Verdict, asked: ParityOptions) -> pins.Variant:
    """Return the variant that failed: the one that was refused where another took its place, else the one that ran."""
    known = {variant.id: variant for variant in pins.load().variants}
    refused = [attempt.variant for attempt in verdict.attempts if attempt.status == "refused"]
    ran = [verdict.environment.variant] if verdict.environment and verdict.environment.variant else []
    wanted = [asked.variant] if asked.variant else []
    for name in (*wanted, *refused, *ran, *opened.bundle.manifest.runtime.variants):
        if name in known:
            return known[name]
    raise UsageError("The bundle has no variant of the runtime that is known here.", hint="Build it again.")


def _scene(work: _Work, inputs: Failing, *, whole: bool = False) -> Scene:
    """Lay the model open for some inputs; ``whole``: leave what holds graphs as it is."""

    def ask(probe: onnx.ModelProto) -> dict[str, Array] | None:
        (reply,) = work.lab.desktop([case_of(probe, inputs.inputs)])
        return arrays_of(reply) if reply.outcome == "done" else None

    line = straight.straighten(work.model, (lambda probe: None) if whole else ask)
    return Scene(line, inputs.inputs, work.lab, straight.inlined(work.model), work.settings)


def _passing(work: _Work) -> Diagnosis:
    """Where parity holds there is nothing to find, unless everyone is wrong alike."""
    case = work.opened.case_set.cases[0]
    first = Failing(case.id, 0, case.inputs, case.outputs, {})
    found = standard.against_standard(_scene(work, first))
    count = len({output.case for output in work.result.verdict.outputs})
    cases = f"{count} golden case{'' if count == 1 else 's'}"
    if not found:
        nothing = f"Parity passes, with {cases}: there is nothing to diagnose."
        return _diagnosis(work, "passes", (), [], [], [nothing])
    said = [f"Parity passes, with {cases}, but the browser and the desktop agree on what the standard does not say:"]
    said += write_up.told([each.finding for each in found], _SAID)
    return _with_repro(work, _diagnosis(work, "standard", found, [], [], said, case=first), found)


def _failing(work: _Work) -> Diagnosis:
    failures = _failures(work)
    work.stage.enter("Trying the failing cases with the published runtime")
    seen = _reproduced(work)
    if seen.failing is None:
        said = ["The published runtime gives right answers with this model and these cases, so neither is at fault:"]
        said += [_bundle_fault(work)]
        return _diagnosis(work, "bundle", (), failures, [], said)
    bad, reply = seen.failing, seen.reply
    (desktop,) = work.lab.desktop([case_of(work.model, bad.inputs)])
    known, reference = _warned(work), work.opened.case_set.reference
    if bad.error(desktop).wrong:
        if (said := warned.random(known)) or golden_answers.are_the_desktops(reference):
            said = said or golden_answers.changed(reference, bad, desktop, reply)
            return _diagnosis(work, "cases", (), failures, [], said, case=bad)
        return _foreign_reference(work, bad, failures)
    work.stage.enter("Searching the first wrong node")
    scene = _scene(work, bad)
    found = _alone(scene, reply.error or "") if reply.outcome != "done" else _born(work, scene, bad)
    if found and all(warned.draws(known, each.finding.nodes[-1]) for each in found):
        return _diagnosis(work, "cases", (), failures, [], warned.random(known), case=bad)
    places = [*write_up.told([each.finding for each in found], _SAID), *_not_judged(scene, found, known)]
    for sentence in places:
        work.tell(sentence)
    names = list(dict.fromkeys(name for each in found for name in each.finding.names))
    if work.model.functions:  # whose nodes may have other names where they are put in place of a call
        lined = [node.line_name for each in found for node in each.finding.nodes]
        names = list(dict.fromkeys((*names, *lined)))
    options = why.Options(pins.load().variants, work.options.others, work.options.elsewhere)
    changes = why.changes(work.lab, work.model, work.settings, names, options)
    work.stage.enter("Trying what cures it")
    trials = (_base(bad, reply), *why.rerun(work.lab, work.model, [bad, *seen.others], changes))
    said = places
    if not found:
        said.append("No node was found that fails alone or with those before it.")
    said.append(write_up.cure_sentence(trials[1:]))
    outcome: Outcome = "found" if found else "unexplained"
    return _with_repro(work, _diagnosis(work, outcome, found, failures, trials, said, case=bad), found, known)


@dataclass(frozen=True, eq=False)
class _Seen:
    """A case that fails with the published runtime too, what came of it, and the other failing cases."""

    failing: Failing | None
    reply: Reply
    others: tuple[Failing, ...] = ()


def _reproduced(work: _Work) -> _Seen:
    """Return the first of the failing cases, the smallest first, that fails in a trial too."""
    ids = list(dict.fromkeys(output.case for output in subject.failed_outputs(work.result.verdict)))
    ids = subject.smallest_first(work.opened, ids or [work.opened.case_set.cases[0].id])
    failing = subject.failing(work.opened, ids, work.model, work.lab, work.settings)
    reply = Reply("failed")
    for each in failing:
        (reply,) = work.lab.browser([case_of(work.model, each.inputs, work.settings)])
        if each.error(reply).wrong:
            return _Seen(each, reply, tuple(other for other in failing if other is not each))
    return _Seen(None, reply)


def _base(bad: Failing, reply: Reply) -> Trial:
    """Return the trial in which nothing is changed."""
    error = bad.error(reply).relative if reply.outcome == "done" else None
    return Trial("nothing changed", reply.outcome, error, False, reply.error or "")


def _born(work: _Work, scene: Scene, failing: Failing) -> tuple[Confirmed, ...]:
    """Return where the error is born: by looking at values, by ever shorter models, by leaving graphs whole."""
    suspects = where.suspects(scene)
    found = confirm.on_trial(scene, suspects)
    if found:
        return found
    hidden = where.hidden_suspect(scene) if not suspects or scene.masked else None
    if hidden is not None and (found := confirm.on_trial(scene, [hidden])):
        return found
    if suspects and (loud := confirm.amplifier(scene, suspects)) is not None:
        return (loud,)
    if any(node.op_type in ("If", "Loop", "Scan") for node in work.model.graph.node):
        outer = _scene(work, failing, whole=True)
        return confirm.on_trial(outer, where.suspects(outer))
    return ()


def _alone(scene: Scene, error: str) -> tuple[Confirmed, ...]:
    """Return the nodes that the browser refuses alone, those that its error names first.

    All are tried, not those alone: with the first on the CPU, the next would be refused.
    """
    named = {node.name for node in scene.nodes if f"'{scene.line.origins[node.name].name or node.name}'" in error}
    scene.fetch(scene.values())
    ordered = sorted(scene.nodes, key=lambda node: node.name not in named)
    return confirm.on_trial(scene, ordered[:_MOST_ALONE], windows=False)


def _warned(work: _Work) -> tuple[Warned, ...]:
    """Ask the rules of ``check``; a target that is not at hand any more has none."""
    manifest, variant = work.opened.bundle.manifest, work.lab.place.variant.id
    try:
        target = targets.load(manifest.target, work.options.parity.targets_dir)
    except UsageError:
        return ()
    loaded = LoadedModel(work.opened.bundle.folder / manifest.model.path, work.model, ())
    return warned.warnings(loaded, target, variant)


def _not_judged(scene: Scene, found: Sequence[Confirmed], known: Sequence[Warned]) -> list[str]:
    """Say what was not looked at: what comes after a wrong node gets wrong values, and may be wrong itself."""
    nodes = [node for each in found for node in each.finding.nodes]
    after = scene.descendants([node.line_name for node in nodes])
    if not after:
        return []
    twins = [twin for each in found for twin in (*each.finding.twins, *each.finding.nameless_twins)]
    others = warned.others(known, nodes, twins)
    flagged = f" By the rules of 'edgekit check' these are wrong there too: {others}." if others else ""
    count = f"{len(after)} node{'' if len(after) == 1 else 's'}"
    return [f"What comes after ({count}) was not judged alone: diagnose again when this is mended.{flagged}"]


def _foreign_reference(work: _Work, bad: Failing, failures: Sequence[Failure]) -> Diagnosis:
    """The desktop does not give the golden answers either: they came from elsewhere."""
    found = standard.against_standard(_scene(work, bad))
    said = ["The desktop's onnxruntime does not give the golden answers either: they are of another reference"]
    said[0] += f" ({work.opened.case_set.reference.name})."
    if not found:
        said.append("Each node agrees with the float64 evaluation, so the model itself is not that reference's.")
        return _diagnosis(work, "unexplained", (), failures, [], said, case=bad)
    said += write_up.told([each.finding for each in found], _SAID)
    return _with_repro(work, _diagnosis(work, "standard", found, failures, [], said, case=bad), found)


def _bundle_fault(work: _Work) -> str:
    if any(
        file.path.startswith("runtime/") and file.path.endswith(".wasm") for file in work.opened.bundle.manifest.files
    ):
        return (
            "the bundle's own files are. Its runtime may be cut too far: build it with --no-trim-runtime and compare."
        )
    return "the bundle's own files are. Build it again."


def _failures(work: _Work) -> list[Failure]:
    return [
        Failure(
            output.case,
            output.output,
            None if output.metrics is None else output.metrics.passing_relative,
            None if output.tolerance is None else output.tolerance.relative,
            output.reason or "",
        )
        for output in subject.failed_outputs(work.result.verdict)
    ]


def _adapter(work: _Work) -> str:
    environment = work.result.verdict.environment
    adapter: Adapter | None = work.lab.adapter or (environment.adapter if environment else None)
    if adapter is None:
        return ""
    named = " ".join(filter(None, (adapter.vendor, adapter.architecture, adapter.description)))
    return f"{named} (software)" if adapter.software else named


def _diagnosis(
    work: _Work,
    outcome: Outcome,
    found: Sequence[Confirmed],
    failures: Sequence[Failure],
    trials: Sequence[Trial],
    said: Sequence[str],
    *,
    case: Failing | None = None,
) -> Diagnosis:
    place = work.lab.place
    return Diagnosis(
        outcome=outcome,
        title=work.title,
        target=work.opened.bundle.manifest.target,
        combination=place.label,
        runtime=f"{place.dist.package} {place.dist.version}",
        adapter=_adapter(work),
        case=None if case is None else case.case,
        step=0 if case is None else case.step,
        failures=tuple(failures),
        findings=tuple(each.finding for each in found),
        trials=tuple(trials),
        summary=tuple(sentence for sentence in said if sentence),
    )


def _with_repro(
    work: _Work, diagnosis: Diagnosis, found: Sequence[Confirmed], known: Sequence[Warned] = ()
) -> Diagnosis:
    """Write the repro of the first finding that fails alone and is somebody's fault, where one is asked for."""
    chosen = next((each for each in found if each.sample is not None and each.finding.side != "open"), None)
    if work.options.repro is None or chosen is None:
        return diagnosis
    work.stage.enter("Making the smallest model that fails")
    sample = write_up.smallest(work.lab, chosen, work.settings, work.stage.enter)
    if sample is None:
        return diagnosis
    said = [each.message for node in chosen.finding.nodes for each in warned.of_node(known, node)]
    written = write_up.write_repro(work.options.repro, work.lab, sample, diagnosis, chosen.finding, work.settings, said)
    return replace(diagnosis, repro=None if written is None else str(written))
