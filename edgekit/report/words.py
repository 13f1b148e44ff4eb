"""How numbers and conclusions read in every report."""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

from edgekit.records.cases import Reference, Tolerance
from edgekit.records.run_record import Adapter, Environment
from edgekit.records.verdict import Metrics, OutputStatus, OutputVerdict, Verdict, VerdictStatus

NOTHING = "–"
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


def mark(status: OutputStatus) -> str:
    """Return ✓ for a match, ✗ for a failure, and – for what cannot be compared."""
    return "✓" if status == "match" else NOTHING if status == "not_comparable" else "✗"


def number(value: float | None) -> str:
    """Write a number with three significant digits; None is a dash."""
    if value is None:
        return NOTHING
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3g}"


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
    return NOTHING if value is None else f"{value:.2f}×" if value < 10 else f"{value:.0f}×"


def tolerance(output: OutputVerdict) -> str:
    """Say what was allowed: "rel 0.001, abs 1e-06", or that it had to be equal."""
    if output.tolerance is None and output.status not in ("match", "mismatch"):
        return NOTHING
    if output.tolerance is None or output.tolerance == Tolerance(0.0, 0.0):
        return "equal"
    parts = [("rel", output.tolerance.relative), ("abs", output.tolerance.absolute)]
    return ", ".join(f"{name} {number(value)}" for name, value in parts if value)


def would_pass(output: OutputVerdict) -> str:
    """Say which relative tolerance would have passed: rounded up, so that what is read does pass; "none" if none.

    What must be equal has none to advise: a label that is off by a little is wrong.
    """
    metrics = output.metrics
    if metrics is None or output.tolerance is None:
        return NOTHING
    if math.isinf(metrics.passing_relative):
        return "none"
    return f"rel {float(_UP.create_decimal_from_float(metrics.passing_relative)):.3g}"


def share(output: OutputVerdict) -> str:
    """Say how much of its tolerance an output's error takes, in per cent (from 1,000 on as a multiple)."""
    if output.metrics is None:
        return NOTHING
    allowed, needed = output.tolerance.relative if output.tolerance else 0.0, output.metrics.passing_relative
    if not allowed:
        return "0 %" if not needed else "∞"
    taken = needed / allowed
    return f"{number(100 * taken)} %" if taken < 10 else f"{number(taken)}×"


def where(environment: Environment) -> str:
    """Say in a line where a record was made: device, runner, runtime, execution provider, adapter, threads."""
    adapter = environment.adapter
    ran = environment.execution_provider
    parts = [*([environment.device] if environment.device else []), browser(environment) or environment.runner]
    parts.append(f"{environment.runtime} {environment.runtime_version}")
    parts.append(f"{ran or 'nothing'} ran" if ran != environment.execution_provider_asked else f"{ran}")
    if environment.variant and environment.variant != ran:
        parts[-1] += f" ({environment.variant})"
    if adapter is not None and ran == "webgpu":
        parts.append(adapter_name(adapter))
    parts.append("1 thread" if environment.threads == 1 else f"{environment.threads} threads")
    return " · ".join(parts)


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
