"""Replay a bundle's golden cases on the device that its target names, and have the outputs judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from edgekit import compare
from edgekit.bundle.open import Bundle, load_cases, load_strength, open_bundle, require_variant
from edgekit.errors import ParityError, UsageError, did_you_mean
from edgekit.progress import Progress, silent
from edgekit.records import store
from edgekit.records.cases import CaseSet, Tolerance
from edgekit.records.labels import Label
from edgekit.records.manifest import Manifest
from edgekit.records.run_record import RunRecord
from edgekit.records.store import Conditions
from edgekit.records.strength import Strength
from edgekit.records.verdict import Verdict
from edgekit.runners import connect, devices, inbox, local
from edgekit.runners.browsers import CHROMIUM, Gpu
from edgekit.runners.devices import DeviceRunner
from edgekit.runners.inbox import Invitation
from edgekit.runners.page import DEFAULT_TIMEOUT_SECONDS, LOOPBACK, Ask
from edgekit.runtime import pins
from edgekit.strength import measure
from edgekit.targets import load as targets
from edgekit.targets.load import Target
from edgekit.targets.options import WEB
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
    output name, over that of the bundle. ``labels``: what is right by the task itself. ``soak``: how many runs of one
    case are made to see whether it drifts. ``strength``: measure how many faulty models the cases would catch, with
    these tolerances; otherwise what the build found is told. ``output``: the folder that keeps the run. ``command``:
    the command line, kept with it. ``title``: of the verdict, in place of the bundle's.

    Instead of starting a browser: ``cdp`` is the address of one that already runs, ``remote`` of a Playwright server
    (``runner`` then names its browser), and ``inbox`` waits for a device that someone opens the page on; ``announce``
    is given what to open there. ``host`` and ``port``: where this machine then serves the page (None and 0: the
    runner's choice). ``device``: the address of a device that is no browser (see ``edgekit.runners.devices``).
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
    device: str | None = None
    host: str | None = None
    port: int = 0
    labels: tuple[Label, ...] = ()
    soak: int = 0
    strength: bool = False
    announce: Callable[[Invitation], None] = _tell_no_one

    @property
    def ask(self) -> Ask:
        """What is asked of the page."""
        return Ask(self.cases, self.variant, self.threads, self.repeats, self.timeout_seconds, soak=self.soak)


@dataclass(frozen=True, eq=False)
class Opened:
    """A bundle whose files were verified, its golden cases, and how strong they are, where that was measured."""

    bundle: Bundle
    case_set: CaseSet
    strength: Strength | None = None


@dataclass(frozen=True, eq=False)
class ParityResult:
    """What came of it. ``record`` is None when the device did not answer; ``hint`` then says what to do."""

    verdict: Verdict
    case_set: CaseSet
    record: RunRecord | None
    desktop: RunRecord | None
    timings: tuple[TimingRow, ...]
    hint: str | None = None
    manifest: Manifest | None = None


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
    if options.output is not None:  # before the minutes of work, not after them
        store.check_place(options.output)
    return verify_opened(open_folder(folder, progress, options), options, progress=progress)


def open_folder(folder: Path, progress: Progress = silent, options: ParityOptions = ParityOptions()) -> Opened:
    """Verify the bundle in ``folder``, read its cases, and measure their strength where asked.

    Raises BundleError, and UsageError for cases, outputs and labels that the bundle does not have.
    """
    progress("Checking the bundle's files")
    bundle = open_bundle(folder)
    opened = Opened(bundle, load_cases(bundle), load_strength(bundle))
    _judge(opened, options, None)  # refuses what is not there, before the minutes of work
    if not options.strength:
        return opened
    case_set = opened.case_set
    if options.cases is not None:
        case_set = replace(case_set, cases=tuple(case for case in case_set.cases if case.id in options.cases))
    found = measure.measure(
        bundle.folder / bundle.manifest.model.path,
        case_set,
        budget_seconds=measure.FULL_SECONDS,
        tolerance=options.tolerance,
        progress=progress,
    )
    return replace(opened, strength=found)


def verify_opened(
    opened: Opened, options: ParityOptions, *, desktop: RunRecord | None = None, progress: Progress = silent
) -> ParityResult:
    """Do as ``verify`` does with a bundle that is open; ``desktop``: the desktop's times, where they were taken."""
    bundle = opened.bundle
    _judge(opened, options, None)  # refuses unknown cases and outputs before a browser starts
    if options.variant is not None:
        require_variant(bundle, options.variant)
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
    return _kept(
        opened, options, ParityResult(verdict, opened.case_set, record, desktop, timings, None, bundle.manifest)
    )


def time_desktop(opened: Opened, options: ParityOptions, progress: Progress = silent) -> RunRecord:
    """Return the record of the same cases in the desktop's onnxruntime."""
    progress("Timing the desktop")
    return local.run(opened.bundle, cases=options.cases, repeats=options.repeats, progress=progress)


def not_run(opened: Opened, options: ParityOptions, why: str, hint: str | None = None) -> ParityResult:
    """Return (and keep, where a folder is named) the result of a run that gave no record, and why."""
    verdict = _judge(opened, options, None, why)
    return _kept(opened, options, ParityResult(verdict, opened.case_set, None, None, (), hint, opened.bundle.manifest))


def _judge(opened: Opened, options: ParityOptions, record: RunRecord | None, no_record: str | None = None) -> Verdict:
    conditions = replace(_conditions(opened.bundle, options), no_record=no_record)
    provider = first_execution_provider(opened.bundle.manifest)
    version = opened.bundle.manifest.runtime.version
    verdict = compare.judge_under(
        conditions, opened.case_set, record, execution_provider=provider, runtime_version=version
    )
    return replace(verdict, strength=opened.strength)


def first_execution_provider(manifest: Manifest) -> str | None:
    """Return the execution provider of the bundle's first variant; None for a runtime that is not known here.

    A variant of onnxruntime-web is a build with an execution provider; of other runtimes it is the provider itself.
    """
    providers = {variant.id: variant.execution_provider for variant in pins.load().variants}
    first = next(iter(manifest.runtime.variants), None)
    return None if first is None else providers.get(first, None if manifest.kind == WEB else first)


def load_runner(name: str) -> Runner:
    """Return the runner called ``name``. Raises UsageError when there is none."""
    # The name may come from a user's file: it is looked up in the folder, never imported as it stands.
    if name in devices.modules():
        module = devices.load(name)
        if hasattr(module, "BROWSER"):
            return cast(Runner, module)
    raise UsageError(f"There is no browser '{name}'.", hint=f"Browsers: {', '.join(runner_names())}.")


def check_runner(target: Target) -> None:
    """Raise UsageError when nothing obtains records from a target: parity of its bundles could not run."""
    name = target.parity.runner
    browsers = runner_names()
    known = [each for each in devices.modules() if each in browsers or devices.named(each) is not None]
    if name not in known:
        raise UsageError(
            f"Target '{target.id}': 'parity.runner' is '{name}', and there is no such runner."
            f"{did_you_mean(name, known)}",
            hint=f"Runners: {', '.join(known)}.",
        )


def runner_names() -> tuple[str, ...]:
    """Return the names of the modules in ``edgekit/runners`` that drive a browser."""
    return tuple(name for name in devices.modules() if hasattr(devices.load(name), "BROWSER"))


def _way_of(bundle: Bundle, options: ParityOptions) -> Callable[..., RunRecord]:
    """Return what obtains the record, given ``progress``. Raises UsageError for an unknown runner."""
    ask, gpu = options.ask, options.gpu
    given = [name for name in ("cdp", "remote", "inbox", "device") if getattr(options, name)]
    if len(given) > 1:
        named = " and ".join(f"--{name}" for name in given)
        raise UsageError(f"{named} cannot be used together.", hint="Each names another device; give one of them.")
    if options.device is not None:
        return _on_device(bundle, devices.find(options.device), options.device, ask)
    if not given and options.runner is None:
        usual = target_runner(bundle, options.targets_dir)
        reached = devices.named(usual)
        if reached is not None:
            return _on_device(bundle, reached, "", ask)
    if not has_page(bundle):
        raise UsageError(
            f"The bundle is of kind '{bundle.manifest.kind}' and has no page that a browser could open.",
            hint="Name a device with --device.",
        )
    host, port = options.host or LOOPBACK, options.port
    if options.cdp is not None:
        return partial(connect.run_cdp, bundle, ask, options.cdp, host=host, port=port)
    if options.remote is not None:
        return partial(connect.run_remote, bundle, ask, options.remote, engine=options.runner or CHROMIUM.id, gpu=gpu)
    if options.inbox:
        return partial(inbox.run, bundle, ask, options.announce, host=options.host, port=port)
    runner = load_runner(usual if options.runner is None else options.runner)
    return partial(runner.run, bundle, ask, browser_path=options.browser_path, gpu=gpu)


def _on_device(bundle: Bundle, runner: DeviceRunner, address: str, ask: Ask) -> Callable[..., RunRecord]:
    kind = bundle.manifest.kind
    if kind not in runner.DEVICE_KINDS:
        raise UsageError(
            f"A bundle of kind '{kind}' does not run there: {runner.DEVICE} runs {', '.join(runner.DEVICE_KINDS)}.",
            hint="Build for a target of that kind; 'edgekit targets' lists them."
            if kind != WEB
            else "A web bundle runs in browsers: leave --device out, or see --browser, --cdp and --inbox.",
        )
    return partial(runner.run_device, bundle, ask, address)


def has_page(bundle: Bundle) -> bool:
    """Whether the bundle is a page that browsers open."""
    return any(entry.path == "index.html" for entry in bundle.manifest.files)


def target_runner(bundle: Bundle, targets_dir: Path | None) -> str:
    """Return the name of the runner of the bundle's target. Raises UsageError when the target is not known here."""
    try:
        return targets.load(bundle.manifest.target, targets_dir).parity.runner
    except UsageError as error:
        raise UsageError(
            f"The bundle's target is not known here. {error.message}",
            hint="Name the folder of your target files with --targets-dir, or the browser with --browser.",
        ) from error


def _conditions(bundle: Bundle, options: ParityOptions) -> Conditions:
    return Conditions(
        title=bundle.manifest.title if options.title is None else options.title,
        target=bundle.manifest.target,
        cases=options.cases,
        tolerance=options.tolerance,
        allow_fallback=options.allow_fallback,
        manifest_sha256=bundle.manifest_sha256,
        command=options.command,
        labels=options.labels,
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
