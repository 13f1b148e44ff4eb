"""The bodies of the functions that a module defines: split, decoded, replaced.

A body is known by its *code index*: its place in the code section. The index of its function is that plus the number
of imported functions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from edgekit.wasm import sections
from edgekit.wasm.binary import Reader, WasmError, unsigned_bytes
from edgekit.wasm.instructions import Instruction, expression
from edgekit.wasm.module import Module, SectionId
from edgekit.wasm.sections import Kind
from edgekit.wasm.types import ValueType, value_type

_MOST_LOCALS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Body:
    """``size`` is the size as written; ``data`` the locals and the instructions; ``offset`` where they lie."""

    size: bytes
    data: bytes = field(repr=False)
    offset: int

    def locals_(self) -> tuple[tuple[int, ValueType], ...]:
        """Return the locals, as runs of one type: how many, of which type."""
        return _locals(Reader(self.data, self.offset))

    def locals_bytes(self) -> int:
        """Return how many bytes the locals take: where the instructions begin in ``data``."""
        reader = Reader(self.data, self.offset)
        _locals(reader)
        return reader.at


def imported_functions(module: Module) -> int:
    """Return how many functions are imported: the function index of the first body."""
    return len(sections.imported(module, Kind.FUNCTION))


def bodies(module: Module) -> tuple[Body, ...]:
    """Return the body of each defined function. Raises WasmError, also when there are more or fewer than functions."""
    section = module.section(SectionId.CODE)
    declared = len(sections.functions(module))
    if section is None:
        if declared:
            raise WasmError(len(module.to_bytes()), f"{declared} functions are declared, and none has a body")
        return ()
    reader = Reader(section.payload, section.offset)
    count = reader.count("function bodies")
    if count != declared:
        raise WasmError(section.offset, f"{declared} functions are declared, and {count} have a body")
    found = tuple(_body(reader) for _ in range(count))
    reader.finish("The code section")
    return found


def instructions(body: Body) -> Iterator[Instruction]:
    """Decode the instructions of a body, its last ``end`` included. Raises WasmError."""
    reader = Reader(body.data, body.offset)
    _locals(reader)
    yield from expression(reader)
    reader.finish("The body of a function")


def with_bodies(module: Module, edit: Callable[[int, Body], bytes | None]) -> Module:
    """Return the module with other bodies: ``edit`` gets code index and body, and gives locals and instructions.

    A body for which it gives None keeps its bytes, the padding of its size included.
    """
    old, section = bodies(module), module.section(SectionId.CODE)
    if section is None:
        return module
    reader = Reader(section.payload, section.offset)
    reader.unsigned()
    parts = [section.payload[: reader.at]]
    for k, body in enumerate(old):
        data = edit(k, body)
        parts += (body.size, body.data) if data is None else (unsigned_bytes(len(data)), data)
    return module.with_payloads({SectionId.CODE: b"".join(parts)})


def _body(reader: Reader) -> Body:
    start = reader.at
    size = reader.unsigned()
    written, offset = reader.data[start : reader.at], reader.offset
    return Body(written, reader.take(size), offset)


def _locals(reader: Reader) -> tuple[tuple[int, ValueType], ...]:
    start, runs, total = reader.offset, [], 0
    for _ in range(reader.count("runs of locals")):
        count = reader.unsigned()
        total += count
        if total > _MOST_LOCALS:
            raise WasmError(start, "A function has more locals than 32 bits can count")
        runs.append((count, value_type(reader)))
    return tuple(runs)
