"""Verdicts and records to one self-contained page: nothing fetched, fit for print and for a phone.

Whatever the page says stands in its text and tables. Its script only draws figures of some of it.
"""

import base64
import hashlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from markupsafe import Markup

from edgekit import __version__, resources
from edgekit.records.cases import GoldenCase
from edgekit.records.run_record import Attempt, Environment, RunRecord, Timings
from edgekit.records.verdict import OutputVerdict, Verdict
from edgekit.render import render
from edgekit.report import words
from edgekit.report.entry import Entry, label
from edgekit.report.looks import MARKS, VERDICT_KINDS, output_kind
from edgekit.report.page import Bar, CaseRow, Fact, Kind, OutputGroup, OutputRow, Page, Run, Step, TimeRow
from edgekit.report.placement import fallback, placement_rows, placement_words
from edgekit.report.plots import error_plots, latency_rows, points_each, spans
from edgekit.report.side_by_side import MAX_ROWS, combinations, matrices
from edgekit.report.sizes import file_rows, size_rows
from edgekit.report.text import worst_first
from edgekit.timing import timing_rows

TEMPLATE, STYLE, SCRIPT = "report.html.j2", "report.css", "report.js"
_PLOT = "uplot"  # the folder of the library that draws
_DECADES_BELOW, _DECADES_ABOVE = 6, 4  # the axis of a bar, around what is allowed

_STEP_KINDS: dict[str, Kind] = {"created": "good", "refused": "bad", "unavailable": "idle"}

T = TypeVar("T")


def report_html(entries: Sequence[Entry]) -> str:
    """Return the page for one verdict, or for several side by side. The same entries give the same text."""
    folder = resources.root("templates") / "report"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    licence = f"/* uPlot draws the figures.\n\n{read(f'{_PLOT}/LICENSE')}*/"
    css = f"{read(f'{_PLOT}/uPlot.min.css')}\n{read(STYLE)}"
    script = "\n".join((licence, read(f"{_PLOT}/uPlot.iife.min.js"), read(SCRIPT)))
    page = visible(report_page(entries, css, script))
    return render(folder, TEMPLATE, {field.name: getattr(page, field.name) for field in fields(page)})


def report_page(entries: Sequence[Entry], css: str, script: str = "") -> Page:
    """Return what the template shows, before names are made visible."""
    titles = list(dict.fromkeys(entry.verdict.title for entry in entries))
    points = points_each(entries)
    runs = tuple(_run(number, entry, points) for number, entry in enumerate(entries, 1))
    if not any(run.latencies or any(plot.x for plot in run.errors) for run in runs):
        script = ""
    return Page(
        title=_title(titles),
        edgekit_version=__version__,
        css=Markup(css),  # noqa: S704  edgekit's own file
        css_sha256=_hash(css),
        script=Markup(script),  # noqa: S704  files that travel with edgekit
        script_sha256=_hash(script),
        limit=100 * _DECADES_BELOW / (_DECADES_BELOW + _DECADES_ABOVE),
        combinations=combinations(entries),
        runs=runs,
        matrices=matrices(entries),
    )


def _title(titles: Sequence[str]) -> str:
    """Name the page; combinations of one bundle, whose titles begin with its own, by that."""
    if len(titles) > 1 and len(found := {title.partition(" · ")[0] for title in titles}) == 1:
        return f"{found.pop()}: {len(titles)} combinations"
    return ", ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else "")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


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


def _run(number: int, entry: Entry, points: int) -> Run:
    verdict, record = entry.verdict, entry.record
    # Where nothing ran, every row would say the same; the reasons have said it once.
    outputs = () if verdict.has_nothing else verdict.outputs
    rows = [_output_row(output) for output in outputs]
    ordered = [_output_row(output) for output in worst_first(outputs)]
    cases = entry.case_set.cases if entry.case_set else ()
    times, start = _times(record, entry.desktop)
    reasons, more_reasons = words.shortened(verdict.reasons)
    return Run(
        number=number,
        title=verdict.title,
        label=label(verdict),
        where=words.where(verdict.environment) if verdict.environment else "No record came back.",
        kind=VERDICT_KINDS[verdict.status],
        mark=MARKS[verdict.status],
        words=words.VERDICT_WORDS[verdict.status],
        headline=_headline(verdict),
        reference=words.reference(verdict.reference),
        reasons=reasons,
        more_reasons=more_reasons,
        warnings=verdict.warnings,
        facts=tuple(_facts(verdict.environment, verdict, record)) if verdict.environment else (),
        steps=tuple(_step(attempt) for attempt in verdict.attempts),
        worth=words.worth(verdict),
        groups=tuple(_groups(outputs)),
        wrong=tuple(row for row in ordered if row.kind == "bad")[:MAX_ROWS],
        rows=tuple(rows[:MAX_ROWS]),
        rows_left_out=max(0, len(rows) - MAX_ROWS),
        errors=error_plots(entry, worst_first(outputs), points),
        times=times,
        start=start,
        software=words.software_adapter(verdict.environment) or "",
        latencies=latency_rows(record, entry.desktop),
        placement=placement_rows(record),
        placed=placement_words(record) or "",
        sizes=size_rows(entry.manifest),
        files=file_rows(entry.manifest),
        cases=tuple(_case_row(case) for case in cases[:MAX_ROWS]),
        cases_said=_cases_said(cases),
        left_out=entry.case_set.left_out if entry.case_set else (),
        hashes=_hashes(record),
        command=shlex.join(entry.command),
    )


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
        if verdict.has_nothing:
            return f"{said}, and nothing was compared"
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
        kind=output_kind(output),
        mark=words.mark(output.status),
        words=words.OUTPUT_WORDS[output.status],
        bar=_bar(output),
        measures=words.measures(output),
        reason=output.reason,
    )


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


def _times(record: RunRecord | None, desktop: RunRecord | None) -> tuple[tuple[TimeRow, ...], str]:
    """Return a row for each step that was timed, and how long the start took in all."""
    if record is None or record.timings == Timings():
        return (), ""
    placed, total = spans(record.timings)
    rows = (
        TimeRow(
            row.name,
            placed.get(row.name),
            words.milliseconds(row.browser_ms),
            words.milliseconds(row.desktop_ms),
            words.ratio(row.ratio),
        )
        for row in timing_rows(record, desktop)
    )
    return tuple(rows), words.milliseconds(total) if total else ""


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
