"""Where to draw the nodes of a graph: in layers, by Sugiyama's method, from top to bottom.

igraph does the placing, in a child process, for a user's graph may be of any shape. What goes in are numbers alone.
"""

import itertools
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit import optional
from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.errors import LimitError
from edgekit.files import disk_errors

LIMITS = ChildLimits(seconds=60.0, memory_bytes=2 << 30)

# An edge over more layers than this is drawn straight, beside the others: its bends would crowd out the nodes.
_LONGEST = 60
_MOST_BENDS = 40_000

Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(frozen=True)
class Outline:
    """A graph to place: ``nodes`` of them, numbered from 0, its inputs first, and edges between them."""

    nodes: int
    edges: tuple[Edge, ...]
    inputs: int = 0


@dataclass(frozen=True)
class Placed:
    """Places in units of one column and one layer. ``bends``: of each edge, the points between its ends."""

    points: tuple[Point, ...]
    bends: tuple[tuple[Point, ...], ...]


def place_all(outlines: Sequence[Outline], *, limits: ChildLimits = LIMITS) -> tuple[Placed, ...]:
    """Place several graphs. Raises MissingToolError without igraph, LimitError when it does not end in time."""
    optional.need("igraph", "graph", "Drawing a model")
    works = [_Work(outline) for outline in outlines]
    with tempfile.TemporaryDirectory(prefix="edgekit-layout-") as name:
        folder = Path(name)
        with disk_errors(folder):
            (folder / "graphs.json").write_text(json.dumps([work.request() for work in works]), encoding="utf-8")
        try:
            child.run_module(
                "edgekit.report.layout_child", folder, limits=limits, what="placing the nodes of the drawing"
            )
        except ChildFailedError as error:
            raise LimitError(
                f"igraph cannot place the nodes: {error.reason}.", hint="The graph may be too large to be drawn."
            ) from error
        answers = json.loads((folder / "places.json").read_text(encoding="utf-8"))
    return tuple(work.placed(answer) for work, answer in zip(works, answers, strict=True))


class _Work:
    """One graph with its layers, and a vertex in each layer that an edge passes."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.layers = layers_of(outline)
        self.chains: list[list[int]] = []
        self.edges: list[Edge] = []
        bends = 0
        for source, target in outline.edges:
            first, last = self.layers[source], self.layers[target]
            between = last - first - 1
            if between < 0 or between > _LONGEST or bends + between > _MOST_BENDS:
                self.chains.append([])
                continue
            bends += between
            chain = list(range(len(self.layers), len(self.layers) + between))
            self.layers += list(range(first + 1, last))
            self.chains.append(chain)
            path = [source, *chain, target]
            self.edges += list(itertools.pairwise(path))

    def request(self) -> dict[str, object]:
        return {"layers": self.layers, "edges": self.edges}

    def placed(self, answer: list[float]) -> Placed:
        left = min(answer, default=0.0)
        points = [(x - left, float(layer)) for x, layer in zip(answer, self.layers, strict=True)]
        bends = tuple(tuple(points[vertex] for vertex in chain) for chain in self.chains)
        return Placed(tuple(points[: self.outline.nodes]), bends)


def layers_of(outline: Outline) -> list[int]:
    """Give each node its layer: below everything that it reads, and as near to its readers as makes no edge longer.

    What depends on no input, such as a table that is computed from constants, stands just above its readers. Edges of a
    circle that would lead upwards are left as they are.
    """
    after: dict[int, list[int]] = defaultdict(list)
    before = [0] * outline.nodes
    for source, target in outline.edges:
        after[source].append(target)
        before[target] += 1
    waiting = list(before)
    layers = [0] * outline.nodes
    order = [node for node in range(outline.nodes) if waiting[node] == 0]
    fed = set(range(outline.inputs))
    for node in order:  # grows while it is walked
        if node in fed:
            fed.update(after[node])
        for target in after[node]:
            layers[target] = max(layers[target], layers[node] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    for node in reversed(order):
        if after[node] and (node not in fed or before[node] <= len(after[node])):
            layers[node] = max(layers[node], min(layers[target] for target in after[node]) - 1)
    return layers
