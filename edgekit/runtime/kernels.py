"""The kernels that a runtime registers when it starts: which function describes which, and how to leave some out.

onnxruntime keeps tables of functions, ``BuildKernelCreateInfo<...>``, each of which describes one kernel. Every table
begins with ``BuildKernelCreateInfo<void>``, which describes none, and registration passes over what that gives: builds
of onnxruntime with fewer operators leave kernels out by it. Here a description is left out the same way, by giving its
function the body of that one. A model that needs the kernel all the same gets onnxruntime's own words for it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from struct import iter_unpack

from edgekit.wasm import code, sections
from edgekit.wasm.layout import segment_ranges
from edgekit.wasm.module import Module
from edgekit.wasm.references import table_slots

_WORD = 4
_SHORTEST_TABLE = 8
_LONGEST_VOID = 64
# What describes no kernel stores zeros where it is told to, and does nothing else.
_OF_VOID = frozenset(
    {"local.get", "i32.const", "i64.const", "v128.const", "i32.store", "i64.store", "v128.store", "end"}
)
# Of the kernels of one runtime, how many state the function that creates them as a constant: all, but for oddities.
_MOST = 0.95


@dataclass(frozen=True)
class Kernels:
    """``void`` describes no kernel; ``builders`` maps what describes one to the functions that create it.

    All are code indices. Several kernels may be created by one function: the linker merges equal ones.
    """

    void: int
    builders: Mapping[int, frozenset[int]]


def find(module: Module) -> Kernels | None:
    """Return the kernels of a build of onnxruntime-web; None where no table of them is recognised.

    Raises WasmError, and EditError where it cannot be told where the data lie.
    """
    bodies, first = code.bodies(module), code.imported_functions(module)
    slots = {slot: index - first for slot, index in table_slots(module).items() if index >= first}
    tables = [table for table in _tables(module, slots) if _is_void(bodies[table[0]])]
    if not tables:
        return None
    void = Counter(table[0] for table in tables).most_common(1)[0][0]
    found = {k for table in tables if table[0] == void for k in table} - {void}
    stated = {k: {slots[number] for number in _constants(bodies[k]) if number in slots} for k in sorted(found)}
    creates = _type_that_creates(sections.functions(module), stated, void)
    types = sections.functions(module)
    builders = {k: frozenset(f for f in functions if types[f] == creates) for k, functions in stated.items()}
    return Kernels(void, {k: functions for k, functions in builders.items() if functions})


def leave_out(module: Module, kernels: Kernels, unneeded: Collection[int]) -> Module:
    """Return the module without the kernels that the functions ``unneeded`` describe."""
    gone = frozenset(unneeded) & kernels.builders.keys()
    nothing = code.bodies(module)[kernels.void].data
    return code.with_bodies(module, lambda k, body: nothing if k in gone else None)


def _tables(module: Module, slots: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield the runs of words in the data that are places in the table of functions, all of functions of one type."""
    types = sections.functions(module)
    ranges = segment_ranges(module)
    for number, segment in enumerate(sections.segments(module)):
        if number not in ranges:
            continue
        first = -ranges[number].start % _WORD
        whole = max(0, (len(segment.data) - first) // _WORD * _WORD)
        run: list[int] = []
        for (word,) in iter_unpack("<I", segment.data[first : first + whole] + bytes(_WORD)):
            k = slots.get(word)
            if k is not None and (not run or types[k] == types[run[0]]):
                run.append(k)
                continue
            if len(run) >= _SHORTEST_TABLE:
                yield run
            run = [] if k is None else [k]


def _is_void(body: code.Body) -> bool:
    return len(body.data) <= _LONGEST_VOID and all(
        one.name in _OF_VOID and ("const" not in one.name or one.immediates[0] in (0, bytes(16)))
        for one in code.instructions(body)
    )


def _constants(body: code.Body) -> set[int]:
    return {one.immediates[0] for one in code.instructions(body) if one.name == "i32.const"}


def _type_that_creates(types: tuple[int, ...], stated: Mapping[int, set[int]], void: int) -> int:
    """Return the type of the functions that create kernels: of those that nearly every builder states, the most varied.

    Destructors and the like are stated as well, but are few: many kernels share them.
    """
    by_type: dict[int, set[int]] = defaultdict(set)
    builders: Counter[int] = Counter()
    for functions in stated.values():
        for kind in {types[f] for f in functions} - {types[void]}:
            builders[kind] += 1
        for f in functions:
            by_type[types[f]].add(f)
    wide = [kind for kind, count in builders.items() if count >= _MOST * len(stated)]
    return max(wide, key=lambda kind: (len(by_type[kind]), -kind), default=-1)
