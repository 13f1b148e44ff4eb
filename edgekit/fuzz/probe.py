"""Put patterns to the test: fresh cases that have one, which must fail, and some that lack one condition of it.

And right cases with other numbers, where they alone keep a pattern to some sizes: of a list of one, many answers are
right by accident.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from edgekit.fuzz import cluster, generators, learn, shrink
from edgekit.fuzz.author import Generator
from edgekit.fuzz.cluster import Cluster
from edgekit.fuzz.draw import Draw
from edgekit.fuzz.generators import Drawn
from edgekit.fuzz.trials import Trial
from edgekit.known import patterns
from edgekit.known.features import features

_TRIES = 1500
_WITH, _WITHOUT = 8, 2
_MOST_DOUBTED = 40


def cases(found: Sequence[Cluster], among: Mapping[str, Generator], turn: int, most: int) -> list[Drawn]:
    """Return fresh cases that would prove patterns too wide or too narrow: others each ``turn``, ``most`` in all."""
    distinct = [each for each in found if each.distinct]
    if not distinct:
        return []
    each = max(4, most // len(distinct))
    return [drawn for one in distinct for drawn in _of_cluster(one, among, turn, each)]


def doubted(found: Sequence[Cluster], tried: Sequence[Trial], among: Mapping[str, Generator]) -> list[Drawn]:
    """Return the right cases of ``tried`` that have all of a pattern but its sizes, with other numbers."""
    known = {shrink.key(trial.drawn) for trial in tried}
    facts = [(trial.drawn, *cluster.subject(trial.drawn.case)) for trial in tried
             if trial.status == "right" and trial.drawn.case is not None]  # fmt: skip
    made: dict[Any, Drawn] = {}
    for one in found:
        named = [condition for condition in one.conditions if not learn.is_place(condition)]
        if not one.distinct or len(named) == len(one.conditions):
            continue
        for drawn, lead, operators, _ in facts:
            if operators == one.operators and patterns.holds(named, features(lead)):
                for seed in range(drawn.counts.get("seed", 0)):
                    other = generators.redraw(among[drawn.generator], {**drawn.choices, "seed": seed})
                    made.setdefault(shrink.key(other), other)
    return [drawn for key, drawn in made.items() if key not in known][:_MOST_DOUBTED]


def _of_cluster(found: Cluster, among: Mapping[str, Generator], turn: int, most: int) -> Iterator[Drawn]:
    generator = among[found.failures[0].drawn.generator]
    rng = np.random.default_rng([turn, zlib.crc32(found.text.encode())])
    # How many are wanted that have all conditions (""), or all but one.
    wanted = {"": _WITH} | {str(condition): _WITHOUT for condition in found.conditions}
    taken = 0
    for _ in range(_TRIES):
        if taken == most or not any(wanted.values()):
            return
        drawn = generators.redraw(generator, Draw(rng))
        if drawn.case is None:
            continue
        lead, operators, _ = cluster.subject(drawn.case)
        if operators != found.operators:
            continue
        known = features(lead)
        lacking = [str(condition) for condition in found.conditions if not condition.holds(known)]
        key = lacking[0] if lacking else ""
        if len(lacking) < 2 and wanted[key]:
            wanted[key] -= 1
            taken += 1
            yield drawn
