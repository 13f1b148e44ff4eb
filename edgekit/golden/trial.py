"""Run feeds again and again: as they are, moved by one ulp, with more threads, and with weights disturbed by 1 %.

Moving the inputs alone by one ulp would not do. rawi.int8, a recurrent int8 model whose only input is integers, gives
outputs 34 tolerances away for four of twelve inputs when its weights move by one ulp: one activation falls on the other
side of a rounding. And for every batch of three it gives outputs 50 to 100 tolerances away when the same runtime has
two threads in place of one, which quantize their parts of the batch apart.

More threads are experiments of their own, with the very inputs and weights. Where the trees of a forest give two
classes as many votes, the order of the sums decides, which threads change; when the weights move by one ulp at the
same time, that decides the tie instead, and often the way it was. Two threads and four decide differently too: of 400
batches of 64 rows near iris flowers, 322 had other labels with two threads, and 4 only with four.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgekit.child.process import ChildLimits
from edgekit.desktop import run as desktop
from edgekit.desktop.exchange import LATE
from edgekit.desktop.run import DesktopResult, Feed
from edgekit.errors import LimitError, ModelError
from edgekit.golden import selection
from edgekit.golden.disturb import Change, write_disturbed
from edgekit.golden.grade import Graded, Judge, grade
from edgekit.golden.inputs import move_one_ulp
from edgekit.golden.widened import NARROW, widened
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress
from edgekit.records.tensors import Value

# A run of more than a minute is no use as a golden case, and a loop may never end.
FEED_SECONDS = 60.0
# A feed may take the third part of the time of all; when two are late, the model will not do.
_SHARE, _LATE = 3, 2

# A page takes as many threads as the device gives, and at most four.
_THREADS = (2, 4)

Outputs = tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Trial:
    """What one feed gave. ``outputs`` None: the runtime refused it, with ``error``.

    ``rounded``: by their name in words, what the experiments gave that a right device may differ by. ``disturbed``:
    what the model gave with weights 1 % wrong. None there: not measured.
    """

    feed: Feed
    outputs: Outputs | None
    error: str | None
    rounded: Mapping[str, Outputs | None] = field(default_factory=dict)
    disturbed: Outputs | None = None

    def graded(self, others: Sequence[Outputs], judge: Judge) -> Graded:
        """Grade what was not refused; ``others``: see ``edgekit.golden.grade.grade``."""
        return grade(self.outputs or (), rounded=self.rounded, disturbed=self.disturbed, others=others, judge=judge)


class Bench:
    """Runs feeds on one model and its disturbed copies: one child process for each, whatever the number of feeds.

    ``case_bytes``: inputs and outputs of the largest case so far.
    """

    def __init__(self, model: LoadedModel, folder: Path, seed: int, limits: ChildLimits, progress: Progress) -> None:
        self._model = model
        self._folder = folder
        self._seed = seed
        self._limits = limits
        self._progress = progress
        self._copies: dict[Change, list[Path]] = {}
        self._widened = widened(model.proto)
        self.model_bytes = model.path.stat().st_size + sum(file.bytes for file in model.external_files)
        self.runtime_version = ""
        self.case_bytes = 0
        self._late = 0

    def run(self, feeds: Sequence[Feed], doing: str) -> tuple[DesktopResult, ...]:
        """Run feeds on the model. Raises what ``edgekit.desktop.run`` raises."""
        self._progress(doing)
        limits, feed_seconds = self._bounds(feeds)
        done = desktop.run(self._model.path, feeds, feed_seconds=feed_seconds, limits=limits)
        self.runtime_version = done.runtime_version
        self._late += sum(result.error is not None and LATE in result.error for result in done.results)
        if self._late >= _LATE:
            raise LimitError(
                f"{self._model.path} does not end: it was stopped on each of {self._late} sets of inputs, after "
                f"{feed_seconds:.1f} s of computing.",
                hint="The model may hold a loop that does not end with these inputs. Give real inputs with --sample.",
            )
        given = (
            selection.bytes_of((*feed.inputs, *result.outputs))
            for feed, result in zip(feeds, done.results, strict=True)
            if result.outputs is not None
        )
        self.case_bytes = max(self.case_bytes, *given, 0)
        return done.results

    def tried(self, feeds: Sequence[Feed], exact: frozenset[str]) -> list[Trial]:
        """Run feeds, then what was not refused on the disturbed copies. Inputs named in ``exact`` never move, and none
        of 16 bits that the model widens first: see ``edgekit.golden.widened``.
        """
        results = self.run(feeds, "Running golden cases on the desktop")
        trials = [Trial(feed, result.outputs, result.error) for feed, result in zip(feeds, results, strict=True)]
        accepted = [trial.feed for trial in trials if trial.outputs is not None]
        moved = [_moved(feed, exact, self._widened, self._seed) for feed in accepted]
        rounded = {
            "one ulp in inputs and weights": self._run_copy("ulp", moved, "Running golden cases moved by one ulp")
        }
        for threads in _THREADS:
            doing = f"Running golden cases with {threads} threads"
            rounded[f"{threads} threads"] = self.measured(self._model.path, accepted, doing, threads)
        percent = self._run_copy("percent", accepted, "Running golden cases with weights disturbed by 1 %")
        place = iter(range(len(accepted)))
        return [trial if trial.outputs is None else _with(trial, next(place), rounded, percent) for trial in trials]

    def room(self, name: str) -> Path:
        """Make a folder for a changed copy of the model; it goes with the bench."""
        folder = self._folder / name
        folder.mkdir()
        return folder

    def _run_copy(self, change: Change, feeds: Sequence[Feed], doing: str) -> Sequence[Outputs | None]:
        """Run feeds on a disturbed copy; where the runtime cannot take it, on one with disturbed matrices alone."""
        copies = self._disturbed(change) if feeds else []
        while copies:
            found = self.measured(copies[0], feeds, doing)
            if any(outputs is not None for outputs in found):
                return found
            del copies[0]
        return [None] * len(feeds)

    def measured(self, model: Path, feeds: Sequence[Feed], doing: str, threads: int = 1) -> Sequence[Outputs | None]:
        """Run feeds on a copy of the model. None for what the runtime refused: that is then not measured.

        Raises LimitError when it takes too much time or memory.
        """
        if not feeds:
            return []
        self._progress(doing)
        try:
            limits, feed_seconds = self._bounds(feeds)
            done = desktop.run(model, feeds, threads=threads, feed_seconds=feed_seconds, limits=limits)
        except ModelError:
            return [None] * len(feeds)
        return [result.outputs for result in done.results]

    def _bounds(self, feeds: Sequence[Feed]) -> tuple[ChildLimits, float]:
        """Return the limits of all runs together, and the seconds of one: a few may be late."""
        elements = sum(value.array.size for feed in feeds for value in feed.inputs if value.array is not None)
        limits = self._limits.for_model(self.model_bytes, elements=elements, feeds=len(feeds))
        return limits, min(FEED_SECONDS, (limits.cpu_seconds or FEED_SECONDS) / _SHARE)

    def _disturbed(self, change: Change) -> list[Path]:
        """Return the copies that the runtime may take, the better one first. A model without weights is its own."""
        if change not in self._copies:
            paths = [
                write_disturbed(self._model, self._folder / change / name, change, seed=self._seed, matrices_only=only)
                for name, only in (("all", False), ("matrices", True))
            ]
            self._copies[change] = [path for path in paths if path is not None]
            if change == "ulp":
                self._copies[change].append(self._model.path)
        return self._copies[change]


def _with(
    trial: Trial, place: int, rounded: Mapping[str, Sequence[Outputs | None]], disturbed: Sequence[Outputs | None]
) -> Trial:
    return replace(trial, rounded={cause: found[place] for cause, found in rounded.items()}, disturbed=disturbed[place])


def _moved(feed: Feed, exact: frozenset[str], wide: frozenset[str], seed: int) -> Feed:
    kept = exact | {value.name for value in feed.inputs if value.dtype in NARROW and value.name in wide}
    values = (value if value.name in kept else move_one_ulp(value, seed) for value in feed.inputs)
    return replace(feed, inputs=tuple(values))


@contextmanager
def bench(model: LoadedModel, *, seed: int, limits: ChildLimits, progress: Progress) -> Iterator[Bench]:
    """Give a bench whose temporary files go when the block ends."""
    with tempfile.TemporaryDirectory(prefix="edgekit-golden-") as folder:
        yield Bench(model, Path(folder), seed, limits, progress)
