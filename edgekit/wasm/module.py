"""Read a WebAssembly module as sections: slices of its own bytes, decoded only when asked.

A module that is parsed and written again is byte-identical, padded LEB128 numbers included, because a section keeps
the bytes of its own header. Malformed input raises ``WasmError`` with the offset; nothing is skipped or guessed.
Format: the binary format of the WebAssembly core specification 3.0, with the threads proposal's shared memories.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

T = TypeVar("T")

MAGIC = b"\0asm\1\0\0\0"

# Sections other than custom ones come at most once, in this order. Tag (13) and data count (12) came late.
_ORDER = (1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11)
_VALUE_TYPES = {0x7F, 0x7E, 0x7D, 0x7C, 0x7B}  # i32 i64 f32 f64 v128
_SHORT_REFERENCE_TYPES = set(range(0x69, 0x75))  # abstract heap types, as nullable references
_LONG_REFERENCE_TYPES = {0x63, 0x64}  # ref null, ref: a heap type follows


class WasmError(Exception):
    """Bytes that are not a WebAssembly module. ``offset`` counts from the start of the module."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(f"{message} (at byte {offset})")
        self.offset = offset
        self.message = message


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


class Kind(IntEnum):
    """What an import or an export is."""

    FUNCTION = 0
    TABLE = 1
    MEMORY = 2
    GLOBAL = 3
    TAG = 4


@dataclass(frozen=True)
class Section:
    """``header`` is the id and the size as written; ``offset`` is where ``payload`` begins in the module."""

    id: SectionId
    header: bytes
    payload: bytes
    offset: int


@dataclass(frozen=True)
class Import:
    """Something that the module wants from outside."""

    module: str
    name: str
    kind: Kind


@dataclass(frozen=True)
class Export:
    """Something that the module offers; ``index`` is in the index space of its kind."""

    name: str
    kind: Kind
    index: int


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


class Reader:
    """A place in ``data``. ``base`` is added to the offsets in errors."""

    def __init__(self, data: bytes, base: int = 0) -> None:
        self.data = data
        self.at = 0
        self.base = base

    @property
    def offset(self) -> int:
        return self.base + self.at

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.data)

    def byte(self) -> int:
        if self.at_end:
            raise WasmError(self.offset, "The bytes end too early")
        value = self.data[self.at]
        self.at += 1
        return value

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise WasmError(self.offset, f"{count} bytes should follow, and {len(self.data) - self.at} do")
        value = self.data[self.at : self.at + count]
        self.at += count
        return value

    def unsigned(self, bits: int = 32) -> int:
        """Read an unsigned LEB128 number of at most ``bits`` bits; it may be padded, as in the standard."""
        start, value = self.offset, 0
        for shift in range(0, bits, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> bits:
                    raise WasmError(start, f"A number does not fit in {bits} bits")
                return value
        raise WasmError(start, f"A number of {bits} bits is written with too many bytes")

    def signed(self, bits: int) -> int:
        """Read a signed LEB128 number of at most ``bits`` bits."""
        start, value = self.offset, 0
        for shift in range(0, bits, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value -= (byte & 0x40) << (shift + 1)
                if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
                    raise WasmError(start, f"A number does not fit in {bits} bits")
                return value
        raise WasmError(start, f"A number of {bits} bits is written with too many bytes")

    def name(self) -> str:
        start = self.offset
        try:
            return self.take(self.unsigned()).decode()
        except UnicodeDecodeError as error:
            raise WasmError(start, "A name is not UTF-8") from error


def parse(data: bytes) -> Module:
    """Split ``data`` into sections. Raises WasmError when it is not a module of version 1."""
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
            Reader(section.payload, section.offset).name()
            continue
        place = _ORDER.index(section.id)
        if place <= reached:
            raise WasmError(section.offset, f"The {section.id.name.lower()} section is out of order or there twice")
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


def imports(module: Module) -> tuple[Import, ...]:
    """Return what the module imports, in order. Raises WasmError."""
    return _entries(module, SectionId.IMPORT, _import)


def exports(module: Module) -> tuple[Export, ...]:
    """Return what the module exports, in order. Raises WasmError, also for a name that is there twice."""
    entries = _entries(module, SectionId.EXPORT, _export)
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            section = module.section(SectionId.EXPORT)
            raise WasmError(section.offset if section else 0, f"'{entry.name}' is exported twice")
        seen.add(entry.name)
    return entries


def _entries(module: Module, section_id: SectionId, read: Callable[[Reader], T]) -> tuple[T, ...]:
    section = module.section(section_id)
    if section is None:
        return ()
    reader = Reader(section.payload, section.offset)
    entries = tuple(read(reader) for _ in range(reader.unsigned()))
    if not reader.at_end:
        raise WasmError(reader.offset, f"The {section_id.name.lower()} section is longer than its entries")
    return entries


def _kind(reader: Reader) -> Kind:
    offset, number = reader.offset, reader.byte()
    if number > max(Kind):
        raise WasmError(offset, f"There is no kind of import or export with number {number}")
    return Kind(number)


def _export(reader: Reader) -> Export:
    return Export(reader.name(), _kind(reader), reader.unsigned())


def _import(reader: Reader) -> Import:
    module, name, kind = reader.name(), reader.name(), _kind(reader)
    if kind is Kind.FUNCTION:
        reader.unsigned()
    elif kind is Kind.TABLE:
        _value_type(reader, references_only=True)
        _limits(reader)
    elif kind is Kind.MEMORY:
        _limits(reader)
    elif kind is Kind.GLOBAL:
        _value_type(reader)
        _flag(reader, {0, 1}, "mutability")
    else:
        _flag(reader, {0}, "tag attribute")
        reader.unsigned()
    return Import(module, name, kind)


def _value_type(reader: Reader, *, references_only: bool = False) -> None:
    offset, code = reader.offset, reader.byte()
    if code in _LONG_REFERENCE_TYPES:
        reader.signed(33)
    elif code not in _SHORT_REFERENCE_TYPES and (references_only or code not in _VALUE_TYPES):
        raise WasmError(offset, f"There is no type with code {code:#x} here")


def _limits(reader: Reader) -> None:
    # Bit 0: a maximum follows. Bit 1: shared between threads. Bit 2: 64-bit addresses.
    flags = _flag(reader, set(range(8)), "limits")
    bits = 64 if flags & 4 else 32
    reader.unsigned(bits)
    if flags & 1:
        reader.unsigned(bits)


def _flag(reader: Reader, known: set[int], what: str) -> int:
    offset, flag = reader.offset, reader.byte()
    if flag not in known:
        raise WasmError(offset, f"There is no {what} flag {flag:#x}")
    return flag
