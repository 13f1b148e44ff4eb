"""Facts of a model as plain tables and lines; the command line prints them."""

from collections.abc import Iterator, Sequence

from edgekit.facts.places import NodePlace
from edgekit.facts.survey import Argument, Facts
from edgekit.facts.weights import Stored
from edgekit.facts.work import Work
from edgekit.model.walk import DEFAULT_DOMAIN
from edgekit.report.text import TextColumn, TextTable
from edgekit.targets.load import Target

_LONGEST = 160
_SHOWN = 15  # rows of a table that could have hundreds


def essentials(found: Facts) -> list[TextTable]:
    """Return what every reader wants: the model, its inputs and outputs, its operators and weights."""
    tables = [
        TextTable(found.file, (TextColumn("property"), TextColumn("value")), tuple(_properties(found))),
        _arguments("Inputs", found.inputs),
        _arguments("Outputs", found.outputs),
        _operators(found, _SHOWN),
        _weights(found),
        _external_files(found),
    ]
    return [table for table in tables if table.rows]


def everything(found: Facts) -> list[TextTable]:
    """Return the essentials, whole, and the tables behind them."""
    tables = [
        *(table for table in essentials(found) if table.title != "Operators"),
        _operators(found, None),
        _dimensions(found),
        _domains(found),
        _control_flow(found),
        _stored("Largest weights", found.weights.largest),
        _duplicates(found),
        _stored("Weights that nothing reads", found.weights.unused),
        _external_tensors(found),
        *([_activations(found.work)] if found.work else []),
    ]
    return [table for table in tables if table.rows]


def notes(found: Facts) -> list[str]:
    """Return, a line each, what is worth knowing before the model goes anywhere."""
    lines = [*_graph_notes(found), *_weight_notes(found), *_work_notes(found)]
    return lines + [f"{quirk.message} {quirk.fix}" if quirk.fix else quirk.message for quirk in found.origin.quirks]


def target_notes(found: Facts, targets: Sequence[Target]) -> list[str]:
    """Return a line for each version of the model that targets cannot read, with the highest that each can."""
    opset = found.opsets.get(DEFAULT_DOMAIN, 0)
    old_ir = [f"{t.id} reads {t.limits.ir_version}" for t in targets if t.limits.ir_version < found.ir_version]
    old_opset = [f"{t.id} has {t.limits.opset}" for t in targets if t.limits.opset < opset]
    lines = [f"IR version {found.ir_version} is too new: {', '.join(old_ir)}."] if old_ir else []
    return lines + ([f"Opset {opset} is too new: {', '.join(old_opset)}."] if old_opset else [])


def headline(found: Facts) -> str:
    """Return the model in one line."""
    opsets = ", ".join(f"{name} {version}" for name, version in found.opsets.items() if name not in found.unused_opsets)
    return " · ".join(
        filter(
            None, (f"{found.nodes:,} nodes", f"{found.weights.parameters:,} parameters", opsets, found.origin.exporter)
        )
    )


def _properties(found: Facts) -> Iterator[tuple[str, str]]:
    unused = set(found.unused_opsets)
    yield "IR version", str(found.ir_version)
    opsets = (f"{name} {version}{' (unused)' if name in unused else ''}" for name, version in found.opsets.items())
    yield "opsets", ", ".join(opsets) or "none"
    yield "producer", found.origin.exporter or "not said"
    yield "graph", found.graph_name or "no name"
    yield "nodes", _nodes(found)
    yield "parameters", f"{found.weights.parameters:,}"
    yield "size", _size(found)
    if found.work is not None and _lacks_sizes(found.work):
        yield "work", "needs sizes: " + " ".join(f"--dim {name}=N" for name in found.work.missing_dims)
    elif found.work is not None:
        at = _sizes(found.work)
        least = "at least " if _is_partial(found.work) else ""
        yield "work", f"{least}{_count_of(found.work.macs)} multiply-accumulates{at} (estimate)"
        yield "peak of values", f"{least}{found.work.peak_bytes:,} bytes{at} (estimate)"
    for key, value in found.metadata.items():
        yield f"metadata {key}", _short(value)


def _is_partial(work: Work) -> bool:
    return work.unknown_values > 0 or any(row.unknown for row in work.operators)


def _lacks_sizes(work: Work) -> bool:
    return bool(work.missing_dims) and _is_partial(work)


def _sizes(work: Work) -> str:
    named = [f"{name}={size}" for name, size in work.dims.items()]
    return f" for {', '.join(named)}" if named else ""


def _count_of(number: int) -> str:
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 1000 * size else f"{number:,}"
    return f"{number:,}"


def _short(text: str) -> str:
    """Some exporters keep whole tables in the metadata; --json shows them whole."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _nodes(found: Facts) -> str:
    where = [
        *([_count(found.subgraphs, "nested graph")] if found.subgraphs else []),
        *([f"{_count(found.functions, 'local function')}, each counted once"] if found.functions else []),
    ]
    return f"{found.nodes:,}" + (f" (with those of {' and '.join(where)})" if where else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _size(found: Facts) -> str:
    external = found.total_bytes - found.file_bytes
    return f"{found.total_bytes:,} bytes" + (f", {external:,} of them in external data" if external else "")


def _arguments(title: str, arguments: Sequence[Argument]) -> TextTable:
    rows = tuple((a.name, a.dtype or a.type, _shape(a)) for a in arguments)
    return TextTable(title, (TextColumn("name"), TextColumn("dtype"), TextColumn("shape")), rows)


def _shape(argument: Argument) -> str:
    if argument.shape is None:
        return "unknown" if argument.type.startswith("tensor(") else ""
    return _axes(argument.shape)


def _axes(shape: Sequence[int | str | None]) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def _operators(found: Facts, most: int | None) -> TextTable:
    """A row for each operator; columns that would say the same in every row are left out."""
    domains = any(operator.domain != DEFAULT_DOMAIN for operator in found.operators)
    macs = {(row.domain, row.op_type): row.macs for row in found.work.operators} if found.work else {}
    total = 0 if found.work and _lacks_sizes(found.work) else sum(macs.values())
    typed = any(operator.dtypes for operator in found.operators)
    columns = [
        TextColumn("operator"),
        *([TextColumn("domain")] if domains else []),
        TextColumn("since opset", number=True),
        TextColumn("nodes", number=True),
        *([TextColumn("work", number=True)] if total else []),
        *([TextColumn("dtypes")] if typed else []),
    ]
    rows = []
    shown = found.operators[: most if most is not None else len(found.operators)]
    for operator in shown:
        share = macs.get((operator.domain, operator.op_type), 0)
        kinds = dict.fromkeys(_signature(each.inputs, each.outputs) for each in operator.dtypes)
        row = [
            operator.op_type,
            *([f"{operator.domain} (local function)" if operator.local else operator.domain] if domains else []),
            "" if operator.since is None else str(operator.since),
            f"{operator.count:,}",
            *([f"{100 * share / total:.1f} %" if share else ""] if total else []),
            *(["; ".join([*kinds][:3]) + (f"; {len(kinds) - 3} more" if len(kinds) > 3 else "")] if typed else []),
        ]
        rows.append(tuple(row))
    if left := found.operators[len(shown) :]:
        nodes = sum(operator.count for operator in left)
        last = [f"{len(left)} more", *([""] if domains else []), "", f"{nodes:,}"]
        rows.append(tuple(last + [""] * (len(columns) - len(last))))
    return TextTable("Operators", tuple(columns), tuple(rows))


def _signature(inputs: Sequence[str], outputs: Sequence[str]) -> str:
    if not inputs or tuple(inputs) == tuple(outputs):
        return ", ".join(outputs)
    return f"{', '.join(inputs)} → {', '.join(outputs)}"


def _weights(found: Facts) -> TextTable:
    columns = (TextColumn("dtype"), *(TextColumn(title, number=True) for title in ("tensors", "parameters", "bytes")))
    rows = tuple((w.dtype, f"{w.tensors:,}", f"{w.parameters:,}", f"{w.bytes:,}") for w in found.weights.by_dtype)
    return TextTable("Weights", columns, rows)


def _external_files(found: Facts) -> TextTable:
    columns = (TextColumn("file"), TextColumn("bytes", number=True), TextColumn("tensors", number=True))
    rows = tuple(
        (file.location, f"{file.bytes:,}" if file.present else "missing", f"{file.tensors:,}")
        for file in found.external_files
    )
    return TextTable("External data", columns, rows)


def _external_tensors(found: Facts) -> TextTable:
    columns = (
        TextColumn("tensor"),
        TextColumn("file"),
        TextColumn("offset", number=True),
        TextColumn("bytes", number=True),
    )
    rows = tuple((e.name, e.location, f"{e.offset:,}", f"{e.bytes:,}") for e in found.weights.external)
    return TextTable("Tensors in external data", columns, rows)


def _dimensions(found: Facts) -> TextTable:
    rows = tuple(
        (each.name, ", ".join(each.inputs), ", ".join(each.outputs), ", ".join(map(_at, each.from_data)))
        for each in found.graph.dimensions
    )
    titles = ("dimension", "of inputs", "of outputs", "decided by the data in")
    return TextTable("Symbolic dimensions", tuple(map(TextColumn, titles)), rows)


def _domains(found: Facts) -> TextTable:
    columns = (
        TextColumn("domain"),
        TextColumn("kind"),
        TextColumn("opset", number=True),
        TextColumn("nodes", number=True),
    )
    rows = tuple(
        (d.name, d.kind, "not imported" if d.opset is None else str(d.opset), f"{d.nodes:,}")
        for d in found.graph.domains
    )
    return TextTable("Domains", columns, rows)


def _control_flow(found: Facts) -> TextTable:
    said = {"constant": "constants", "shapes": "shapes alone", "data": "data"}
    rows = tuple((f.op_type, f.at.node, f.at.graph, said[f.on]) for f in found.graph.control_flow)
    titles = ("operator", "node", "in graph", "decided by")
    return TextTable("Control flow", tuple(map(TextColumn, titles)), rows)


def _stored(title: str, tensors: Sequence[Stored]) -> TextTable:
    titles = ("tensor", "stored as", "dtype", "shape")
    columns = (*map(TextColumn, titles), TextColumn("bytes", number=True))
    rows = tuple((t.name, t.kind, t.dtype, _axes(t.shape), f"{t.bytes:,}") for t in tensors)
    return TextTable(title, columns, rows)


def _duplicates(found: Facts) -> TextTable:
    columns = (TextColumn("tensors"), TextColumn("bytes each", number=True), TextColumn("wasted", number=True))
    rows = tuple((_listed(d.names), f"{d.bytes:,}", f"{d.wasted_bytes:,}") for d in found.weights.duplicates)
    return TextTable("Weights stored more than once", columns, rows)


def _activations(work: Work) -> TextTable:
    columns = (TextColumn("value"), TextColumn("dtype"), TextColumn("shape"), TextColumn("bytes", number=True))
    rows = tuple((a.name, a.dtype, _axes(a.shape), f"{a.bytes:,}") for a in work.largest)
    return TextTable("Largest values between nodes", columns, rows)


def _graph_notes(found: Facts) -> Iterator[str]:
    graph = found.graph
    if graph.unknown:
        unknown = dict.fromkeys(_at(at) for at in graph.unknown)
        kinds = ", ".join(f"{d.name} ({d.kind})" for d in graph.domains if d.kind in ("contrib", "custom"))
        yield f"Operators that ONNX does not define: {_listed([*unknown])}" + (f"; domains: {kinds}." if kinds else ".")
    if graph.random:
        yield f"The answer is not deterministic: {_listed([_at(at) for at in graph.random])}."
    if on_data := [f.at for f in graph.control_flow if f.on == "data"]:
        yield f"What runs depends on the data: {_listed([_at(at) for at in on_data])}."
    if graph.data_sized:
        yield f"Sizes depend on the data: {_listed([_at(at) for at in graph.data_sized])}."


def _weight_notes(found: Facts) -> Iterator[str]:
    weights = found.weights
    if weights.duplicates:
        wasted = sum(each.wasted_bytes for each in weights.duplicates)
        yield f"{wasted:,} bytes are copies of other weights: {_listed(weights.duplicates[0].names)}."
    if weights.unused:
        unused = sum(each.bytes for each in weights.unused)
        yield f"{unused:,} bytes of weights are read by nothing: {_listed([each.name for each in weights.unused])}."
    if missing := [file.location for file in found.external_files if not file.present]:
        yield f"Files of weights are missing: {_listed(missing)}. Copy them beside the model."


def _work_notes(found: Facts) -> Iterator[str]:
    if found.shape_problem:
        yield f"Shape inference: {_short(' '.join(found.shape_problem.split()))}"
    if found.work is None:
        return
    if _lacks_sizes(found.work):
        return
    if found.work.unknown_values:
        yield f"The shapes of {found.work.unknown_values:,} of {found.work.values:,} values are not known."
    if found.work.assumed:
        yield f"The estimates assume {', '.join(f'{name}=1' for name in found.work.assumed)}; --dim gives another size."
    yield from found.work.notes


def _at(at: NodePlace) -> str:
    return f"{at.op_type} {at.node}"


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
