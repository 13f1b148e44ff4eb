"""Several runs beside one another: a line for each, and the outputs of those that are of one model in a matrix."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from edgekit.records import tensors
from edgekit.records.cases import GoldenCase
from edgekit.records.verdict import OutputVerdict, Verdict
from edgekit.report import words
from edgekit.report.entry import Entry, label
from edgekit.report.looks import MARKS, VERDICT_KINDS, output_kind
from edgekit.report.page import Cell, Combination, Matrix, MatrixRow
from edgekit.report.placement import placement_words
from edgekit.report.text import worst_first

MAX_ROWS = 1000  # rows of one table; a page of more is slow to open and read by nobody


def combinations(entries: Sequence[Entry]) -> tuple[Combination, ...]:
    """Return a line for each run, in their order; none where there is only one, which has a page for itself."""
    return tuple(_combination(number, entry) for number, entry in enumerate(entries, 1)) if len(entries) > 1 else ()


def _combination(number: int, entry: Entry) -> Combination:
    verdict, record = entry.verdict, entry.record
    worst = next(iter(worst_first(verdict.outputs)), None) if not verdict.has_nothing else None
    timings = record.timings if record is not None else None
    later = median(timings.later_run_ms) if timings is not None and timings.later_run_ms else None
    return Combination(
        number=number,
        label=f"{number} · {verdict.title} · {label(verdict)}",
        where=words.where(verdict.environment) if verdict.environment else "No record came back.",
        kind=VERDICT_KINDS[verdict.status],
        mark=MARKS[verdict.status],
        words=words.VERDICT_WORDS[verdict.status],
        worst=words.NOTHING if worst is None else worst.output,
        share=words.NOTHING if worst is None else words.share(worst),
        create=words.milliseconds(timings.create_ms if timings else None),
        first=words.milliseconds(timings.first_run_ms if timings else None),
        later=words.milliseconds(later),
        placement=placement_words(record) or words.NOTHING,
        software=words.software_adapter(verdict.environment) is not None,
    )


def matrices(entries: Sequence[Entry]) -> tuple[Matrix, ...]:
    """Put runs of one model side by side; runs of different models have nothing to compare."""
    groups: dict[str, list[tuple[int, Entry]]] = {}
    for number, entry in enumerate(entries, 1):
        model = entry.case_set.model_sha256 if entry.case_set else entry.record.hashes.model if entry.record else ""
        groups.setdefault(model, []).append((number, entry))
    return tuple(_matrix(members) for members in groups.values() if len(members) > 1)


def _matrix(members: Sequence[tuple[int, Entry]]) -> Matrix:
    found = [
        {(case, digest, output.output): (entry.verdict, output) for case, digest, output in _identified(entry)}
        for _, entry in members
    ]
    keys = Counter(key for outputs in found for key in outputs)  # keeps the order in which they were met
    rows = [
        MatrixRow(key[0], key[2], tuple(_cell(outputs.get(key)) for outputs in found)) for key in list(keys)[:MAX_ROWS]
    ]
    titles = dict.fromkeys(entry.verdict.title for _, entry in members)
    columns = (f"{number} · {entry.verdict.title} · {label(entry.verdict)}" for number, entry in members)
    return Matrix(", ".join(titles), tuple(columns), tuple(rows), len(keys) - len(rows))


def _identified(entry: Entry) -> Iterator[tuple[str, str, OutputVerdict]]:
    """Yield each output with its case and a digest of its inputs: the same id may name another case elsewhere."""
    digests = {case.id: _digest(case) for case in entry.case_set.cases} if entry.case_set else {}
    for output in entry.verdict.outputs:
        yield output.case, digests.get(output.case, ""), output


def _digest(case: GoldenCase) -> str:
    parts, arrays = tensors.split("", case.inputs)
    said = repr((case.feed_back, parts)).encode()
    return hashlib.sha256(said + tensors.encode(arrays)).hexdigest()


def _cell(found: tuple[Verdict, OutputVerdict] | None) -> Cell:
    if found is None:
        return Cell("idle", "", "not asked")
    verdict, output = found
    if verdict.has_nothing:
        return Cell("idle", "", words.VERDICT_WORDS[verdict.status].lower())
    text = words.number(output.metrics.max_rel) if output.metrics else words.OUTPUT_WORDS[output.status]
    return Cell(output_kind(output), words.mark(output.status), text)
