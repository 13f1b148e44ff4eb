"""Which of the cures that pass is kept: the fastest by measurement, where the times mean something."""

import math
from collections.abc import Sequence

from edgekit.repair.candidates import FAMILIES
from edgekit.repair.result import Tried

BY_TIME = "the fastest of what passes, by measurement"
BY_PLACEMENT = (
    "the adapter is software, whose times say nothing of a GPU: of what passes, that which keeps most nodes on the "
    "execution provider asked for"
)


def ordered(passed: Sequence[Tried], *, software: bool) -> list[Tried]:
    """Return what passes, the one to prefer first. ``software``: an adapter is, so that times say nothing of a GPU.

    Then the fewest nodes elsewhere than on the execution provider asked for come first, of as many a setting before
    nodes for the CPU before another graph, and of those the fastest here. Leaving the execution provider out is the
    last resort: a software GPU is slower than the CPU that it runs on, which a visitor's GPU is not.
    """
    if not software:
        return sorted(passed, key=_time)
    return sorted(
        passed, key=lambda one: (one.family == "variants", one.elsewhere, FAMILIES.index(one.family), _time(one))
    )


def _time(one: Tried) -> float:
    return math.inf if one.later_ms is None else one.later_ms
