"""``edgekit inspect``: show what a model is."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click

from edgekit import console
from edgekit.cli.options import json_option
from edgekit.console import Column
from edgekit.facts import survey as facts
from edgekit.facts.survey import Argument, Facts
from edgekit.model import io as model
from edgekit.model.walk import DEFAULT_DOMAIN
from edgekit.records.jsonable import jsonable

_LONGEST = 160


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@json_option
def command(model_path: Path, as_json: bool) -> None:
    """Show what a model is: inputs, outputs, operators, weights.

    \b
    Example:
      edgekit inspect model.onnx
      edgekit inspect model.onnx --json
    """
    found = facts.survey(model.load(model_path))
    if as_json:
        console.data_json(jsonable(asdict(found)))
        return
    _show_model(found)
    _show_arguments("Inputs", found.inputs)
    _show_arguments("Outputs", found.outputs)
    _show_operators(found)
    _show_weights(found)
    _show_external_files(found)


def _show_model(found: Facts) -> None:
    unused = set(found.unused_opsets)
    rows = [
        ["IR version", str(found.ir_version)],
        [
            "opsets",
            ", ".join(f"{d} {v}{' (unused)' if d in unused else ''}" for d, v in found.opsets.items()) or "none",
        ],
        ["producer", f"{found.producer_name} {found.producer_version}".strip() or "not said"],
        ["graph", found.graph_name or "no name"],
        ["nodes", _nodes(found)],
        ["parameters", f"{found.parameters:,}"],
        ["size", _size(found)],
        *([f"metadata {key}", _short(value)] for key, value in found.metadata.items()),
    ]
    _table(found.file, [Column("property"), Column("value")], rows)


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


def _show_arguments(title: str, arguments: Iterable[Argument]) -> None:
    rows = [[a.name, a.dtype or a.type, _shape(a)] for a in arguments]
    _table(title, [Column("name"), Column("dtype"), Column("shape")], rows)


def _shape(argument: Argument) -> str:
    if argument.shape is None:
        return "unknown" if argument.type.startswith("tensor(") else ""
    return "[" + ", ".join("?" if size is None else str(size) for size in argument.shape) + "]"


def _show_operators(found: Facts) -> None:
    other_domains = any(operator.domain != DEFAULT_DOMAIN for operator in found.operators)
    columns = [Column("operator"), *([Column("domain")] if other_domains else []), Column("nodes", number=True)]
    rows = []
    for operator in found.operators:
        domain = f"{operator.domain} (local function)" if operator.local else operator.domain
        rows.append([operator.op_type, *([domain] if other_domains else []), f"{operator.count:,}"])
    _table("Operators", columns, rows)


def _show_weights(found: Facts) -> None:
    columns = [Column("dtype"), *(Column(title, number=True) for title in ("tensors", "parameters", "bytes"))]
    _table(
        "Weights", columns, [[w.dtype, f"{w.tensors:,}", f"{w.parameters:,}", f"{w.bytes:,}"] for w in found.weights]
    )


def _show_external_files(found: Facts) -> None:
    rows = [[file.location, f"{file.bytes:,}"] for file in found.external_files]
    _table("External data", [Column("file"), Column("bytes", number=True)], rows)


def _table(title: str, columns: list[Column], rows: list[list[str]]) -> None:
    """Show a table; one without rows is left out. A line break in a model's name is shown, not obeyed."""
    if rows:
        console.table(title, columns, [[cell.replace("\n", "\\n") for cell in row] for row in rows])
