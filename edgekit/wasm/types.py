"""The types of the WebAssembly binary format, and how they are read. Garbage-collected types are refused."""

from dataclasses import dataclass

from edgekit.wasm.binary import Reader, WasmError

_NUMBERS = {0x7F: "i32", 0x7E: "i64", 0x7D: "f32", 0x7C: "f64", 0x7B: "v128"}
# Heap types by their code; alone, a code means a nullable reference to it.
_HEAPS = {
    0x74: "noexn",
    0x73: "nofunc",
    0x72: "noextern",
    0x71: "none",
    0x70: "func",
    0x6F: "extern",
    0x6E: "any",
    0x6D: "eq",
    0x6C: "i31",
    0x6B: "struct",
    0x6A: "array",
    0x69: "exn",
}
_REF_NULL, _REF = 0x63, 0x64  # a heap type follows
_FUNCTION = 0x60


@dataclass(frozen=True, slots=True)
class ValueType:
    """``name`` is a number's type, or ``ref``; ``heap`` is what a reference refers to: a word, or a type index."""

    name: str
    nullable: bool = False
    heap: str | int | None = None

    def __str__(self) -> str:
        return f"(ref {'null ' * self.nullable}{self.heap})" if self.name == "ref" else self.name


@dataclass(frozen=True, slots=True)
class FunctionType:
    """What a function takes and gives."""

    parameters: tuple[ValueType, ...]
    results: tuple[ValueType, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """Least and most of a memory (in pages of 64 KiB) or table (in elements). ``wide``: indices are 64 bits."""

    least: int
    most: int | None
    shared: bool
    wide: bool


@dataclass(frozen=True, slots=True)
class TableType:
    """What a table holds, and how much."""

    of: ValueType
    limits: Limits


@dataclass(frozen=True, slots=True)
class GlobalType:
    """What a global holds, and whether it can be set."""

    of: ValueType
    mutable: bool


def value_type(reader: Reader, *, references_only: bool = False) -> ValueType:
    """Read the type of a value; ``references_only`` where no number may stand."""
    offset, code = reader.offset, reader.byte()
    if code in _HEAPS:
        return ValueType("ref", True, _HEAPS[code])
    if code in (_REF, _REF_NULL):
        return ValueType("ref", code == _REF_NULL, heap_type(reader))
    if references_only or code not in _NUMBERS:
        raise WasmError(offset, f"There is no type with code {code:#x} here")
    return ValueType(_NUMBERS[code])


def heap_type(reader: Reader) -> str | int:
    """Read what a reference refers to: a word such as ``func``, or a type index."""
    offset, code = reader.offset, reader.signed(33)
    if code >= 0:
        return code
    if code + 0x80 not in _HEAPS:
        raise WasmError(offset, f"There is no heap type {code}")
    return _HEAPS[code + 0x80]


def block_type(reader: Reader) -> ValueType | int | None:
    """Read what a block takes and gives: nothing, one result, or the function type with an index."""
    offset = reader.offset
    if reader.at < len(reader.data):
        code = reader.data[reader.at]
        if code == 0x40:
            reader.at += 1
            return None
        if 0x40 < code < 0x80:
            return value_type(reader)
    index = reader.signed(33)
    if index < 0:
        raise WasmError(offset, f"There is no block type {index}")
    return index


def function_type(reader: Reader) -> FunctionType:
    """Read an entry of the type section."""
    offset, form = reader.offset, reader.byte()
    if form != _FUNCTION:
        raise WasmError(offset, f"A type of form {form:#x} is not a function type")
    return FunctionType(_value_types(reader), _value_types(reader))


def _value_types(reader: Reader) -> tuple[ValueType, ...]:
    return tuple(value_type(reader) for _ in range(reader.count("types")))


def table_type(reader: Reader) -> TableType:
    """Read the type of a table."""
    return TableType(value_type(reader, references_only=True), limits(reader))


def global_type(reader: Reader) -> GlobalType:
    """Read the type of a global."""
    return GlobalType(value_type(reader), reader.flag(range(2), "mutability") == 1)


def limits(reader: Reader) -> Limits:
    """Read limits. Bit 0: a maximum follows. Bit 1: shared between threads. Bit 2: 64-bit indices."""
    flags = reader.flag(range(8), "limits")
    bits = 64 if flags & 4 else 32
    least = reader.unsigned(bits)
    most = reader.unsigned(bits) if flags & 1 else None
    return Limits(least, most, bool(flags & 2), bits == 64)
