"""The tables as a page of documentation: operators by runtime, and what is known to be wrong."""

from collections import Counter
from collections.abc import Iterator, Sequence

from edgekit.conformance.table import KINDS, OperatorSupport, Table

_STATUSES = ("passes", "wrong", "loads", "refused", "failed", "crashed")
_REASON_CHARACTERS = 110


def page(tables: Sequence[Table]) -> str:
    """Return Markdown about ``tables``, the first of which is the one that the others are compared with."""
    return (
        "\n".join([*_runtimes(tables), *_standard(tables), *_wrong(tables), *_lost(tables), *_operators(tables)]) + "\n"
    )


def _name(table: Table) -> str:
    return table.runtime.variant


def _runtimes(tables: Sequence[Table]) -> Iterator[str]:
    yield "## What was measured\n"
    yield "| column | runtime | execution provider | browser, adapter | highest opset, IR |"
    yield "|---|---|---|---|---|"
    for table in tables:
        runtime = table.runtime
        where = ", ".join(part for part in (runtime.browser, runtime.adapter) if part) or "–"
        yield (
            f"| {_name(table)} | {runtime.package} {runtime.version} | {runtime.execution_provider} | {where} "
            f"| {table.opsets.get('', '?')}, {table.ir_version} |"
        )
    yield ""


def _standard(tables: Sequence[Table]) -> Iterator[str]:
    yield f"## The cases of the onnx package ({tables[0].onnx_version})\n"
    yield "| | " + " | ".join(map(_name, tables)) + " |"
    yield "|---" * (len(tables) + 1) + "|"
    counts = [Counter(status for name, (status, _) in t.cases.items() if _is_standard(name)) for t in tables]
    for status in _STATUSES:
        yield f"| {status} | " + " | ".join(str(count[status]) for count in counts) + " |"
    yield ""


def _is_standard(name: str) -> bool:
    return name.startswith("test_")


def _wrong(tables: Sequence[Table]) -> Iterator[str]:
    yield "## Wrong answers\n"
    yield "A session is created, it runs, and the answer is another one than ONNX states.\n"
    yield "| case | where | what |\n|---|---|---|"
    found: dict[str, list[tuple[str, str]]] = {}
    for table in tables:
        for name, (status, why) in table.cases.items():
            if status == "wrong":
                found.setdefault(name, []).append((_name(table), why or ""))
    for name, places in sorted(found.items()):
        yield f"| {_code(name)} | {', '.join(place for place, _ in places)} | {_cell(places[-1][1])} |"
    yield ""


def _lost(tables: Sequence[Table]) -> Iterator[str]:
    """Name what passes with WebAssembly alone and not on a GPU."""
    base = next((table for table in tables if table.runtime.browser and not table.runtime.adapter), None)
    others = [table for table in tables if table.runtime.adapter]
    if base is None or not others:
        return
    passing = [name for name, (status, _) in base.cases.items() if status == "passes" and _is_standard(name)]
    yield "## Lost on WebGPU\n"
    yield f"Cases that pass on {_name(base)} and not on every WebGPU build.\n"
    yield "| case | " + " | ".join(map(_name, others)) + " | why |"
    yield "|---" * (len(others) + 2) + "|"
    for name in sorted(passing):
        seen = [table.cases.get(name, ("unknown", None)) for table in others]
        if any(status != "passes" for status, _ in seen):
            why = next((reason for status, reason in seen if status != "passes" and reason), "")
            yield f"| {_code(name)} | " + " | ".join(status for status, _ in seen) + f" | {_cell(why)} |"
    yield ""


def _operators(tables: Sequence[Table]) -> Iterator[str]:
    yield "## Operators\n"
    yield "For each schema version, how many combinations of dtypes pass, are wrong, only load, and are refused, as"
    yield "`passes/wrong/loads/refused`. Cells of one number: all of them pass. `cpu` counts those that a WebGPU"
    yield "session gives to the CPU.\n"
    yield "| operator | since | " + " | ".join(map(_name, tables)) + " |"
    yield "|---" * (len(tables) + 2) + "|"
    for key in sorted({key for table in tables for key in table.operators}):
        domain, op_type, since = key
        cells = " | ".join(_counts(table.operators.get(key)) for table in tables)
        yield f"| {_code(f'{domain}.{op_type}' if domain else op_type)} | {since} | {cells} |"


def _counts(support: OperatorSupport | None) -> str:
    if support is None:
        return "–"
    numbers = [len(getattr(support, kind)) for kind in KINDS]
    shown = str(numbers[0]) if numbers[0] == sum(numbers) else "/".join(map(str, numbers))
    on_cpu = len(support.on_cpu)
    return f"{shown}, cpu {on_cpu}" if on_cpu else shown


def _code(text: str) -> str:
    return f"`{text}`"


def _cell(text: str) -> str:
    """Return text as it may stand in a cell of a table."""
    short = text if len(text) <= _REASON_CHARACTERS else text[: _REASON_CHARACTERS - 1] + "…"
    return short.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[").replace("\n", " ")
