"""Look for wrong answers, and understand what is found: the front door of the fuzzer."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from edgekit import __version__
from edgekit.errors import UsageError
from edgekit.figures import figure
from edgekit.fuzz import cluster, crashes, cures, generators, look, near, probe, shrink, write
from edgekit.fuzz import journal as journals
from edgekit.fuzz import report as reports
from edgekit.fuzz.author import Generator
from edgekit.fuzz.cluster import Cluster
from edgekit.fuzz.cures import Cured
from edgekit.fuzz.journal import LETTERS, Journal
from edgekit.fuzz.look import Work
from edgekit.fuzz.report import FuzzReport
from edgekit.fuzz.trials import Bench, Trial, confirmed
from edgekit.known import entries
from edgekit.known.entries import Knowledge
from edgekit.progress import Progress, Stage, Tell, silent, untold
from edgekit.runners import browsers
from edgekit.runners.browsers import Engine, Gpu
from edgekit.runtime import locate, pins

_SHRUNK_OF_A_GENERATOR = 4
_SHRUNK = 16
# How often patterns are put to the test and learned again.
_TURNS = 3
# Understanding may take so long however short the looking was.
_LEAST_SECONDS = 120.0
_ENGINES = {engine.id: engine for engine in (browsers.CHROMIUM, browsers.FIREFOX)}


@dataclass(frozen=True)
class FuzzOptions:
    """What to look at, and for how long.

    ``ops``: operators (and chains of them) to draw; none: all. ``near``: a model, whose nodes are drawn with small
    changes instead. ``minutes``: how long to look; understanding what was found takes about as long again. ``most``:
    how many cases at most. ``again``: try the examples of what is known of the build too, so that knowledge made of
    this run forgets nothing that is still wrong. ``output``: where the journal, the findings and their repros go; None:
    nothing is kept.
    """

    browser: str
    variant: str
    ops: tuple[str, ...] = ()
    near: Path | None = None
    minutes: float = 5.0
    most: int | None = None
    seed: int = 0
    again: bool = False
    output: Path | None = None
    runtime_dir: Path | None = None
    browser_path: Path | None = None
    gpu: Gpu = "auto"


def fuzz(options: FuzzOptions, *, progress: Progress = silent, tell: Tell = untold) -> tuple[FuzzReport, Knowledge]:
    """Look for wrong answers with drawn cases, or go on with the run in ``options.output``.

    ``tell`` is told of what is wrong as it is found. However a run ends, the journal in ``options.output`` has what was
    found until then: KeyboardInterrupt says so.

    Raises UsageError for an unknown browser, variant or operator, or a folder of another run; ModelError for a model
    that is none; MissingToolError without a browser; ParityError when its page does not start.
    """
    engine = _engine(options.browser)
    (variant,) = pins.load().chosen([options.variant], "--variant")
    among = generators.chosen(options.ops) if options.near is None else near.around(options.near, options.ops)
    dist = locate.locate(options.runtime_dir, progress=progress)
    dist.require([variant])
    asked = {
        "edgekit": __version__, "seed": options.seed, "generators": generators.stamp(among), "browser": engine.name,
        "variant": variant.id, "runtime": f"{dist.package} {dist.version}", "wasm_sha256": dist.files[variant.wasm],
    }  # fmt: skip
    journal = journals.open_journal(options.output, asked)
    bench = Bench(variant, dist, engine, options.browser_path, options.gpu)
    seconds = options.minutes * 60 - journal.seconds
    work = Work(among, options.seed, options.output, options.most)
    try:
        look.look(bench, work, journal, seconds, progress, tell)
        found, cured, ended = _understood(bench, among, options, journal, progress, tell)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept_words(journal, options.output)) from None
    learned = write.entries(found, cured)
    report = reports.of(bench, len(among), options.seed, journal, found, learned, ended)
    known = Knowledge(dist.package, dist.version, variant.id, reports.measured(report), learned)
    if options.output is not None:
        repros = write.folder(options.output, bench, (found, cured, ended), known, report)
        report = replace(report, repros=repros)
    return report, known


def _kept_words(journal: Journal, output: Path | None) -> str:
    """Say what an interrupted run leaves."""
    said = f"{len(journal.outcomes):,} cases, {journal.count('wrong'):,} of them wrong"
    kept = "nothing is kept without -o" if output is None else f"kept in {output}; the same command goes on from there"
    return f"Stopped: {said}; {kept}."


def _understood(
    bench: Bench, among: Mapping[str, Generator], options: FuzzOptions, journal: Journal, progress: Progress, tell: Tell
) -> tuple[list[Cluster], list[Cured], list[crashes.Crash]]:
    """Understand what was found, within as many seconds again as were there to look (two minutes at least)."""
    seconds = max(_LEAST_SECONDS, options.minutes * 60)
    wrong = journal.count("wrong") + journal.count("crashed")
    said = f"{len(journal.outcomes):,} cases in {journal.seconds:.0f} s, {wrong:,} of them wrong"
    if wrong:
        tell(f"{said}. To understand them takes about {figure(seconds / 60)} min more.")
    stage = Stage(progress)
    stage.enter(said)
    end = time.monotonic() + seconds
    found, cured = _understand(bench, among, options, journal, stage)
    left = min(seconds / 4, end - time.monotonic())
    return found, cured, crashes.understand(bench, among, options.seed, journal, left, stage)


def _engine(name: str) -> Engine:
    if name not in _ENGINES:
        raise UsageError(f"The fuzzer does not run in '{name}'.", hint=f"Browsers: {', '.join(_ENGINES)}.")
    return _ENGINES[name]


def _understand(
    bench: Bench, among: Mapping[str, Generator], options: FuzzOptions, journal: Journal, progress: Progress
) -> tuple[list[Cluster], list[Cured]]:
    """Shrink what was found, try its neighbours, sort it by cause, test the patterns, and measure cures."""
    failed = [Trial(generators.draw(options.seed, number, among), "wrong") for number in journal.numbers("wrong")]
    if options.again:
        failed += _known(bench, among)
    if not failed:
        return [], []
    quarter = _quarter(options)
    begun = time.monotonic()
    evidence: list[Trial] = [_remembered(among, entry) for entry in journal.evidence]

    def tell(trials: Sequence[Trial]) -> None:
        new = [trial for trial in trials if trial.status in ("right", "wrong")]
        evidence.extend(new)
        journal.evidence += [_kept(trial) for trial in new]
        journals.keep(journal, options.output)

    failed = _leads(bench, failed, among, tell)
    progress(f"Making {len(failed)} findings smaller")
    smallest = shrink.shrink(bench, _some(failed), among, tell, lambda: time.monotonic() < begun + quarter)
    progress("Trying the neighbours of what was found")
    shrink.neighbours(bench, smallest, among, tell, quarter)
    drawn = (generators.draw(options.seed, number, among) for number in journal.numbers("right"))
    looked = [*failed, *(Trial(one, "right") for one in drawn)]
    progress("Sorting them by cause, and testing the patterns")
    for turn in range(_TURNS):
        tried = [*looked, *evidence]
        patterns = cluster.clusters(tried)
        most = int(bench.cases_per_second * quarter / _TURNS)
        if time.monotonic() >= begun + 3 * quarter:
            break
        fresh = [*probe.doubted(patterns, tried, among), *probe.cases(patterns, among, turn, most)]
        tell(bench.finish(bench.prepare(fresh)))
    found = _answered(bench, cluster.clusters([*looked, *evidence]))
    progress("Measuring what makes them right")
    measured = cures.measure(bench, found)
    kept = [(one, cured) for one, cured in zip(found, measured, strict=True) if cured.again]
    return [one for one, _ in kept], [cured for _, cured in kept]


def _quarter(options: FuzzOptions) -> float:
    """Return how many seconds one of the parts of understanding may take."""
    return max(_LEAST_SECONDS, options.minutes * 60) / 4


def _known(bench: Bench, among: Mapping[str, Generator]) -> list[Trial]:
    """Return the examples of what is known of this build that are wrong today."""
    known = entries.load(bench.dist.package, bench.dist.version, bench.variant.id)
    drawn = [entry.drawn for entry in known.entries if entry.drawn["generator"] in among] if known else []
    made = [generators.redraw(among[each["generator"]], each["choices"]) for each in drawn]
    return [trial for trial in bench.finish(bench.prepare(made)) if trial.status == "wrong"]


def _leads(bench: Bench, failed: Sequence[Trial], among: Mapping[str, Generator], tell: shrink.Evidence) -> list[Trial]:
    """Return the failures, each chain whose first operator fails alone, by the same choices, as that operator's.

    The generators of a chain and of its first operator call what they share by the same names.
    """
    alone = {
        place: generators.redraw(among[lead], trial.drawn.choices)
        for place, trial in enumerate(failed)
        if (lead := trial.drawn.generator.partition("+")[0]) != trial.drawn.generator and lead in among
    }
    answered = bench.finish(bench.prepare(list(alone.values())))
    tell(answered)
    wrong = {place: trial for place, trial in zip(alone, answered, strict=True) if trial.status == "wrong"}
    return [wrong.get(place, trial) for place, trial in enumerate(failed)]


def _some(failed: Sequence[Trial]) -> list[Trial]:
    """Return the failures to shrink: of each generator some small and some large ones, and not too many in all.

    An operator may be wrong for several causes, of which one has the smallest cases.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in sorted(failed, key=lambda trial: shrink.cost(trial.drawn)):
        groups.setdefault(trial.drawn.generator, []).append(trial)
    some = [shrink.spread(group, _SHRUNK_OF_A_GENERATOR) for group in groups.values()]
    turns = zip_longest(*some)  # the first of each generator, the second of each, ...
    return [trial for turn in turns for trial in turn if trial is not None][:_SHRUNK]


def _answered(bench: Bench, found: Sequence[Cluster]) -> list[Cluster]:
    """Return the clusters with answers, and the side that is wrong, of their smallest failures: those wrong again."""
    few = [[trial.drawn for trial in each.failures[: cures.CASES]] for each in found]
    answered = bench.finish(bench.prepare([drawn for each in few for drawn in each]))
    again = bench.finish([trial for trial in answered if trial.status == "wrong"])
    trials = iter(confirmed(answered, again))
    made = []
    for each, drawn in zip(found, few, strict=True):
        failing = tuple(trial for trial in [next(trials) for _ in drawn] if trial.status == "wrong")
        if failing:
            made.append(replace(each, failures=(*failing, *each.failures[cures.CASES :])))
    return made


def _remembered(among: Mapping[str, Generator], entry: Mapping[str, Any]) -> Trial:
    drawn = generators.redraw(among[entry["generator"]], entry["choices"])
    return Trial(drawn, "wrong" if entry["outcome"] == LETTERS["wrong"] else "right")


def _kept(trial: Trial) -> dict[str, Any]:
    return {
        "generator": trial.drawn.generator, "choices": dict(trial.drawn.choices), "outcome": LETTERS[trial.status],
    }  # fmt: skip
