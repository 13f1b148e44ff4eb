"""Replay a bundle's golden cases on the device that its target names, and have the outputs judged."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, cast

from edgekit import compare, runners
from edgekit.bundle.open import Bundle, load_cases, open_bundle
from edgekit.errors import ParityError, UsageError
from edgekit.progress import Progress, silent
from edgekit.records import store
from edgekit.records.cases import CaseSet, Tolerance
from edgekit.records.manifest import Manifest
from edgekit.records.run_record import RunRecord
from edgekit.records.store import Conditions
from edgekit.records.verdict import Verdict
from edgekit.runners import local
from edgekit.runners.browsers import Gpu
from edgekit.runtime import pins
from edgekit.targets import load as targets
from edgekit.timing import TimingRow, timing_rows

DEFAULT_REPEATS = 5
DEFAULT_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class ParityOptions:
    """What is asked of a parity run.

    ``runner``: a module of ``edgekit/runners`` that drives a browser (default: the target's). ``cases``: ids (default:
    all). ``variant``: one variant of the runtime instead of the first that runs. ``threads``: default as the target
    says. ``repeats``: timed runs after the first. ``timeout_seconds``: for the device's whole answer. ``tolerance``: by
    output name, over that of the bundle. ``output``: the folder that keeps the run. ``command``: the command line, kept
    with it.
    """

    runner: str | None = None
    browser_path: Path | None = None
    gpu: Gpu = "auto"
    cases: tuple[str, ...] | None = None
    variant: str | None = None
    threads: int | None = None
    repeats: int = DEFAULT_REPEATS
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    allow_fallback: bool = False
    targets_dir: Path | None = None
    output: Path | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ParityResult:
    """What came of it. ``record`` is None when the device did not answer; ``hint`` then says what to do."""

    verdict: Verdict
    case_set: CaseSet
    record: RunRecord | None
    desktop: RunRecord | None
    timings: tuple[TimingRow, ...]
    hint: str | None = None


class Runner(Protocol):
    """A module of ``edgekit/runners`` that obtains a record from a browser, whose name ``BROWSER`` is."""

    BROWSER: str

    def run(
        self,
        bundle: Bundle,
        *,
        cases: Sequence[str] | None,
        variant: str | None,
        threads: int | None,
        repeats: int,
        timeout_seconds: float,
        browser_path: Path | None,
        gpu: Gpu,
        progress: Progress,
    ) -> RunRecord:
        """Return the record that the browser posts."""


def verify(folder: Path, options: ParityOptions = ParityOptions(), *, progress: Progress = silent) -> ParityResult:
    """Verify the bundle in ``folder``, replay its golden cases, time the desktop beside it, and judge.

    A device that does not answer gives a verdict "not_run", not an exception. Raises BundleError for a folder that is
    no bundle or was changed, UsageError for an unknown case, output, variant or runner, MissingToolError when there is
    no browser.
    """
    progress("Checking the bundle's files")
    bundle = open_bundle(folder)
    case_set = load_cases(bundle)
    asked = _conditions(bundle, options)
    provider = first_execution_provider(bundle.manifest)

    def judge(record: RunRecord | None, no_record: str | None = None) -> Verdict:
        conditions = replace(asked, no_record=no_record)
        return compare.judge_under(conditions, case_set, record, execution_provider=provider)

    judge(None)  # refuses unknown cases and outputs before a browser starts
    _check_variant(bundle, options.variant)
    runner = _runner_of(bundle, options)
    record: RunRecord | None = None
    desktop: RunRecord | None = None
    hint = None
    try:
        record = runner.run(
            bundle,
            cases=options.cases,
            variant=options.variant,
            threads=options.threads,
            repeats=options.repeats,
            timeout_seconds=options.timeout_seconds,
            browser_path=options.browser_path,
            gpu=options.gpu,
            progress=progress,
        )
    except ParityError as error:
        verdict, hint = judge(None, error.message), error.hint
    else:
        verdict = judge(record)
        progress("Timing the desktop")
        desktop = local.run(bundle, cases=options.cases, repeats=options.repeats, progress=progress)
        if desktop.error is not None:
            timeless = f"The desktop could not be timed: {desktop.error}"
            verdict = replace(verdict, warnings=(*verdict.warnings, timeless))
    timings = () if record is None else timing_rows(record, desktop)
    result = ParityResult(verdict, case_set, record, desktop, timings, hint)
    if options.output is not None:
        _save(options.output, bundle, asked, result)
    return result


def first_execution_provider(manifest: Manifest) -> str | None:
    """Return the execution provider of the bundle's first variant; None for a runtime that is not known here."""
    providers = {variant.id: variant.execution_provider for variant in pins.load().variants}
    return next((providers.get(variant) for variant in manifest.runtime.variants), None)


def load_runner(name: str) -> Runner:
    """Return the runner called ``name``. Raises UsageError when there is none."""
    # The name may come from a user's file: it is looked up in the folder, never imported as it stands.
    if name in _modules():
        module = importlib.import_module(f"edgekit.runners.{name}")
        if hasattr(module, "BROWSER"):
            return cast(Runner, module)
    raise UsageError(f"There is no browser '{name}'.", hint=f"Browsers: {', '.join(runner_names())}.")


def runner_names() -> tuple[str, ...]:
    """Return the names of the modules in ``edgekit/runners`` that drive a browser."""
    return tuple(name for name in _modules() if hasattr(importlib.import_module(f"edgekit.runners.{name}"), "BROWSER"))


def _modules() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in Path(runners.__path__[0]).glob("*.py") if path.stem != "__init__"))


def _runner_of(bundle: Bundle, options: ParityOptions) -> Runner:
    if options.runner is not None:
        return load_runner(options.runner)
    try:
        target = targets.load(bundle.manifest.target, options.targets_dir)
    except UsageError as error:
        raise UsageError(
            f"The bundle's target is not known here. {error.message}",
            hint="Name the folder of your target files with --targets-dir, or the browser with --browser.",
        ) from error
    return load_runner(target.parity.runner)


def _check_variant(bundle: Bundle, variant: str | None) -> None:
    shipped = bundle.manifest.runtime.variants
    if variant is not None and variant not in shipped:
        raise UsageError(f"The bundle has no variant '{variant}'.", hint=f"Its variants: {', '.join(shipped)}.")


def _conditions(bundle: Bundle, options: ParityOptions) -> Conditions:
    return Conditions(
        title=bundle.manifest.title,
        target=bundle.manifest.target,
        cases=options.cases,
        tolerance=options.tolerance,
        allow_fallback=options.allow_fallback,
        manifest_sha256=bundle.manifest_sha256,
        command=options.command,
    )


def _save(folder: Path, bundle: Bundle, asked: Conditions, result: ParityResult) -> None:
    store.save_run(
        folder,
        conditions=replace(asked, no_record=result.verdict.reasons[0] if result.record is None else None),
        case_set=result.case_set,
        record=result.record,
        verdict=result.verdict,
        desktop=result.desktop,
        manifest=bundle.manifest,
    )
