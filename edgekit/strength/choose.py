"""Choose better golden cases: where no case sees a fault, look for one that does."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgekit.child.process import ChildLimits
from edgekit.errors import EdgekitError
from edgekit.golden import selection
from edgekit.golden.make import Improve, More
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.strength import measure
from edgekit.strength.measure import Outcomes

_MOST_ADDED = 3
_NO_REFERENCE = Reference("desktop onnxruntime", "onnxruntime", "", "disabled")


def _forget(found: Outcomes) -> None:
    """What is done with outcomes that nobody asked for."""


def improver(
    model: Path,
    tolerance: Mapping[str, Tolerance],
    output_tolerance: Mapping[str, Tolerance],
    *,
    seed: int,
    limits: ChildLimits,
    seen: Callable[[Outcomes], None] = _forget,
    progress: Progress = silent,
) -> Improve:
    """Return what ``edgekit.golden.make`` asks: given cases, which others see faults of ``model`` that these miss.

    ``seen`` is told what became of the faults, where the cases need no others.

    At most three are added, the one that sees most first, and none where the cases would be too large together.
    """

    def case_set(cases: tuple[GoldenCase, ...]) -> CaseSet:
        return CaseSet("0" * 64, _NO_REFERENCE, tolerance, output_tolerance, cases)

    def improve(cases: tuple[GoldenCase, ...], more: More) -> tuple[GoldenCase, ...]:
        used = sum(_bytes(case) for case in cases)
        if not cases or used >= selection.MOST_BYTES:
            return ()
        try:
            found = measure.outcomes(model, case_set(cases), seed=seed, limits=limits, progress=progress)
            missed = found.missed()
            if not missed:
                seen(found)
            spare = more() if missed else ()
            if not spare:
                return ()
            tried = measure.outcomes(
                model,
                case_set(spare),
                seed=seed,
                faults=missed,
                every_case=True,
                limits=limits,
                progress=progress,
            )
        except EdgekitError:  # the cases are all right as they are; what they are worth is told elsewhere
            return ()
        return tuple(_greedy(spare, [result["caught_by"] for result in tried.results], selection.MOST_BYTES - used))

    return improve


def _greedy(spare: Sequence[GoldenCase], caught_by: Sequence[Sequence[Any]], bytes_left: int) -> list[GoldenCase]:
    """Return the case that sees most of the faults, then the one that sees most of the rest, and so on."""
    left = {number: set(ids) for number, ids in enumerate(caught_by) if ids}
    chosen: list[GoldenCase] = []
    while left and len(chosen) < _MOST_ADDED:
        usable = [case for case in spare if case not in chosen and _bytes(case) <= bytes_left]
        best = max(usable, key=lambda case: sum(case.id in ids for ids in left.values()), default=None)
        if best is None or not any(best.id in ids for ids in left.values()):
            break
        chosen.append(best)
        bytes_left -= _bytes(best)
        left = {number: ids for number, ids in left.items() if best.id not in ids}
    return chosen


def _bytes(case: GoldenCase) -> int:
    return selection.bytes_of((*case.inputs, *case.outputs))
