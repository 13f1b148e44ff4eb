"""Which cases to try, and which of them to keep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgekit.desktop import Feed
from edgekit.golden.dims import shape_of
from edgekit.golden.grade import Graded
from edgekit.golden.inputs import FLOATS, Kind, Recipe, looks_like_picture, recipe
from edgekit.golden.probe import Plan, Setup
from edgekit.records.tensors import Value, same_bits

MOST_CASES = 12
# Cases travel in every bundle and are replayed on phones.
MOST_BYTES = 6 << 20

_NEVER_ENOUGH = 4


@dataclass(frozen=True)
class Slot:
    """A place in the set of cases: a way to call the model, and recipes for it, the preferred one first.

    ``needed``: the slot is filled even when nothing in it is strong, so that every set has all the sizes.
    """

    setup: Setup
    recipes: tuple[Recipe, ...]
    needed: bool


@dataclass(frozen=True, eq=False)
class Candidate:
    """A case that was run and graded."""

    slot: Slot
    recipe: Recipe
    feed: Feed
    outputs: tuple[Value, ...]
    graded: Graded

    @property
    def strong(self) -> bool:
        return self.graded.grade.strong

    @property
    def bytes(self) -> int:
        return bytes_of((*self.feed.inputs, *self.outputs))


def bytes_of(values: Iterable[Value]) -> int:
    """Return the bytes that values take in a file of tensors (strings: about that)."""
    return sum(0 if value.array is None else int(value.array.nbytes) for value in values)


def slots(plan: Plan, seed: int) -> list[Slot]:
    """List the slots, the most important first: every setup with random values, then the base with special ones.

    The alternatives of a slot have seeds of their own, so that no two slots can end with the same case.
    """
    base = plan.setups[0]
    kinds = _kinds(plan)
    wanted: list[tuple[Setup, Kind, bool]] = [(setup, "normal", True) for setup in plan.setups]
    wanted += [(base, kind, False) for kind in kinds]
    wanted += [(setup, "smooth", False) for setup in plan.setups[1:]]
    return [
        Slot(setup, _alternatives(kind, seed + 10 * i, _has_pictures(plan, setup)), needed)
        for i, (setup, kind, needed) in enumerate(wanted)
    ]


def _has_pictures(plan: Plan, setup: Setup) -> bool:
    return any(looks_like_picture(shape_of(argument, setup.sizes)) for argument in plan.inputs)


def _kinds(plan: Plan) -> list[Kind]:
    drawn = [a for a in plan.inputs if a.name not in plan.looped and not _has_settings(plan, a.name)]
    kinds: list[Kind] = ["uniform", "smooth", "zeros", "ones", "large", "tiny"]
    if any(argument.dtype in FLOATS for argument in drawn) or plan.negative:
        kinds.insert(4, "negative")
    return kinds


def _has_settings(plan: Plan, name: str) -> bool:
    return name in plan.domains and bool(plan.domains[name].settings)


def _alternatives(kind: Kind, seed: int, pictures: bool) -> tuple[Recipe, ...]:
    """Return recipes for a slot of ``kind``: near to it first, then whatever made some real model answer."""
    strokes = (recipe("strokes", seed + 1), recipe("strokes", seed + 2, scale=2.0)) if pictures else ()
    first = recipe(kind, seed)
    if kind == "normal":
        return (first, *strokes, recipe("smooth", seed + 3), recipe("normal", seed + 4, scale=10.0),
                recipe("normal", seed + 5, scale=0.1))  # fmt: skip
    if kind in ("large", "tiny"):
        nearer = (0.1, 0.01) if kind == "large" else (10.0, 100.0)
        return (first, *(recipe(kind, seed, scale=first.scale * factor) for factor in nearer))
    if kind == "negative":
        return (first, recipe(kind, seed, scale=0.1), recipe(kind, seed, scale=10.0))
    if kind in ("zeros", "ones"):
        return (first,)
    return (first, *strokes, recipe("uniform", seed + 4, scale=10.0))


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Drop candidates whose inputs are those of an earlier one, bit by bit."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if not any(same_feed(candidate.feed, other.feed) for other in kept):
            kept.append(candidate)
    return kept


def same_feed(a: Feed, b: Feed) -> bool:
    """Whether two feeds of one model hold the same inputs, bit by bit."""
    pairs = zip(a.inputs, b.inputs, strict=True)
    return all(same_bits(left, right) for left, right in pairs)


def best(candidates: Sequence[Candidate]) -> Candidate | None:
    """Choose for one slot: the first strong and calm candidate, else a strong one, else one that is not chaotic."""
    usable = [candidate for candidate in candidates if not candidate.graded.chaotic]
    return min(usable, key=lambda candidate: (not candidate.strong, not candidate.graded.calm), default=None)


def keep(chosen: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Split the best candidate of each slot into those to keep and those to leave out for proving little.

    Weak ones stay where they are the only case of their sizes, or where fewer than four are strong. The order of the
    slots decides what the limits of number and bytes cut off.
    """
    enough = sum(candidate.strong for candidate in chosen) >= _NEVER_ENOUGH
    kept: list[Candidate] = []
    weak: list[Candidate] = []
    used = 0
    for candidate in chosen:
        if not candidate.strong and enough and not candidate.slot.needed:
            weak.append(candidate)
        elif len(kept) < MOST_CASES and (used + candidate.bytes <= MOST_BYTES or not kept):
            kept.append(candidate)
            used += candidate.bytes
    return kept, weak
