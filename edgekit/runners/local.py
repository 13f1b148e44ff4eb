"""Replay golden cases in desktop onnxruntime on this machine, as a user would run it: optimized, all threads.

The record stands beside a browser's, for its times. It is no reference: that is
``edgekit.desktop.run`` with optimization off, done when the cases were made.
"""

import platform
import secrets
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from edgekit.bundle.open import Bundle, load_cases
from edgekit.child.process import DEFAULT_LIMITS, ChildLimits
from edgekit.desktop import run as desktop
from edgekit.desktop.run import DesktopResult, DesktopRun, Feed
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet, GoldenCase
from edgekit.records.run_record import CaseRun, Environment, Hashes, RunRecord, Timings


def run(
    bundle: Bundle,
    *,
    cases: Sequence[str] | None = None,
    repeats: int = 10,
    limits: ChildLimits = DEFAULT_LIMITS,
    progress: Progress = silent,
) -> RunRecord:
    """Replay the golden cases of a bundle; see ``replay``."""
    return replay(
        bundle.folder / bundle.manifest.model.path,
        load_cases(bundle),
        manifest_sha256=bundle.manifest_sha256,
        cases=cases,
        repeats=repeats,
        limits=limits,
        progress=progress,
    )


def replay(
    model: Path,
    case_set: CaseSet,
    *,
    manifest_sha256: str | None = None,
    cases: Sequence[str] | None = None,
    repeats: int = 10,
    limits: ChildLimits = DEFAULT_LIMITS,
    progress: Progress = silent,
) -> RunRecord:
    """Run the cases of ``case_set`` (None: all, otherwise those ids) on ``model``, optimized, on all threads.

    ``repeats``: later runs, after the first, of the first case without a feed-back loop; they give the timings (where
    all cases have one, the steps of the first case do). Cases that were not asked for are "skipped". A model that the
    runtime refuses or crashes on, or that passes a limit, is a record with an error and without timings.

    Raises UsageError when there is no case of a given id.
    """
    unknown = [name for name in cases or () if all(case.id != name for case in case_set.cases)]
    if unknown:
        listed = ", ".join(case.id for case in case_set.cases)
        raise UsageError(f"There is no golden case '{unknown[0]}'.", hint=f"There are: {listed}.")
    chosen = [case for case in case_set.cases if cases is None or case.id in cases]
    feeds = [Feed(case.inputs, case.feed_back) for case in chosen]
    done: DesktopRun | None = None
    error: str | None = None
    try:
        done = desktop.run(
            model, feeds, optimization="all", threads=None, repeats=repeats + 1, limits=limits, progress=progress
        )
    except (ModelError, LimitError) as problem:
        error = problem.message
    results = dict(zip((case.id for case in chosen), done.results, strict=True)) if done else {}
    return RunRecord(
        run=secrets.token_hex(8),
        hashes=Hashes(manifest=manifest_sha256, model=case_set.model_sha256, runtime=None),
        environment=_environment(done),
        attempts=(),
        timings=_timings(done, chosen),
        cases=tuple(_case_run(case, results.get(case.id)) for case in case_set.cases),
        error=error,
    )


def _environment(done: DesktopRun | None) -> Environment:
    return Environment(
        runner="local",
        runtime="onnxruntime",
        runtime_version=metadata.version("onnxruntime"),
        variant=None,
        execution_provider_asked="cpu",
        execution_provider="cpu" if done else None,
        threads=done.threads if done else 0,
        cross_origin_isolated=None,
        adapter=None,
        user_agent=None,
        device=f"{platform.system()} {platform.machine()}",
    )


def _timings(done: DesktopRun | None, chosen: Sequence[GoldenCase]) -> Timings:
    if done is None:
        return Timings()
    timed = next((index for index, case in enumerate(chosen) if case.feed_back is None), 0)
    run_ms = done.results[timed].run_ms if chosen else ()
    return Timings(create_ms=done.create_ms, first_run_ms=run_ms[0] if run_ms else None, later_run_ms=run_ms[1:])


def _case_run(case: GoldenCase, result: DesktopResult | None) -> CaseRun:
    if result is None:
        return CaseRun(case.id, "skipped")
    if result.outputs is None:
        return CaseRun(case.id, "failed", error=result.error)
    # As in the browser: the time of a loop is that of its steps together.
    took = sum(result.run_ms) if case.feed_back else result.run_ms[0]
    return CaseRun(case.id, "done", result.outputs, run_ms=took)
