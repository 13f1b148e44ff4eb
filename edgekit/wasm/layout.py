"""Where a module that a linker made (wasm-ld, emscripten) keeps its data and its stack in memory 0.

Only what the module itself states is believed. What cannot be told raises EditError.
"""

from dataclasses import dataclass

from edgekit.wasm import code, sections
from edgekit.wasm.binary import EditError
from edgekit.wasm.instructions import Instruction
from edgekit.wasm.module import Module
from edgekit.wasm.sections import Kind
from edgekit.wasm.types import Limits

PAGE_BYTES = 65536
_CONSTANTS = ("i32.const", "i64.const")
# Between recorded flags and the data below them: wasm-ld puts a word there, with which threads agree on who fills the
# memory. And at the bottom of memory, where null pointers lead.
_GUARD_BYTES = 4096


@dataclass(frozen=True)
class MemoryLayout:
    """``data``: the address ranges that are filled at the start, in order. ``stack`` grows down from its stop."""

    data: tuple[range, ...]
    stack: range


def memory(module: Module) -> Limits:
    """Return the limits of memory 0, imported or the module's own. Raises EditError when it has none."""
    found = [entry.type for entry in sections.imported(module, Kind.MEMORY)] or sections.memories(module)
    if not found or not isinstance(found[0], Limits):
        raise EditError("The module has no memory.")
    return found[0]


def data_ranges(module: Module) -> tuple[range, ...]:
    """Return the addresses in memory 0 that data segments and the start function's fills cover, in order.

    The threaded builds keep their data in passive segments, which the start function copies to constant addresses once,
    and it fills the rest (the zeros) with memory.fill. Raises EditError when a place is not constant.
    """
    copied, filled = _start_writes(module)
    ranges = [*_segment_ranges(module, copied).values(), *filled]
    return tuple(sorted(ranges, key=lambda one: (one.start, one.stop)))


def segment_ranges(module: Module) -> dict[int, range]:
    """Return the addresses in memory 0 that each data segment with data fills, by its number.

    Raises EditError when a place is not constant.
    """
    return _segment_ranges(module, _start_writes(module)[0])


def _segment_ranges(module: Module, copied: dict[int, range]) -> dict[int, range]:
    ranges = dict(copied)
    for number, segment in enumerate(sections.segments(module)):
        if segment.where is not None and segment.memory == 0:
            ranges[number] = _range(_constant(segment.where, f"Data segment {number}"), len(segment.data))
        elif segment.where is None and segment.data and number not in copied:
            raise EditError(f"Where the passive data segment {number} goes cannot be told from the start function.")
    return ranges


def layout(module: Module) -> MemoryLayout:
    """Return where data and the main stack lie. Raises EditError when the stack's low end cannot be proven.

    Global 0 holds the stack pointer. A stack below all data reaches down to address 0. One above the data reaches down
    to the data's end, which is known when every segment is passive and the memory shared: then the start function fills
    the zeros too. Otherwise an exported global ``__stack_low`` or ``__data_end`` must say it.
    """
    limits, top, data = memory(module), _stack_top(module), data_ranges(module)
    if any(one.start < top < one.stop for one in data):
        raise EditError("The stack pointer starts inside the data.")
    below = [one for one in data if one.stop <= top and one]
    above = [one for one in data if one.start >= top and one]
    stated = _stated_low(module)
    if stated is not None:
        low = stated
    elif above and not below:
        low = 0
    elif below and not above and limits.shared and _all_passive(module):
        low = max(one.stop for one in below)
    else:
        raise EditError("The low end of the stack cannot be told: zeroed data may lie between it and the known data.")
    if not max((one.stop for one in below), default=0) <= low < top <= limits.least * PAGE_BYTES:
        raise EditError(f"The stack would lie in addresses {low} to {top}, which data or the memory's end contradict.")
    return MemoryLayout(data, range(low, top))


def flag_base(module: Module, *, flags: int | None = None, depth_bytes: int = 3 << 20) -> int:
    """Return an address for ``flags`` bytes (None: one a defined function): ``depth_bytes`` under the main stack's top.

    Only a stack deeper than that would meet the flags. Raises EditError when the flags cannot be proven to lie inside
    the stack and away from data.
    """
    stack = layout(module).stack
    flags = len(sections.functions(module)) if flags is None else flags
    base = stack.stop - depth_bytes
    if base < stack.start + _GUARD_BYTES:
        raise EditError(f"The stack has {len(stack)} bytes, too few to keep flags {depth_bytes} bytes under its top.")
    if flags * 2 > depth_bytes:
        raise EditError(f"{flags} flags would leave the stack less than half of {depth_bytes} bytes.")
    return base


def _stack_top(module: Module) -> int:
    own = sections.globals_(module)
    if sections.imported(module, Kind.GLOBAL) or not own or not own[0].type.mutable:
        raise EditError("Global 0 is not a mutable global of the module's own, so it is not the stack pointer.")
    return _constant(own[0].init, "The stack pointer")


def _stated_low(module: Module) -> int | None:
    own, first = sections.globals_(module), len(sections.imported(module, Kind.GLOBAL))
    stated = {entry.name: entry.index - first for entry in sections.exports(module) if entry.kind is Kind.GLOBAL}
    for name in ("__stack_low", "__data_end"):
        index = stated.get(name, -1)
        if 0 <= index < len(own) and not own[index].type.mutable:
            return _constant(own[index].init, name)
    return None


def _all_passive(module: Module) -> bool:
    return all(segment.where is None for segment in sections.segments(module))


def _start_writes(module: Module) -> tuple[dict[int, range], list[range]]:
    """Return where in memory 0 the start function copies segments to, by their number, and what else it fills."""
    copied: dict[int, range] = {}
    filled: list[range] = []
    index = sections.start(module)
    own, bodies = None if index is None else index - code.imported_functions(module), code.bodies(module)
    if own is None or not 0 <= own < len(bodies):
        return copied, filled
    before: list[Instruction] = []
    for one in code.instructions(bodies[own]):
        constants = [b.immediates[0] for b in before[-3:] if b.name in _CONSTANTS]
        if one.name in ("memory.init", "memory.fill") and one.immediates[-1] == 0:
            if len(constants) < 3:
                raise EditError("The start function fills memory at an address that is not constant.")
            target, _, size = constants
            if one.name == "memory.init":
                copied[one.immediates[0]] = _range(target, size)
            else:
                filled.append(_range(target, size))
        before = [*before[-2:], one]
    return copied, filled


def _constant(init: tuple[Instruction, ...], what: str) -> int:
    if len(init) != 1 or init[0].name not in _CONSTANTS:
        raise EditError(f"{what} does not begin at a constant address.")
    bits = int(init[0].name[1:3])
    return int(init[0].immediates[0]) % (1 << bits)


def _range(start: int, size: int) -> range:
    start, size = start % (1 << 64), size % (1 << 64)
    return range(start, start + size)
