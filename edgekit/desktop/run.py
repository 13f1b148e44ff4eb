"""Run a model in desktop onnxruntime on the CPU: the reference that devices are compared with.

The runtime runs in a child process with limits of time and memory: valid models end the process at load, and hostile
ones may do anything. Graph optimization is off unless asked for, and one thread is used, so that the same machine
gives the same bits.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from edgekit.child import process as child
from edgekit.child.process import DEFAULT_LIMITS, ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.desktop.exchange import StoredFeed
from edgekit.desktop.messages import explained, readable
from edgekit.errors import ModelError
from edgekit.progress import Progress, silent
from edgekit.records.cases import FeedBack
from edgekit.records.tensors import Value

Optimization = Literal["disabled", "basic", "extended", "all"]

# When the first feeds all crash the runtime, more of them prove nothing.
_MOST_CRASHES = 3


@dataclass(frozen=True, eq=False)
class Feed:
    """Inputs of one run. With ``feed_back``: of the first of its steps."""

    inputs: tuple[Value, ...]
    feed_back: FeedBack | None = None


@dataclass(frozen=True, eq=False)
class DesktopResult:
    """What one feed gave: all outputs in the model's order (of the last step, where fed back), or why there are none.

    ``run_ms``: milliseconds of every repeat, or of every step.
    """

    outputs: tuple[Value, ...] | None
    error: str | None
    run_ms: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class DesktopRun:
    """What a reference gave for some feeds, in their order. ``create_ms``: creating the session, the file read too."""

    runtime_version: str
    create_ms: float
    results: tuple[DesktopResult, ...]
    threads: int = 1
    runtime: str = "onnxruntime"


def run(
    model: Path,
    feeds: Sequence[Feed],
    *,
    optimization: Optimization = "disabled",
    threads: int | None = 1,
    repeats: int = 1,
    feed_seconds: float | None = None,
    limits: ChildLimits = DEFAULT_LIMITS,
    progress: Progress = silent,
) -> DesktopRun:
    """Run all feeds through one session of the model, in one child process.

    ``threads``: None leaves the number to the runtime. ``repeats``: how often the first feed that feeds nothing back
    is run, for timing; the others run once. ``feed_seconds``: a feed that takes longer is stopped, and is a result
    with an error; None lets ``limits`` end everything.

    A feed that the runtime refuses is a result with the runtime's reason. A feed on which the runtime crashes is one
    too, and the other feeds go on in a new process. Outputs that are not tensors have no array and a note.

    Raises ModelError, naming the model and the optimization level, when no session can be created, when creating it
    crashes, and when the first three feeds all crash; LimitError when time or memory runs out.
    """
    with tempfile.TemporaryDirectory(prefix="edgekit-desktop-") as name:
        work = _Work(Path(name), model, optimization, len(feeds))
        timed = next((index for index, feed in enumerate(feeds) if feed.feed_back is None), None)
        for index, feed in enumerate(feeds):
            count = repeats if index == timed else 1
            exchange.save_feed(work.folder, index, StoredFeed(feed.inputs, feed.feed_back, count))
        request = {
            "model": str(model.absolute()),
            "optimization": optimization,
            "threads": threads,
            "feed_seconds": feed_seconds,
        }
        work.run(request, limits, progress)
        session = work.session
        results = tuple(work.result(index) for index in range(len(feeds)))
    return DesktopRun(session["runtime_version"], session["create_ms"], results, session["threads"])


class _Work:
    """The folder in which the parent and its child exchange files."""

    def __init__(self, folder: Path, model: Path, optimization: Optimization, count: int) -> None:
        self.folder = folder
        self.model = model
        self.optimization = optimization
        self.count = count
        self.crashed: dict[int, str] = {}

    def run(self, request: dict[str, Any], limits: ChildLimits, progress: Progress) -> None:
        """Run the child, and again for the feeds after one that crashed it."""
        what = f"running {self.model.name} on the desktop (graph optimization {self.optimization})"

        def tell() -> None:
            done = len(self._done())
            progress(f"{what[0].upper()}{what[1:]}", done / self.count if self.count else None)

        deadline = time.monotonic() + limits.seconds
        left = limits
        while True:
            todo = [index for index in range(self.count) if index not in self._done()]
            if self._session_known and not todo:
                return
            exchange.write_json(self.folder / "request.json", request | {"todo": todo})
            try:
                child.run_module("edgekit.desktop.child", self.folder, limits=left, what=what, each_look=tell)
            except ChildFailedError as error:
                if not error.crashed:
                    raise
                self._note_crash(error)
                left = replace(limits, seconds=max(0.0, round(deadline - time.monotonic(), 1)))
            self._refuse_without_session()

    def _note_crash(self, error: ChildFailedError) -> None:
        where = "while it loaded the model"
        if self._session_known:
            todo = [index for index in range(self.count) if index not in self._done()]
            self.crashed |= dict.fromkeys(todo[:1], f"onnxruntime crashed ({error.reason}) on these inputs")
            if len(self.crashed) < _MOST_CRASHES or len(self._done()) > len(self.crashed):
                return
            where = f"on each of {len(self.crashed)} sets of inputs"
        raise ModelError(
            f"{self.model}: the desktop onnxruntime crashed ({error.reason}) {where}, "
            f"with graph optimization {self.optimization}.",
            hint=_hint(self.optimization),
        ) from error

    @property
    def _session_known(self) -> bool:
        return (self.folder / "session.json").exists()

    @property
    def session(self) -> dict[str, Any]:
        document: dict[str, Any] = exchange.read_json(self.folder / "session.json")
        return document

    def _refuse_without_session(self) -> None:
        reason = self.session["error"]
        if reason is None:
            return
        clause, hint = explained(readable(reason, model=str(self.model.absolute())))
        raise ModelError(
            f"{self.model} {clause.removesuffix('.')} (graph optimization {self.optimization}).",
            hint=hint or _hint(self.optimization),
        )

    def _done(self) -> set[int]:
        return exchange.finished(self.folder) | set(self.crashed)

    def result(self, index: int) -> DesktopResult:
        if index in self.crashed:
            return DesktopResult(None, self.crashed[index])
        stored = exchange.load_result(self.folder, index)
        if stored.error is not None:
            return DesktopResult(None, readable(stored.error))
        return DesktopResult(stored.outputs, None, stored.run_ms)


def _hint(optimization: Optimization) -> str:
    if optimization == "disabled":
        return "Check the model with the tool that exported it, or name another --reference."
    return "Try another optimization level: with optimization disabled the model may load."
