"""Try drawn cases: desktop onnxruntime for what is right, a browser for what comes, and which side is wrong."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from edgekit.conformance import desktop
from edgekit.conformance.cases import Case
from edgekit.conformance.judge import judge
from edgekit.conformance.suite import Reply
from edgekit.fuzz import arbiter
from edgekit.fuzz.arbiter import Side
from edgekit.fuzz.generators import Drawn
from edgekit.records.run_record import Adapter
from edgekit.runners import conformance as browser
from edgekit.runners.browsers import CHROMIUM, Engine, Gpu
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

# A browser that does not start among hundreds that did is started again.
_STARTS = 3
# A software GPU on a busy machine takes a second and more for a case: its page reports often, and so is known to live.
_CHUNK_OF_A_GPU = 25
_SILENCE_SECONDS = 90.0

Status = Literal["right", "wrong", "desktop", "unsteady", "loads", "refused", "failed", "crashed", "invalid"]


@dataclass(frozen=True, eq=False)
class Trial:
    """What became of a drawn case.

    ``status``: "wrong" disagrees with the desktop, and was not found right by the arbiter; "desktop" disagrees, and
    it is the desktop that is wrong; "unsteady" disagreed once and not again; "loads": there are no answers to compare;
    "invalid": no model was drawn, or desktop onnxruntime does not run it.
    """

    drawn: Drawn
    status: Status
    problem: str | None = None
    expected: Reply | None = None
    got: Reply | None = None
    side: Side | None = None


class Bench:
    """One build of the runtime in one browser, and desktop onnxruntime beside it.

    ``cases_per_second``: of the last page, with the browser's start; ``browser_version``, ``adapter``: what it said.
    """

    def __init__(
        self,
        variant: Variant,
        dist: RuntimeDist,
        engine: Engine = CHROMIUM,
        browser_path: Path | None = None,
        gpu: Gpu = "auto",
    ) -> None:
        self.variant, self.dist, self.engine = variant, dist, engine
        self.browser_path: Path | None = browser_path
        self.gpu: Gpu = gpu
        self.browser_version = ""
        self.adapter: Adapter | None = None
        self.cases_per_second = 1.0

    def prepare(self, drawn: Sequence[Drawn]) -> list[Trial]:
        """Ask the desktop: a trial of each, "right" where its answers are what the browser must give."""
        cases = [one.case for one in drawn if one.case is not None]
        replies = iter(desktop.replay(cases) if cases else ())
        return [_prepared(one, None if one.case is None else next(replies)) for one in drawn]

    def finish(self, prepared: Sequence[Trial]) -> list[Trial]:
        """Ask the browser about every trial that the desktop gave answers to, in one page."""
        todo = [trial for trial in prepared if asked(trial)]
        replies = self.replay([case_of(trial) for trial in todo])
        answered = {id(trial): judged(trial, reply) for trial, reply in zip(todo, replies, strict=True)}
        return [answered.get(id(trial), trial) for trial in prepared]

    def replay(self, cases: Sequence[Case], variant: Variant | None = None) -> tuple[Reply, ...]:
        """Replay cases in the browser, on another build where one is named."""
        if not cases:
            return ()
        begun, variant = time.monotonic(), variant or self.variant
        done = browser.replay(
            cases, variant, self.dist, engine=self.engine, browser_path=self.browser_path, gpu=self.gpu,
            silence_seconds=_SILENCE_SECONDS, chunk=chunk(variant), starts=_STARTS,
        )  # fmt: skip
        self._note(done, begun, variant)
        return done.replies

    def stream(self, feed: browser.Feed, hear: browser.Hear) -> None:
        """Replay in one page what ``feed`` gives, until that is nothing; ``hear`` gets the replies as they come."""
        begun = time.monotonic()
        done = browser.stream(
            feed, hear, self.variant, self.dist, engine=self.engine, browser_path=self.browser_path, gpu=self.gpu,
            silence_seconds=_SILENCE_SECONDS, chunk=chunk(self.variant), starts=_STARTS,
        )  # fmt: skip
        self._note(done, begun, self.variant)

    def _note(self, done: browser.Browsed, begun: float, variant: Variant) -> None:
        self.cases_per_second = max(0.5, len(done.replies) / (time.monotonic() - begun))
        self.browser_version = done.browser_version
        if variant is self.variant:  # another build may ask for an adapter where this one has none
            self.adapter = done.adapter


def chunk(variant: Variant) -> int:
    """Return how many replies a page reports at once."""
    return _CHUNK_OF_A_GPU if variant.needs else browser.CHUNK


def confirmed(trials: Sequence[Trial], again: Sequence[Trial]) -> list[Trial]:
    """Return the trials with what disagreed confirmed by ``again``, trials of the wrong ones in another page.

    What did not disagree again is "unsteady"; of what did, the arbiter says who is wrong.
    """
    second = iter(again)
    return [_confirmed(trial, next(second)) if trial.status == "wrong" else trial for trial in trials]


def asked(trial: Trial) -> bool:
    """Whether the browser is asked about a trial: the desktop gave it answers."""
    return trial.status in ("right", "wrong")


def case_of(trial: Trial) -> Case:
    """Return the case of a trial with the desktop's answers as what is right."""
    assert trial.drawn.case is not None and trial.expected is not None  # noqa: S101 - only such trials are asked about
    return replace(trial.drawn.case, outputs=trial.expected.outputs)


def _prepared(drawn: Drawn, reply: Reply | None) -> Trial:
    if reply is None:
        return Trial(drawn, "invalid", "no model")
    if reply.outcome == "done":
        return Trial(drawn, "right", expected=reply)
    return Trial(drawn, "loads" if reply.outcome == "loaded" else "invalid", reply.error)


def judged(trial: Trial, reply: Reply) -> Trial:
    """Return the trial with what the browser replied, and whether that is right."""
    status, problem = judge(case_of(trial), reply)
    names: dict[str, Status] = {"passes": "right", "wrong": "wrong", "loads": "loads"}
    found: Status = names.get(status) or ("refused" if status == "refused" else "failed")
    return replace(trial, status="crashed" if status == "crashed" else found, problem=problem, got=reply)


def _confirmed(first: Trial, second: Trial) -> Trial:
    if second.status != "wrong":
        return replace(first, status="unsteady")
    assert first.drawn.case is not None and first.expected is not None and first.got is not None  # noqa: S101
    side = arbiter.side(first.drawn.case, first.expected, first.got)
    return replace(first, status="desktop" if side == "desktop" else "wrong", side=side)
