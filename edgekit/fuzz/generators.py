"""Every generator by name, and the case that a number of a seed stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from edgekit.conformance import schemas
from edgekit.conformance.cases import Case
from edgekit.errors import UsageError, did_you_mean
from edgekit.files import sha256_bytes
from edgekit.fuzz import (
    chains,
    families_conv,
    families_dense,
    families_elementwise,
    families_moving,
    families_resize,
    templates,
)
from edgekit.fuzz.author import Generator
from edgekit.fuzz.draw import Draw

_MODULES = (families_conv, families_dense, families_elementwise, families_moving, families_resize, chains)
# A model or an input above this is not drawn: one case would take the time of hundreds.
_MOST_BYTES = 1 << 20
# A draw that makes no valid model is drawn again.
_ATTEMPTS = 4


@dataclass(frozen=True, eq=False)
class Drawn:
    """A case and what it was drawn with: the same ``choices`` of the same ``generator`` give it again.

    ``counts``: how many options each choice had. ``case`` None: the draw made no valid model.
    """

    generator: str
    choices: Mapping[str, int]
    counts: Mapping[str, int]
    case: Case | None


@cache
def families() -> Mapping[str, Generator]:
    """Return the generators with a family of their own, and of chains, by name."""
    return {generator.name: generator for module in _MODULES for generator in module.GENERATORS}


@cache
def every() -> Mapping[str, Generator]:
    """Return a generator of each operator of the conformance list, and of each chain, by name."""
    base = {name: templates.generator(name) for name in templates.operators() if name not in families()}
    return dict(sorted({**base, **families()}.items()))


def chosen(names: Sequence[str]) -> Mapping[str, Generator]:
    """Return the generators called ``names``, and the chains with one of them in their name; none named: all.

    Raises UsageError for a name without a generator.
    """
    known = every()
    for name in names:
        if name not in known and name in schemas.operators():
            raise UsageError(f"No generator draws the operator '{name}'.{did_you_mean(name, known)}")
        if name not in known:
            raise UsageError(f"There is no operator '{name}'.{did_you_mean(name, known)}")
    if not names:
        return known
    return {key: one for key, one in known.items() if key in names or set(names) & set(key.split("+"))}


def stamp(among: Mapping[str, Generator]) -> str:
    """Return a text that is equal for generators that draw the same cases, as far as their names and weights tell."""
    text = "\n".join(f"{name} {generator.weight} {generator.stamp}" for name, generator in among.items())
    return sha256_bytes(text.encode())[:16]


def draw(seed: int, number: int, among: Mapping[str, Generator]) -> Drawn:
    """Return case ``number`` of ``seed``: always the same of the same generators."""
    rng = np.random.default_rng([seed, number])
    weights = np.array([generator.weight for generator in among.values()], dtype=float)
    generator = list(among.values())[int(rng.choice(len(weights), p=weights / weights.sum()))]
    for _ in range(_ATTEMPTS):
        found = _drawn(generator, Draw(rng))
        if found.case is not None:
            break
    return found


def redraw(generator: Generator, choices: Mapping[str, int] | Draw) -> Drawn:
    """Return the case of these choices (one that is missing is the simplest), or of another draw."""
    return _drawn(generator, choices if isinstance(choices, Draw) else Draw(None, choices))


def _drawn(generator: Generator, source: Draw) -> Drawn:
    case = generator.make(source)
    if case is not None:
        size = len(case.model) + sum(value.array.nbytes for value in case.inputs if value.array is not None)
        case = None if size > _MOST_BYTES else replace(case, name=generator.name)
    return Drawn(generator.name, dict(source.taken), dict(source.counts), case)
