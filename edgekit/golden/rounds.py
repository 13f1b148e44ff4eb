"""Try cases and grade them, in few rounds: the preferred ones, then others where these are weak, then many seeds."""

import itertools
from collections.abc import Sequence

from edgekit.golden import selection
from edgekit.golden.grade import Judge
from edgekit.golden.inputs import Recipe
from edgekit.golden.probe import Plan
from edgekit.golden.selection import Slot, Tried
from edgekit.golden.trial import Bench, Outputs

_MOST_ALTERNATIVES = 24
_SEEDS = 48
# A model this small runs in microseconds, and the smallest are those that return nothing but labels.
_MOST_SEEDS_OF_SMALL = 192
_SMALL_BYTES = 256 << 10
_MOST_BYTES_TRIED = 64 << 20
_MOST_OTHERS = 8

Pairs = Sequence[tuple[Slot, Recipe]]


def rounds(bench: Bench, plan: Plan, judge: Judge, seed: int) -> list[Tried]:
    """Try the first recipe of every slot; the other recipes of slots without a strong case; and, while few cases are
    strong, more seeds: a classifier that returns labels (rawi_ensemble.int8, logreg_iris) shows an error of 1 % only
    on inputs where two classes nearly tie: one in twenty random texts, one in a hundred random flowers.
    """
    slots = selection.slots(plan, seed)
    tried = _try(bench, plan, judge, [(slot, slot.recipes[0]) for slot in slots], ())
    settled = [one.slot for one in tried if one.strong and one.graded is not None and one.graded.calm]
    others = [(slot, recipe) for slot in slots if slot not in settled for recipe in slot.recipes[1:]]
    others.sort(key=lambda pair: pair[0].recipes.index(pair[1]))
    tried += _try(bench, plan, judge, others[:_MOST_ALTERNATIVES], tried)
    return tried + _more_seeds(bench, plan, judge, seed, tried)


def _more_seeds(bench: Bench, plan: Plan, judge: Judge, seed: int, tried: Sequence[Tried]) -> list[Tried]:
    """Return strong cases of many seeds, in batches that end as soon as enough cases are strong."""
    one_case = max((one.bytes for one in tried), default=0)
    most = _MOST_SEEDS_OF_SMALL if bench.model_bytes <= _SMALL_BYTES else _SEEDS
    batch = min(_SEEDS, max(1, _MOST_BYTES_TRIED // max(1, one_case)))
    more = [(slot, slot.recipes[0]) for slot in selection.more_slots(plan, seed, most)] if plan.inputs else []
    found: list[Tried] = []
    for start in range(0, len(more), batch):
        if len(_strong_slots([*tried, *found])) >= selection.ENOUGH:
            break
        found += [one for one in _try(bench, plan, judge, more[start : start + batch], tried) if one.strong]
    return found[: 2 * selection.ENOUGH]


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
        alike = (pair for pair in peers if pair[0].slot.setup == this.slot.setup)
        different = (outputs for other, outputs in alike if not selection.same_feed(other.feed, this.feed))
        others = list(itertools.islice(different, _MOST_OTHERS))
        graded = one.graded(others, judge)
        found.append(Tried(this.slot, this.recipe, this.feed, one.outputs, graded))
    return found
