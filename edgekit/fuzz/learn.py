"""Learn patterns from cases: conditions that failures share and no pass has.

Rules are learned one after another, each from the simplest failure that none yet covers: of the conditions that hold of
it, the one that parts failures from passes best is added until no pass is left, and those that turn out not to be
needed are dropped. (J. R. Quinlan, "Learning logical definitions from relations", 1990, has the measure.)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgekit.known.features import Scalar
from edgekit.known.patterns import Condition, Test
from edgekit.records.tensors import NUMPY_DTYPES

_FACTORS = (2, 3, 4, 8)
_MOST_THRESHOLDS = 6
_MOST_CONDITIONS = 9
_MOST_RULES = 8
# An exact number says less than a factor or a threshold, and a size of one axis less than a named one.
_EXACT = 0.85
_PLACE = 0.6
_LEAST_FAILURES, _MOST_PLACES = 4, 1
# Conditions that so few failures have are made to fit them.
_FAILURES_A_CONDITION = 3
_FEW_BITS = 32
_FAILURES_AN_ACCIDENT, _MOST_ACCIDENTS = 50, 2
# A rule beside others has so many failures that they lack, or it is one of them again, made to fit a case.
_LEAST_OWN = 2


@dataclass(frozen=True, eq=False)
class Row:
    """A case: what can be said of its node, whether it failed, and how large it is."""

    features: Mapping[str, Scalar]
    failed: bool
    cost: int = 0


@dataclass(frozen=True, eq=False)
class Rule:
    """``covered``: places of the failures that the conditions hold of. No pass has them all."""

    conditions: tuple[Condition, ...]
    covered: tuple[int, ...]


def rules(rows: Sequence[Row]) -> tuple[Rule, ...]:
    """Return rules that together cover the failures, the simplest failures first.

    A failure that no condition parts from the passes is in none.
    """
    failures = {place for place, row in enumerate(rows) if row.failed}
    # A right answer of what else is alike is an accident of its numbers: -x where x is 0, say.
    shown = {_key(rows[place]) for place in failures}
    passes = {place for place, row in enumerate(rows) if not (row.failed or _key(row) in shown or _says_little(row))}
    left, found = sorted(failures, key=lambda place: (rows[place].cost, place)), list[Rule]()
    while left and len(found) < _MOST_RULES:
        seed = left.pop(0)
        rule = _rule(rows, seed, failures, passes)
        if rule is not None:
            found.append(rule)
            left = [place for place in left if place not in rule.covered]
    return tuple(found)


def is_telling(rule: Rule) -> bool:
    """Whether a rule says what a cause is: it has enough failures, and is more than a list of their sizes."""
    places = sum(is_place(condition) for condition in rule.conditions)
    least = max(_LEAST_FAILURES, _FAILURES_A_CONDITION * len(rule.conditions))
    return len(rule.covered) >= least and places <= _MOST_PLACES


def is_place(condition: Condition) -> bool:
    """Whether a condition is on how large something is, or of which dtype, rather than on what is done."""
    return any(
        word in condition.feature for word in (" axis ", " rank", "elements", "dtype", "constant", "first", "last")
    )


def needed(found: Sequence[Rule]) -> list[Rule]:
    """Return the rules that say what the others do not, the widest of those that say the same."""
    kept = list(found)
    for rule in sorted(found, key=lambda each: (len(each.covered), -len(each.conditions))):
        others = {place for other in kept if other is not rule for place in other.covered}
        own = set(rule.covered) - others
        if len(own) < min(_LEAST_OWN, len(rule.covered)):
            kept.remove(rule)
    return kept


def _key(row: Row) -> tuple[tuple[str, Scalar], ...]:
    return tuple(sorted(row.features.items()))


def _says_little(row: Row) -> bool:
    """Whether an answer has so few bits that memory which nobody wrote may hold them: some bools, a few bytes of 0."""
    elements, dtype = row.features.get("output elements"), row.features.get("output dtype")
    if not isinstance(elements, int) or not isinstance(dtype, str):
        return False
    bits = 1 if dtype == "bool" else 8 * np.dtype(NUMPY_DTYPES[dtype]).itemsize if dtype in NUMPY_DTYPES else 64
    return elements * bits <= _FEW_BITS


def _rule(rows: Sequence[Row], seed: int, failures: set[int], passes: set[int]) -> Rule | None:
    holding = {
        condition: {place for place, row in enumerate(rows) if condition.holds(row.features)}
        for condition in _conditions(rows, seed)
    }
    fits, excluded, chosen = set(failures), set(passes), list[Condition]()
    while len(excluded) > _accidents(fits) and len(chosen) < _MOST_CONDITIONS:
        best = max(holding, key=lambda each: (_gain(each, holding[each], fits, excluded), each.feature), default=None)
        if best is None or not excluded - holding[best]:
            return None
        chosen.append(best)
        fits, excluded = fits & holding[best], excluded & holding[best]
    if len(excluded) > _accidents(fits):
        return None
    for condition in list(chosen):
        others = [each for each in chosen if each != condition]
        wide = failures.intersection(*(holding[each] for each in others))
        if others and len(passes.intersection(*(holding[each] for each in others))) <= _accidents(wide):
            chosen = others
    covered = failures.intersection(*(holding[each] for each in chosen)) if chosen else failures
    return Rule(tuple(sorted(chosen, key=str)), tuple(sorted(covered)))


def _accidents(failures: set[int]) -> int:
    """Return how many right answers say nothing against so many failures.

    Where memory is read that another case wrote, that may have been the same case, with the right answer.
    """
    return min(_MOST_ACCIDENTS, len(failures) // _FAILURES_AN_ACCIDENT)


def _gain(condition: Condition, holding: set[int], failures: set[int], passes: set[int]) -> float:
    kept, wrong = len(failures & holding), len(passes & holding)
    if not kept or wrong == len(passes):
        return -1.0
    before = math.log2(len(failures) / (len(failures) + len(passes)))
    gain = kept * (math.log2(kept / (kept + wrong)) - before)
    exact = condition.test == "is" and not isinstance(condition.value, (bool, str))
    return gain * (_EXACT if exact else 1.0) * (_PLACE if is_place(condition) else 1.0)


def _conditions(rows: Sequence[Row], seed: int) -> list[Condition]:
    """Return the conditions that hold of a failure, and may not hold of others."""
    found: list[Condition] = []
    for feature, value in rows[seed].features.items():
        others = {row.features[feature] for row in rows if feature in row.features}
        if len(others) < 2 and all(feature in row.features for row in rows):
            continue
        found.append(Condition(feature, "is", value))
        if isinstance(value, (bool, str)):
            continue
        numbers = sorted(other for other in others if not isinstance(other, (bool, str)))
        below = [other for other in numbers if other < value][-_MOST_THRESHOLDS:]
        above = [other for other in numbers if other > value][:_MOST_THRESHOLDS]
        found += [Condition(feature, "above", other) for other in below]
        found += [Condition(feature, "below", other) for other in above]
        if isinstance(value, int):
            found += [Condition(feature, _factor(value, factor), factor) for factor in _FACTORS if value]
    return found


def _factor(value: int, factor: int) -> Test:
    return "no multiple of" if value % factor else "multiple of"
