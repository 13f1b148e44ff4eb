"""Two edits of a module: note which functions and branches run, and cut those that need not.

Both leave every index, type, import and export as it was, so the JavaScript beside the module works unchanged.
Functions are known by code index: their place among the functions that the module defines.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

from edgekit.wasm import sections
from edgekit.wasm.binary import EditError, signed_bytes, unsigned_bytes
from edgekit.wasm.branches import Branch
from edgekit.wasm.code import Body, with_bodies
from edgekit.wasm.layout import PAGE_BYTES, data_ranges, memory
from edgekit.wasm.module import Module
from edgekit.wasm.types import Limits

_I32_CONST, _I64_CONST, _I32_STORE8, _I32_STORE, _UNREACHABLE, _END = b"\x41", b"\x42", b"\x3a", b"\x36", b"\0", b"\x0b"
_COMPARE_EXCHANGE, _DROP = b"\xfe\x48", b"\x1a"  # i32.atomic.rmw.cmpxchg
_WORD_ALIGNMENT = b"\2"  # the exponent

# By code index, in order of where they start.
Branches = Mapping[int, Sequence[Branch]]
NONE: Branches = MappingProxyType({})


def record(module: Module, base: int, branches: Branches = NONE) -> Module:
    """Return the module with a first act for each defined function: store 1 in the byte at ``base`` + its code index.

    The same for each of ``branches``: their flags follow those of the functions, in order of code index and start.
    ``layout.flag_base`` finds a ``base`` in the unused low end of the main stack. The bytes lie in memory 0, so that
    the functions which other threads enter are noted too. Raises EditError when they are not in memory 0 or meet data.
    """
    limits, functions = memory(module), len(sections.functions(module))
    ordered = sorted(branches)
    first = dict(zip(ordered, accumulate((len(branches[k]) for k in ordered), initial=functions), strict=False))
    count = functions + sum(map(len, branches.values()))
    _require_inside(limits, base, count)
    if any(one.start < base + count and base < one.stop for one in data_ranges(module)):
        raise EditError(f"The addresses {base} to {base + count} are not free of data.")

    def flag(number: int) -> bytes:
        return _address(limits, number) + _constant(1) + _I32_STORE8 + b"\0" + unsigned_bytes(base)

    def noted(k: int, body: Body) -> bytes:
        places = [body.locals_bytes(), *(branch.start for branch in branches.get(k, ()))]
        numbers = [k, *(first[k] + place for place in range(len(places) - 1))] if len(places) > 1 else [k]
        parts, at = [], 0
        for place, number in zip(places, numbers, strict=True):
            parts += [body.data[at:place], flag(number)]
            at = place
        return b"".join((*parts, body.data[at:]))

    return with_bodies(module, noted)


def cut(
    module: Module,
    keep: Collection[int],
    miss_address: int,
    ids: Mapping[int, int] | None = None,
    dead: Branches = NONE,
) -> Module:
    """Return the module with a stub for each defined function whose code index is not in ``keep``.

    A stub stands also in the place of each of the ``dead`` branches of functions in ``keep``; none lies in another.
    A stub stores a number in the u32 at ``miss_address`` of memory 0, where the page can see it (in a shared memory
    only where there is none yet), then traps. The number is the code index + 1, or what ``ids`` gives for the code
    index; equal numbers make equal stubs, which Binaryen can merge. Raises EditError for an address that is not a
    multiple of 4 below all data, a code index that no function has, and a number that is missing, 0 or over 32 bits.
    """
    limits, count = memory(module), len(sections.functions(module))
    _check_miss_address(module, limits, miss_address)
    kept = frozenset(keep)
    wrong = [k for k in kept if not 0 <= k < count]
    if wrong:
        raise EditError(f"There is no function with code index {wrong[0]} to keep; the module defines {count}.")

    def edited(k: int, body: Body) -> bytes | None:
        if k in kept and not dead.get(k):
            return None
        stub = _stub(limits, miss_address, _number(k, ids))
        return _without(body, dead[k], stub) if k in kept else b"\0" + stub + _END

    return with_bodies(module, edited)


def _without(body: Body, dead: Sequence[Branch], stub: bytes) -> bytes:
    """Return a body with ``stub`` in the place of each dead branch."""
    parts, at = [], 0
    for branch in dead:
        if not at <= branch.start < branch.stop < len(body.data):
            raise EditError(f"The branches {branch} and one before it overlap, or lie outside of a body.")
        parts += [body.data[at : branch.start], stub]
        at = branch.stop
    return b"".join((*parts, body.data[at:]))


def _number(k: int, ids: Mapping[int, int] | None) -> int:
    number = k + 1 if ids is None else ids.get(k, 0)
    if not 0 < number < 1 << 32:
        raise EditError(f"The function with code index {k} has no number from 1 to 2**32-1 to report a miss with.")
    return number


def _stub(limits: Limits, miss_address: int, number: int) -> bytes:
    """Return what a stub does. Where threads share the memory, the first miss stays: what follows is its doing."""
    if limits.shared:
        act = _constant(0) + _constant(number) + _COMPARE_EXCHANGE + _WORD_ALIGNMENT + b"\0" + _DROP
    else:
        act = _constant(number) + _I32_STORE + _WORD_ALIGNMENT + b"\0"
    return _address(limits, miss_address) + act + _UNREACHABLE


def _address(limits: Limits, address: int) -> bytes:
    return _I64_CONST + signed_bytes(address) if limits.wide else _constant(address)


def _constant(value: int) -> bytes:
    """Return i32.const of a u32; the format writes it signed."""
    return _I32_CONST + signed_bytes(value - (value >> 31 << 32))


def _check_miss_address(module: Module, limits: Limits, address: int) -> None:
    if address % 4:
        raise EditError(f"The address {address} is not a multiple of 4.")
    _require_inside(limits, address, 4)
    lowest = min((one.start for one in data_ranges(module) if one), default=None)
    if lowest is not None and address + 4 > lowest:
        raise EditError(f"The address {address} does not lie below all data, which begins at {lowest}.")


def _require_inside(limits: Limits, start: int, size: int) -> None:
    if start < 0 or start + size > limits.least * PAGE_BYTES:
        raise EditError(f"The addresses {start} to {start + size} are not all inside the memory.")
