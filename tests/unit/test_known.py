"""Patterns over nodes: what is known of a node, which conditions hold, and which entries match a model."""

from pathlib import Path

import onnx
import pytest
from models_text import parse

from edgekit.facts import shapes
from edgekit.known import entries, match, patterns, read, survey
from edgekit.known.entries import Cure, Entry, Knowledge
from edgekit.known.features import Given, NodeFacts, features
from edgekit.known.patterns import Condition
from edgekit.model import io as model_io

CONV = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 6, 8] x, float[4, 6, 3] w) => (float[1, 4, N] y) { c = Conv <pads = [0, 1]> (x, w) y = Relu (c) }"""
ENTRY = Entry(
    "conv-1", ("Conv",),
    (Condition("input channels", "multiple of", 3), Condition("padded before", "is", False)),
    "browser", 3, 20, "", "y: 1 and must be 2",
    (Cure("layout", "NCHW", True, 3), Cure("optimization", "disabled", False, 3)), {"generator": "Conv", "choices": {}},
)  # fmt: skip
KNOWN = Knowledge("onnxruntime-web", "0.0.0", "jspi", {"seed": 1}, (ENTRY,))


def test_what_is_read_of_a_convolution() -> None:
    conv, relu = read.model_nodes(parse(CONV))
    found = features(conv)
    assert (found["input channels"], found["output channels"], found["window axes"]) == (6, 4, 1)
    assert (found["padded before"], found["padded behind"], found["group"]) == (False, True, 1)
    assert found["auto_pad"] == "NOTSET"  # a default that the node does not state
    assert found["one matrix product"] is False
    assert conv.then == {"Relu"} and relu.then == frozenset()


def test_what_is_not_known_has_no_feature() -> None:
    node = NodeFacts("c", "Conv", {}, (("X", Given("float32")), ("W", Given("float32", (4, None, 3)))))
    assert "input channels" not in features(node)
    assert "X rank" not in features(node)


@pytest.mark.parametrize(
    ("pads", "axes", "before", "behind"),
    [("2, 0, 1, 9", "", False, True), ("2, 4, 0, 0", "", True, False), ("4, 0", "axes", True, False)],
)
def test_a_pad_by_more_than_an_axis_holds_is_seen(pads: str, axes: str, before: bool, behind: bool) -> None:
    count = len(pads.split(","))
    model = parse(f"""<ir_version: 8, opset_import: ["" : 19]>
    g (float[2, 3] x) => (float[M, N] y) <int64[{count}] pads = {{{pads}}}, int64[1] axes = {{-1}}> {{
      y = Pad <mode = "wrap"> (x, pads, {", axes" if axes else ""}) }}""")
    (pad,) = read.model_nodes(model)
    found = features(pad)
    assert found["padded before by more than the axis holds"] is before
    assert found["padded behind by more than the axis holds"] is behind


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        (Condition("n", "multiple of", 3), 6, True), (Condition("n", "multiple of", 3), 7, False),
        (Condition("n", "no multiple of", 4), 6, True), (Condition("n", "above", 3), 3, False),
        (Condition("n", "above", 3), 4, True), (Condition("n", "below", 3), 2, True),
        (Condition("n", "is", 1), 1, True), (Condition("n", "is", 1), True, False),
        (Condition("n", "is not", "a"), "b", True), (Condition("n", "above", 3), "b", False),
    ],
)  # fmt: skip
def test_when_a_condition_holds(condition: Condition, value: int | str, holds: bool) -> None:
    assert condition.holds({"n": value}) is holds


def test_no_condition_holds_of_what_is_not_known() -> None:
    assert not Condition("n", "is not", 1).holds({})


def test_a_node_with_the_pattern_matches_and_its_twin_does_not() -> None:
    (found,) = match.of_knowledge(read.model_nodes(parse(CONV)), KNOWN)
    assert (found.node.operator, found.entry.id) == ("Conv", "conv-1")
    assert [str(cure) for cure in found.cures] == ["preferredLayout NCHW"]
    twin = parse(CONV.replace("[0, 1]", "[1, 1]"))
    assert not list(match.of_knowledge(read.model_nodes(twin), KNOWN))


def test_a_chain_matches_where_its_operators_follow() -> None:
    nodes = read.model_nodes(parse(CONV))
    assert match.fits(nodes[0], ("Conv", "Relu"))
    assert not match.fits(nodes[0], ("Conv", "Sigmoid"))


def test_knowledge_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / entries.file_name("onnxruntime-web", "0.0.0", "jspi")
    path.write_bytes(entries.to_bytes(KNOWN))
    assert entries.load("onnxruntime-web", "0.0.0", "jspi", tmp_path) == KNOWN
    assert entries.load("onnxruntime-web", "0.0.0", "wasm", tmp_path) is None


def test_cures_become_the_settings_of_a_session() -> None:
    layout = Cure("layout", "NCHW", True, 1).settings()
    assert layout is not None and layout.layout == "NCHW"
    placed = Cure("cpu_nodes", "all", True, 1).settings(["c"])
    assert placed is not None and placed.cpu_nodes == ("c",)
    assert Cure("variant", "wasm", True, 1).settings() is None


def test_a_pattern_is_said_in_words() -> None:
    assert ENTRY.text == "Conv: input channels a multiple of 3; not padded before"
    assert patterns.text(()) == "always"


@pytest.mark.parametrize("path", sorted(entries.FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_what_edgekit_comes_with_is_read(path: Path) -> None:
    package, version, variant = path.stem.rsplit("-", 2)
    known = entries.load(package, version, variant)
    assert known is not None and known.entries
    assert len({entry.id for entry in known.entries}) == len(known.entries)


def test_the_nodes_of_a_users_model_are_read_with_their_shapes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(CONV), path)
    model = model_io.load(path)
    conv, relu = survey.nodes(model, shapes.infer(model))
    assert (features(conv)["input channels"], conv.then, relu.operator) == (6, {"Relu"}, "Relu")
