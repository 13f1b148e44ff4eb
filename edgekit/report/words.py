"""How numbers and conclusions read in every report."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

from edgekit.figures import figure
from edgekit.reasons import is_of_output
from edgekit.records.cases import Reference, Tolerance
from edgekit.records.run_record import Adapter, Environment
from edgekit.records.settings import SessionSettings
from edgekit.records.strength import Strength
from edgekit.records.verdict import (
    LabelResult,
    Metrics,
    OutputStatus,
    OutputVerdict,
    Steadiness,
    Verdict,
    VerdictStatus,
)

NOTHING = "–"
_NODES_NAMED = 5
MOST_REASONS = 10
_MEGABYTE = 1e6
_NODES = 4
_UP = Context(prec=3, rounding=ROUND_CEILING)

# In this order, for each also claims to be those below it.
_BROWSERS = (
    ("Firefox", re.compile(r"\bFirefox/(\d+)")),
    ("Edge", re.compile(r"\bEdg/(\d+)")),
    ("Chrome", re.compile(r"Chrome/(\d+)")),
    ("Safari", re.compile(r"\((?:Macintosh|iPhone|iPad).*\bVersion/(\d+)")),
    ("WebKit", re.compile(r"\bAppleWebKit/(\d+)")),
)

VERDICT_WORDS: dict[VerdictStatus, str] = {
    "passed": "Passed",
    "failed": "Failed",
    "refused": "Refused",
    "not_run": "Not run",
}
OUTPUT_WORDS: dict[OutputStatus, str] = {
    "match": "match",
    "mismatch": "mismatch",
    "missing": "missing",
    "wrong_shape": "wrong shape",
    "wrong_dtype": "wrong dtype",
    "case_failed": "not computed",
    "not_comparable": "not compared",
}


def subject(verdict: Verdict) -> str:
    """Say what a verdict is of: the target, or one variant of it alone; empty when neither is known."""
    if verdict.variant is None:
        return verdict.target or ""
    return f"{verdict.target}'s variant {verdict.variant}" if verdict.target else f"variant {verdict.variant}"


def reference(reference: Reference) -> str:
    """Say where the right answers come from."""
    version = f"{reference.runtime} {reference.runtime_version}".strip()
    if reference.runtime != "onnxruntime":  # nothing else has an optimization level
        return f"{reference.name} ({version})"
    return f"{reference.name} ({version}, graph optimization {reference.optimization})"


def strength(found: Strength) -> tuple[str, ...]:
    """Say how many faulty models the cases would catch, and which nodes no case watches."""
    if found.problem is not None:
        return (f"strength of the cases: not measured; {found.problem}",)
    tried = f"{found.tried} of {found.possible} possible faults tried"
    refused = f", of which the runtime refused {found.refused}" if found.refused else ""
    lines = [f"strength: the cases catch {found.caught} of {found.ran} faulty models ({tried}{refused})"]
    if found.unwatched:
        shown = ", ".join(f"{node.node} ({node.op_type})" for node in found.unwatched[:_NODES_NAMED])
        more = found.unwatched_nodes - min(len(found.unwatched), _NODES_NAMED)
        nodes = f"{found.unwatched_nodes} of {found.unwatched_nodes + found.watched_nodes} nodes tried"
        lines.append(f"no case watches {nodes}: {shown}{f' and {more} more' if more else ''}")
    return tuple(lines)


def shortened(reasons: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a verdict's reasons: those to show at once, and the outputs beyond the worst ten, which are left for later.

    What is no output's is always shown.
    """
    of_outputs = [reason for reason in reasons if is_of_output(reason)]
    later = set(of_outputs[MOST_REASONS:])
    return tuple(reason for reason in reasons if reason not in later), tuple(of_outputs[MOST_REASONS:])


def worth(verdict: Verdict) -> tuple[str, ...]:
    """Say what a verdict is worth, a line each: the strength of its cases, steadiness, the task's own result."""
    lines = [] if verdict.strength is None else list(strength(verdict.strength))
    if verdict.steadiness is not None:
        lines += steadiness(verdict.steadiness)
    for result in verdict.labels:
        lines += labels(result)
    return tuple(lines)


def steadiness(found: Steadiness) -> list[str]:
    """Say how many cases gave the same bits when they were run again, and what many runs of one came to."""
    same = f"{found.same_session_equal} of {found.same_session} cases in the same session"
    new = f"{found.new_session_equal} of {found.new_session} in a new one"
    said = [text for text, count in ((same, found.same_session), (new, found.new_session)) if count]
    if found.same_session and not found.new_session:
        said.append("a new session was not tried, or took too long")
    lines = [f"run again, the same bits: {', '.join(said)}"] if said else []
    if (soak := found.soak) is not None:
        differed = f"{soak.different} gave other bits (the last by {number(soak.drift)} of scale)"
        bits = "the same bits each time" if not soak.different else differed
        asked = "" if soak.runs == soak.asked else f" of {soak.asked} asked for"
        lines.append(f"{soak.runs} runs{asked} of case '{soak.case}': {bits}")
        runtime = _growth("runtime memory", soak.early_bytes, soak.late_bytes)
        process = soak.early_bytes is None and soak.early_heap_bytes is not None  # a device, which has no page
        heap = _growth("memory" if process else "JavaScript heap", soak.early_heap_bytes, soak.late_heap_bytes)
        lines.append(
            f"from the first quarter of them to the last: {milliseconds(soak.early_ms)} to "
            f"{milliseconds(soak.late_ms)} a run, {heap if process else f'{runtime}, {heap}'}"
        )
    return lines


def _growth(what: str, early: int | None, late: int | None) -> str:
    if early is None or late is None:
        return f"{what} not known"
    return f"{what} {early / _MEGABYTE:.1f} to {late / _MEGABYTE:.1f} MB"


def labels(result: LabelResult) -> list[str]:
    """Say how many samples desktop and device get right, and which of them changed."""
    counts = f"device {_of(result.device_right, result)}, desktop {_of(result.desktop_right, result)}"
    missing = f"; the device gave nothing for {result.not_computed}" if result.not_computed else ""
    lines = [f"labels of '{result.output}': {counts}{missing}"]
    shown = [
        f"{change.case}{f'[{change.row}]' if change.row else ''} (label {change.label}: desktop {change.desktop}, "
        f"device {change.device})"
        for change in result.changed[:_NODES_NAMED]
    ]
    if shown:
        more = len(result.changed) - len(shown)
        lines.append(f"changed on the device: {', '.join(shown)}{f' and {more} more' if more else ''}")
    return lines


def _of(right: int, result: LabelResult) -> str:
    share = f" ({math.floor(1000 * right / result.labelled) / 10:g} %)" if result.labelled else ""
    return f"{right} of {result.labelled} right{share}"


def mark(status: OutputStatus) -> str:
    """Return ✓ for a match, ✗ for a failure, and – for what cannot be compared."""
    return "✓" if status == "match" else NOTHING if status == "not_comparable" else "✗"


def number(value: float | None) -> str:
    """Write a number with three significant digits; None is a dash. See ``figure``."""
    if value is None:
        return NOTHING
    return figure(value)


def decibels(value: float) -> str:
    """Write a signal-to-noise ratio, in dB; infinite for equal outputs."""
    return f"{value:.1f}" if math.isfinite(value) else number(value)


def cosine(value: float) -> str:
    """Write a cosine with six decimals, or none where it is 1 to the sixth."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def top1(metrics: Metrics) -> str:
    """Write the fraction of rows whose largest entry agrees; rounded down, so that 100 % means all."""
    return NOTHING if metrics.top1_agrees is None else f"{math.floor(metrics.top1_agrees * 1000) / 10:g} %"


def milliseconds(value: float | None) -> str:
    """Write a time with its unit, in seconds from ten of them on."""
    if value is None:
        return NOTHING
    return f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms" if value < 10_000 else f"{value / 1000:.1f} s"


def ratio(value: float | None) -> str:
    """Write how many times as long one side took as the other."""
    return NOTHING if value is None else f"{value:.2f}×" if value < 10 else f"{figure(value)}×"


def tolerance(output: OutputVerdict) -> str:
    """Say what was allowed: "rel 0.001, abs 1e-06", or that it had to be equal."""
    if output.tolerance is None and output.status not in ("match", "mismatch"):
        return NOTHING
    if output.tolerance is None or output.tolerance == Tolerance(0.0, 0.0):
        return "equal"
    parts = [("rel", output.tolerance.relative), ("abs", output.tolerance.absolute)]
    return ", ".join(f"{name} {figure(value, grouped=False)}" for name, value in parts if value)


def would_pass(output: OutputVerdict) -> str:
    """Say which relative tolerance would have passed: rounded up, so that what is read does pass; "none" if none.

    What must be equal has none to advise: a label that is off by a little is wrong.
    """
    metrics = output.metrics
    if metrics is None or output.tolerance is None:
        return NOTHING
    if math.isinf(metrics.passing_relative):
        return "none"
    return f"rel {figure(float(_UP.create_decimal_from_float(metrics.passing_relative)), grouped=False)}"


def share(output: OutputVerdict) -> str:
    """Say how much of its tolerance an output's error takes, in per cent (from 1,000 on as a multiple)."""
    if output.metrics is None:
        return NOTHING
    allowed, needed = output.tolerance.relative if output.tolerance else 0.0, output.metrics.passing_relative
    if not allowed:
        return "0 %" if not needed else "∞"
    return multiple(needed / allowed)


def multiple(share: float) -> str:
    """Write a share of something in per cent; from 1,000 on as a multiple."""
    return f"{number(100 * share)} %" if share < 10 else f"{number(share)}×"


def size(count: int) -> str:
    """Write a number of bytes with its unit; a megabyte is a million."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 999_950 else f"{count / _MEGABYTE:.2f} MB"


def where(environment: Environment) -> str:
    """Say in a line where a record was made: device, runner, runtime, execution provider, adapter, threads."""
    adapter = environment.adapter
    ran = environment.execution_provider
    device = f"{environment.device} (emulated)" if environment.device and environment.emulated else environment.device
    parts = [*([device] if device else []), browser(environment) or environment.runner]
    parts.append(f"{environment.runtime} {environment.runtime_version}")
    parts.append(f"{ran or 'nothing'} ran" if ran != environment.execution_provider_asked else f"{ran}")
    if environment.variant and environment.variant != ran:
        parts[-1] += f" ({environment.variant})"
    if adapter is not None and ran == "webgpu":
        parts.append(adapter_name(adapter))
    parts.append("1 thread" if environment.threads == 1 else f"{environment.threads} threads")
    if environment.session is not None and (said := settings(environment.session)):
        parts.append(said)
    return " · ".join(parts)


def settings(session: SessionSettings) -> str:
    """Say how a session is created: "layout NCHW, optimization basic"; empty where that is left to onnxruntime."""
    parts = [] if session.layout is None else [f"layout {session.layout}"]
    if session.optimization != "all":
        parts.append(f"optimization {session.optimization}")
    if session.cpu_nodes:
        shown = ", ".join(session.cpu_nodes[:_NODES])
        more = len(session.cpu_nodes) - _NODES
        parts.append(f"on the CPU: {shown}{f' and {more} more' if more > 0 else ''}")
    return ", ".join(parts)


def browser(environment: Environment) -> str | None:
    """Name the browser that a record was made in, from its user agent; None where it says nothing known."""
    agent = environment.user_agent or ""
    return next((f"{name} {found[1]}" for name, pattern in _BROWSERS if (found := pattern.search(agent))), None)


def adapter_name(adapter: Adapter) -> str:
    """Name a GPU adapter by the best that the browser tells of it, and say so when it is software."""
    name = next((n for n in (adapter.description, adapter.architecture, adapter.vendor) if n), "unnamed adapter")
    return f"{name}, software" if adapter.software else name


def software_adapter(environment: Environment | None) -> str | None:
    """Name the adapter where a run's times were taken on the CPU in place of a GPU; None where they were not."""
    if environment is None or environment.execution_provider != "webgpu":
        return None
    adapter = environment.adapter
    return adapter_name(adapter) if adapter is not None and adapter.software else None


@dataclass(frozen=True)
class Measures:
    """What is shown of one output, in the order of the columns."""

    max_abs: str
    max_rel: str
    snr: str
    cosine: str
    top1: str
    allowed: str
    would_pass: str


def measures(output: OutputVerdict) -> Measures:
    """Write an output's metrics; where nothing could be compared they are dashes."""
    m = output.metrics
    if m is None:
        return Measures(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, tolerance(output), NOTHING)
    return Measures(
        max_abs=number(m.max_abs),
        max_rel=number(m.max_rel),
        snr=decibels(m.snr_db),
        cosine=cosine(m.cosine),
        top1=top1(m),
        allowed=tolerance(output),
        would_pass=would_pass(output),
    )
