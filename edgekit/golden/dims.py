"""Sizes for symbolic and unknown dimensions.

The same symbolic name has the same size everywhere; a dimension without a name is an axis of its own. Nothing tells
which sizes a graph takes, so this module only proposes, in an order that finds a good size early, and desktop
onnxruntime decides (see ``edgekit.golden.probe``).
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from edgekit.errors import UsageError
from edgekit.facts.shapes import unknown_dimension
from edgekit.facts.survey import Argument
from edgekit.golden.inputs import FLOATS

Role = Literal["batch", "picture", "signal", "length"]
Sizes = Mapping[str, int]

# Pictures begin at 96: PP-OCRv4 det sees nothing in 32 × 32. Signals begin at 1024: silero VAD refuses the short ones.
LADDERS: dict[Role, tuple[int, ...]] = {
    "batch": (1, 3, 2, 4, 8, 16),
    "picture": (96, 64, 32, 48, 128, 160, 192, 224, 256, 320, 384, 512, 640, 16, 8),
    "signal": (1024, 512, 4096, 256, 16000, 128, 64, 32, 16, 8, 3, 1),
    "length": (16, 8, 32, 64, 128, 256, 512, 1024, 4096, 3, 1, 2),
}
_SMALL = range(2, 33)
_HALVES = (16, 32, 64, 8)
_MOST_AMBIGUOUS = 3
_MOST_ELEMENTS = 1 << 22
_NEVER_MORE_ELEMENTS = 1 << 28

_BATCH = re.compile(r"batch|^(n|b|bs|bsz)$", re.IGNORECASE)
_LENGTH = re.compile(r"seq|len|time|frame|sample|width|height|token|^(t|l|h|w)$", re.IGNORECASE)


@dataclass(frozen=True)
class Axis:
    """A free dimension. ``key``: its symbolic name, or ``input[axis]`` where it has none.

    ``ambiguous``: nothing says whether it is the batch or a length (the axis of an RNN's state, for one).
    """

    key: str
    role: Role
    ambiguous: bool = False


def key_of(argument: Argument, axis: int) -> str:
    """Name a free dimension: the symbolic name, or ``input[axis]``."""
    name = argument.shape[axis] if argument.shape is not None else None
    return name if isinstance(name, str) and name else f"{argument.name}[{axis}]"


def free_axes(inputs: Sequence[Argument], frozen: Sizes) -> tuple[Axis, ...]:
    """Return the axes that need a size, in order of appearance, without those in ``frozen``.

    Raises UsageError when ``frozen`` names a dimension that the model does not have, or gives a size below 1.
    """
    places: dict[str, list[tuple[Argument, int]]] = {}
    for argument in inputs:
        for axis, dimension in enumerate(argument.shape or ()):
            if not isinstance(dimension, int):
                places.setdefault(key_of(argument, axis), []).append((argument, axis))
    for key, size in frozen.items():
        _check_frozen(key, size, tuple(places))
    leading = {key for key, where in places.items() if any(axis == 0 and len(a.shape or ()) > 1 for a, axis in where)}
    return tuple(_axis(key, where, leading) for key, where in places.items() if key not in frozen)


def _check_frozen(key: str, size: int, known: tuple[str, ...]) -> None:
    if key not in known:
        raise unknown_dimension(key, known)
    if size < 1:
        raise UsageError(f"The size {size} of dimension '{key}' is below 1.")


def _axis(key: str, where: Sequence[tuple[Argument, int]], leading: set[str]) -> Axis:
    argument, axis = where[0]
    shape = argument.shape or ()
    if _BATCH.search(key) and not key.endswith("]"):
        return Axis(key, "batch")
    signal = argument.dtype in FLOATS and len(shape) <= 2 and axis == len(shape) - 1
    length: Role = "signal" if signal else "length"
    if len(shape) == 4 and axis > 0:
        length = "picture"
    if _LENGTH.search(key) and not key.endswith("]"):
        return Axis(key, length)
    if key in leading:
        return Axis(key, "batch")
    before = shape[:axis]
    if axis > 0 and len(shape) == 3 and all(isinstance(n, int) for n in before) and any(n != 1 for n in before):
        return Axis(key, "batch", ambiguous=True)
    return Axis(key, length)


def shape_of(argument: Argument, sizes: Sizes) -> tuple[int, ...]:
    """Return the shape of an input under ``sizes``; an input of unknown rank is taken as a scalar."""
    dimensions = argument.shape or ()
    return tuple(n if isinstance(n, int) else sizes[key_of(argument, axis)] for axis, n in enumerate(dimensions))


def fits(inputs: Sequence[Argument], sizes: Sizes) -> bool:
    """Whether inputs of ``sizes`` are small enough for a golden case: 4 Mi elements, or 4 times their fixed part.

    Nothing is over 256 Mi elements: a model can fix its sizes at terabytes.
    """
    for argument in inputs:
        fixed = math.prod(n for n in argument.shape or () if isinstance(n, int))
        if math.prod(shape_of(argument, sizes)) > min(max(_MOST_ELEMENTS, 4 * fixed), _NEVER_MORE_ELEMENTS):
            return False
    return True


def first_sizes(axes: Sequence[Axis], known_sizes: Sequence[int]) -> Iterator[dict[str, int]]:
    """Propose sizes until one is accepted: every length at the same rung of its ladder, the batch at 1.

    Ambiguous axes are tried as the batch and as a length. ``known_sizes`` (the sizes of the model's own weights) are
    the last resort for lengths: a model with an unnamed feature axis takes only the size of its first weight.
    """
    ambiguous = [axis for axis in axes if axis.ambiguous][:_MOST_AMBIGUOUS]
    patterns = [dict(zip(ambiguous, roles, strict=True)) for roles in _roles(len(ambiguous))]
    seen: set[tuple[int, ...]] = set()
    for batch in (1, 3):
        for rung, pattern in itertools.product(range(max(map(len, LADDERS.values()))), patterns):
            sizes = {axis.key: _size(axis, pattern.get(axis, axis.role), rung, batch) for axis in axes}
            if tuple(sizes.values()) not in seen:
                seen.add(tuple(sizes.values()))
                yield sizes
    for size in known_sizes:
        yield {axis.key: 1 if axis.role == "batch" else size for axis in axes}


def last_sizes(axes: Sequence[Axis]) -> Iterator[dict[str, int]]:
    """Propose what the ladders skip: multiples of odd numbers, and two lengths of which one is twice the other."""
    lengths = [axis for axis in axes if axis.role != "batch"]
    for size in _SMALL if lengths else ():
        yield {axis.key: 1 if axis.role == "batch" else size for axis in axes}
    for size in _HALVES if len(lengths) == 2 else ():
        for first, second in ((2 * size, size), (size, 2 * size)):
            yield {axis.key: 1 for axis in axes} | {lengths[0].key: first, lengths[1].key: second}
    for size in _SMALL if len(lengths) < len(axes) else ():
        yield {axis.key: size if axis.role == "batch" else 16 for axis in axes}


def _roles(count: int) -> Iterator[tuple[Role, ...]]:
    roles: tuple[Role, Role] = ("batch", "length")
    return itertools.product(roles, repeat=count)


def _size(axis: Axis, role: Role, rung: int, batch: int) -> int:
    if role == "batch":
        return batch
    ladder = LADDERS[role]
    return ladder[min(rung, len(ladder) - 1)]


def other_sizes(axes: Sequence[Axis], base: Sizes) -> list[dict[str, int]]:
    """Propose changes of sizes that work: another batch, other lengths, all together first, then axis by axis."""
    batch = [axis for axis in axes if axis.role == "batch"]
    lengths = [axis for axis in axes if axis.role != "batch"]
    multiples = {2 * base[axis.key] for axis in batch} | {3 * base[axis.key] for axis in batch}
    sizes = dict.fromkeys((*LADDERS["batch"], *sorted(multiples)))
    proposed = [{**base, **{axis.key: size for axis in batch}} for size in sizes]
    for step in range(4):
        # Different sizes for height and width, or for two texts, show a transposition that equal sizes hide.
        apart = {axis.key: _neighbours(axis, base[axis.key])[(step + i) % 4] for i, axis in enumerate(lengths)}
        together = {axis.key: _neighbours(axis, base[axis.key])[step] for axis in lengths}
        proposed += [{**base, **apart}, {**base, **together}]
    for axis in batch if len(batch) > 1 else ():
        proposed += [{**base, axis.key: size} for size in LADDERS["batch"][:3]]
    for axis in lengths if len(lengths) > 1 else ():
        proposed += [{**base, axis.key: size} for size in _neighbours(axis, base[axis.key])]
    unique = {tuple(sizes.items()): sizes for sizes in proposed if dict(sizes) != dict(base)}
    return list(unique.values())


def _neighbours(axis: Axis, size: int) -> tuple[int, int, int, int]:
    """Return four sizes near ``size``: a picture keeps to multiples of 32 where it can."""
    if axis.role == "picture" and size % 32 == 0:
        return (size + 32, max(32, size - 32) if size > 32 else 128, 2 * size, size + 64)
    return (2 * size, max(1, size // 2), 3 * size, size + 1)


def choose(axes: Sequence[Axis], base: Sizes, accepted: Sequence[Sizes]) -> list[Sizes]:
    """Choose few of the accepted sizes so that every axis has two, where it can: the base first.

    ``accepted`` is in the order of ``other_sizes``; a change of several axes at once counts for all of them.
    """
    chosen: list[Sizes] = [base]
    still = {axis.key for axis in axes}
    for group in (("batch",), ("picture", "signal", "length"), ("batch", "picture", "signal", "length")):
        keys = {axis.key for axis in axes if axis.role in group}
        for sizes in sorted(accepted, key=lambda s: -sum(s[key] != base[key] for key in keys & still)):
            moved = {key for key in still if sizes[key] != base[key]}
            if moved and moved <= keys:
                chosen.append(sizes)
                still -= moved
    return chosen
