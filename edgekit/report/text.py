"""Verdicts and times as plain rows and lines; the command line prints them."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from edgekit.records.verdict import OutputStatus, OutputVerdict, Verdict
from edgekit.report import words
from edgekit.timing import TimingRow

_MANY = 40  # more outputs than this are shown by name: the matches in one row, what is wrong in a few
_SHOWN = 10  # how many wrong outputs of one name are shown alone


@dataclass(frozen=True)
class TextColumn:
    """A heading, and whether the cells below it are numbers."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class TextTable:
    """A table of plain text. Cells hold names from models as they are: whoever prints them makes them safe."""

    title: str
    columns: tuple[TextColumn, ...]
    rows: tuple[tuple[str, ...], ...]


_OUTPUT_COLUMNS = (
    TextColumn("case"),
    TextColumn("output"),
    TextColumn("verdict"),
    TextColumn("max abs", number=True),
    TextColumn("of scale", number=True),
    TextColumn("SNR dB", number=True),
    TextColumn("cosine", number=True),
    TextColumn("top-1", number=True),
    TextColumn("allowed"),
    TextColumn("would pass at"),
)
_TIMING_COLUMNS = (
    TextColumn("step"),
    TextColumn("browser", number=True),
    TextColumn("desktop", number=True),
    TextColumn("browser / desktop", number=True),
)


def output_table(verdict: Verdict) -> TextTable:
    """Return a row for every case and output; where there are very many, matches of one output share a row."""
    outputs = verdict.outputs
    rows = [_row(output) for output in outputs] if len(outputs) <= _MANY else _grouped(outputs)
    return TextTable(f"{verdict.title}: {words.VERDICT_WORDS[verdict.status].lower()}", _OUTPUT_COLUMNS, tuple(rows))


def timing_table(rows: Sequence[TimingRow]) -> TextTable:
    """Return the times of the browser beside those of the desktop, with their ratio."""
    cells = (
        (row.name, words.milliseconds(row.browser_ms), words.milliseconds(row.desktop_ms), words.ratio(row.ratio))
        for row in rows
    )
    return TextTable("Times", _TIMING_COLUMNS, tuple(cells))


def summary(verdict: Verdict) -> tuple[str, ...]:
    """Return the verdict in a line, then its reasons and warnings, a line each."""
    matching = sum(output.status == "match" for output in verdict.outputs)
    passed = "✓" if verdict.passed else "✗"
    target = f" for {verdict.target}" if verdict.target else ""
    head = f"{passed} {words.VERDICT_WORDS[verdict.status]}{target}"
    lines = [f"{head}: {matching} of {verdict.expected} outputs match, {verdict.compared} were compared."]
    if verdict.environment is not None:
        lines.append(f"  on {words.where(verdict.environment)}")
    lines += [f"  - {reason}" for reason in verdict.reasons]
    lines += [f"  warning: {warning}" for warning in verdict.warnings]
    return tuple(lines)


def _row(output: OutputVerdict, case: str | None = None, count: int = 1) -> tuple[str, ...]:
    verdict = f"{words.mark(output.status)} {words.OUTPUT_WORDS[output.status]}" + (f" ×{count}" if count > 1 else "")
    return (case or output.case, output.output, verdict, *astuple(words.measures(output)))


def worst_first(outputs: Sequence[OutputVerdict]) -> list[OutputVerdict]:
    """Sort by how large a relative tolerance each would need; what has no metrics comes first when it is wrong."""

    def badness(output: OutputVerdict) -> tuple[bool, float]:
        wrong = output.status not in ("match", "not_comparable")
        return wrong, output.metrics.passing_relative if output.metrics else float("inf" if wrong else 0)

    return sorted(outputs, key=badness, reverse=True)


def _grouped(outputs: Sequence[OutputVerdict]) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, OutputStatus], list[OutputVerdict]] = {}
    for output in outputs:
        groups.setdefault((output.output, output.status), []).append(output)
    rows = []
    for (_, status), members in groups.items():
        ordered = worst_first(members)
        alone = [] if status in ("match", "not_comparable") else ordered[:_SHOWN]
        rows += [_row(output) for output in alone]
        if rest := ordered[len(alone) :]:
            rows.append(_row(rest[0], f"{len(rest)} cases, worst {rest[0].case}" if len(rest) > 1 else None, len(rest)))
    return rows
