"""Verdicts and times as plain rows and lines; the command line prints them."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from statistics import median

from edgekit import reasons
from edgekit.matrix import MatrixRow
from edgekit.records.run_record import RunRecord
from edgekit.records.verdict import OutputStatus, OutputVerdict, Verdict, VerdictStatus
from edgekit.report import words
from edgekit.report.placement import placement_words
from edgekit.timing import TimingRow

# More outputs than this are shown by name: the matches in one row, what is wrong in a few.
_MANY = 40
_MANY_MATCHES = 8  # the same, where everything matches
_SHOWN = 10  # how many wrong outputs of one name are shown alone


@dataclass(frozen=True)
class TextColumn:
    """A heading, and whether the cells below it are numbers. ``spare``: the highest is left out first; 0: never."""

    title: str
    number: bool = False
    spare: int = 0


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
    TextColumn("of scale", number=True, spare=3),
    TextColumn("SNR dB", number=True, spare=1),
    TextColumn("cosine", number=True, spare=5),
    TextColumn("top-1", number=True, spare=4),
    TextColumn("allowed", spare=2),
    TextColumn("would pass at"),
)
_MATRIX_COLUMNS = (
    TextColumn("combination"),
    TextColumn("verdict"),
    TextColumn("worst", spare=1),
    TextColumn("of tol.", number=True),
    TextColumn("create", number=True, spare=2),
    TextColumn("first", number=True),
    TextColumn("later", number=True),
)
_SOFTWARE = "†"
# A combination whose trimmed runtime lacked something; its times are of what took over.
_MISSED = ", missed"


def output_table(verdict: Verdict) -> TextTable:
    """Return a row for every case and output; where there are many, matches of one output share a row."""
    outputs = verdict.outputs
    most = _MANY_MATCHES if all(output.status == "match" for output in outputs) else _MANY
    rows = [_row(output) for output in outputs] if len(outputs) <= most else _grouped(outputs)
    concluded = _concluded(verdict)
    title = f"{verdict.title}: {concluded[0].lower()}{concluded[1:]}"
    return TextTable(title, _OUTPUT_COLUMNS, tuple(rows))


def timing_table(rows: Sequence[TimingRow], where: str = "browser") -> TextTable:
    """Return the times of the browser, or of what ``where`` names, beside those of the desktop, with their ratio."""
    columns = (
        TextColumn("step"),
        TextColumn(where, number=True),
        TextColumn("desktop", number=True),
        TextColumn(f"{where} / desktop", number=True),
    )
    cells = (
        (row.name, words.milliseconds(row.browser_ms), words.milliseconds(row.desktop_ms), words.ratio(row.ratio))
        for row in rows
    )
    return TextTable("Times (all but the later runs are paid once)", columns, tuple(cells))


def matrix_table(rows: Sequence[MatrixRow]) -> TextTable:
    """Return a row for each combination: its verdict, the output nearest to or furthest past its tolerance, its times.

    Its error is shown as a share of its tolerance, both relative to its scale. Times on a software adapter are marked.
    """
    title = f"{rows[0].result.verdict.title.removesuffix(f' · {rows[0].combination.label}')}: combinations"
    return TextTable(title, _MATRIX_COLUMNS, tuple(_matrix_row(row) for row in rows))


def _matrix_row(row: MatrixRow) -> tuple[str, ...]:
    verdict, record = row.result.verdict, row.result.record
    mark = {"passed": "✓", "not_run": words.NOTHING}.get(verdict.status, "✗")
    missed = _MISSED if record is not None and record.misses else ""
    worst = next(iter(worst_first(verdict.outputs)), None) if not verdict.has_nothing else None
    return (
        row.combination.label,
        f"{mark} {words.VERDICT_WORDS[verdict.status].lower()}{missed}",
        words.NOTHING if worst is None else worst.output,
        words.NOTHING if worst is None else words.share(worst),
        *_matrix_times(record),
    )


def _matrix_times(record: RunRecord | None) -> tuple[str, str, str]:
    if record is None:
        return (words.NOTHING,) * 3
    timings = record.timings
    later = median(timings.later_run_ms) if timings.later_run_ms else None
    software = words.software_adapter(record.environment) is not None
    create, first, last = (
        words.milliseconds(time) + (_SOFTWARE if software and time is not None else "")
        for time in (timings.create_ms, timings.first_run_ms, later)
    )
    return create, first, last


def matrix_notes(rows: Sequence[MatrixRow]) -> tuple[str, ...]:
    """Return what stands below the matrix: why combinations did not pass, what would help, and how many did."""
    compared = any(row.result.record for row in rows)
    lines = ["of tol.: the worst output's error as a share of its tolerance."] if compared else []
    if adapters := dict.fromkeys(
        filter(None, (words.software_adapter(row.result.verdict.environment) for row in rows))
    ):
        lines.append(f"{_SOFTWARE} on the CPU ({'; '.join(adapters)}): these times say nothing about a GPU.")
    lines += _matrix_placements(rows)
    lines += _matrix_misses(rows)
    grouped: dict[tuple[VerdictStatus, str, str | None], list[str]] = {}
    for row in rows:
        if row.note is not None:
            grouped.setdefault((row.result.verdict.status, row.note, row.hint), []).append(row.combination.label)
    for (status, note, hint), labels in grouped.items():
        lines.append(f"{words.VERDICT_WORDS[status]}: {', '.join(labels)}: {note}")
        lines += [f"  hint: {hint}"] if hint else []
    passed = sum(row.result.verdict.passed for row in rows)
    silent = sum(row.result.verdict.status == "not_run" for row in rows)
    counted = f"{passed} of {len(rows)} combinations passed"
    lines.append(f"{'✓' if passed == len(rows) else '✗'} {counted}" + (f", {silent} not run." if silent else "."))
    return tuple(lines)


def _matrix_misses(rows: Sequence[MatrixRow]) -> list[str]:
    """Say what trimmed runtimes missed, combinations that missed the same in one line."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for miss in () if row.result.record is None else row.result.record.misses:
            found.setdefault(reasons.missed(miss), []).append(row.combination.label)
    return [f"warning: {', '.join(labels)}: {said}" for said, labels in found.items()]


def _matrix_placements(rows: Sequence[MatrixRow]) -> list[str]:
    """Say where nodes ran, combinations that agree in one line."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if (said := placement_words(row.result.record)) is not None:
            found.setdefault(said, []).append(row.combination.label)
    return [f"{', '.join(labels)}: {said}" for said, labels in found.items()]


def summary(verdict: Verdict, record: RunRecord | None = None, *, titled: bool = False) -> tuple[str, ...]:
    """Return the verdict in a line, then where the nodes of ``record`` ran, then its reasons and warnings, a line each.

    ``titled``: with the model's title, as several verdicts below one another need it.
    """
    matching = sum(output.status == "match" for output in verdict.outputs)
    passed = "✓" if verdict.passed else "✗"
    title = f"{verdict.title}: " if titled else ""
    head = f"{passed} {title}{_concluded(verdict)}"
    lines = [f"{head}: {matching} of {verdict.expected} outputs match, {verdict.compared} were compared."]
    if verdict.environment is not None:
        lines.append(f"  on {words.where(verdict.environment)}")
    if (said := placement_words(record)) is not None:
        lines.append(f"  {said}")
    lines += [f"  {line}" for line in words.worth(verdict)]
    shown, later = words.shortened(verdict.reasons)
    lines += [f"  - {reason}" for reason in shown]
    lines += [f"  - and {len(later)} more outputs like these"] if later else []
    lines += [f"  warning: {warning}" for warning in verdict.warnings]
    return tuple(lines)


def _concluded(verdict: Verdict) -> str:
    subject = words.subject(verdict)
    return words.VERDICT_WORDS[verdict.status] + (f" for {subject}" if subject else "")


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
            rows.append(_row(rest[0], f"worst: {rest[0].case}" if len(rest) > 1 else None, len(rest)))
    return rows if len(rows) <= _MANY else _worst(outputs)


def _worst(outputs: Sequence[OutputVerdict]) -> list[tuple[str, ...]]:
    """Return a row for each of the worst, and one for the others of each verdict: there are too many names."""
    ordered = worst_first(outputs)
    wrong = sum(output.status not in ("match", "not_comparable") for output in outputs)
    shown = min(wrong, _SHOWN)
    rows = [_row(output) for output in ordered[:shown]]
    others: dict[OutputStatus, list[OutputVerdict]] = {}
    for output in ordered[shown:]:
        others.setdefault(output.status, []).append(output)
    for members in others.values():
        worst = members[0]
        rows.append((f"and {len(members)} more", f"worst: {worst.output}", *_row(worst, count=len(members))[2:]))
    return rows
