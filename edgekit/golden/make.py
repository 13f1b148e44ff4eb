"""Make the golden cases of a model: inputs that it takes, reference outputs, and what each of them can prove."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from edgekit import files
from edgekit.child.process import DEFAULT_LIMITS, ChildLimits
from edgekit.desktop import reference as references
from edgekit.desktop.run import Feed
from edgekit.errors import ModelError, UsageError
from edgekit.facts.survey import Argument, Facts
from edgekit.golden import left_open, probe, rounds, samples, selection, trial
from edgekit.golden.grade import Judge
from edgekit.golden.images import ImageOptions
from edgekit.golden.inert import inert
from edgekit.golden.probe import Plan
from edgekit.golden.selection import Tried
from edgekit.golden.trial import FEED_SECONDS, Bench
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Reference, Tolerance
from edgekit.records.tensors import NUMPY_DTYPES
from edgekit.targets.load import Target

_MOST_REASON = 200
_MOST_REASONS = 3
_MOST_ID = 60
_NO_IMAGE_OPTIONS = ImageOptions()

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class CaseOptions:
    """What the user says about golden cases.

    ``samples``: files and folders of real inputs, see ``edgekit.golden.samples``; ``image``: how pictures among them
    become inputs. ``dims``: sizes of symbolic dimensions; unnamed ones are called ``input[axis]``. ``feed_back``:
    output name to input name; the loop has ``steps`` runs. ``output_tolerance``: by output name, over the target's by
    dtype. ``reference``: see ``edgekit.desktop.reference.outputs``; None for desktop onnxruntime.
    """

    samples: tuple[Path, ...] = ()
    image: ImageOptions = _NO_IMAGE_OPTIONS
    dims: Mapping[str, int] = field(default_factory=dict)
    feed_back: Mapping[str, str] = field(default_factory=dict)
    steps: int = 4
    seed: int = 0
    output_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    reference: str | None = None
    limits: ChildLimits = DEFAULT_LIMITS


# Gives other cases than those that are there, when it is asked; they are not graded yet.
More = Callable[[], tuple[GoldenCase, ...]]
# Looks at the cases, and returns those to add to them.
Improve = Callable[[tuple[GoldenCase, ...], More], tuple[GoldenCase, ...]]


@dataclass(frozen=True)
class _Found:
    """Cases so far, and in words what was tried and is not among them.

    ``plan``: how more can be generated; None: nothing is generated.
    """

    cases: tuple[GoldenCase, ...]
    left_out: tuple[str, ...]
    plan: Plan | None = None


def make(
    model: LoadedModel,
    facts: Facts,
    target: Target,
    options: CaseOptions,
    *,
    improve: Improve | None = None,
    progress: Progress = silent,
) -> CaseSet:
    """Make about 6 to 12 golden cases, about 6 MB of tensors at most, each graded; the same ones whenever it is called.

    The user's samples come first and always stay; generated cases fill up. ``improve`` may add to them.

    Raises UsageError for a dimension, an input or an output that the model does not have, and for a sample that does
    not fit; ModelError, with the runtime's reason, when not one case remains; LimitError when the runtime takes too
    much time or memory.
    """
    inputs = tuple(argument for argument in facts.inputs if not argument.type.startswith("optional("))
    feed_back = _feed_back(options, inputs, facts.outputs)
    _check_names("output", options.output_tolerance, [output.name for output in facts.outputs])
    given = samples.load(options.samples, facts.inputs, options.image)
    _check_readable(model, facts.outputs)
    judge = Judge(target.tolerance, options.output_tolerance)
    with trial.bench(model, seed=options.seed, limits=options.limits, progress=progress) as bench:
        real = _sampled(bench, given, feed_back, judge)
        # Recorded outputs exist for the recorded cases alone, so beside samples nothing is generated for them.
        only_samples = bool(given) and references.is_recorded(options.reference)
        found = real if only_samples else _generated(bench, model, inputs, feed_back, judge, options, real)
        if improve is not None and found.plan is not None:
            more = partial(_more, bench, found.plan, options.seed, found.cases)
            added = _calm(bench, found.plan, judge, improve(found.cases, more))
            found = replace(found, cases=(*found.cases, *added))
        said = [
            f"input '{name}' changes no output in any case; give a --sample" for name in inert(found.cases, bench.run)
        ]
        found = replace(found, left_out=(*found.left_out, *said))
        found = replace(found, cases=left_open.marked(model, found.cases, bench))
        version = bench.runtime_version
    reference = Reference("desktop onnxruntime", "onnxruntime", version, "disabled")
    if options.reference is not None and found.cases:
        found, reference = _referred(options.reference, model, facts, found, options, progress)
    if not found.cases:
        raise ModelError(
            f"{model.path}: no golden case remains. {' '.join(found.left_out)}", hint="Give real inputs with --sample."
        )
    return CaseSet(
        model_sha256=files.sha256_file(model.path),
        reference=reference,
        tolerance=dict(target.tolerance),
        output_tolerance=dict(options.output_tolerance),
        cases=found.cases,
        left_out=found.left_out,
    )


def _sampled(bench: Bench, given: Sequence[samples.Sample], feed_back: FeedBack | None, judge: Judge) -> _Found:
    """Run and grade the user's samples. They stay even when they are weak or chaotic: the user knows why."""
    if not given:
        return _Found((), ())
    trials = bench.tried([Feed(values, feed_back) for _, values in given], frozenset())
    cases: list[GoldenCase] = []
    left_out = []
    for (origin, values), one in zip(given, trials, strict=True):
        if one.outputs is None:
            left_out.append(f"{origin}: the desktop runtime refuses it: {one.error}"[:_MOST_REASON])
            continue
        others = [t.outputs for t in trials if t.outputs is not None and not selection.same_feed(t.feed, one.feed)]
        graded = one.graded(others, judge)
        name = _fresh_id(origin.removeprefix("sample "), [case.id for case in cases])
        cases.append(GoldenCase(name, origin, values, one.outputs, graded.grade, feed_back))
    return _Found(tuple(cases), tuple(left_out))


def _fresh_id(name: str, taken: Iterable[str]) -> str:
    """Make an id of a file's name: ASCII letters, digits, dots and dashes, and not yet taken."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name.split(" (")[0]).strip("-._")[:_MOST_ID] or "sample"
    used, number, fresh = set(taken), 1, plain
    while fresh in used:
        number += 1
        fresh = f"{plain}-{number}"
    return fresh


def _generated(
    bench: Bench,
    model: LoadedModel,
    inputs: Sequence[Argument],
    feed_back: FeedBack | None,
    judge: Judge,
    options: CaseOptions,
    real: _Found,
) -> _Found:
    """Add generated cases to the samples. Where the model takes nothing that is generated, samples alone will do."""
    try:
        plan = probe.explore(model, inputs, options.dims, feed_back, bench.run)
    except ModelError as error:
        if not real.cases:
            raise
        return replace(real, left_out=(*real.left_out, f"Generated cases: {error.message}"))
    tried = rounds.rounds(bench, plan, judge, options.seed)
    by_slot: dict[int, list[Tried]] = {}
    for one in tried:
        by_slot.setdefault(id(one.slot), []).append(one)
    best = [one for one in map(selection.best, by_slot.values()) if one is not None]
    if not best and not real.cases:
        best = selection.calmest(tried)  # weak, and said to be; the model itself may still be all right
    used = sum(selection.bytes_of((*case.inputs, *case.outputs)) for case in real.cases)
    kept = selection.keep(selection.distinct(best), used, len(real.cases))
    cases = list(real.cases)
    for number, one in enumerate(kept, start=1):
        cases.append(_case(_fresh_id(f"{number:02d}-{one.recipe.kind}", [case.id for case in cases]), one, plan))
    return _Found(tuple(cases), (*real.left_out, *plan.refused, *_left_out(by_slot.values(), kept, plan)), plan)


def _more(bench: Bench, plan: Plan, seed: int, cases: tuple[GoldenCase, ...]) -> tuple[GoldenCase, ...]:
    """Run cases of other seeds and scales than those that are there, and return what was not refused."""
    pairs = rounds.others(bench, plan, seed)
    feeds = [plan.feed(recipe, slot.setup) for slot, recipe in pairs]
    results = bench.run(feeds, "Running more cases on the desktop") if feeds else ()
    given = [Feed(case.inputs, case.feed_back) for case in cases]
    found: list[GoldenCase] = []
    for (slot, recipe), feed, result in zip(pairs, feeds, results, strict=True):
        if result.outputs is not None and not any(selection.same_feed(feed, other) for other in given):
            setup = plan.describe(slot.setup)
            origin = f"generated: {recipe.describe()}{f'; {setup}' if setup else ''}; sees what others miss"
            name = f"{len(cases) + len(found) + 1:02d}-{recipe.kind}"
            found.append(GoldenCase(name, origin, feed.inputs, result.outputs, feed_back=feed.feed_back))
            given.append(feed)
    return tuple(found)


def _calm(bench: Bench, plan: Plan, judge: Judge, cases: tuple[GoldenCase, ...]) -> list[GoldenCase]:
    """Grade cases, and return those that a right device passes."""
    trials = bench.tried([Feed(case.inputs, case.feed_back) for case in cases], plan.exact) if cases else []
    graded = [(case, trial.graded((), judge)) for case, trial in zip(cases, trials, strict=True) if trial.outputs]
    return [replace(case, grade=one.grade) for case, one in graded if not one.chaotic]


def _case(name: str, one: Tried, plan: Plan) -> GoldenCase:
    setup = plan.describe(one.slot.setup)
    origin = f"generated: {one.recipe.describe()}{f'; {setup}' if setup else ''}"
    assert one.graded is not None  # noqa: S101  what was kept was graded
    return GoldenCase(name, origin, one.feed.inputs, one.outputs, one.graded.grade, one.feed.feed_back)


def _left_out(by_slot: Iterable[Sequence[Tried]], kept: Sequence[Tried], plan: Plan) -> list[str]:
    """Say why the preferred recipes of some slots are not among the cases: a sentence for each reason."""
    groups: dict[str, list[str]] = {}
    for group in by_slot:
        first = group[0]
        reason = first.why_not()[:_MOST_REASON]
        if first not in kept and reason:
            setup = plan.describe(first.slot.setup) if first.slot.setup != plan.setups[0] else ""
            groups.setdefault(reason, []).append(f"{first.recipe.kind}{f' ({setup})' if setup else ''}")
    return [f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in groups.items()]


def _referred(
    spec: str, model: LoadedModel, facts: Facts, found: _Found, options: CaseOptions, progress: Progress
) -> tuple[_Found, Reference]:
    """Put the outputs of the reference that the user named in the place of the desktop's."""
    done = references.outputs(
        spec,
        model.path,
        [Feed(case.inputs, case.feed_back) for case in found.cases],
        case_ids=[case.id for case in found.cases],
        declared=facts.outputs,
        feed_seconds=FEED_SECONDS,
        limits=options.limits,
        progress=progress,
    )
    _check_answers(spec, [result.error for result in done.results])
    cases, left_out = [], list(found.left_out)
    for case, result in zip(found.cases, done.results, strict=True):
        if result.outputs is None:
            left_out.append(f"{case.id}: the reference has no answer: {result.error}"[:_MOST_REASON])
        else:
            cases.append(replace(case, outputs=result.outputs))
    optimization = "disabled" if done.runtime == "onnxruntime" else "none"
    reference = Reference(spec, done.runtime, done.runtime_version, optimization)
    return _Found(tuple(cases), tuple(left_out)), reference


def _check_answers(spec: str, errors: Sequence[str | None]) -> None:
    """Raise UsageError when a reference answers nothing at all; each reason once, however many cases have it."""
    if any(error is None for error in errors):
        return
    reasons = list(dict.fromkeys(str(error)[:_MOST_REASON].removesuffix(".") for error in errors))
    more = f"; and {len(reasons) - _MOST_REASONS} more reasons" if len(reasons) > _MOST_REASONS else ""
    raise UsageError(
        f"--reference {spec} answers none of the {len(errors)} golden cases: "
        f"{'; '.join(reasons[:_MOST_REASONS])}{more}.",
        hint=references.needs(spec),
    )


def _feed_back(options: CaseOptions, inputs: Sequence[Argument], outputs: Sequence[Argument]) -> FeedBack | None:
    """Check the loop that the user named, and turn it round: the record links inputs to outputs."""
    if not options.feed_back:
        return None
    if options.steps < 1:
        raise UsageError(f"A loop of {options.steps} steps does not run.", hint="Give at least one step.")
    given, taken = {a.name: a for a in outputs}, {a.name: a for a in inputs}
    _check_names("output", options.feed_back, list(given))
    _check_names("input", options.feed_back.values(), list(taken))
    links: dict[str, str] = {}
    for source, destination in options.feed_back.items():
        if given[source].dtype is None or given[source].type != taken[destination].type:
            raise UsageError(
                f"Output '{source}' ({given[source].type}) cannot be fed back as input '{destination}' "
                f"({taken[destination].type}).",
                hint="Both must be tensors of one dtype.",
            )
        if not _shapes_meet(given[source].shape, taken[destination].shape):
            raise UsageError(
                f"Output '{source}' {samples.wanted(given[source])} cannot be fed back as input '{destination}' "
                f"{samples.wanted(taken[destination])}: their shapes do not fit.",
                hint="Name an output that has the shape of the input; 'edgekit inspect' shows both.",
            )
        if destination in links:
            raise UsageError(f"Input '{destination}' is given two outputs: '{links[destination]}' and '{source}'.")
        links[destination] = source
    return FeedBack(options.steps, links)


def _shapes_meet(one: Shape | None, other: Shape | None) -> bool:
    """Whether two declared shapes can be the same: of one rank, and equal wherever both are fixed."""
    if one is None or other is None:
        return True
    if len(one) != len(other):
        return False
    both_fixed = ((a, b) for a, b in zip(one, other, strict=True) if isinstance(a, int) and isinstance(b, int))
    return all(a == b for a, b in both_fixed)


def _check_readable(model: LoadedModel, outputs: Sequence[Argument]) -> None:
    """Raise ModelError when there is no output that could be compared: parity would have nothing to say."""
    if not any(output.dtype == "string" or output.dtype in NUMPY_DTYPES for output in outputs):
        listed = ", ".join(f"'{output.name}' {output.type}" for output in outputs)
        raise ModelError(
            f"{model.path}: none of its outputs is a tensor of a type that can be compared: {listed}.",
            hint="Export the model with plain tensors as outputs.",
        )


def _check_names(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"The model has no {what} '{name}'{f'; did you mean {nearest[0]!r}?' if nearest else ''}.",
                hint=f"Its {what}s: {', '.join(known) or 'none'}.",
            )
