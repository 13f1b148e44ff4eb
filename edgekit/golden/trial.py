"""Run feeds three times over: as they are, moved by one ulp, and on the model with disturbed weights."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from edgekit import desktop
from edgekit.child import ChildLimits
from edgekit.desktop import DesktopResult, Feed
from edgekit.errors import ModelError
from edgekit.golden.disturb import write_disturbed
from edgekit.golden.inputs import FLOATS, move_one_ulp
from edgekit.model import LoadedModel
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
    """Runs feeds on one model and on its disturbed copy: one child process for each, whatever the number of feeds."""

    def __init__(self, model: LoadedModel, folder: Path, seed: int, limits: ChildLimits, progress: Progress) -> None:
        self._model = model
        self._folder = folder
        self._seed = seed
        self._limits = limits
        self._progress = progress
        self._copies: list[Path] | None = None
        self.runtime_version = ""

    def run(self, feeds: Sequence[Feed], doing: str) -> tuple[DesktopResult, ...]:
        """Run feeds on the model. Raises what ``edgekit.desktop.run`` raises."""
        self._progress(doing)
        done = desktop.run(self._model.path, feeds, feed_seconds=FEED_SECONDS, limits=self._limits)
        self.runtime_version = done.runtime_version
        return done.results

    def tried(self, feeds: Sequence[Feed]) -> list[Trial]:
        """Run feeds, then what was not refused with moved inputs and with disturbed weights."""
        moved = [_moved(feed, self._seed) for feed in feeds]
        twice = [feed for feed in moved if feed is not None]
        results = self.run([*feeds, *twice], "Running golden cases on the desktop")
        one_ulp = iter(results[len(feeds) :])
        found = []
        for feed, other, result in zip(feeds, moved, results, strict=False):
            nearby = next(one_ulp).outputs if other is not None else None
            found.append(Trial(feed, result.outputs, result.error, one_ulp=nearby))
        accepted = [trial.feed for trial in found if trial.outputs is not None]
        disturbed = iter(self._run_disturbed(accepted))
        return [trial if trial.outputs is None else replace(trial, disturbed=next(disturbed)) for trial in found]

    def _run_disturbed(self, feeds: Sequence[Feed]) -> Sequence[Outputs | None]:
        """Run feeds on the disturbed copy; where the runtime cannot take it, on one with disturbed matrices alone."""
        copies = self._disturbed_copies() if feeds else []
        while copies:
            self._progress("Running golden cases with disturbed weights")
            try:
                results = desktop.run(copies[0], feeds, feed_seconds=FEED_SECONDS, limits=self._limits).results
            except ModelError:
                results = ()
            if any(result.outputs is not None for result in results):
                return [result.outputs for result in results]
            del copies[0]
        return [None] * len(feeds)

    def _disturbed_copies(self) -> list[Path]:
        if self._copies is None:
            paths = [
                write_disturbed(self._model, self._folder / name, seed=self._seed, matrices_only=name == "matrices")
                for name in ("all", "matrices")
            ]
            self._copies = [path for path in paths if path is not None]
        return self._copies


@contextmanager
def bench(model: LoadedModel, *, seed: int, limits: ChildLimits, progress: Progress) -> Iterator[Bench]:
    """Give a bench whose temporary files go when the block ends."""
    with tempfile.TemporaryDirectory(prefix="edgekit-golden-") as folder:
        yield Bench(model, Path(folder), seed, limits, progress)


def _moved(feed: Feed, seed: int) -> Feed | None:
    """Return the feed with every float input moved by one ulp; None when it has no float input."""
    if not any(value.dtype in FLOATS for value in feed.inputs):
        return None
    return replace(feed, inputs=tuple(move_one_ulp(value, seed) for value in feed.inputs))
