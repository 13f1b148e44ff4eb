"""Where the nodes of a drawing go."""

import itertools
import random
from collections import defaultdict

import pytest

from edgekit import optional
from edgekit.child.process import ChildLimits
from edgekit.errors import LimitError, MissingToolError
from edgekit.report import layout
from edgekit.report.layout import Outline, Placed
from edgekit.report.tighten import tighten


def place(outline: Outline) -> Placed:
    return layout.place_all([outline])[0]


def test_every_node_stands_below_what_it_reads() -> None:
    outline = Outline(5, ((0, 1), (1, 2), (0, 2), (2, 3), (4, 3)), inputs=1)
    rows = [y for _, y in place(outline).points]
    assert all(rows[source] < rows[target] for source, target in outline.edges)


def test_what_depends_on_no_input_stands_just_above_its_reader() -> None:
    # 0 is the input; 4 → 5 → 3 is computed from constants, and 3 is the fourth in the row.
    outline = Outline(6, ((0, 1), (1, 2), (2, 3), (4, 5), (5, 3)), inputs=1)
    assert layout.layers_of(outline) == [0, 1, 2, 3, 1, 2]


def test_a_long_edge_bends_round_the_layers_that_it_passes() -> None:
    outline = Outline(4, ((0, 1), (1, 2), (2, 3), (0, 3)), inputs=1)
    placed = place(outline)
    assert [len(bends) for bends in placed.bends] == [0, 0, 0, 2]
    for x, y in placed.bends[3]:
        assert all(abs(x - other_x) >= 1 for other_x, other_y in placed.points if other_y == y)


def test_an_edge_over_very_many_layers_has_no_bends() -> None:
    edges = [*itertools.pairwise(range(100)), (0, 99)]
    assert place(Outline(100, tuple(edges), inputs=1)).bends[-1] == ()


def test_a_circle_is_drawn_too() -> None:
    placed = place(Outline(3, ((0, 1), (1, 2), (2, 1)), inputs=1))
    assert len(placed.points) == 3


def test_no_two_nodes_lie_on_each_other() -> None:
    chance = random.Random(3)  # noqa: S311
    edges = {(chance.randrange(node), node) for node in range(1, 300) for _ in range(chance.choice((1, 1, 2, 3)))}
    placed = place(Outline(300, tuple(sorted(edges)), inputs=1))
    rows: dict[float, list[float]] = defaultdict(list)
    for x, y in placed.points:
        rows[y].append(x)
    assert all(b - a >= 0.999 for row in rows.values() for a, b in itertools.pairwise(sorted(row)))


def test_a_graph_without_nodes_has_no_places() -> None:
    assert place(Outline(0, ())) == Placed((), ())


def test_a_node_far_from_its_neighbours_moves_to_them_and_a_straight_line_stays_one() -> None:
    # 0 above 1 above 2; 3 is beside 1, far to the left, between 0 and 2.
    columns = tighten([5.0, 5.0, 5.0, 0.0], [0, 1, 2, 1], [(0, 1), (1, 2), (0, 3), (3, 2)])
    assert columns == [5.0, 5.0, 5.0, 4.0]


def test_nodes_on_top_of_each_other_are_pushed_apart() -> None:
    first, second = sorted(tighten([1.0, 1.2], [0, 0], []))
    assert second - first == 1.0


def test_a_layout_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(LimitError, match="placing the nodes"):
        layout.place_all([Outline(2, ((0, 1),))], limits=ChildLimits(seconds=0.01))


def test_without_igraph_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="'igraph'") as caught:
        layout.place_all([Outline(1, ())])
    assert caught.value.hint == "Install it: pip install 'edgekit[graph]'"


def test_a_package_that_is_there_is_no_error() -> None:
    optional.need("json", "graph", "Something")
