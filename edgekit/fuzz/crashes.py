"""Understand what ended the runtime: ask again, alone in a page, and make the case smaller while it still does.

A case that traps ends its page, so that each candidate that does costs a browser. Few are tried, and within a time.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from edgekit.fuzz import generators, shrink
from edgekit.fuzz.author import Generator
from edgekit.fuzz.journal import Journal
from edgekit.fuzz.trials import Bench, Trial
from edgekit.progress import Progress, silent

_MOST = 4
_A_ROUND = 8
_MOST_TEXT = 400
_SILENT = "no answer within"


@dataclass(frozen=True, eq=False)
class Crash:
    """Case ``number`` of a run. ``smallest``: what crashes alone, made small; None: ``note`` says why there is none."""

    number: int
    smallest: Trial | None
    note: str

    @property
    def text(self) -> str:
        """What there is to say, in one line."""
        if self.smallest is None or self.smallest.drawn.case is None:
            return self.note
        graph = onnx.printer.to_text(onnx.load_from_string(self.smallest.drawn.case.model).graph)
        return f"{self.note}: {' '.join(graph.split())[:_MOST_TEXT]}"


def understand(
    bench: Bench,
    among: Mapping[str, Generator],
    seed: int,
    journal: Journal,
    seconds: float,
    progress: Progress = silent,
) -> list[Crash]:
    """Return what is known of the crashes in ``journal``: of each generator the smallest, within ``seconds``."""
    drawn = {number: generators.draw(seed, number, among) for number in journal.numbers("crashed")}
    first: dict[str, int] = {}
    for number in sorted(drawn, key=lambda number: shrink.cost(drawn[number])):
        first.setdefault(drawn[number].generator, number)
    end = time.monotonic() + seconds
    found = []
    for place, number in enumerate(list(first.values())[:_MOST]):
        progress("Making crashes smaller", place / min(_MOST, len(first)))
        if time.monotonic() >= end:
            break
        found.append(_crash(bench, among, number, Trial(drawn[number], "crashed"), end))
    return found


def _crash(bench: Bench, among: Mapping[str, Generator], number: int, crashed: Trial, end: float) -> Crash:
    alone = _alone(bench, crashed)
    if alone.status != "crashed":
        return Crash(number, None, f"alone it is {alone.status}")
    if (alone.problem or "").startswith(_SILENT):
        return Crash(number, alone, "alone too; not made smaller, for it hangs")
    (small,) = shrink.shrink(
        bench, [alone], among, lambda _: None, lambda: time.monotonic() < end, status="crashed", most=_A_ROUND
    )
    again = _alone(bench, small)
    return Crash(number, again if again.status == "crashed" else alone, "alone too, made small")


def _alone(bench: Bench, trial: Trial) -> Trial:
    (answered,) = bench.finish(bench.prepare([trial.drawn]))
    return answered
