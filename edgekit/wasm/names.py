"""The custom section ``name``: what a compiler called the functions."""

from edgekit.wasm.binary import Reader, WasmError
from edgekit.wasm.module import Module

_FUNCTIONS, _LAST = 1, 11  # the numbers of subsections


def function_names(module: Module) -> dict[int, str]:
    """Return the name of each function index that has one. Raises WasmError for a section that is malformed."""
    section = module.custom("name")
    if section is None:
        return {}
    reader = Reader(section.payload, section.offset)
    reader.name()
    names: dict[int, str] = {}
    while not reader.at_end:
        start, number = reader.offset, reader.byte()
        if number > _LAST:
            raise WasmError(start, f"There is no subsection of names with number {number}")
        size = reader.unsigned()
        inner = Reader(reader.take(size), reader.offset - size)
        if number == _FUNCTIONS:
            names = {inner.unsigned(): inner.name() for _ in range(inner.count("names"))}
            inner.finish("The subsection of function names")
    return names
