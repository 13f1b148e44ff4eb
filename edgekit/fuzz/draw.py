"""Choices by name: what a generator asks for, so that a case is no more than the numbers it drew.

A case can be made again from its choices, changed in one of them, and made smaller by lowering them: every list of
options has the simplest first. That is how findings are shrunk and their neighbours tried.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from edgekit.records.tensors import NUMPY_DTYPES, Array

T = TypeVar("T")


class Draw:
    """Where a generator takes its choices from: a generator of random numbers, or ``fixed`` (a name it lacks is 0).

    ``taken``: the index chosen of each name; ``counts``: of how many options.
    """

    def __init__(self, rng: np.random.Generator | None = None, fixed: Mapping[str, int] | None = None) -> None:
        self.rng = rng
        self.fixed = dict(fixed or {})
        self.taken: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def pick(self, name: str, options: Sequence[T]) -> T:
        """Return one of ``options``, the simplest of which comes first. A name asked for again gives the same index."""
        if name not in self.taken:
            index = int(self.rng.integers(len(options))) if self.rng else self.fixed.get(name, 0)
            self.taken[name] = min(index, len(options) - 1)
            self.counts[name] = len(options)
        return options[min(self.taken[name], len(options) - 1)]

    def flag(self, name: str) -> bool:
        """Return False, the simpler one, or True."""
        return self.pick(name, (False, True))

    def picks(self, name: str, count: int, options: Sequence[T]) -> list[T]:
        """Return ``count`` independent picks."""
        return [self.pick(f"{name}.{place}", options) for place in range(count)]

    def some(self, name: str, items: Sequence[T], *, least: int = 0) -> list[T]:
        """Return some of ``items`` in their order: none (or the first ``least``) is the simplest."""
        kept = [item for place, item in enumerate(items) if self.flag(f"{name}.{place}")]
        return kept if len(kept) >= least else list(items[:least])

    def order(self, name: str, count: int) -> list[int]:
        """Return a permutation of ``range(count)``; the identity is the simplest."""
        left = list(range(count))
        return [left.pop(self.pick(f"{name}.{place}", range(len(left)))) for place in range(count)]

    def numbers(self, name: str, shape: Sequence[int], dtype: str = "float32", low: int = -4, high: int = 4) -> Array:
        """Return small numbers from ``low`` to ``high``: halves where the dtype is a float, else whole.

        Sums of their products are exact in float32, so that what differs is meaning and not rounding. Of one name,
        shape and choice of "seed" they are always the same.
        """
        rng = np.random.default_rng([zlib.crc32(name.encode()), self.pick("seed", range(3)), *shape])
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith("u"):
            low = max(low, 0)
        if "float" in dtype:
            return (rng.integers(2 * low, 2 * high + 1, shape) / 2).astype(NUMPY_DTYPES[dtype])
        return rng.integers(low, high + 1, shape).astype(NUMPY_DTYPES[dtype])
