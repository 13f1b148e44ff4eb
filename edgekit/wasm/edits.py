"""Two edits of a module: note which functions run, and cut those that need not.

Both leave every index, type, import and export as it was, so the JavaScript beside the module works unchanged.
Functions are known by code index: their place among the functions that the module defines.
"""

from collections.abc import Collection, Mapping

from edgekit.wasm import sections
from edgekit.wasm.binary import EditError, signed_bytes, unsigned_bytes
from edgekit.wasm.code import Body, with_bodies
from edgekit.wasm.layout import PAGE_BYTES, data_ranges, memory
from edgekit.wasm.module import Module
from edgekit.wasm.types import Limits

_I32_CONST, _I64_CONST, _I32_STORE8, _I32_STORE, _UNREACHABLE, _END = b"\x41", b"\x42", b"\x3a", b"\x36", b"\0", b"\x0b"
_COMPARE_EXCHANGE, _DROP = b"\xfe\x48", b"\x1a"  # i32.atomic.rmw.cmpxchg
_WORD_ALIGNMENT = b"\2"  # the exponent


def record(module: Module, base: int) -> Module:
    """Return the module with a first act for each defined function: store 1 in the byte at ``base`` + its code index.

    ``layout.flag_base`` finds a ``base`` in the unused low end of the main stack. The bytes lie in memory 0, so that
    the functions which other threads enter are noted too. Raises EditError when they are not in memory 0 or meet data.
    """
    limits, count = memory(module), len(sections.functions(module))
    _require_inside(limits, base, count)
    if any(one.start < base + count and base < one.stop for one in data_ranges(module)):
        raise EditError(f"The addresses {base} to {base + count} are not free of data.")

    def noted(k: int, body: Body) -> bytes:
        start = body.locals_bytes()
        flag = _address(limits, k) + _constant(1) + _I32_STORE8 + b"\0" + unsigned_bytes(base)
        return body.data[:start] + flag + body.data[start:]

    return with_bodies(module, noted)


def cut(module: Module, keep: Collection[int], miss_address: int, ids: Mapping[int, int] | None = None) -> Module:
    """Return the module with a stub for each defined function whose code index is not in ``keep``.

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
    stubs = {k: _stub(limits, miss_address, _number(k, ids)) for k in range(count) if k not in kept}
    return with_bodies(module, lambda k, body: stubs.get(k))


def _number(k: int, ids: Mapping[int, int] | None) -> int:
    number = k + 1 if ids is None else ids.get(k, 0)
    if not 0 < number < 1 << 32:
        raise EditError(f"The function with code index {k} has no number from 1 to 2**32-1 to report a miss with.")
    return number


def _stub(limits: Limits, miss_address: int, number: int) -> bytes:
    """Return the body of a stub. Where threads share the memory, the first miss stays: what follows is its doing."""
    if limits.shared:
        act = _constant(0) + _constant(number) + _COMPARE_EXCHANGE + _WORD_ALIGNMENT + b"\0" + _DROP
    else:
        act = _constant(number) + _I32_STORE + _WORD_ALIGNMENT + b"\0"
    return b"\0" + _address(limits, miss_address) + act + _UNREACHABLE + _END


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
