"""Run feeds three times over: as they are, with everything moved by one ulp, and with weights disturbed by 1 %.

Moving the inputs alone by one ulp would not do. rawi.int8, a recurrent int8 model whose only input is integers, gives
outputs 34 tolerances away for four of twelve inputs when its weights move by one ulp: one activation falls on the other
side of a rounding. And for every batch of three it gives outputs 50 to 100 tolerances away when the same runtime has
two threads in place of one, which quantize their parts of the batch apart. So the second run has two threads as well.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from edgekit.child.process import ChildLimits
from edgekit.desktop import run as desktop
from edgekit.desktop.run import DesktopResult, Feed
from edgekit.errors import ModelError
from edgekit.golden.disturb import Change, write_disturbed
from edgekit.golden.inputs import move_one_ulp
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress
from edgekit.records.tensors import Value

# A run of more than a minute is no use as a golden case, and a loop may never end.
FEED_SECONDS = 60.0

Outputs = tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Trial:
    """What one feed gave. ``outputs`` None: the runtime refused it, with ``error``. The others None: not measured."""

    feed: Feed
    outputs: Outputs | None
    error: str | None
    one_ulp: Outputs | None = None
    disturbed: Outputs | None = None


class Bench:
    """Runs feeds on one model and its disturbed copies: one child process for each, whatever the number of feeds."""

    def __init__(self, model: LoadedModel, folder: Path, seed: int, limits: ChildLimits, progress: Progress) -> None:
        self._model = model
        self._folder = folder
        self._seed = seed
        self._limits = limits
        self._progress = progress
        self._copies: dict[Change, list[Path]] = {}
        self.model_bytes = model.path.stat().st_size + sum(file.bytes for file in model.external_files)
        self.runtime_version = ""

    def run(self, feeds: Sequence[Feed], doing: str) -> tuple[DesktopResult, ...]:
        """Run feeds on the model. Raises what ``edgekit.desktop.run`` raises."""
        self._progress(doing)
        done = desktop.run(self._model.path, feeds, feed_seconds=FEED_SECONDS, limits=self._limits)
        self.runtime_version = done.runtime_version
        return done.results

    def tried(self, feeds: Sequence[Feed], exact: frozenset[str]) -> list[Trial]:
        """Run feeds, then what was not refused on the disturbed copies. Inputs named in ``exact`` never move."""
        results = self.run(feeds, "Running golden cases on the desktop")
        trials = [Trial(feed, result.outputs, result.error) for feed, result in zip(feeds, results, strict=True)]
        accepted = [trial.feed for trial in trials if trial.outputs is not None]
        moved = [_moved(feed, exact, self._seed) for feed in accepted]
        one_ulp = iter(self._run_copy("ulp", moved, "Running golden cases moved by one ulp"))
        percent = iter(self._run_copy("percent", accepted, "Running golden cases with weights disturbed by 1 %"))
        return [
            trial if trial.outputs is None else replace(trial, one_ulp=next(one_ulp), disturbed=next(percent))
            for trial in trials
        ]

    def _run_copy(self, change: Change, feeds: Sequence[Feed], doing: str) -> Sequence[Outputs | None]:
        """Run feeds on a disturbed copy; where the runtime cannot take it, on one with disturbed matrices alone."""
        copies = self._disturbed(change) if feeds else []
        while copies:
            self._progress(doing)
            threads = 2 if change == "ulp" else 1
            try:
                done = desktop.run(copies[0], feeds, threads=threads, feed_seconds=FEED_SECONDS, limits=self._limits)
                results = done.results
            except ModelError:
                results = ()
            if any(result.outputs is not None for result in results):
                return [result.outputs for result in results]
            del copies[0]
        return [None] * len(feeds)

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


def _moved(feed: Feed, exact: frozenset[str], seed: int) -> Feed:
    values = (value if value.name in exact else move_one_ulp(value, seed) for value in feed.inputs)
    return replace(feed, inputs=tuple(values))


@contextmanager
def bench(model: LoadedModel, *, seed: int, limits: ChildLimits, progress: Progress) -> Iterator[Bench]:
    """Give a bench whose temporary files go when the block ends."""
    with tempfile.TemporaryDirectory(prefix="edgekit-golden-") as folder:
        yield Bench(model, Path(folder), seed, limits, progress)
