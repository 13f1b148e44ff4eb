"""Draw a layered drawing together: what igraph leaves far from its neighbours moves as near as there is room.

Vertices that stand in one straight line, joined from layer to layer, move as one, so that lines stay straight.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence

_ROUNDS = 8
_GAP = 1.0
_SAME = 1e-6


def tighten(columns: Sequence[float], layers: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[float]:
    """Return new columns. The order in each layer stays; vertices of a layer have a gap of 1 between them at least."""
    x = list(columns)
    left, right = _beside(x, layers)
    _spread(x, left, right)
    joined: dict[int, list[int]] = defaultdict(list)
    for source, target in edges:
        joined[source].append(target)
        joined[target].append(source)
    for _ in range(_ROUNDS):
        moved = False
        for line in _lines(x, edges):
            moved |= _move(line, x, left, right, joined)
        if not moved:
            break
    return x


def _beside(x: Sequence[float], layers: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    rows: dict[int, list[int]] = defaultdict(list)
    for vertex, layer in enumerate(layers):
        rows[layer].append(vertex)
    left: dict[int, int] = {}
    right: dict[int, int] = {}
    for row in rows.values():
        row.sort(key=lambda vertex: x[vertex])
        left |= dict(zip(row[1:], row[:-1], strict=True))
        right |= dict(itertools.pairwise(row))
    return left, right


def _spread(x: list[float], left: dict[int, int], right: dict[int, int]) -> None:
    """Push apart what igraph, now and then, puts on top of each other."""
    for first in set(right) - set(left):
        vertex = first
        while vertex in right:
            x[right[vertex]] = max(x[right[vertex]], x[vertex] + _GAP)
            vertex = right[vertex]


def _lines(x: Sequence[float], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Group the vertices that straight edges join."""
    root = list(range(len(x)))

    def find(vertex: int) -> int:
        while root[vertex] != vertex:
            root[vertex] = root[root[vertex]]
            vertex = root[vertex]
        return vertex

    for source, target in edges:
        if abs(x[source] - x[target]) < _SAME:
            root[find(source)] = find(target)
    lines: dict[int, list[int]] = defaultdict(list)
    for vertex in range(len(x)):
        lines[find(vertex)].append(vertex)
    return sorted(lines.values(), key=len)


def _move(
    line: list[int], x: list[float], left: dict[int, int], right: dict[int, int], joined: dict[int, list[int]]
) -> bool:
    """Move a line towards the median of what it is joined to, as far as there is room; return whether it moved."""
    own = set(line)
    others = sorted(x[other] for vertex in line for other in joined[vertex] if other not in own)
    if not others:
        return False
    here = x[line[0]]
    low = max((x[left[vertex]] + _GAP for vertex in line if vertex in left), default=-float("inf"))
    high = min((x[right[vertex]] - _GAP for vertex in line if vertex in right), default=float("inf"))
    middle = min(max(here, others[(len(others) - 1) // 2]), others[len(others) // 2])
    there = min(max(middle, low), high)
    if low > high or abs(there - here) < _SAME:
        return False
    for vertex in line:
        x[vertex] += there - here
    return True
