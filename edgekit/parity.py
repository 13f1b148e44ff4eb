"""Replay a bundle's golden cases on the device that its target names, and have the outputs judged."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
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
from edgekit.runners import connect, inbox, local
from edgekit.runners.browsers import CHROMIUM, Gpu
from edgekit.runners.inbox import Invitation
from edgekit.runners.page import DEFAULT_TIMEOUT_SECONDS, LOOPBACK, Ask
from edgekit.runtime import pins
from edgekit.targets import load as targets
from edgekit.timing import TimingRow, timing_rows

DEFAULT_REPEATS = 5


def _tell_no_one(invitation: Invitation) -> None:
    """What is done with an invitation that nobody asked for."""


@dataclass(frozen=True)
class ParityOptions:
    """What is asked of a parity run.

    ``runner``: a module of ``edgekit/runners`` that drives a browser (default: the target's). ``cases``: ids (default:
    all). ``variant``: one variant of the runtime instead of the first that runs. ``threads``: default as the target
    says. ``repeats``: timed runs after the first. ``timeout_seconds``: for the device's whole answer. ``tolerance``: by
    output name, over that of the bundle. ``output``: the folder that keeps the run. ``command``: the command line, kept
    with it. ``title``: of the verdict, in place of the bundle's.

    Instead of starting a browser: ``cdp`` is the address of one that already runs, ``remote`` of a Playwright server
    (``runner`` then names its browser), and ``inbox`` waits for a device that someone opens the page on; ``announce``
    is given what to open there. ``host`` and ``port``: where this machine then serves the page (None and 0: the
    runner's choice).
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
    title: str | None = None
    cdp: str | None = None
    remote: str | None = None
    inbox: bool = False
    host: str | None = None
    port: int = 0
    announce: Callable[[Invitation], None] = _tell_no_one

    @property
    def ask(self) -> Ask:
        """What is asked of the page."""
        return Ask(self.cases, self.variant, self.threads, self.repeats, self.timeout_seconds)


@dataclass(frozen=True, eq=False)
class Opened:
    """A bundle whose files were verified, and its golden cases."""

    bundle: Bundle
    case_set: CaseSet


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

    def run(self, bundle: Bundle, ask: Ask, *, browser_path: Path | None, gpu: Gpu, progress: Progress) -> RunRecord:
        """Return the record that the browser posts."""


def verify(folder: Path, options: ParityOptions = ParityOptions(), *, progress: Progress = silent) -> ParityResult:
    """Verify the bundle in ``folder``, replay its golden cases, time the desktop beside it, and judge.

    A device that does not answer gives a verdict "not_run", not an exception. Raises BundleError for a folder that is
    no bundle or was changed, UsageError for an unknown case, output, variant or runner, MissingToolError when there is
    no browser.
    """
    return verify_opened(open_folder(folder, progress), options, progress=progress)


def open_folder(folder: Path, progress: Progress = silent) -> Opened:
    """Verify the bundle in ``folder`` and read its cases. Raises BundleError."""
    progress("Checking the bundle's files")
    bundle = open_bundle(folder)
    return Opened(bundle, load_cases(bundle))


def verify_opened(
    opened: Opened, options: ParityOptions, *, desktop: RunRecord | None = None, progress: Progress = silent
) -> ParityResult:
    """Do as ``verify`` does with a bundle that is open; ``desktop``: the desktop's times, where they were taken."""
    bundle = opened.bundle
    _judge(opened, options, None)  # refuses unknown cases and outputs before a browser starts
    _check_variant(bundle, options.variant)
    obtain = _way_of(bundle, options)
    try:
        record = obtain(progress=progress)
    except ParityError as error:
        return not_run(opened, options, error.message, error.hint)
    verdict = _judge(opened, options, record)
    if desktop is None:
        desktop = time_desktop(opened, options, progress)
    if desktop.error is not None:
        timeless = f"The desktop could not be timed: {desktop.error}"
        verdict = replace(verdict, warnings=(*verdict.warnings, timeless))
    timings = timing_rows(record, desktop)
    return _kept(opened, options, ParityResult(verdict, opened.case_set, record, desktop, timings))


def time_desktop(opened: Opened, options: ParityOptions, progress: Progress = silent) -> RunRecord:
    """Return the record of the same cases in the desktop's onnxruntime."""
    progress("Timing the desktop")
    return local.run(opened.bundle, cases=options.cases, repeats=options.repeats, progress=progress)


def not_run(opened: Opened, options: ParityOptions, why: str, hint: str | None = None) -> ParityResult:
    """Return (and keep, where a folder is named) the result of a run that gave no record, and why."""
    verdict = _judge(opened, options, None, why)
    return _kept(opened, options, ParityResult(verdict, opened.case_set, None, None, (), hint))


def _judge(opened: Opened, options: ParityOptions, record: RunRecord | None, no_record: str | None = None) -> Verdict:
    conditions = replace(_conditions(opened.bundle, options), no_record=no_record)
    provider = first_execution_provider(opened.bundle.manifest)
    return compare.judge_under(conditions, opened.case_set, record, execution_provider=provider)


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


def _way_of(bundle: Bundle, options: ParityOptions) -> Callable[..., RunRecord]:
    """Return what obtains the record, given ``progress``. Raises UsageError for an unknown runner."""
    ask, gpu = options.ask, options.gpu
    given = [name for name in ("cdp", "remote", "inbox") if getattr(options, name)]
    if len(given) > 1:
        named = " and ".join(f"--{name}" for name in given)
        raise UsageError(f"{named} cannot be used together.", hint="Each names another browser; give one of them.")
    host, port = options.host or LOOPBACK, options.port
    if options.cdp is not None:
        return partial(connect.run_cdp, bundle, ask, options.cdp, host=host, port=port)
    if options.remote is not None:
        return partial(connect.run_remote, bundle, ask, options.remote, engine=options.runner or CHROMIUM.id, gpu=gpu)
    if options.inbox:
        return partial(inbox.run, bundle, ask, options.announce, host=options.host, port=port)
    named = target_runner(bundle, options.targets_dir) if options.runner is None else options.runner
    runner = load_runner(named)
    return partial(runner.run, bundle, ask, browser_path=options.browser_path, gpu=gpu)


def target_runner(bundle: Bundle, targets_dir: Path | None) -> str:
    """Return the name of the runner of the bundle's target. Raises UsageError when the target is not known here."""
    try:
        return targets.load(bundle.manifest.target, targets_dir).parity.runner
    except UsageError as error:
        raise UsageError(
            f"The bundle's target is not known here. {error.message}",
            hint="Name the folder of your target files with --targets-dir, or the browser with --browser.",
        ) from error


def _check_variant(bundle: Bundle, variant: str | None) -> None:
    shipped = bundle.manifest.runtime.variants
    if variant is not None and variant not in shipped:
        raise UsageError(f"The bundle has no variant '{variant}'.", hint=f"Its variants: {', '.join(shipped)}.")


def _conditions(bundle: Bundle, options: ParityOptions) -> Conditions:
    return Conditions(
        title=bundle.manifest.title if options.title is None else options.title,
        target=bundle.manifest.target,
        cases=options.cases,
        tolerance=options.tolerance,
        allow_fallback=options.allow_fallback,
        manifest_sha256=bundle.manifest_sha256,
        command=options.command,
    )


def _kept(opened: Opened, options: ParityOptions, result: ParityResult) -> ParityResult:
    """Keep ``result`` where a folder is named for it, and return it."""
    if options.output is not None:
        reason = result.verdict.reasons[0] if result.record is None else None
        store.save_run(
            options.output,
            conditions=replace(_conditions(opened.bundle, options), no_record=reason),
            case_set=result.case_set,
            record=result.record,
            verdict=result.verdict,
            desktop=result.desktop,
            manifest=opened.bundle.manifest,
        )
    return result
