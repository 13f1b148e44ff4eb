"""Prove that models answer alike: all of them in one child process, each against the first, bit by bit."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.desktop.exchange import StoredFeed
from edgekit.desktop.messages import readable
from edgekit.errors import LimitError
from edgekit.records.cases import GoldenCase
from edgekit.trim.prove_child import REFERENCE, verdict_file


@dataclass(frozen=True)
class Verdict:
    """What one model gave. ``error``: it gave no answer, and why. ``compared``: outputs, over all cases.

    ``difference``: the largest error of any output relative to its scale, 0 when every bit is the same, infinite when
    a shape, a dtype or a NaN differs. ``worst``: the output where that is.
    """

    error: str | None
    compared: int
    difference: float
    worst: str | None = None

    @property
    def identical(self) -> bool:
        return self.error is None and self.compared > 0 and self.difference == 0


@dataclass(frozen=True)
class Prover:
    """The model that is right, the cases, and which outputs must come out. ``limits`` are those of one process."""

    reference: Path
    cases: tuple[GoldenCase, ...]
    outputs: tuple[str, ...]
    limits: ChildLimits

    def stable(self) -> Verdict:
        """Judge the right model by itself: one whose answers differ from run to run can prove nothing."""
        return self.judge([self.reference])[0]

    def judge(self, models: Sequence[Path]) -> list[Verdict]:
        """Judge models, in as few child processes as their crashes allow."""
        with tempfile.TemporaryDirectory(prefix="edgekit-prove-") as name:
            folder = Path(name)
            for index, case in enumerate(self.cases):
                exchange.save_feed(folder, index, StoredFeed(case.inputs, case.feed_back, 1))
            verdicts: dict[int, Verdict] = {}
            while len(verdicts) < len(models):
                todo = [index for index in range(len(models)) if index not in verdicts]
                self._run(folder, models, todo, verdicts)
            return [verdicts[index] for index in range(len(models))]

    def _run(self, folder: Path, models: Sequence[Path], todo: list[int], verdicts: dict[int, Verdict]) -> None:
        exchange.write_json(
            folder / "request.json",
            {
                "reference": str(self.reference),
                "models": [[index, str(models[index])] for index in todo],
                "feeds": len(self.cases),
                "outputs": list(self.outputs),
            },
        )
        reason = "the runtime gave no answer"
        stored = sum(file.stat().st_size for file in self.reference.parent.iterdir() if file.is_file())
        elements = sum(v.array.size for case in self.cases for v in case.inputs if v.array is not None)
        runs = 1 + len(todo)
        limits = self.limits.for_model(stored * runs, elements=elements * runs, feeds=len(self.cases) * runs)
        try:
            child.run_module("edgekit.trim.prove_child", folder, limits=limits, what="proving the passes")
        except ChildFailedError as error:
            reason = f"the runtime crashed ({error.reason})" if error.crashed else readable(error.reason)
        except LimitError as error:
            reason = error.message
        for index in todo:
            place = verdict_file(folder, index)
            if place.exists():
                verdicts[index] = _verdict(exchange.read_json(place), str(models[index]))
        missing = [index for index in todo if index not in verdicts]
        if missing:
            verdicts[missing[0]] = Verdict(reason, 0, float("inf"))
            if not verdict_file(folder, REFERENCE).exists():  # it was the right model that could not be run
                verdicts |= {index: Verdict(reason, 0, float("inf")) for index in missing}


def _verdict(document: dict[str, Any], model: str) -> Verdict:
    error = document["error"]
    difference = float(document["difference"])  # JSON has no infinity: it travels as text
    text = None if error is None else readable(error, model=model)
    return Verdict(text, document["compared"], difference, document["worst"])
