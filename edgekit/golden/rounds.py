"""Try cases and grade them, in few rounds: the preferred ones, then others where these are weak, then many seeds."""

import itertools
from collections.abc import Sequence

from edgekit.golden import selection
from edgekit.golden.grade import Judge
from edgekit.golden.inputs import Recipe
from edgekit.golden.probe import Plan
from edgekit.golden.selection import Slot, Tried
from edgekit.golden.trial import Bench, Outputs
from edgekit.records.tensors import same_bits

_MOST_ALTERNATIVES = 24
_SEEDS = 48
# A model this small runs in microseconds, and the smallest are those that return nothing but labels.
_MOST_SEEDS_OF_SMALL = 192
_SMALL_BYTES = 256 << 10
# What a case gives is held six times while it is graded: as it is, and from each experiment. A model of a few bytes can
# give outputs of many megabytes, so cases that are large are tried a few at a time, and fewer of them.
_MOST_BYTES_TRIED = 48 << 20
_MOST_OTHERS = 8
# The seeds of cases beside those of the rounds, for faults that these do not see.
_FAR = 5000
_FEW = 3
_MANY_BYTES = 64 << 10

Pairs = Sequence[tuple[Slot, Recipe]]


def rounds(bench: Bench, plan: Plan, judge: Judge, seed: int) -> list[Tried]:
    """Try the first recipe of every slot; the other recipes of slots without a strong case; and, while few cases are
    strong, more seeds: a classifier that returns labels (rawi_ensemble.int8, logreg_iris) shows an error of 1 % only
    on inputs where two classes nearly tie: one in twenty random texts, one in a hundred random flowers.
    """
    slots = selection.slots(plan, seed)
    tried = _try(bench, plan, judge, [(slot, slot.recipes[0]) for slot in slots], ())
    if _all_alike(tried):
        return tried  # no input changes an answer, and no seed will
    settled = [one.slot for one in tried if one.strong and one.graded is not None and one.graded.calm]
    others = [(slot, recipe) for slot in slots if slot not in settled for recipe in slot.recipes[1:]]
    others.sort(key=lambda pair: pair[0].recipes.index(pair[1]))
    tried += _try(bench, plan, judge, others[: min(_MOST_ALTERNATIVES, _at_once(bench))], tried)
    return tried + _more_seeds(bench, plan, judge, seed, tried)


def _all_alike(tried: Sequence[Tried]) -> bool:
    """Whether some cases of the base setup gave the same bits each time, whatever was fed in.

    Only where they gave many: a few labels may well be the same by chance, and differ for other seeds.
    """
    ran = [one.outputs for one in tried if one.graded is not None and one.slot.setup == tried[0].slot.setup]
    if len(ran) < _FEW or selection.bytes_of(ran[0]) < _MANY_BYTES:
        return False
    return all(len(other) == len(ran[0]) and all(map(same_bits, other, ran[0])) for other in ran[1:])


def _more_seeds(bench: Bench, plan: Plan, judge: Judge, seed: int, tried: Sequence[Tried]) -> list[Tried]:
    """Return strong cases of many seeds, in batches that end as soon as enough cases are strong."""
    most = _MOST_SEEDS_OF_SMALL if bench.model_bytes <= _SMALL_BYTES else _SEEDS
    most = min(most, 4 * _at_once(bench))
    batch = min(_SEEDS, _at_once(bench))
    more = [(slot, slot.recipes[0]) for slot in selection.more_slots(plan, seed, most)] if plan.inputs else []
    found: list[Tried] = []
    for start in range(0, len(more), batch):
        if len(_strong_slots([*tried, *found])) >= selection.ENOUGH:
            break
        found += [one for one in _try(bench, plan, judge, more[start : start + batch], tried) if one.strong]
    return found[: 2 * selection.ENOUGH]


def others(bench: Bench, plan: Plan, seed: int) -> Pairs:
    """Return recipes that ``rounds`` does not try, for the first setup, as many as may be held at a time."""
    recipes = selection.spare_recipes(plan, seed + _FAR) if plan.inputs else ()
    return [(Slot(plan.setups[0], (one,), False), one) for one in recipes[: _at_once(bench)]]


def _strong_slots(tried: Sequence[Tried]) -> set[int]:
    return {id(one.slot) for one in tried if one.strong}


def _at_once(bench: Bench) -> int:
    """How many cases may be held at a time."""
    return max(1, _MOST_BYTES_TRIED // max(1, bench.case_bytes))


def _try(bench: Bench, plan: Plan, judge: Judge, pairs: Pairs, earlier: Sequence[Tried]) -> list[Tried]:
    """Run and grade cases. A case is compared with the others of its setup to see whether inputs make a difference."""
    found: list[Tried] = []
    while rest := pairs[len(found) :]:
        found += _try_some(bench, plan, judge, rest[: _at_once(bench)], [*earlier, *found])
    return found


def _try_some(bench: Bench, plan: Plan, judge: Judge, pairs: Pairs, earlier: Sequence[Tried]) -> list[Tried]:
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
