"""Make the golden cases of a model: inputs that it takes, reference outputs, and what each of them can prove."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edgekit import files
from edgekit.child import ChildLimits
from edgekit.errors import ModelError, UsageError
from edgekit.facts import Argument, Facts
from edgekit.golden import probe, selection, trial
from edgekit.golden.grade import Judge, grade
from edgekit.golden.inputs import Recipe
from edgekit.golden.probe import Plan
from edgekit.golden.selection import Candidate, Slot
from edgekit.golden.trial import Bench, Outputs, Trial
from edgekit.model import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Reference, Tolerance
from edgekit.targets.load import Target

_MOST_ALTERNATIVES = 24
_REASON_LENGTH = 160

# The kind of a case that the desktop runtime refused, and its reason.
Refusals = list[tuple[str, str]]


@dataclass(frozen=True)
class CaseOptions:
    """What the user says about golden cases.

    ``dims``: sizes of symbolic dimensions; unnamed ones are called ``input[axis]``. ``feed_back``: output name to input
    name; the loop has ``steps`` runs. ``output_tolerance``: by output name, over the target's by dtype.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    feed_back: Mapping[str, str] = field(default_factory=dict)
    steps: int = 4
    seed: int = 0
    output_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    limits: ChildLimits = ChildLimits()


def make(
    model: LoadedModel, facts: Facts, target: Target, options: CaseOptions, *, progress: Progress = silent
) -> CaseSet:
    """Make about 6 to 12 golden cases, at most 6 MB of tensors, each graded; the same ones whenever it is called.

    Raises UsageError for a dimension, an input or an output that the model does not have; ModelError, with the
    runtime's reason, when not one case remains; LimitError when the runtime takes too much time or memory.
    """
    inputs = tuple(argument for argument in facts.inputs if not argument.type.startswith("optional("))
    feed_back = _feed_back(options, inputs, facts.outputs)
    _check_names("output", options.output_tolerance, [output.name for output in facts.outputs])
    judge = Judge(target.tolerance, options.output_tolerance)
    with trial.bench(model, seed=options.seed, limits=options.limits, progress=progress) as bench:
        plan = probe.explore(model, inputs, options.dims, feed_back, bench.run)
        candidates, refusals = _rounds(bench, plan, judge, options.seed)
        version = bench.runtime_version
    chosen, chaotic = _choose(candidates)
    kept, weak = selection.keep(chosen)
    left_out = (*plan.refused, *_left_out(refusals, chaotic, weak))
    if not kept:
        raise ModelError(
            f"{model.path}: no golden case remains. {' '.join(left_out)}", hint="Give real inputs with --sample."
        )
    return CaseSet(
        model_sha256=files.sha256_file(model.path),
        reference=Reference("desktop onnxruntime", "onnxruntime", version, "disabled"),
        tolerance=dict(target.tolerance),
        output_tolerance=dict(options.output_tolerance),
        cases=tuple(_case(number, candidate, plan) for number, candidate in enumerate(kept, start=1)),
        left_out=left_out,
    )


def _left_out(refusals: Refusals, chaotic: Sequence[Candidate], weak: Sequence[Candidate]) -> list[str]:
    """Say in few words what was tried and is not in the set: one sentence for each reason."""
    groups: dict[str, list[str]] = {}
    for kind, error in refusals:
        groups.setdefault(f"the desktop runtime refuses it: {error[:_REASON_LENGTH]}", []).append(kind)
    for candidate in chaotic:
        groups.setdefault(candidate.graded.grade.weak[-1].split(":")[0], []).append(candidate.recipe.kind)
    for candidate in weak:
        reason = f"others prove more ({'; '.join(candidate.graded.grade.weak)})"
        groups.setdefault(reason, []).append(candidate.recipe.kind)
    return [f"{', '.join(dict.fromkeys(kinds))}: {reason}" for reason, kinds in groups.items()]


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
        if destination in links:
            raise UsageError(f"Input '{destination}' is given two outputs: '{links[destination]}' and '{source}'.")
        links[destination] = source
    return FeedBack(options.steps, links)


def _check_names(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"The model has no {what} '{name}'{f'; did you mean {nearest[0]!r}?' if nearest else ''}.",
                hint=f"Its {what}s: {', '.join(known) or 'none'}.",
            )


def _rounds(bench: Bench, plan: Plan, judge: Judge, seed: int) -> tuple[list[Candidate], Refusals]:
    """Try the first recipe of every slot; then, for slots without a strong case, the others, as many as are bounded."""
    slots = selection.slots(plan, seed)
    refusals: Refusals = []
    candidates = _try(bench, plan, judge, [(slot, slot.recipes[0]) for slot in slots], [], refusals)
    done = [candidate.slot for candidate in candidates if candidate.strong]
    again = [(slot, recipe) for slot in slots if slot not in done for recipe in slot.recipes[1:]]
    again.sort(key=lambda pair: pair[0].recipes.index(pair[1]))
    if again:
        candidates += _try(bench, plan, judge, again[:_MOST_ALTERNATIVES], candidates, refusals)
    return candidates, refusals


def _try(
    bench: Bench,
    plan: Plan,
    judge: Judge,
    pairs: Sequence[tuple[Slot, Recipe]],
    earlier: Sequence[Candidate],
    refusals: Refusals,
) -> list[Candidate]:
    """Run and grade cases. What the desktop runtime refuses is added to ``refusals`` with its reason."""
    trials = bench.tried([plan.feed(recipe, slot.setup) for slot, recipe in pairs])
    good: list[tuple[Slot, Recipe, Trial, Outputs]] = []
    for (slot, recipe), one in zip(pairs, trials, strict=True):
        if one.outputs is None:
            refusals.append((recipe.kind, one.error or "no reason given"))
        else:
            good.append((slot, recipe, one, one.outputs))
    peers = [(slot.setup, one.feed, outputs) for slot, _, one, outputs in good]
    peers += [(candidate.slot.setup, candidate.feed, candidate.outputs) for candidate in earlier]
    found = []
    for slot, recipe, one, outputs in good:
        others = [
            other for setup, feed, other in peers if setup == slot.setup and not selection.same_feed(feed, one.feed)
        ]
        graded = grade(outputs, one_ulp=one.one_ulp, disturbed=one.disturbed, others=others, judge=judge)
        found.append(Candidate(slot, recipe, one.feed, outputs, graded))
    return found


def _case(number: int, candidate: Candidate, plan: Plan) -> GoldenCase:
    sizes = plan.describe(candidate.slot.setup)
    return GoldenCase(
        id=f"{number:02d}-{candidate.recipe.kind}",
        origin=f"generated: {candidate.recipe.describe()}{f'; {sizes}' if sizes else ''}",
        inputs=candidate.feed.inputs,
        outputs=candidate.outputs,
        grade=candidate.graded.grade,
        feed_back=candidate.feed.feed_back,
    )


def _choose(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Choose the best candidate of each slot; return those that are left out for being chaotic beside them."""
    by_slot: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        by_slot.setdefault(id(candidate.slot), []).append(candidate)
    best = [selection.best(group) for group in by_slot.values()]
    chaotic = [candidate for candidate in candidates if candidate.graded.chaotic]
    return selection.distinct(candidate for candidate in best if candidate is not None), chaotic
