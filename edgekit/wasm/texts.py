"""Texts in the data of a module, which functions refer to them, and how to blank those that nothing reads any more.

A text is a run of printable characters between two NULs, as C++ literals are laid out. Which function reads which is
told from constants: an address in memory 0 stands in the code as a number, or in the data as an aligned word.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import iter_unpack

from edgekit.wasm import sections
from edgekit.wasm.binary import EditError
from edgekit.wasm.code import Body, bodies, instructions
from edgekit.wasm.layout import segment_ranges
from edgekit.wasm.module import Module, SectionId

# Shorter runs are found in tables of numbers too, of which code names one and reaches the others by counting.
_SHORTEST = 8
_TEXT = re.compile(rb"(?<=\0)[\x20-\x7e\t\n\r]{%d,}(?=\0)" % _SHORTEST)
_WORD = 4


@dataclass(frozen=True)
class Text:
    """A text at ``address`` of memory 0; ``functions`` are the code indices of all that refer into it.

    ``shared``: some refer to a place inside it. A linker lays a text that ends as another one does into that one.
    """

    address: int
    data: bytes
    functions: frozenset[int]
    shared: bool


def texts(module: Module) -> tuple[Text, ...]:
    """Return, in order of address, the texts that functions alone refer to, and one of them by its first byte.

    The rest may be reached in ways that the code does not state: through a pointer in the data, or as a row of a table
    of which only the beginning is named. Every instruction is decoded: some seconds for a module of 14 MB. Raises
    WasmError, and EditError when it cannot be told where the data lie.
    """
    ranges = segment_ranges(module)
    segments = sections.segments(module)
    found = sorted(
        (ranges[number].start + match.start(), match.group())
        for number, segment in enumerate(segments)
        if number in ranges
        for match in _TEXT.finditer(segment.data)
    )
    starts = [address for address, _ in found]
    data = [(ranges[number], segment.data) for number, segment in enumerate(segments) if number in ranges]
    pointed = {place for place in (_place(starts, found, word) for word in _words_of_data(data)) if place is not None}
    functions: list[set[int]] = [set() for _ in found]
    named: set[int] = set()
    shared: set[int] = set()
    for k, number, place in _references(module, found):
        functions[place].add(k)
        (named if number == starts[place] else shared).add(place)
    return tuple(
        Text(address, text, frozenset(functions[place]), place in shared)
        for place, (address, text) in enumerate(found)
        if place in named and place not in pointed
    )


def readers(module: Module, some: Sequence[Text]) -> tuple[frozenset[int], ...]:
    """Return for each of ``some``, in order of address, the code indices of the functions that refer to it.

    The module may be an edited one, in which fewer refer to it. Raises WasmError.
    """
    functions: list[set[int]] = [set() for _ in some]
    for k, _, place in _references(module, [(text.address, text.data) for text in some]):
        functions[place].add(k)
    return tuple(map(frozenset, functions))


def _references(module: Module, found: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, int, int]]:
    """Yield the code index of a function, an address in a text that it states, and which of ``found`` that text is."""
    starts = [address for address, _ in found]
    for k, body in enumerate(bodies(module)):
        for number in _numbers(body):
            place = _place(starts, found, number)
            if place is not None:
                yield k, number, place


def blank(module: Module, places: Iterable[tuple[int, int]], fill: bytes = b"\0") -> Module:
    """Return the module with the byte ``fill`` at ``places``: addresses in memory 0, and how many bytes.

    Raises EditError for a place that is not inside one data segment.
    """
    section = module.section(SectionId.DATA)
    ranges = sorted(segment_ranges(module).items(), key=lambda item: item[1].start)
    firsts = [one.start for _, one in ranges]
    segments = sections.segments(module)
    payload = bytearray(b"" if section is None else section.payload)
    for address, size in places:
        at = bisect_right(firsts, address) - 1
        if at < 0 or address + size > ranges[at][1].stop or section is None:
            raise EditError(f"The addresses {address} to {address + size} are not inside one data segment.")
        number, covered = ranges[at]
        start = segments[number].offset - section.offset + address - covered.start
        payload[start : start + size] = fill * size
    return module.with_payloads({SectionId.DATA: bytes(payload)})


def _place(starts: Sequence[int], found: Sequence[tuple[int, bytes]], address: int) -> int | None:
    """Return the number of the text that ``address`` lies in, its closing NUL included."""
    place = bisect_right(starts, address) - 1
    return place if place >= 0 and address <= starts[place] + len(found[place][1]) else None


def _words_of_data(data: Iterable[tuple[range, bytes]]) -> Iterator[int]:
    for addresses, content in data:
        first = -addresses.start % _WORD
        whole = (len(content) - first) // _WORD * _WORD
        if whole > 0:
            for (word,) in iter_unpack("<I", content[first : first + whole]):
                yield word


def _numbers(body: Body) -> Iterator[int]:
    """Yield every number of a body that may be an address: constants, halves of long ones, offsets of accesses."""
    for one in instructions(body):
        if one.name == "i32.const":
            yield one.immediates[0] % (1 << 32)
        elif one.name == "i64.const":
            value = one.immediates[0] % (1 << 64)
            yield value % (1 << 32)
            yield value >> 32
        elif one.name == "v128.const":
            yield from (word for (word,) in iter_unpack("<I", one.immediates[0]))
        elif len(one.immediates) >= 3 and "." in one.name and one.immediates[1]:
            yield one.immediates[1]
