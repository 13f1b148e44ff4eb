"""Which cases to try, and which of them to keep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgekit.desktop.run import Feed
from edgekit.golden.dims import shape_of
from edgekit.golden.grade import Graded
from edgekit.golden.inputs import FLOATS, Kind, Recipe, looks_like_picture, recipe
from edgekit.golden.probe import Plan, Setup
from edgekit.records.tensors import Value, same_bits

MOST_CASES = 12
# Cases travel in every bundle and are replayed on phones. A model whose inputs are large still gets three cases.
MOST_BYTES = 6 << 20
_FEWEST = 3
_MOST_BYTES_OF_FEWEST = 48 << 20

# With fewer strong cases than this, weak ones stay and more seeds are tried.
ENOUGH = 4


@dataclass(frozen=True)
class Slot:
    """A place in the set of cases: a way to call the model, and recipes for it, the preferred one first.

    ``needed``: the slot is filled even when nothing in it is strong, so that every set has all the sizes.
    """

    setup: Setup
    recipes: tuple[Recipe, ...]
    needed: bool


@dataclass(frozen=True, eq=False)
class Tried:
    """What became of one recipe of a slot. ``outputs`` and ``graded`` None: the runtime refused it, with ``error``."""

    slot: Slot
    recipe: Recipe
    feed: Feed
    outputs: tuple[Value, ...] = ()
    graded: Graded | None = None
    error: str | None = None

    @property
    def strong(self) -> bool:
        return self.graded is not None and self.graded.grade.strong

    @property
    def usable(self) -> bool:
        return self.graded is not None and not self.graded.chaotic

    @property
    def bytes(self) -> int:
        return bytes_of((*self.feed.inputs, *self.outputs))

    def why_not(self) -> str:
        """Say why this is not among the cases."""
        if self.graded is None:
            return f"the desktop runtime refuses it: {self.error}"
        return "; ".join(reason.split(":")[0] if self.graded.chaotic else reason for reason in self.graded.grade.weak)


def bytes_of(values: Iterable[Value]) -> int:
    """Return the bytes that values take in a file of tensors (strings: about that)."""
    return sum(0 if value.array is None else int(value.array.nbytes) for value in values)


def slots(plan: Plan, seed: int) -> list[Slot]:
    """List the slots, the most important first: every setup with random values, then the base with special ones.

    The alternatives of a slot have seeds of their own, so that no two slots can end with the same case.
    """
    base = plan.setups[0]
    wanted: list[tuple[Setup, Kind, bool]] = [(setup, "normal", True) for setup in plan.setups]
    wanted += [(base, kind, False) for kind in _kinds(plan)]
    wanted += [(setup, "smooth", False) for setup in plan.setups[1:]]
    return [
        Slot(setup, _alternatives(kind, seed + 10 * i, _has_pictures(plan, setup)), needed)
        for i, (setup, kind, needed) in enumerate(wanted)
    ]


def more_slots(plan: Plan, seed: int, count: int) -> list[Slot]:
    """List slots of many seeds and scales, in turn over all setups: labels move only where two classes nearly tie."""
    scales = (1.0, 10.0, 0.1, 100.0)
    setups = [*([plan.wide] if plan.wide else []), *reversed(plan.setups)]
    found = []
    for i in range(count):
        turn, place = divmod(i, len(setups))
        found.append(Slot(setups[place], (recipe("normal", seed + 1000 + i, scale=scales[turn % 4]),), False))
    return found


def spare_recipes(plan: Plan, seed: int) -> tuple[Recipe, ...]:
    """Return recipes unlike one another, of seeds that no slot has."""
    kinds: list[Kind] = ["normal", "uniform", "smooth"]
    if _has_pictures(plan, plan.setups[0]):
        kinds.append("strokes")
    scaled = tuple(recipe("normal", seed + 10 + k, scale=scale) for k, scale in enumerate((10.0, 0.1)))
    return (*(recipe(kind, seed + k) for k, kind in enumerate(kinds)), *scaled)


def _has_pictures(plan: Plan, setup: Setup) -> bool:
    return any(looks_like_picture(shape_of(argument, setup.sizes)) for argument in plan.inputs)


def _kinds(plan: Plan) -> list[Kind]:
    kinds: list[Kind] = ["uniform", "smooth", "zeros", "ones", "large", "tiny"]
    if any(argument.dtype in FLOATS or _is_signed(plan, argument.name) for argument in plan.inputs):
        kinds.insert(4, "negative")
    return kinds


def _is_signed(plan: Plan, name: str) -> bool:
    return name in plan.domains and plan.domains[name].signed


def _alternatives(kind: Kind, seed: int, pictures: bool) -> tuple[Recipe, ...]:
    """Return recipes for a slot of ``kind``: near to it first, then whatever made some real model answer."""
    strokes = (recipe("strokes", seed + 1), recipe("strokes", seed + 2, scale=2.0)) if pictures else ()
    first = recipe(kind, seed)
    if kind == "normal":
        scaled = (recipe("normal", seed + 4, scale=10.0), recipe("normal", seed + 5, scale=0.1))
        return (first, *strokes, recipe("smooth", seed + 3), *scaled)
    if kind in ("large", "tiny"):
        nearer = (0.1, 0.01) if kind == "large" else (10.0, 100.0)
        return (first, *(recipe(kind, seed, scale=first.scale * factor) for factor in nearer))
    if kind == "negative":
        return (first, recipe(kind, seed, scale=0.1), recipe(kind, seed, scale=10.0))
    if kind in ("zeros", "ones"):
        return (first,)
    return (first, *strokes, recipe("uniform", seed + 4, scale=10.0))


def distinct(tried: Iterable[Tried]) -> list[Tried]:
    """Drop what has the inputs of an earlier one, bit by bit."""
    kept: list[Tried] = []
    for one in tried:
        if not any(same_feed(one.feed, other.feed) for other in kept):
            kept.append(one)
    return kept


def same_feed(a: Feed, b: Feed) -> bool:
    """Whether two feeds of one model hold the same inputs, bit by bit."""
    if len(a.inputs) != len(b.inputs):
        return False
    return all(same_bits(left, right) for left, right in zip(a.inputs, b.inputs, strict=True))


def best(tried: Sequence[Tried]) -> Tried | None:
    """Choose for one slot: what is strong and calm, else strong, else not chaotic; the earlier where they are equal."""
    usable = [one for one in tried if one.usable]
    return min(usable, key=lambda one: (not one.strong, one.graded is None or not one.graded.calm), default=None)


def calmest(tried: Sequence[Tried]) -> list[Tried]:
    """Return the least chaotic few, for a model of which every case is: they prove little, and their grades say so."""
    graded = [one for one in tried if one.graded is not None]
    graded.sort(key=lambda one: one.graded.grade.ulp_shift or 0.0 if one.graded else 0.0)
    return graded[:ENOUGH]


def keep(chosen: Sequence[Tried], used_bytes: int = 0, used_cases: int = 0) -> list[Tried]:
    """Return those to keep of the best of each slot, beside what the user's samples use already.

    Weak ones stay where they are the only case of their sizes, or where fewer than four are strong. The order of the
    slots decides what the limits of number and bytes cut off.
    """
    enough = sum(one.strong for one in chosen) >= ENOUGH
    kept: list[Tried] = []
    total = used_bytes
    for one in chosen:
        if enough and not one.strong and not one.slot.needed:
            continue
        most = MOST_BYTES if len(kept) >= _FEWEST else _MOST_BYTES_OF_FEWEST
        if len(kept) + used_cases < MOST_CASES and (total + one.bytes <= most or not kept):
            kept.append(one)
            total += one.bytes
    return kept
