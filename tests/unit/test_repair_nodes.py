"""The search for few nodes, on a truth that is made up: it asks, and asks for little."""

from collections.abc import Sequence

import pytest
from models_text import parse

from edgekit.repair import nodes

BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[2] x) => (float[N] y)
{
    [outer] z = Neg (x)
    y = If (c) <
        then_branch = one () => (float[N] a) { [inner] a = Neg (z) },
        else_branch = two () => (float[N] a) { a = Abs (z) }
    >
}
"""


class Truth:
    """Cured when all of ``needed`` are on the CPU."""

    def __init__(self, *needed: str) -> None:
        self.needed = set(needed)
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, sets: Sequence[tuple[str, ...]]) -> list[bool]:
        self.asked += sets
        return [self.needed <= set(names) for names in sets]


GROUPS = {
    "Conv": tuple(f"conv{k}" for k in range(12)),
    "Relu": tuple(f"relu{k}" for k in range(10)),
    "Add": ("add0", "add1"),
}


@pytest.mark.parametrize("needed", [("conv3",), ("conv3", "conv9"), ("relu0",), ("conv1", "add1"), ("add0", "relu9")])
def test_the_nodes_that_are_needed_are_found_and_no_others(needed: tuple[str, ...]) -> None:
    truth = Truth(*needed)
    found = nodes.fewest(GROUPS, truth)
    assert found is not None
    assert sorted(found) == sorted(needed)
    assert len(truth.asked) < 60
    assert truth.asked[0] == GROUPS["Conv"], "what computes most is tried first"


def test_where_no_nodes_cure_it_none_are_found() -> None:
    assert nodes.fewest(GROUPS, Truth("elsewhere")) is None
    assert nodes.fewest({}, Truth()) is None


def test_more_names_than_the_runtime_takes_are_not_tried() -> None:
    truth = Truth("n" * 5000)
    assert nodes.fewest({"Conv": ("n" * 5000, "m" * 5000), "Add": ("n" * 5000,)}, truth) == ("n" * 5000,)
    assert all(nodes.fits(names) for names in truth.asked)


def test_nodes_of_branches_count_and_those_without_a_name_do_not() -> None:
    proto = parse(BRANCHES)
    assert nodes.by_operator(proto, None) == {"Neg": ("outer", "inner")}
    assert nodes.by_operator(proto, frozenset({"Abs"})) == {}
