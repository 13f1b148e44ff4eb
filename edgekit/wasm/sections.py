"""Decode the sections of a module other than code. Each function reads one section; without it the result is empty.

Every function raises WasmError with the offset of what is wrong: an unknown flag, form or type, a count that does not
fit, bytes left over.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from edgekit.wasm.binary import Reader, WasmError
from edgekit.wasm.instructions import Instruction, constant
from edgekit.wasm.module import Module, SectionId
from edgekit.wasm.types import (
    FunctionType,
    GlobalType,
    Limits,
    TableType,
    ValueType,
    function_type,
    global_type,
    limits,
    table_type,
    value_type,
)

T = TypeVar("T")


class Kind(IntEnum):
    """What an import or an export is."""

    FUNCTION = 0
    TABLE = 1
    MEMORY = 2
    GLOBAL = 3
    TAG = 4


@dataclass(frozen=True)
class Import:
    """Something that the module wants from outside. ``type`` is a type index for functions and tags."""

    module: str
    name: str
    kind: Kind
    type: int | TableType | Limits | GlobalType


@dataclass(frozen=True)
class Export:
    """Something that the module offers; ``index`` is in the index space of its kind."""

    name: str
    kind: Kind
    index: int


@dataclass(frozen=True)
class Table:
    """A table of the module's own; ``init`` is what its places hold at first, when that is stated."""

    type: TableType
    init: tuple[Instruction, ...] | None


@dataclass(frozen=True)
class Global:
    """A global of the module's own, and the constant expression that it starts with."""

    type: GlobalType
    init: tuple[Instruction, ...]


@dataclass(frozen=True)
class Segment:
    """Bytes for a memory; ``offset`` is where they lie in the module.

    ``memory`` and ``where`` are None for a passive segment, which instructions copy.
    """

    memory: int | None
    where: tuple[Instruction, ...] | None
    data: bytes = field(repr=False)
    offset: int


@dataclass(frozen=True)
class Element:
    """References for a table, one expression each; plain function indices are given as ``ref.func``.

    ``table`` and ``where`` are None for a passive segment and for a declared one (``declared``), which fills no table.
    """

    table: int | None
    where: tuple[Instruction, ...] | None
    declared: bool
    type: ValueType
    items: tuple[tuple[Instruction, ...], ...]

    @property
    def functions(self) -> tuple[int, ...]:
        """The functions that the segment refers to, in order."""
        return tuple(one.immediates[0] for item in self.items for one in item if one.name == "ref.func")


def types(module: Module) -> tuple[FunctionType, ...]:
    """Return the function types."""
    return _entries(module, SectionId.TYPE, function_type)


def imports(module: Module) -> tuple[Import, ...]:
    """Return what the module imports, in order."""
    return _entries(module, SectionId.IMPORT, _import)


def functions(module: Module) -> tuple[int, ...]:
    """Return the type index of each function that the module defines itself."""
    return _entries(module, SectionId.FUNCTION, Reader.unsigned)


def tables(module: Module) -> tuple[Table, ...]:
    """Return the tables that the module defines itself."""
    return _entries(module, SectionId.TABLE, _table)


def memories(module: Module) -> tuple[Limits, ...]:
    """Return the memories that the module defines itself."""
    return _entries(module, SectionId.MEMORY, limits)


def tags(module: Module) -> tuple[int, ...]:
    """Return the type index of each exception tag that the module defines itself."""
    return _entries(module, SectionId.TAG, _tag)


def globals_(module: Module) -> tuple[Global, ...]:
    """Return the globals that the module defines itself."""
    return _entries(module, SectionId.GLOBAL, lambda reader: Global(global_type(reader), constant(reader)))


def exports(module: Module) -> tuple[Export, ...]:
    """Return what the module exports, in order. Raises WasmError also for a name that is there twice."""
    entries = _entries(module, SectionId.EXPORT, _export)
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            section = module.section(SectionId.EXPORT)
            raise WasmError(section.offset if section else 0, f"'{entry.name}' is exported twice")
        seen.add(entry.name)
    return entries


def start(module: Module) -> int | None:
    """Return the index of the function that runs at instantiation, or None."""
    return _number(module, SectionId.START)


def data_count(module: Module) -> int | None:
    """Return the number of data segments that the module announces before its code, or None."""
    return _number(module, SectionId.DATA_COUNT)


def elements(module: Module) -> tuple[Element, ...]:
    """Return the element segments."""
    return _entries(module, SectionId.ELEMENT, _element)


def segments(module: Module) -> tuple[Segment, ...]:
    """Return the data segments. Raises WasmError when the module announces another number of them."""
    entries = _entries(module, SectionId.DATA, _segment)
    announced = data_count(module)
    if announced is not None and announced != len(entries):
        section = module.section(SectionId.DATA_COUNT)
        at = section.offset if section else 0
        raise WasmError(at, f"{announced} data segments are announced, and there are {len(entries)}")
    return entries


def imported(module: Module, kind: Kind) -> tuple[Import, ...]:
    """Return the imports of one kind: they come first in the index space of that kind."""
    return tuple(entry for entry in imports(module) if entry.kind is kind)


def _entries(module: Module, section_id: SectionId, read: Callable[[Reader], T]) -> tuple[T, ...]:
    section = module.section(section_id)
    if section is None:
        return ()
    reader = Reader(section.payload, section.offset)
    entries = tuple(read(reader) for _ in range(reader.count("entries")))
    reader.finish(f"The {section_id.title} section")
    return entries


def _number(module: Module, section_id: SectionId) -> int | None:
    section = module.section(section_id)
    if section is None:
        return None
    reader = Reader(section.payload, section.offset)
    number = reader.unsigned()
    reader.finish(f"The {section_id.title} section")
    return number


def _kind(reader: Reader) -> Kind:
    offset, number = reader.offset, reader.byte()
    if number > max(Kind):
        raise WasmError(offset, f"There is no kind of import or export with number {number}")
    return Kind(number)


def _export(reader: Reader) -> Export:
    return Export(reader.name(), _kind(reader), reader.unsigned())


def _import(reader: Reader) -> Import:
    module, name, kind = reader.name(), reader.name(), _kind(reader)
    return Import(module, name, kind, _IMPORTED[kind](reader))


def _tag(reader: Reader) -> int:
    reader.flag(range(1), "tag attribute")
    return reader.unsigned()


_IMPORTED: dict[Kind, Callable[[Reader], int | TableType | Limits | GlobalType]] = {
    Kind.FUNCTION: Reader.unsigned,
    Kind.TABLE: table_type,
    Kind.MEMORY: limits,
    Kind.GLOBAL: global_type,
    Kind.TAG: _tag,
}


def _table(reader: Reader) -> Table:
    # 0x40 0x00 announces that an expression follows; no reference type begins with 0x40.
    if reader.data[reader.at : reader.at + 1] != b"\x40":
        return Table(table_type(reader), None)
    reader.byte()
    reader.flag(range(1), "table")
    return Table(table_type(reader), constant(reader))


def _segment(reader: Reader) -> Segment:
    start, flags = reader.offset, reader.unsigned()
    if flags > 2:
        raise WasmError(start, f"There is no data segment flag {flags:#x}")
    memory, where = None, None
    if flags != 1:
        memory = reader.unsigned() if flags == 2 else 0
        where = constant(reader)
    size = reader.unsigned()
    offset = reader.offset
    return Segment(memory, where, reader.take(size), offset)


def _element(reader: Reader) -> Element:
    # Bit 0: passive, or declared with bit 1. Bit 1: a table index (when active) and a kind follow. Bit 2: expressions.
    start, flags = reader.offset, reader.unsigned()
    if flags > 7:
        raise WasmError(start, f"There is no element segment flag {flags:#x}")
    active = not flags & 1
    table = (reader.unsigned() if flags & 2 else 0) if active else None
    where = constant(reader) if active else None
    of = ValueType("ref", nullable=bool(flags & 4), heap="func")
    if flags & 3 and flags & 4:
        of = value_type(reader, references_only=True)
    elif flags & 3:
        reader.flag(range(1), "element kind")
    read = constant if flags & 4 else _function_item
    items = tuple(read(reader) for _ in range(reader.count("elements")))
    return Element(table, where, flags & 3 == 3, of, items)


def _function_item(reader: Reader) -> tuple[Instruction, ...]:
    offset = reader.offset
    return (Instruction(offset, "ref.func", (reader.unsigned(),)),)
