"""The child process of ``edgekit.report.layout``: igraph on the outlines in ``graphs.json``.

Writes ``places.json``: for each graph, the column of each vertex.
"""

import json
import sys
from pathlib import Path

import igraph

from edgekit.report.tighten import tighten

_SWEEPS = 60


def main(folder: Path) -> None:
    """Place every graph."""
    columns = []
    for graph in json.loads((folder / "graphs.json").read_text(encoding="utf-8")):
        layers = graph["layers"]
        drawn = igraph.Graph(n=len(layers), edges=graph["edges"], directed=True)
        layout = drawn.layout_sugiyama(layers=layers, hgap=1, vgap=1, maxiter=_SWEEPS)
        # Before 1.0 it is a pair: the layout, and a graph with vertices of igraph's own at the end.
        places = layout[0] if isinstance(layout, tuple) else layout
        columns.append(tighten([x for x, _ in list(places)[: len(layers)]], layers, graph["edges"]))
    (folder / "places.json").write_text(json.dumps(columns), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
