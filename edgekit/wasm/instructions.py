"""Decode instructions: the bodies of functions, and constant expressions."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from edgekit.wasm.binary import Reader, WasmError
from edgekit.wasm.opcodes import ONE_BYTE, PREFIXED, Shape
from edgekit.wasm.types import block_type, heap_type, value_type


class Instruction(NamedTuple):
    """``offset`` is where it lies in the module; ``name`` is that of the text format.

    ``immediates`` are in the order of the file: indices, numbers (floats and vectors as their bytes). Instructions on
    memory have the exponent of the alignment, the offset, the memory, then the lane; ``br_table`` the labels, with the
    default last; ``try_table`` the block type, then the clauses as ``(word, indices...)``.
    """

    offset: int
    name: str
    immediates: tuple[Any, ...] = ()


# The words of a try_table's clauses by code, and how many indices follow.
_CATCHES = (("catch", 2), ("catch_ref", 2), ("catch_all", 1), ("catch_all_ref", 1))

_OPENERS = {"block", "loop", "if", "try", "try_table"}
# What may come between a block's beginning and its end, and what it must come after.
_PARTS = {"else": {"if"}, "catch": {"try", "catch"}, "catch_all": {"try", "catch"}}

_CONSTANT = frozenset(
    {"i32.const", "i64.const", "f32.const", "f64.const", "v128.const", "ref.null", "ref.func", "global.get"}
    | {f"{type_}.{verb}" for type_ in ("i32", "i64") for verb in ("add", "sub", "mul")}
)


def _memory(reader: Reader) -> tuple[int, int, int]:
    start, flags = reader.offset, reader.unsigned()
    if flags > 0x7F:
        raise WasmError(start, f"There is no memory flag {flags:#x}")
    memory = reader.unsigned() if flags & 0x40 else 0
    return flags & 0x3F, reader.unsigned(64), memory


def _zero(reader: Reader) -> tuple[()]:
    reader.flag(range(1), "fence")
    return ()


def _labels(reader: Reader) -> tuple[int, ...]:
    return tuple(reader.unsigned() for _ in range(reader.count("labels") + 1))


def _catches(reader: Reader) -> tuple[Any, ...]:
    return (block_type(reader), *(_catch(reader) for _ in range(reader.count("catch clauses"))))


def _catch(reader: Reader) -> tuple[str | int, ...]:
    word, indices = _CATCHES[reader.flag(range(len(_CATCHES)), "catch clause")]
    return (word, *(reader.unsigned() for _ in range(indices)))


_Read = Callable[[Reader], tuple[Any, ...]]

_IMMEDIATES: dict[Shape, _Read] = {
    Shape.NONE: lambda reader: (),
    Shape.INDEX: lambda reader: (reader.unsigned(),),
    Shape.INDICES: lambda reader: (reader.unsigned(), reader.unsigned()),
    Shape.BLOCK: lambda reader: (block_type(reader),),
    Shape.LABELS: _labels,
    Shape.CATCHES: _catches,
    Shape.TYPES: lambda reader: tuple(value_type(reader) for _ in range(reader.count("types"))),
    Shape.HEAP: lambda reader: (heap_type(reader),),
    Shape.MEMORY: _memory,
    Shape.MEMORY_LANE: lambda reader: (*_memory(reader), reader.byte()),
    Shape.LANE: lambda reader: (reader.byte(),),
    Shape.BYTES_16: lambda reader: (reader.take(16),),
    Shape.I32: lambda reader: (reader.signed(32),),
    Shape.I64: lambda reader: (reader.signed(64),),
    Shape.F32: lambda reader: (reader.take(4),),
    Shape.F64: lambda reader: (reader.take(8),),
    Shape.ZERO: _zero,
}


# By the code's only byte: the name, and how the immediates are read, if there are any.
_BY_BYTE: list[tuple[str, _Read | None] | None] = [None] * 256
for _code, _opcode in ONE_BYTE.items():
    _BY_BYTE[_code] = (_opcode.name, None if _opcode.shape is Shape.NONE else _IMMEDIATES[_opcode.shape])


def instruction(reader: Reader) -> Instruction:
    """Read one instruction. Raises WasmError with the offset of an unknown opcode or flag."""
    offset, code = reader.offset, reader.byte()
    known = _BY_BYTE[code]
    if known is not None:
        name, read = known
        return Instruction(offset, name, () if read is None else read(reader))
    if code not in PREFIXED:
        raise WasmError(offset, f"There is no instruction with code {code:#x}")
    second = reader.unsigned()
    opcode = PREFIXED[code].get(second)
    if opcode is None:
        raise WasmError(offset, f"There is no instruction with code {code:#x} {second:#x}")
    return Instruction(offset, opcode.name, _IMMEDIATES[opcode.shape](reader))


def expression(reader: Reader) -> Iterator[Instruction]:
    """Read instructions up to and with the ``end`` that belongs to none of them, however deep blocks lie in blocks.

    Raises WasmError also for an ``else``, ``catch``, ``catch_all`` or ``delegate`` that stands outside of its block.
    """
    open_ = [""]
    while open_:
        one = instruction(reader)
        name = one.name
        if name in _OPENERS:
            open_.append(name)
        elif name == "end":
            open_.pop()
        elif name in _PARTS:
            if open_[-1] not in _PARTS[name]:
                raise WasmError(one.offset, f"'{name}' does not stand in a block that can have one")
            open_[-1] = name
        elif name == "delegate" and open_.pop() != "try":
            raise WasmError(one.offset, "'delegate' does not end a 'try'")
        yield one


def constant(reader: Reader) -> tuple[Instruction, ...]:
    """Read a constant expression, without its ``end``. Raises WasmError for an instruction that is not constant."""
    read: list[Instruction] = []
    while (one := instruction(reader)).name != "end":
        if one.name not in _CONSTANT:
            raise WasmError(one.offset, f"'{one.name}' does not belong in a constant expression")
        read.append(one)
    return tuple(read)
