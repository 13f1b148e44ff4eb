"""Try cases and grade them, in few rounds: the preferred ones, then others where these are weak, then many seeds."""

from collections.abc import Sequence

from edgekit.golden import selection
from edgekit.golden.grade import Judge, grade
from edgekit.golden.inputs import Recipe
from edgekit.golden.probe import Plan
from edgekit.golden.selection import Slot, Tried
from edgekit.golden.trial import Bench, Outputs

_MOST_ALTERNATIVES = 24
_MOST_SEEDS = 48
_MOST_BYTES_TRIED = 64 << 20

Pairs = Sequence[tuple[Slot, Recipe]]


def rounds(bench: Bench, plan: Plan, judge: Judge, seed: int) -> list[Tried]:
    """Try the first recipe of every slot; the other recipes of slots without a strong case; and, while few cases are
    strong, more seeds: a classifier that returns labels (rawi_ensemble.int8, logreg_iris) shows an error of 1 % only
    on inputs where two classes nearly tie, which is about one random input in twenty.
    """
    slots = selection.slots(plan, seed)
    tried = _try(bench, plan, judge, [(slot, slot.recipes[0]) for slot in slots], ())
    settled = [one.slot for one in tried if one.strong and one.graded is not None and one.graded.calm]
    others = [(slot, recipe) for slot in slots if slot not in settled for recipe in slot.recipes[1:]]
    others.sort(key=lambda pair: pair[0].recipes.index(pair[1]))
    tried += _try(bench, plan, judge, others[:_MOST_ALTERNATIVES], tried)
    if len(_strong_slots(tried)) < selection.ENOUGH and plan.inputs:
        one_case = max(one.bytes for one in tried)
        count = min(_MOST_SEEDS, max(1, _MOST_BYTES_TRIED // max(1, one_case)))
        more = [(slot, slot.recipes[0]) for slot in selection.more_slots(plan, seed, count)]
        found = [one for one in _try(bench, plan, judge, more, tried) if one.strong]
        tried += found[: selection.MOST_CASES]
    return tried


def _strong_slots(tried: Sequence[Tried]) -> set[int]:
    return {id(one.slot) for one in tried if one.strong}


def _try(bench: Bench, plan: Plan, judge: Judge, pairs: Pairs, earlier: Sequence[Tried]) -> list[Tried]:
    """Run and grade cases. A case is compared with the others of its setup to see whether inputs make a difference."""
    if not pairs:
        return []
    trials = bench.tried([plan.feed(recipe, slot.setup) for slot, recipe in pairs], plan.exact)
    peers: list[tuple[Tried, Outputs]] = [(one, one.outputs) for one in earlier if one.graded is not None]
    ran = [Tried(slot, recipe, one.feed, one.outputs or ()) for (slot, recipe), one in zip(pairs, trials, strict=True)]
    peers += [(other, other.outputs) for other, one in zip(ran, trials, strict=True) if one.outputs is not None]
    found = []
    for this, one in zip(ran, trials, strict=True):
        if one.outputs is None:
            found.append(Tried(this.slot, this.recipe, this.feed, error=one.error or "no reason given"))
            continue
        others = [
            outputs
            for other, outputs in peers
            if other.slot.setup == this.slot.setup and not selection.same_feed(other.feed, this.feed)
        ]
        graded = grade(one.outputs, one_ulp=one.one_ulp, disturbed=one.disturbed, others=others, judge=judge)
        found.append(Tried(this.slot, this.recipe, this.feed, one.outputs, graded))
    return found
