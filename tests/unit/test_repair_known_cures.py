"""What is known to be wrong of a model's nodes tells what to try first."""

from pathlib import Path

import pytest
from models_text import LINEAR, parse, write

from edgekit.known.entries import Cure, Entry
from edgekit.known.features import NodeFacts
from edgekit.known.match import Match
from edgekit.model import io
from edgekit.records.settings import SessionSettings
from edgekit.repair import known_cures
from edgekit.repair.candidates import listed
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist

NCHW = Cure("layout", "NCHW", True, 9)
ON_CPU = Cure("cpu_nodes", "Conv", True, 9)
BASIC = Cure("optimization", "basic", True, 9)


def matched(name: str, *cures: Cure) -> Match:
    entry = Entry(name, ("Conv",), (), "browser", 9, 9, "", "", cures, {})
    return Match(NodeFacts(name, "Conv"), entry)


def test_only_what_cures_every_match_is_tried_and_nodes_for_the_cpu_are_those_that_match() -> None:
    found = list(known_cures.curing_all([matched("a", NCHW, ON_CPU), matched("b", ON_CPU, BASIC)]))
    assert found == [SessionSettings(cpu_nodes=("a", "b"))]
    assert list(known_cures.curing_all([matched("a", NCHW, Cure("optimization", "basic", False, 9))])) == [
        SessionSettings(layout="NCHW")
    ]
    assert list(known_cures.curing_all([])) == []


def test_where_nothing_is_known_nothing_is_tried(tmp_path: Path) -> None:
    variants = pins.load().chosen(["jspi"], "test")
    runtime = RuntimeDist(tmp_path, "onnxruntime-web", "0.0.0", {}, True)
    assert known_cures.settings(io.load(write(LINEAR, tmp_path)), runtime, variants) == ()


@pytest.mark.parametrize("known", [(SessionSettings(layout="NCHW"),), ()])
def test_a_known_cure_comes_first_and_is_not_tried_twice(known: tuple[SessionSettings, ...]) -> None:
    variants = pins.load().chosen(["jspi"], "test")
    names = [one.name for one in listed(parse(LINEAR), variants, [], ("known", "layout"), known)]
    assert names == (["known cure: layout NCHW"] if known else ["layout NCHW"])
