"""Replay the conformance cases through a real runtime, and measure the tables of operator support.

``python -m edgekit.conformance_run`` writes the tables of the desktop and of every variant of the pinned
onnxruntime-web anew, into ``edgekit/conformance/tables``. It needs a browser and takes some minutes.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from edgekit.conformance import cases as conformance_cases
from edgekit.conformance import contrib, desktop, generate, limits, references, schemas, tally
from edgekit.conformance import table as tables
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.conformance.table import Runtime, Table
from edgekit.conformance.tabulate import tabulate
from edgekit.conformance.tally import Column
from edgekit.errors import UsageError, did_you_mean
from edgekit.files import write_atomic
from edgekit.progress import Progress, silent
from edgekit.runners import conformance as browser
from edgekit.runners.browsers import CHROMIUM, FIREFOX, Engine, Gpu
from edgekit.runtime import locate, pins

DESKTOP = "cpu"
# Where cases can be replayed, by what the command line calls it.
BROWSERS = {engine.id: engine for engine in (CHROMIUM, FIREFOX)}
WEB_VARIANTS = tuple(variant.id for variant in pins.load().variants)
_DESKTOP_PACKAGE = "onnxruntime"


def variants() -> tuple[str, ...]:
    """Return what can be measured: the desktop's CPU first, for it gives references, then each variant of the web."""
    return (DESKTOP, *(variant.id for variant in reversed(pins.load().variants)))


@dataclass(frozen=True, eq=False)
class Replay:
    """What a runtime replied to each case."""

    runtime: Runtime
    replies: tuple[Reply, ...]


def replay(
    cases: Sequence[Case],
    variant: str,
    *,
    engine: Engine = CHROMIUM,
    runtime_dir: Path | None = None,
    placements: bool = True,
    browser_path: Path | None = None,
    gpu: Gpu = "auto",
    progress: Progress = silent,
) -> Replay:
    """Replay ``cases`` on "cpu" (desktop onnxruntime) or a variant of onnxruntime-web in a browser.

    ``placements``: find out where nodes are put, for variants that may put them on the CPU. Raises UsageError for an
    unknown variant, MissingToolError without a browser, ParityError when the page does not start.
    """
    if variant == DESKTOP:
        runtime = Runtime(_DESKTOP_PACKAGE, metadata.version(_DESKTOP_PACKAGE), DESKTOP, DESKTOP)
        return Replay(runtime, desktop.replay(cases, progress=progress))
    (chosen,) = pins.load().chosen([variant], "The conformance cases")
    dist = locate.locate(runtime_dir, progress=progress)
    mixed = bool(chosen.needs)  # what needs nothing of the browser has the CPU alone
    done = browser.replay(
        cases,
        chosen,
        dist,
        engine=engine,
        placements=placements and mixed,
        browser_path=browser_path,
        gpu=gpu,
        progress=progress,
    )
    adapter = done.adapter
    runtime = Runtime(
        dist.package,
        dist.version,
        variant,
        chosen.execution_provider,
        dist.files[chosen.wasm],
        f"{engine.name} {done.browser_version}",
        (f"{adapter.vendor} {adapter.architecture}".strip() or "unnamed") if adapter else None,
        adapter.features if adapter else (),
    )
    return Replay(runtime, done.replies)


def suite(*, progress: Progress = silent) -> tuple[Case, ...]:
    """Return the cases that the tables are made of: standard, generated, contributed operators, and limits.

    Generated cases have the outputs of the onnx package's reference evaluator, where it has any.
    """
    progress("Making the conformance cases")
    standard = conformance_cases.standard()
    made = (*generate.generated(standard), *contrib.contrib())
    return (*standard, *references.by_evaluator(made, progress=progress), *limits.probes())


def measure(variants_: Sequence[str], cases: Sequence[Case], *, progress: Progress = silent) -> Iterator[Table]:
    """Replay ``cases`` on each variant and yield its table. The desktop is asked in any case, for references."""
    desktop_run = replay(cases, DESKTOP, progress=progress)
    for variant in variants_:
        if variant == DESKTOP:
            yield tabulate(desktop_run.runtime, references.agreed(cases, desktop_run.replies), desktop_run.replies)
        else:
            # A software adapter, so that the table is the same on every machine.
            done = replay(cases, variant, gpu="software", progress=progress)
            yield tabulate(done.runtime, references.with_desktop(cases, desktop_run.replies), done.replies)


@dataclass(frozen=True)
class ConformanceOptions:
    """What to compare. ``operators``: the cases of these alone; none: all. See ``replay`` for the rest."""

    browsers: tuple[str, ...] = (CHROMIUM.id,)
    variants: tuple[str, ...] = WEB_VARIANTS
    operators: tuple[str, ...] = ()
    placements: bool = False
    browser_path: Path | None = None
    gpu: Gpu = "auto"
    runtime: Path | None = None


def compare(
    options: ConformanceOptions, given: Sequence[Case] = (), *, progress: Progress = silent
) -> tuple[Column, ...]:
    """Replay the standard cases on the desktop, then on each variant in each browser; a column for each.

    ``given``: cases in place of the standard ones. Raises UsageError for an operator that has no case, and what
    ``replay`` raises.
    """
    known = schemas.operators()
    for wanted in options.operators:  # before the cases are made, which takes ten seconds
        if wanted not in known:
            raise UsageError(f"There is no operator '{wanted}'.{did_you_mean(wanted, known)}")
    progress("Making the conformance cases")
    cases = tuple(case for case in given or conformance_cases.standard() if case.run)
    if options.operators:
        cases = tuple(case for case in cases if tally.operator(case) in options.operators)
    if not cases:
        raise UsageError(f"No case tries {', '.join(options.operators)} with plain tensors.")
    found = [_column(cases, DESKTOP, CHROMIUM, options, progress)]
    for name in options.browsers:
        found += [_column(cases, variant, BROWSERS[name], options, progress) for variant in options.variants]
    return tuple(found)


def _column(
    cases: Sequence[Case], variant: str, engine: Engine, options: ConformanceOptions, progress: Progress
) -> Column:
    started = time.monotonic()
    done = replay(
        cases,
        variant,
        engine=engine,
        runtime_dir=options.runtime,
        placements=options.placements,
        browser_path=options.browser_path,
        gpu=options.gpu,
        progress=progress,
    )
    return tally.column(done.runtime, cases, done.replies, time.monotonic() - started)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, write the tables, say where they are."""
    parser = argparse.ArgumentParser(prog="python -m edgekit.conformance_run", description=__doc__)
    parser.add_argument("--variant", action="append", choices=variants(), help="measure this one only (repeatable)")
    parser.add_argument("--output", type=Path, default=tables.TABLES, help="the folder (default: the package's own)")
    options = parser.parse_args(arguments)
    for table in measure(options.variant or variants(), suite(progress=_say), progress=_say):
        runtime = table.runtime
        path = options.output / tables.file_name(runtime.package, runtime.version, runtime.variant)
        write_atomic(path, tables.to_bytes(table))
        sys.stdout.write(f"wrote {path}\n")


def _say(message: str, done: float | None = None) -> None:
    """Write progress on one line of a terminal, and nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{message}{'' if done is None else f' {done:.0%}'}")


if __name__ == "__main__":
    main()
