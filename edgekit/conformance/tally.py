"""The standard cases on several runtimes side by side: passes, wrong answers and refusals, by operator."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import onnx

from edgekit.conformance.cases import Case
from edgekit.conformance.judge import Status, judge
from edgekit.conformance.suite import Reply
from edgekit.conformance.table import Runtime
from edgekit.conformance.tabulate import reason

STATUSES: tuple[Status, ...] = get_args(Status)
SEVERAL = "(several nodes)"
_CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Judged:
    """A case on one runtime. ``why``: it does not pass. ``on_cpu``: a session of a GPU gave all of it to the CPU."""

    name: str
    operator: str
    status: Status
    why: str | None
    on_cpu: bool


@dataclass(frozen=True)
class Column:
    """One runtime in one place. ``seconds``: for all cases, the start of the browser included."""

    runtime: Runtime
    seconds: float
    cases: tuple[Judged, ...]

    @property
    def label(self) -> str:
        """Such as "desktop" or "Firefox jspi"."""
        if self.runtime.browser is None:
            return "desktop"
        return f"{self.runtime.browser.split(' ', 1)[0]} {self.runtime.variant}"

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many cases there are of each status, all statuses named."""
        found = Counter(case.status for case in self.cases)
        return {status: found[status] for status in STATUSES}

    @property
    def wrong(self) -> tuple[Judged, ...]:
        """The cases with a wrong answer, which is worse than a refusal."""
        return tuple(case for case in self.cases if case.status == "wrong")

    def by_operator(self) -> Mapping[str, Mapping[Status, int]]:
        """Return the counts of each operator, by name, of statuses that occur."""
        found: dict[str, Counter[Status]] = defaultdict(Counter)
        for case in self.cases:
            found[case.operator][case.status] += 1
        return dict(sorted(found.items()))


def column(runtime: Runtime, cases: Sequence[Case], replies: Sequence[Reply], seconds: float) -> Column:
    """Judge what a runtime replied to ``cases``."""
    return Column(runtime, seconds, tuple(_judged(case, reply) for case, reply in zip(cases, replies, strict=True)))


def _judged(case: Case, reply: Reply) -> Judged:
    status, why = judge(case, reply)
    on_cpu = reply.placement == (_CPU,)
    return Judged(case.name, operator(case), status, reason(why), on_cpu)


def operator(case: Case) -> str:
    """Return the operator that a case tries, as ``DOMAIN.TYPE`` where the domain is not ONNX's."""
    nodes = onnx.load_model_from_string(case.model).graph.node
    if len(nodes) != 1:
        return SEVERAL
    domain = nodes[0].domain
    return f"{domain}.{nodes[0].op_type}" if domain and domain != "ai.onnx" else str(nodes[0].op_type)


def short(counts: Mapping[Status, int]) -> str:
    """Return ``passes/wrong/refused`` of one operator, refusals with failed and crashed runs; one number: all pass."""
    passes, wrong, loads = (counts.get(status, 0) for status in ("passes", "wrong", "loads"))
    refused = sum(counts.get(status, 0) for status in ("refused", "failed", "crashed"))
    if not wrong and not refused:
        return str(passes) if not loads else f"{passes}, {loads} not judged"
    return f"{passes}/{wrong}/{refused}" + (f", {loads} not judged" if loads else "")


def page(columns: Sequence[Column], command: str) -> str:
    """Return the columns as Markdown; ``command`` is what measures them."""
    return "\n".join([*_head(columns, command), *_wrong(columns), *_operators(columns)]) + "\n"


def _head(columns: Sequence[Column], command: str) -> Iterator[str]:
    yield "# Conformance in browsers\n"
    yield f"<!-- Written by `{command}`. Run it again; do not edit. -->\n"
    total = len(columns[0].cases) if columns else 0
    yield f"{total:,} node cases of the onnx package ({onnx.__version__}), those with plain tensors, on desktop"
    yield "onnxruntime and on onnxruntime-web in real browsers. A wrong answer is worse than a refusal: nothing tells"
    yield "of it.\n"
    yield "```sh"
    yield command
    yield "```\n"
    yield "| column | runtime | execution provider | browser | adapter |"
    yield "|---|---|---|---|---|"
    for one in columns:
        runtime = one.runtime
        yield (
            f"| {one.label} | {runtime.package} {runtime.version} | {runtime.execution_provider} "
            f"| {runtime.browser or '–'} | {runtime.adapter or '–'} |"
        )
    yield "\n| | " + " | ".join(one.label for one in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for status in STATUSES:
        yield f"| {status} | " + " | ".join(f"{one.counts[status]:,}" for one in columns) + " |"
    yield ""
    yield "`loads`: a session is created, and the answer is not known (float16 on an adapter without it). `refused`: no"
    yield "session. `failed`: the run threw. `crashed`: the runtime trapped or never answered.\n"


def _wrong(columns: Sequence[Column]) -> Iterator[str]:
    yield "## Wrong answers\n"
    found: dict[str, list[tuple[str, Judged]]] = defaultdict(list)
    for one in columns:
        for case in one.wrong:
            found[case.name].append((one.label, case))
    yield "| case | operator | where | what |\n|---|---|---|---|"
    for name, places in sorted(found.items()):
        where = ", ".join(label for label, _ in places)
        yield f"| `{name}` | {places[0][1].operator} | {where} | {_cell(places[-1][1].why or '')} |"
    yield ""


def _operators(columns: Sequence[Column]) -> Iterator[str]:
    yield "## By operator\n"
    yield "`passes/wrong/refused`, refused with failed and crashed. One number: all cases pass.\n"
    yield "| operator | " + " | ".join(one.label for one in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    tables = [one.by_operator() for one in columns]
    for name in sorted({name for table in tables for name in table}):
        yield f"| {name} | " + " | ".join(short(table.get(name, {})) for table in tables) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
