"""Branches: stretches of a function's body that control reaches only sometimes, and that can be cut on their own.

A branch begins where a condition decides whether control goes on (after ``if``, ``else``, ``catch``, ``br_if``, and
after the ``end`` of a block, which it may have left another way), and ends where the innermost block around that place
ends. Whatever stands there may be replaced by code that traps: after ``unreachable`` the validation of WebAssembly
takes any stack, up to the end of the block, and nothing outside of a block refers to what is inside.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from edgekit.wasm.code import Body, instructions

_OPENERS = frozenset({"block", "loop", "if", "try", "try_table"})
_PARTS = frozenset({"else", "catch", "catch_all"})
_CLOSERS = frozenset({"end", "delegate"})
_DECIDES = frozenset({"if", "br_if", *_PARTS, *_CLOSERS})


@dataclass(frozen=True, slots=True, order=True)
class Branch:
    """``start`` and ``stop`` are places in ``Body.data``: of its first instruction, and of what ends its block."""

    start: int
    stop: int


def branches(body: Body, shortest: int = 1) -> tuple[Branch, ...]:
    """Return the branches of ``shortest`` bytes and more, by where they start. They nest. Raises WasmError."""
    found: list[Branch] = []
    open_: list[list[int]] = [[]]  # the starts in each block that has not ended yet
    decided = False
    for one in instructions(body):
        place = one.offset - body.offset
        if decided:
            open_[-1].append(place)
        decided = one.name in _DECIDES
        if one.name in _OPENERS:
            open_.append([])
        elif one.name in _PARTS or one.name in _CLOSERS:
            found += [Branch(start, place) for start in open_.pop() if place - start >= shortest]
            if one.name in _PARTS:
                open_.append([])
    return tuple(sorted(found))


def outermost(some: Iterable[Branch]) -> tuple[Branch, ...]:
    """Return those, by where they start, that lie in no other of them."""
    found: list[Branch] = []
    for one in sorted(some, key=lambda branch: (branch.start, -branch.stop)):
        if not found or one.start >= found[-1].stop:
            found.append(one)
    return tuple(found)
