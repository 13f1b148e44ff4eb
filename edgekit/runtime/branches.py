"""Branches of the functions that every session enters: which of them no session at all took, and so can be cut.

Most of what is left of a trimmed runtime is the code that any session runs, and most of that code is for what the
session does not do: other file formats, other options, reports and errors. A flag a branch, over all that a profile is
measured with, tells what is never run.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from edgekit.wasm import code
from edgekit.wasm.branches import Branch, branches, outermost
from edgekit.wasm.code import Body
from edgekit.wasm.edits import Branches
from edgekit.wasm.module import Module

# A stub takes 13 bytes, and being rare in its place it compresses badly. The wasm build's start-up code, brotli: 506 kB
# with branches of 14 bytes and more, 509 with 24, 515 with 40; and each is a line in the profile.
SHORTEST = 24
_WAITS, _ATOMIC = ("memory.atomic.", "cmpxchg"), b"\xfe"


def listed(module: Module) -> Branches:
    """Return the branches of every function that are worth cutting, by code index. Raises WasmError."""
    found = {k: branches(body, SHORTEST) for k, body in enumerate(code.bodies(module))}
    return {k: some for k, some in found.items() if some}


def flagged(some: Branches) -> Iterator[tuple[int, Branch]]:
    """Yield code index and branch in the order of their flags, as ``edits.record`` lays them."""
    return ((k, branch) for k in sorted(some) for branch in some[k])


def never_entered(
    module: Module, some: Branches, entered: Collection[int], functions: Collection[int], threads: Collection[int]
) -> Branches:
    """Return the outermost branches of ``functions`` that were not entered, and that threads do not enter by chance.

    ``entered``: numbers in the order of ``some``. ``threads``: functions that several threads enter, or may: what they
    enter of those depends on the moment, so they are left whole. So are functions that wait for another thread, wake it
    or try again after it, and branches that call one.
    """
    bodies, first = code.bodies(module), code.imported_functions(module)
    waiting = {k for k, body in enumerate(bodies) if _waits(body)}
    dead: dict[int, list[Branch]] = {}
    for number, (k, branch) in enumerate(flagged(some)):
        if number not in entered and k in functions and k not in threads and k not in waiting:
            dead.setdefault(k, []).append(branch)
    called = {k + first for k in waiting}
    found = {k: tuple(_without_calls(bodies[k], outermost(branches_), called)) for k, branches_ in dead.items()}
    return {k: branches_ for k, branches_ in found.items() if branches_}


def _waits(body: Body) -> bool:
    # Decoding takes long, and few bodies have the first byte of such an instruction at all.
    return _ATOMIC in body.data and any(word in one.name for one in code.instructions(body) for word in _WAITS)


def _without_calls(body: Body, some: Iterable[Branch], called: Collection[int]) -> Iterator[Branch]:
    """Yield the branches that call none of the functions ``called``, which have indices of the module here."""
    calls = [
        one.offset - body.offset
        for one in code.instructions(body)
        if one.name in ("call", "return_call") and one.immediates[0] in called
    ]
    for branch in some:
        if not any(branch.start <= place < branch.stop for place in calls):
            yield branch


def left(some: Branches, entered: Collection[int], whole: Collection[int]) -> Branches:
    """Return ``some`` without those that were entered (numbers in their order) and all of the functions ``whole``."""
    found: dict[int, list[Branch]] = {}
    for number, (k, branch) in enumerate(flagged(some)):
        if number not in entered and k not in whole:
            found.setdefault(k, []).append(branch)
    return found


def to_json(some: Branches) -> list[list[int]]:
    """Return branches as small numbers: how far the code index is from the one before, then gaps and lengths."""
    rows, before = [], 0
    for k in sorted(some):
        row, at = [k - before], 0
        for branch in some[k]:
            row += [branch.start - at, branch.stop - branch.start]
            at = branch.stop
        rows.append(row)
        before = k
    return rows


def from_json(rows: Sequence[Sequence[int]]) -> Mapping[int, tuple[Branch, ...]]:
    """Undo ``to_json``."""
    found, k = {}, 0
    for step, *numbers in rows:
        k, at, row = k + step, 0, []
        for gap, length in zip(numbers[::2], numbers[1::2], strict=True):
            row.append(Branch(at + gap, at + gap + length))
            at += gap + length
        found[k] = tuple(row)
    return found
