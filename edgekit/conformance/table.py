"""Measured operator support: for a runtime, which operators load and answer right, by opset and dtype.

The tables in ``edgekit/conformance/tables`` are written by ``python -m edgekit.conformance_run`` from what the real
runtimes did, and never by hand. ``Table.look`` asks one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from edgekit.conformance import schemas
from edgekit.errors import UsageError

FORMAT = 1
TABLES = Path(__file__).resolve().parent / "tables"

Answer = Literal["passes", "wrong", "refused", "unknown"]
Kind = Literal["passes", "wrong", "loads", "refused"]
Place = Literal["accelerator", "cpu", "unknown"]

KINDS: tuple[Kind, ...] = ("passes", "wrong", "loads", "refused")


@dataclass(frozen=True)
class Runtime:
    """What was measured. ``wasm_sha256`` None: it is no wasm. ``features``: of the GPU adapter, where there was one."""

    package: str
    version: str
    variant: str
    execution_provider: str
    wasm_sha256: str | None = None
    browser: str | None = None
    adapter: str | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperatorSupport:
    """What was measured of one operator under one schema version.

    Each of ``passes``, ``wrong``, ``loads`` and ``refused`` holds the dtypes of the schema's type ``variables``, in
    their order ("-": not used by the node). A combination stands in one of them alone. ``loads``: a session is created
    (for an operator that is not of ONNX: there is a kernel), and nothing is known of the answers. ``on_cpu``:
    combinations that a session of another execution provider gave to the CPU. ``cases``: the cases that do not pass,
    and why. ``signature``: where the onnx package has no schema, the type variable (or dtype) of each input.
    """

    domain: str
    op_type: str
    since_version: int
    variables: tuple[str, ...]
    signature: tuple[str, ...] = ()
    passes: frozenset[tuple[str, ...]] = frozenset()
    wrong: frozenset[tuple[str, ...]] = frozenset()
    loads: frozenset[tuple[str, ...]] = frozenset()
    refused: frozenset[tuple[str, ...]] = frozenset()
    on_cpu: frozenset[tuple[str, ...]] = frozenset()
    cases: Mapping[str, str] = field(default_factory=dict)

    def kinds(self, bound: Sequence[str | None]) -> set[Kind]:
        """Return what was measured of every combination that agrees with ``bound`` (None agrees with every dtype).

        Where none does, a variable that no measured node used ("-": an optional input, say) agrees with every dtype.
        """
        found = self._kinds(bound, lenient=False)
        return found or self._kinds(bound, lenient=True)

    def _kinds(self, bound: Sequence[str | None], *, lenient: bool) -> set[Kind]:
        return {kind for kind in KINDS for dtypes in getattr(self, kind) if _agree(dtypes, bound, lenient=lenient)}


def _agree(dtypes: Sequence[str], bound: Sequence[str | None], *, lenient: bool = False) -> bool:
    return len(dtypes) == len(bound) and all(
        wanted is None or dtype == wanted or (lenient and dtype == schemas.UNUSED)
        for dtype, wanted in zip(dtypes, bound, strict=True)
    )


@dataclass(frozen=True)
class Table:
    """What one runtime was measured to do.

    ``opsets``: the highest version of each domain that it loads; ``ir_version``: the highest. ``operators``: by domain
    ("" is ai.onnx), operator and since_version. ``cases``: for each standard case of the onnx package its status
    ("passes", "wrong", "loads", "refused", "failed", "crashed") and the reason.
    """

    runtime: Runtime
    onnx_version: str
    ir_version: int
    opsets: Mapping[str, int]
    operators: Mapping[tuple[str, str, int], OperatorSupport]
    cases: Mapping[str, tuple[str, str | None]]

    def support(self, domain: str, op_type: str, opset: int) -> OperatorSupport | None:
        """Return what was measured of an operator under the schema in force at ``opset``; None: nothing was."""
        domain = "" if domain == "ai.onnx" else domain
        schema = schemas.schema(domain, op_type, opset)
        if schema is not None:
            return self.operators.get((domain, op_type, schema.since_version))
        known = [since for name, op, since in self.operators if (name, op) == (domain, op_type) and since <= opset]
        return self.operators[domain, op_type, max(known)] if known else None

    def look(
        self, domain: str, op_type: str, opset: int, dtypes: Sequence[str | None], outputs: Sequence[str | None] = ()
    ) -> Answer:
        """Say whether a node of this operator was measured to work.

        ``dtypes``: of the node's inputs in order, ``outputs``: of its outputs (needed where only they tell a type, as
        for Cast); None or "" where an argument is left out or its dtype is not known.

        - ``passes``: a session is created and at least one case with these dtypes gives the right answer. Some
          attributes may still be wrong: ``support(...).cases`` names the cases that are.
        - ``wrong``: it runs, and no case with these dtypes is right.
        - ``refused``: session creation or the run fails for every case, or the opset is above what the runtime loads.
        - ``unknown``: nothing was measured, or only that it loads, or combinations that agree with what is known of
          the dtypes differ.
        """
        name = "" if domain == "ai.onnx" else domain
        if name in self.opsets and opset > self.opsets[name]:
            return "refused"
        kinds = self.measured(domain, op_type, opset, dtypes, outputs)
        if len(kinds) != 1:
            return "unknown"
        (kind,) = kinds
        return "unknown" if kind == "loads" else kind

    def measured(
        self, domain: str, op_type: str, opset: int, dtypes: Sequence[str | None], outputs: Sequence[str | None] = ()
    ) -> frozenset[Kind]:
        """Return all that was measured of nodes that agree with what is known of this one's dtypes; see ``look``.

        Empty where nothing was measured; ``loads`` alone where there is a kernel and nobody knows its answers.
        """
        support = self.support(domain, op_type, opset)
        return (
            frozenset() if support is None else frozenset(support.kinds(self._bound(support, opset, dtypes, outputs)))
        )

    def place(
        self, domain: str, op_type: str, opset: int, dtypes: Sequence[str | None], outputs: Sequence[str | None] = ()
    ) -> Place:
        """Say where a node that works was put: on the table's execution provider, or on the CPU beside it."""
        support = self.support(domain, op_type, opset)
        if support is None:
            return "unknown"
        bound = self._bound(support, opset, dtypes, outputs)
        working = [t for t in (*support.passes, *support.wrong, *support.loads) if _agree(t, bound)]
        on_cpu = {t in support.on_cpu for t in working}
        if len(on_cpu) != 1:
            return "unknown"
        return "cpu" if on_cpu.pop() else "accelerator"

    @staticmethod
    def _bound(
        support: OperatorSupport, opset: int, dtypes: Sequence[str | None], outputs: Sequence[str | None]
    ) -> tuple[str | None, ...]:
        schema = schemas.schema(support.domain, support.op_type, opset)
        if schema is None:
            found: dict[str, str] = {}
            for position, dtype in enumerate(dtypes[: len(support.signature)]):
                if dtype:
                    found.setdefault(support.signature[position], dtype)
            return tuple(found.get(name) for name in support.variables)
        # Arguments that disagree, which the checker reports, match nothing.
        bound = schemas.bind(schema, dtypes, outputs)
        return tuple(["none"] * len(support.variables)) if bound is None else bound


def available() -> tuple[tuple[str, str, str], ...]:
    """Return (package, version, variant) of every table, sorted."""
    return tuple(sorted((r.package, r.version, r.variant) for r in (read(path).runtime for path in _files())))


def load(package: str, version: str, variant: str) -> Table:
    """Return the table of a runtime: ``load("onnxruntime-web", "1.30.0", "wasm")``.

    Raises UsageError that lists the tables where there is none of it.
    """
    path = TABLES / file_name(package, version, variant)
    if not path.is_file():
        listed = ", ".join(file.stem for file in _files()) or "none"
        raise UsageError(
            f"Nothing was measured of {package} {version}, variant '{variant}'.", hint=f"There are tables of: {listed}."
        )
    return read(path)


def file_name(package: str, version: str, variant: str) -> str:
    """Return the name of a runtime's table."""
    return f"{package}-{version}-{variant}.json"


def to_bytes(table: Table) -> bytes:
    """Return the file: a line for each operator and each kind of cases, so that a change of a table can be read."""
    document = to_json(table)
    operators, cases = document.pop("operators"), document.pop("cases")
    lines = [f" {_text(key)}: {_text(value)}" for key, value in document.items()]
    lines.append(f' "cases": {_block(cases, 1)}')
    lines.append(f' "operators": {_block(operators, 2)}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _block(value: Any, depth: int, indent: int = 1) -> str:
    if depth == 0:
        return _text(value)
    pad = " " * (indent + 1)
    inner = ",\n".join(f"{pad}{_text(key)}: {_block(item, depth - 1, indent + 1)}" for key, item in value.items())
    return "{\n" + inner + "\n" + " " * indent + "}" if value else "{}"


def _files() -> list[Path]:
    return sorted(TABLES.glob("*.json"))


@cache
def read(path: Path) -> Table:
    """Read a table. Raises UsageError when it is of another format."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise UsageError(f"{path.name} is no conformance table of format {FORMAT}.", hint="Measure it again.")
    reasons: list[str] = document["reasons"]
    cases = {
        name: (kind, None if index is None else reasons[index])
        for kind, names in document["cases"].items()
        for name, index in (names.items() if isinstance(names, dict) else ((name, None) for name in names))
    }
    operators = {}
    for domain, by_name in document["operators"].items():
        for op_type, by_version in by_name.items():
            for since, entry in by_version.items():
                operators[domain, op_type, int(since)] = _support(domain, op_type, int(since), entry, cases)
    runtime = {**document["runtime"], "features": tuple(document["runtime"]["features"])}
    return Table(Runtime(**runtime), document["onnx"], document["ir_version"], document["opsets"], operators, cases)


def _support(
    domain: str, op_type: str, since: int, entry: Mapping[str, list[str]], cases: Mapping[str, tuple[str, str | None]]
) -> OperatorSupport:
    sets = {
        kind: frozenset(tuple(text.split(" ")) if text else () for text in entry.get(kind, []))
        for kind in (*KINDS, "on_cpu")
    }
    named = {name: f"{cases[name][0]}: {cases[name][1]}" for name in entry.get("cases", [])}
    variables, signature = tuple(entry["variables"]), tuple(entry.get("signature", ()))
    return OperatorSupport(domain, op_type, since, variables, signature, **sets, cases=named)


def to_json(table: Table) -> dict[str, object]:
    """Return the document that ``read`` reads: sorted, without dates, the same for the same measurements."""
    reasons = sorted({reason for _, reason in table.cases.values() if reason is not None})
    number = {reason: index for index, reason in enumerate(reasons)}
    cases: dict[str, object] = {}
    for kind in sorted({kind for kind, _ in table.cases.values()}):
        named = {name: reason for name, (status, reason) in sorted(table.cases.items()) if status == kind}
        told = any(reason is not None for reason in named.values())
        cases[kind] = {n: None if r is None else number[r] for n, r in named.items()} if told else list(named)
    operators: dict[str, dict[str, dict[str, dict[str, list[str]]]]] = {}
    for (domain, op_type, since), support in sorted(table.operators.items()):
        entry: dict[str, list[str]] = {"variables": list(support.variables)}
        for kind in (*KINDS, "on_cpu"):
            if found := getattr(support, kind):
                entry[kind] = sorted(" ".join(dtypes) for dtypes in found)
        if support.signature:
            entry["signature"] = list(support.signature)
        if support.cases:
            entry["cases"] = sorted(support.cases)
        operators.setdefault(domain, {}).setdefault(op_type, {})[str(since)] = entry
    runtime = table.runtime
    return {
        "format": FORMAT,
        "runtime": {
            **{k: getattr(runtime, k) for k in runtime.__dataclass_fields__},
            "features": list(runtime.features),
        },
        "onnx": table.onnx_version,
        "ir_version": table.ir_version,
        "opsets": dict(sorted(table.opsets.items())),
        "reasons": reasons,
        "cases": cases,
        "operators": operators,
    }
