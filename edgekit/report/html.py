"""Verdicts and records to one self-contained page: no script, nothing fetched, fit for print and for a phone."""

import base64
import hashlib
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from markupsafe import Markup

from edgekit import __version__, resources
from edgekit.records import tensors
from edgekit.records.cases import CaseSet, GoldenCase
from edgekit.records.run_record import Attempt, Environment, RunRecord, Timings
from edgekit.records.verdict import OutputVerdict, Verdict, VerdictStatus
from edgekit.render import render
from edgekit.report import words
from edgekit.report.page import (
    Bar,
    CaseRow,
    Cell,
    Fact,
    Kind,
    Matrix,
    MatrixRow,
    OutputGroup,
    OutputRow,
    Page,
    Run,
    Step,
    TimeRow,
)
from edgekit.report.placement import fallback, placement_words
from edgekit.report.text import worst_first
from edgekit.timing import timing_rows

TEMPLATE, STYLE = "report.html.j2", "report.css"
_MAX_ROWS = 1000  # rows of one table; a page of more is slow to open and read by nobody
_DECADES_BELOW, _DECADES_ABOVE = 6, 4  # the axis of a bar, around what is allowed

_VERDICT_KINDS: dict[VerdictStatus, Kind] = {"passed": "good", "failed": "bad", "refused": "caution", "not_run": "idle"}
_VERDICT_MARKS: dict[VerdictStatus, str] = {"passed": "✓", "failed": "✗", "refused": "!", "not_run": "?"}
_STEP_KINDS: dict[str, Kind] = {"created": "good", "refused": "bad", "unavailable": "idle"}

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Entry:
    """One verdict and all that is known beside it; ``command`` repeats the run."""

    verdict: Verdict
    record: RunRecord | None = None
    desktop: RunRecord | None = None
    case_set: CaseSet | None = None
    command: tuple[str, ...] = ()


def report_html(entries: Sequence[Entry]) -> str:
    """Return the page for one verdict, or for several side by side. The same entries give the same text."""
    folder = resources.root("templates") / "report"
    css = (folder / STYLE).read_text(encoding="utf-8")
    page = visible(report_page(entries, css))
    return render(folder, TEMPLATE, {field.name: getattr(page, field.name) for field in fields(page)})


def report_page(entries: Sequence[Entry], css: str) -> Page:
    """Return what the template shows, before names are made visible."""
    titles = list(dict.fromkeys(entry.verdict.title for entry in entries))
    return Page(
        title=", ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else ""),
        edgekit_version=__version__,
        css=Markup(css),  # noqa: S704  edgekit's own file
        css_sha256=base64.b64encode(hashlib.sha256(css.encode()).digest()).decode(),
        limit=100 * _DECADES_BELOW / (_DECADES_BELOW + _DECADES_ABOVE),
        runs=tuple(_run(number, entry) for number, entry in enumerate(entries, 1)),
        matrices=_matrices(entries),
    )


def visible(value: T) -> T:
    """Replace, in every string of a page, characters that show nothing or turn the text around by their escapes.

    Escaping for HTML is the template's; this keeps a model's names from looking like something else.
    """
    result: Any = value
    if isinstance(value, str) and not isinstance(value, Markup):
        result = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in value)
    elif isinstance(value, tuple):
        result = tuple(visible(item) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{field.name: visible(getattr(value, field.name)) for field in fields(value)})
    return result  # type: ignore[no-any-return]


def _run(number: int, entry: Entry) -> Run:
    verdict, record = entry.verdict, entry.record
    # Where nothing ran, every row would say the same; the reasons have said it once.
    outputs = () if verdict.status == "not_run" else verdict.outputs
    rows = [_output_row(output) for output in outputs]
    ordered = [_output_row(output) for output in worst_first(outputs)]
    cases = entry.case_set.cases if entry.case_set else ()
    return Run(
        number=number,
        title=verdict.title,
        label=_label(verdict),
        where=words.where(verdict.environment) if verdict.environment else "No record came back.",
        kind=_VERDICT_KINDS[verdict.status],
        mark=_VERDICT_MARKS[verdict.status],
        words=words.VERDICT_WORDS[verdict.status],
        headline=_headline(verdict),
        reference=words.reference(verdict.reference),
        reasons=verdict.reasons,
        warnings=verdict.warnings,
        facts=tuple(_facts(verdict.environment, verdict, record)) if verdict.environment else (),
        steps=tuple(_step(attempt) for attempt in verdict.attempts),
        groups=tuple(_groups(outputs)),
        wrong=tuple(row for row in ordered if row.kind == "bad")[:_MAX_ROWS],
        rows=tuple(rows[:_MAX_ROWS]),
        rows_left_out=max(0, len(rows) - _MAX_ROWS),
        times=_times(record, entry.desktop),
        cases=tuple(_case_row(case) for case in cases[:_MAX_ROWS]),
        cases_said=_cases_said(cases),
        left_out=entry.case_set.left_out if entry.case_set else (),
        hashes=_hashes(record),
        command=shlex.join(entry.command),
    )


def _label(verdict: Verdict) -> str:
    return words.subject(verdict) or (verdict.environment.runner if verdict.environment else "no record")


def _headline(verdict: Verdict) -> str:
    matching = sum(output.status == "match" for output in verdict.outputs)
    noun = "output" if verdict.expected == 1 else "outputs"
    if verdict.status == "passed":
        return f"{matching} of {verdict.expected} {noun} match the reference"
    if verdict.status == "failed":
        wrong = sum(output.status not in ("match", "not_comparable") for output in verdict.outputs)
        return f"{wrong} of {verdict.expected} {noun} do not match" if wrong else "The record is not what was asked for"
    if verdict.status == "refused" and verdict.environment is not None:
        ran = verdict.environment.execution_provider or "something else"
        said = f"{verdict.environment.execution_provider_asked} did not run this model"
        return f"{said}; {ran} did, and {matching} of {verdict.expected} {noun} match"
    return "Nothing was compared"


def _facts(environment: Environment, verdict: Verdict, record: RunRecord | None) -> list[Fact]:
    asked, ran = environment.execution_provider_asked, environment.execution_provider
    isolated, adapter = environment.cross_origin_isolated, environment.adapter
    facts = [
        Fact("Target", verdict.target or words.NOTHING),
        Fact("Asked for", asked),
        Fact("Ran", ran or "nothing", None if ran == asked else "fallback" if ran else "did not run"),
        *_placement(record),
        Fact("Runtime", f"{environment.runtime} {environment.runtime_version}"),
        Fact("Variant", environment.variant or words.NOTHING, "not the target's first" if verdict.variant else None),
        Fact("Runner", environment.runner),
        Fact("Threads", str(environment.threads)),
    ]
    if isolated is not None:
        facts.append(Fact("Cross-origin isolated", "yes" if isolated else "no", None if isolated else "one thread"))
    if adapter is not None:
        names = dict.fromkeys(
            n for n in (adapter.vendor, adapter.architecture, adapter.device, adapter.description) if n
        )
        facts.append(Fact("GPU adapter", " · ".join(names) or "unnamed", "software" if adapter.software else None))
        if adapter.features:
            facts.append(Fact("GPU features", ", ".join(adapter.features)))
    facts += [
        Fact(label, value)
        for label, value in (("Device", environment.device), ("Browser", environment.user_agent))
        if value
    ]
    return facts


def _placement(record: RunRecord | None) -> list[Fact]:
    said = placement_words(record)
    return [] if said is None else [Fact("Placement", said, "fallback" if fallback(record) else None)]


def _step(attempt: Attempt) -> Step:
    said = "ran" if attempt.status == "created" else attempt.status
    return Step(attempt.variant, attempt.execution_provider, _STEP_KINDS[attempt.status], said, attempt.reason)


def _output_row(output: OutputVerdict) -> OutputRow:
    return OutputRow(
        case=output.case,
        output=output.output,
        dtype=output.dtype,
        kind=_kind(output),
        mark=words.mark(output.status),
        words=words.OUTPUT_WORDS[output.status],
        bar=_bar(output),
        measures=words.measures(output),
        reason=output.reason,
    )


def _kind(output: OutputVerdict) -> Kind:
    return "good" if output.status == "match" else "idle" if output.status == "not_comparable" else "bad"


def _bar(output: OutputVerdict) -> Bar | None:
    """Draw an output's largest error against what is allowed; 0 has no length, and what no tolerance helps has all."""
    metrics, tolerance = output.metrics, output.tolerance
    if metrics is None:
        return None
    allowed = tolerance.absolute + tolerance.relative * metrics.scale if tolerance else 0.0
    if metrics.first_nonfinite is not None:
        return Bar(100.0, "NaN or infinity where the reference has another value")
    if metrics.max_abs == 0:
        return Bar(0.0, "no error")
    if allowed == 0 or math.isinf(metrics.max_abs):
        return Bar(100.0, "any error is too much" if allowed == 0 else "the error is infinite")
    share = metrics.max_abs / allowed
    decades = math.log10(share) if share > 0 else -_DECADES_BELOW
    length = 100 * (decades + _DECADES_BELOW) / (_DECADES_BELOW + _DECADES_ABOVE)
    return Bar(round(min(100.0, max(1.0, length)), 1), f"{words.number(share)} times what is allowed")


def _groups(outputs: Sequence[OutputVerdict]) -> list[OutputGroup]:
    by_name: dict[str, list[OutputVerdict]] = {}
    for output in outputs:
        by_name.setdefault(output.output, []).append(output)
    return [
        OutputGroup(sum(o.status == "match" for o in members), len(members), _output_row(worst_first(members)[0]))
        for members in by_name.values()
    ]


def _times(record: RunRecord | None, desktop: RunRecord | None) -> tuple[TimeRow, ...]:
    if record is None:
        return ()
    return tuple(
        TimeRow(
            row.name, words.milliseconds(row.browser_ms), words.milliseconds(row.desktop_ms), words.ratio(row.ratio)
        )
        for row in (timing_rows(record, desktop) if record.timings != Timings() else ())
    )


def _case_row(case: GoldenCase) -> CaseRow:
    grade = case.grade
    return CaseRow(case.id, case.origin, grade.weak, words.number(grade.ulp_shift), words.number(grade.weight_shift))


def _cases_said(cases: Sequence[GoldenCase]) -> str:
    weak = sum(not case.grade.strong for case in cases)
    return f"{len(cases)} in all, {len(cases) - weak} strong, {weak} weak"


def _hashes(record: RunRecord | None) -> tuple[Fact, ...]:
    if record is None:
        return ()
    named = (("Manifest", record.hashes.manifest), ("Model", record.hashes.model), ("Runtime", record.hashes.runtime))
    return tuple(Fact(label, value or words.NOTHING) for label, value in named)


def _matrices(entries: Sequence[Entry]) -> tuple[Matrix, ...]:
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
        MatrixRow(key[0], key[2], tuple(_cell(outputs.get(key)) for outputs in found)) for key in list(keys)[:_MAX_ROWS]
    ]
    titles = dict.fromkeys(entry.verdict.title for _, entry in members)
    columns = (f"{number} · {entry.verdict.title} · {_label(entry.verdict)}" for number, entry in members)
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
    if verdict.status == "not_run":
        return Cell("idle", "", "not run")
    text = words.number(output.metrics.max_rel) if output.metrics else words.OUTPUT_WORDS[output.status]
    return Cell(_kind(output), words.mark(output.status), text)
