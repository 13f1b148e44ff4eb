"""The looking: draw, ask the desktop, ask the browser, write down; the next cases are drawn while the browser works."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.fuzz import generators
from edgekit.fuzz import journal as journals
from edgekit.fuzz.author import Generator
from edgekit.fuzz.journal import LETTERS, Journal
from edgekit.fuzz.trials import Bench, Trial, asked, case_of, chunk, confirmed, judged
from edgekit.progress import Progress, Tell, silent, untold

# A page of so many seconds: to start the browser and have it compile takes five, and a run that is ended loses a page.
_PAGE_SECONDS = 90.0
# The desktop is asked about so many seconds of the page's work at once: its process takes half a second to start.
_DRAWN_SECONDS = 8.0
_LEAST, _MOST = 40, 1000
# What the last page finds wrong is asked about again in a page more, for which so much of the time is left.
_AGAIN_SECONDS, _AGAIN_SHARE = 15.0, 0.2
_FIRST = {True: 40, False: 200}


@dataclass(frozen=True)
class Work:
    """What is drawn, with which seed, where the journal goes (None: nowhere), and how many cases at most."""

    among: Mapping[str, Generator]
    seed: int
    folder: Path | None = None
    most: int | None = None


def look(
    bench: Bench, work: Work, journal: Journal, seconds: float, progress: Progress = silent, tell: Tell = untold
) -> None:
    """Try the cases of a seed from the first that ``journal`` lacks on, for ``seconds``; what is found is confirmed.

    ``tell`` is told of the first wrong case of each generator. However it ends, ``journal`` has what was found.
    """
    _settle(bench, work, journal, tell)
    end = time.monotonic() + seconds - min(_AGAIN_SECONDS, _AGAIN_SHARE * seconds)
    # What a page finds wrong is asked about again in the next page, beside its own cases.
    held: list[Trial] = []
    with ThreadPoolExecutor(1) as pool:
        drawing = _Drawing(bench, work, pool, len(journal.outcomes), _FIRST[bool(bench.variant.needs)])
        while drawing.more and time.monotonic() < end:
            begun = time.monotonic()
            page = _Page(drawing, _wrong(held), min(end, begun + _PAGE_SECONDS))

            def hear(index: int, reply: Reply, page: _Page = page, begun: float = begun) -> None:
                page.hear(index, reply)
                done, took = len(journal.outcomes) + page.count, time.monotonic() - begun
                _tell(progress, journal, done, (journal.seconds + took, page.wrong), 1 - (end - begun - took) / seconds)

            try:
                bench.stream(page.feed, hear)
            except BaseException:
                drawing.stop()
                again = {id(trial): now for trial, now in zip(_wrong(held), page.again, strict=True)}
                _write_unfinished(journal, [(trial, again.get(id(trial))) for trial in held])
                _write_unfinished(journal, [(trial, None) for trial in page.answered])
                _spent(journal, work, begun)
                raise
            _write(journal, held, [trial for trial in page.again if trial is not None], tell)
            held = page.trials
            _spent(journal, work, begun)
        drawing.stop()
    begun = time.monotonic()
    try:
        _write(journal, held, bench.finish(_wrong(held)), tell)
    except BaseException:
        _write_unfinished(journal, [(trial, None) for trial in held])
        raise
    finally:
        _spent(journal, work, begun)


def _spent(journal: Journal, work: Work, begun: float) -> None:
    journal.seconds += time.monotonic() - begun
    journals.keep(journal, work.folder)


class _Drawing:
    """Cases in order with the desktop's answers, drawn ahead, ``size`` at once. ``more``: whether any are left."""

    def __init__(self, bench: Bench, work: Work, pool: ThreadPoolExecutor, first: int, size: int) -> None:
        self._bench, self._work, self._pool = bench, work, pool
        self._next, self.size = first, size
        self.at_once = chunk(bench.variant)  # so that a page that has to end does so soon
        self._coming: Future[list[Trial]] | None = None
        self._ready: list[Trial] = []
        self._ahead()

    @property
    def more(self) -> bool:
        return bool(self._ready) or self._coming is not None

    def take(self, most: int) -> list[Trial]:
        """Return the next cases, ``most`` at once, and begin to draw more where there are none."""
        if not self._ready and self._coming is not None:
            self._ready = self._coming.result()
            self._ahead()
        taken, self._ready = self._ready[:most], self._ready[most:]
        return taken

    def stop(self) -> None:
        if self._coming is not None:
            self._coming.cancel()

    def _ahead(self) -> None:
        most = self._work.most
        numbers = range(self._next, self._next + self.size)[: None if most is None else max(0, most - self._next)]
        self._next += len(numbers)
        self._coming = self._pool.submit(self._prepare, numbers) if numbers else None

    def _prepare(self, numbers: Sequence[int]) -> list[Trial]:
        return self._bench.prepare([generators.draw(self._work.seed, n, self._work.among) for n in numbers])


class _Page:
    """The work of one page: first what an earlier one found ``wrong``, then drawn cases until the ``end``."""

    def __init__(self, drawing: _Drawing, wrong: Sequence[Trial], end: float) -> None:
        self._drawing, self._end = drawing, end
        self._trials = list(wrong)
        self._before = len(wrong)
        self._heard: set[int] = set()
        self._asked: list[int] = []
        self._begun: float | None = None
        self.count = self.wrong = 0

    @property
    def again(self) -> list[Trial | None]:
        """What became of the trials that were wrong before; None: they were not asked about yet."""
        return [self._trials[place] if place in self._heard else None for place in range(self._before)]

    @property
    def trials(self) -> list[Trial]:
        """What became of the drawn ones."""
        return self._trials[self._before :]

    @property
    def answered(self) -> list[Trial]:
        """The drawn ones up to the first that the page has not answered: those that an interrupted run knows of."""
        asked, found = set(self._asked), []
        for place in range(self._before, len(self._trials)):
            if place in asked and place not in self._heard:
                break
            found.append(self._trials[place])
        return found

    def feed(self) -> list[Case]:
        """Return the next cases for the page; called again when it has answered, until there are none."""
        if self._begun is not None and time.monotonic() >= self._end:
            return []
        first = 0 if self._begun is None else len(self._trials)
        if self._begun is None:
            self._begun = time.monotonic()
        elif self.count:
            rate = self.count / max(0.1, time.monotonic() - self._begun)
            self._drawing.size = int(min(max(rate * _DRAWN_SECONDS, _LEAST), _MOST))
        while True:
            drawn = self._drawing.take(self._drawing.at_once)
            self._trials += drawn
            places = [place for place in range(first, len(self._trials)) if asked(self._trials[place])]
            if places or not drawn:
                break
        self._asked += places
        return [case_of(self._trials[place]) for place in places]

    def hear(self, index: int, reply: Reply) -> None:
        """Take the reply to a case, by its number in what was fed."""
        place = self._asked[index]
        self._heard.add(place)
        trial = self._trials[place] = judged(self._trials[place], reply)
        if place >= self._before:
            self.count += 1
            self.wrong += trial.status == "wrong"


def _wrong(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.status == "wrong"]


def _write(journal: Journal, trials: Sequence[Trial], again: Sequence[Trial], tell: Tell) -> None:
    _keep(journal, confirmed(trials, again), tell)


def _write_unfinished(journal: Journal, pairs: Sequence[tuple[Trial, Trial | None]]) -> None:
    """Write trials of a run that is being ended, each with what it was when asked again (None: it was not yet)."""
    for trial, again in pairs:
        if trial.status == "wrong" and again is None:
            journal.unconfirmed.append(len(journal.outcomes))
            _keep(journal, [trial])
        else:
            _keep(journal, confirmed([trial], [] if again is None else [again]))


def _keep(journal: Journal, trials: Sequence[Trial], tell: Tell = untold) -> None:
    for trial in trials:
        number = len(journal.outcomes)
        journal.outcomes += LETTERS[trial.status]
        _note(journal, number, trial, tell)


def _note(journal: Journal, number: int, trial: Trial, tell: Tell) -> None:
    """Keep what was wrong with a case, and tell of it where it is the first of its generator."""
    name = trial.drawn.generator
    if trial.status in ("wrong", "crashed"):
        same = (one for at, one in journal.problems.items() if journal.outcomes[int(at)] == LETTERS[trial.status])
        if all(one["generator"] != name for one in same):
            tell(f"{'Wrong' if trial.status == 'wrong' else 'Crashed'}: {name} (case {number}): {trial.problem}")
    if trial.status in ("wrong", "desktop", "unsteady", "crashed"):
        journal.problems[str(number)] = {"generator": name, "problem": trial.problem, "side": trial.side}


def _settle(bench: Bench, work: Work, journal: Journal, tell: Tell) -> None:
    """Ask again about what was wrong when an earlier run was ended."""
    numbers = journal.unconfirmed
    if not numbers:
        return
    drawn = [generators.draw(work.seed, number, work.among) for number in numbers]
    answered = bench.finish(bench.prepare(drawn))
    first = [replace(trial, status="wrong") for trial in answered]  # as it was, when the run was ended
    for number in numbers:
        del journal.problems[str(number)]
    for number, trial in zip(numbers, confirmed(first, answered), strict=True):
        letters = list(journal.outcomes)
        letters[number] = LETTERS[trial.status]
        journal.outcomes = "".join(letters)
        _note(journal, number, trial, tell)
    journal.unconfirmed = []
    journals.keep(journal, work.folder)


def _tell(progress: Progress, journal: Journal, cases: int, so_far: tuple[float, int], part: float) -> None:
    seconds, wrong = so_far
    progress(f"{cases:,} cases, {journal.count('wrong') + wrong} wrong, {cases / max(1.0, seconds):.0f} a second", part)
