"""Parity in every combination of browser, variant and thread count: a run and a verdict for each, and none left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from edgekit import parity
from edgekit.errors import MissingToolError, UsageError, did_you_mean
from edgekit.parity import Opened, ParityOptions, ParityResult
from edgekit.progress import Progress, silent
from edgekit.records import store
from edgekit.records.run_record import RunRecord
from edgekit.records.verdict import Verdict
from edgekit.runners.browsers import FIREFOX, apt_line
from edgekit.runtime import pins

_NO_ADAPTER = "gave no GPU adapter"


@dataclass(frozen=True)
class Combination:
    """What one run is asked for. None: the browser, the first variant that runs, the threads: as the target says."""

    browser: str | None
    variant: str | None
    threads: int | None

    @property
    def label(self) -> str:
        """The combination in words, such as "firefox jspi 2"; empty when nothing was asked for."""
        return " ".join(str(part) for part in (self.browser, self.variant, self.threads) if part is not None)

    @property
    def folder(self) -> str:
        """The name of the folder that keeps its run."""
        return self.label.replace(" ", "-") or "default"


@dataclass(frozen=True, eq=False)
class MatrixRow:
    """One combination and what came of it. ``note``: why it did not run or pass, in a line; ``hint``: what to do."""

    combination: Combination
    result: ParityResult
    folder: Path | None
    note: str | None
    hint: str | None


def combinations(browsers: Sequence[str], variants: Sequence[str], threads: Sequence[int]) -> tuple[Combination, ...]:
    """Return every combination, in the order given, each once; an empty list leaves that choice to the target."""
    lists = (browsers or (None,), variants or (None,), threads or (None,))
    return tuple(Combination(*chosen) for chosen in dict.fromkeys(product(*lists)))


def verify(
    folder: Path,
    chosen: Sequence[Combination],
    options: ParityOptions,
    *,
    progress: Progress = silent,
) -> tuple[MatrixRow, ...]:
    """Replay the golden cases of the bundle in ``folder`` in each combination, and judge each.

    ``options.output``: the folder that keeps the runs, one folder each. A combination that cannot run (no browser, no
    adapter, a variant that the bundle lacks) is a row "not_run" that says why. Raises BundleError and UsageError like
    ``parity.verify``, the latter also for a variant that no runtime has.
    """
    opened = parity.open_folder(folder, progress, options)
    if options.cdp is None and options.remote is None:
        default = parity.target_runner(opened.bundle, options.targets_dir)
        chosen = [replace(one, browser=one.browser or default) for one in chosen]
    for one in chosen:
        _check(opened, one)
        if options.output is not None:
            store.check_place(options.output / one.folder)
    desktop: RunRecord | None = None
    rows = []
    for number, one in enumerate(chosen):
        step = _Step(progress, f"{number + 1}/{len(chosen)} {one.label}", number, len(chosen))
        row = _row(opened, one, options, desktop, step.show)
        desktop = row.result.desktop or desktop
        rows.append(row)
    return tuple(rows)


@dataclass(frozen=True)
class _Step:
    """The progress of one combination within that of all."""

    progress: Progress
    name: str
    before: int
    total: int

    def show(self, message: str, done: float | None = None) -> None:
        self.progress(f"{self.name}: {message}", (self.before + (done or 0.0)) / self.total)


def _check(opened: Opened, one: Combination) -> None:
    """Refuse names that nothing has, before anything runs."""
    if one.browser is not None:
        parity.load_runner(one.browser)
    known = [variant.id for variant in pins.load().variants]
    if one.variant is not None and one.variant not in {*known, *opened.bundle.manifest.runtime.variants}:
        raise UsageError(
            f"There is no variant '{one.variant}'.{did_you_mean(one.variant, known)}",
            hint=f"Variants: {', '.join(known)}.",
        )


def _row(
    opened: Opened, one: Combination, options: ParityOptions, desktop: RunRecord | None, progress: Progress
) -> MatrixRow:
    place = None if options.output is None else options.output / one.folder
    title = f"{opened.bundle.manifest.title} · {one.label}"
    asked = replace(options, runner=one.browser, variant=one.variant, threads=one.threads, output=place, title=title)
    shipped = opened.bundle.manifest.runtime.variants
    try:
        if one.variant is not None and one.variant not in shipped:
            raise MissingToolError(
                f"The bundle has no variant '{one.variant}'.",
                hint=f"It has {', '.join(shipped)}; a target whose variants name '{one.variant}' ships it.",
            )
        result = parity.verify_opened(opened, asked, desktop=desktop, progress=progress)
    except MissingToolError as error:
        result = parity.not_run(opened, asked, error.message, error.hint)
    note = _note(result.verdict)
    return MatrixRow(one, result, place, note, result.hint or _hint(one, note))


def _note(verdict: Verdict) -> str | None:
    """Say in a line why a combination did not pass; None when it did."""
    if verdict.passed:
        return None
    if verdict.has_nothing:
        for attempt in verdict.attempts:
            if attempt.status != "created" and attempt.reason:
                return attempt.reason.split("\n", 1)[0]
    return verdict.reasons[0].split("\n", 1)[0] if verdict.reasons else None


def _hint(one: Combination, note: str | None) -> str | None:
    """Say how a browser without a GPU gets an adapter on the CPU, where that is known."""
    if note is not None and _NO_ADAPTER in note and one.browser == FIREFOX.id:
        return f"A software adapter: '{apt_line(FIREFOX.packages[1:])}'."
    return None
