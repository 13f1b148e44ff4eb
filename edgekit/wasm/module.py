"""Read a WebAssembly module as sections: slices of its own bytes, decoded only when asked.

A module that is parsed and written again is byte-identical, padded LEB128 numbers included, because a section keeps
the bytes of its own header. Malformed input raises ``WasmError`` with the offset; nothing is skipped or guessed.
Format: the binary format of the WebAssembly core specification 3.0 without garbage collection, with the threads
proposal's shared memories and both forms of exception handling. Function indices never move.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from edgekit.wasm.binary import Reader, WasmError, unsigned_bytes

MAGIC = b"\0asm\1\0\0\0"

# Sections other than custom ones come at most once, in this order. Tag (13) and data count (12) came late.
_ORDER = (1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11)


class SectionId(IntEnum):
    """The number of each kind of section."""

    CUSTOM = 0
    TYPE = 1
    IMPORT = 2
    FUNCTION = 3
    TABLE = 4
    MEMORY = 5
    GLOBAL = 6
    EXPORT = 7
    START = 8
    ELEMENT = 9
    CODE = 10
    DATA = 11
    DATA_COUNT = 12
    TAG = 13

    @property
    def title(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Section:
    """``header`` is the id and the size as written; ``offset`` is where ``payload`` begins in the module."""

    id: SectionId
    header: bytes
    payload: bytes = field(repr=False)  # megabytes
    offset: int

    def custom_name(self) -> str:
        """Return the name that a custom section begins with."""
        return Reader(self.payload, self.offset).name()


@dataclass(frozen=True)
class Module:
    """The sections of a module, in order."""

    sections: tuple[Section, ...]

    def to_bytes(self) -> bytes:
        """Write the module. Sections that were not touched keep their bytes."""
        return MAGIC + b"".join(part for section in self.sections for part in (section.header, section.payload))

    def section(self, section_id: SectionId) -> Section | None:
        """Return the section with this id, or None. (For custom sections: the first one.)"""
        return next((section for section in self.sections if section.id == section_id), None)

    def custom(self, name: str) -> Section | None:
        """Return the first custom section called ``name``, or None."""
        return next((s for s in self.sections if s.id is SectionId.CUSTOM and s.custom_name() == name), None)

    def with_payloads(self, payloads: Mapping[SectionId, bytes]) -> "Module":
        """Return the module with other contents for sections that it has; the others keep their bytes."""
        return _placed(
            Section(section.id, _header(section.id, payloads[section.id]), payloads[section.id], 0)
            if section.id in payloads
            else section
            for section in self.sections
        )

    def without_custom(self, keep: Collection[str] = ("target_features",)) -> "Module":
        """Return the module without custom sections other than those called one of ``keep``.

        ``target_features`` tells Binaryen which instructions it may use; without it wasm-opt refuses the module.
        """
        return _placed(s for s in self.sections if s.id is not SectionId.CUSTOM or s.custom_name() in keep)


def parse(data: bytes) -> Module:
    """Split ``data`` into sections. Raises WasmError when it is not a module of version 1.

    What is in the sections is read by ``sections`` and ``code``, and checked as a whole by ``check.check``.
    """
    if data[:4] != MAGIC[:4]:
        raise WasmError(0, "This is not WebAssembly: it does not begin with \\0asm")
    if data[4:8] != MAGIC[4:]:
        raise WasmError(4, "This is not a WebAssembly module of version 1")
    reader = Reader(data)
    reader.at = len(MAGIC)
    sections: list[Section] = []
    reached = -1
    while not reader.at_end:
        section = _section(reader)
        sections.append(section)
        if section.id is SectionId.CUSTOM:
            section.custom_name()
            continue
        place = _ORDER.index(section.id)
        if place <= reached:
            raise WasmError(section.offset, f"The {section.id.title} section is out of order or there twice")
        reached = place
    return Module(tuple(sections))


def _section(reader: Reader) -> Section:
    start = reader.at
    number = reader.byte()
    if number > max(SectionId):
        raise WasmError(start, f"There is no section with number {number}")
    size = reader.unsigned()
    header, offset = reader.data[start : reader.at], reader.offset
    return Section(SectionId(number), header, reader.take(size), offset)


def _header(section_id: SectionId, payload: bytes) -> bytes:
    return bytes([section_id]) + unsigned_bytes(len(payload))


def _placed(sections: Iterable[Section]) -> Module:
    """Return a module of these sections, each with the offset that it then has."""
    at, placed = len(MAGIC), []
    for section in sections:
        at += len(section.header)
        placed.append(Section(section.id, section.header, section.payload, at))
        at += len(section.payload)
    return Module(tuple(placed))
