"""Record which functions of the runtime a bundle's model enters: on this machine, and for other GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import EdgekitError
from edgekit.progress import Progress
from edgekit.runners import recording
from edgekit.runners.recording import Job, RecordedRun
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.runtime.recording import THREADS, Recording, recording_dist
from edgekit.wasm.edits import Branches

# The step of a recording in which the session is created.
_CREATE = "create"


@dataclass(frozen=True, eq=False)
class Recorded:
    """What the model did on a recording build: ``runs``, one for each of ``jobs``; none, for ``reason``.

    ``elsewhere``: functions and branches that it entered while the GPU's adapter went by the name of another one.
    """

    runs: tuple[RecordedRun, ...] = ()
    elsewhere: tuple[RecordedRun, ...] = ()
    reason: str = ""

    @property
    def functions(self) -> frozenset[int]:
        """The functions that were entered here."""
        return frozenset[int]().union(*(run.functions for run in self.runs))

    @property
    def functions_elsewhere(self) -> frozenset[int]:
        """The functions that are entered on other GPUs."""
        return frozenset[int]().union(*(run.functions for run in self.elsewhere))

    @property
    def branches(self) -> frozenset[int]:
        """The branches that were entered, here or for other GPUs."""
        return frozenset[int]().union(*(run.branches for run in (*self.runs, *self.elsewhere)))

    @property
    def trap(self) -> str | None:
        """How the model made the build trap; None: it did not."""
        run = next((run for run in self.runs if run.trapped), None)
        return None if run is None else next(iter(run.failures.values()), run.end)

    @property
    def refused(self) -> bool:
        """Whether no session was created."""
        return any(_CREATE in run.failures for run in self.runs)

    @property
    def failing(self) -> str | None:
        """What a golden case said that did not come to a good end; None: all did, or there was no session.

        On a GPU without what the model asks for (float16, say) it stops there, and what it needs where there is such a
        GPU was not entered.
        """
        return next((run.failing for run in self.runs if run.failing is not None), None)


def threads(variant: Variant) -> tuple[int, ...]:
    """Return the numbers of threads to try. On a software GPU a run takes many seconds, and its work is the GPU's."""
    return THREADS[:1] if variant.needs else THREADS


def jobs(
    variant: Variant, dist: RuntimeDist, flags: Recording | None = None, miss_address: int | None = None
) -> list[Job]:
    """Return what is done with a recording runtime, and again with what was cut.

    The last is the session that 'edgekit parity' creates to learn where the nodes are.
    """
    runs = [Job(variant, dist, flags, count, miss_address=miss_address) for count in threads(variant)]
    return [*runs, Job(variant, dist, flags, miss_address=miss_address, verbose=True)]


def run(draft: Path, jobs: Sequence[Job], browser_path: Path | None, progress: Progress) -> tuple[RecordedRun, ...]:
    """Do ``jobs``, two at a time: most of a job is one thread that compiles and one that runs.

    Raises what ``runners.recording.record_all`` does.
    """
    return recording.record_all(draft, jobs, browser_path=browser_path, at_once=2, progress=progress)


def record(
    draft: Path,
    runtime: RuntimeDist,
    variant: Variant,
    branches: Branches,
    browser_path: Path | None,
    progress: Progress,
) -> Recorded:
    """Record the model of the bundle ``draft`` on one variant of ``runtime``, with ``branches``.

    Other GPUs are those that the runtime knows by name. Their code is entered on any GPU, which need not run it right.
    """
    recorder = recording_dist(runtime, variant, branches)
    here = jobs(variant, *recorder)
    other = [Job(variant, *recorder, posing_as=pins.load().adapters)] if variant.needs else []
    try:
        runs = run(draft, [*here, *other], browser_path, progress)
    except EdgekitError as error:
        if not other:
            return Recorded(reason=error.message)
        try:  # a tab that crashes on another GPU's code says nothing about this one
            runs = run(draft, here, browser_path, progress)
        except EdgekitError as own:
            return Recorded(reason=own.message)
    return Recorded(runs[: len(here)], runs[len(here) :])
