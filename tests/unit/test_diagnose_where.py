"""Faults planted in an engine are found at the node that has them."""

import numpy as np
import onnx
import onnx.parser
import planted_engine
import pytest
from planted_engine import add_after

from edgekit.diagnose import confirm, where, write_up
from edgekit.diagnose.confirm import Confirmed
from edgekit.diagnose.scene import Scene
from edgekit.records.settings import DEFAULT
from edgekit.records.tensors import Array

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[2, 6] x) => (float[2, 6] y)
<float[6] w = {1, 2, 3, 4, 5, 6}>
{ [one] a = Mul (x, w) [two] b = Tanh (a) [three] c = Softplus (b) [four] y = Add (c, w) }
"""
LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
turning (float[2] x) => (float[2] y)
<int64 m = {3}, bool go = {1}>
{
    [loop] y = Loop (m, go, x) <
        body = turn (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
            [in] t = Tanh (v) [sp] w = Softplus (t) d = Identity (c)
        }
    >
}
"""
FUNCTION = """
<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
calling (float[2] x) => (float[2] y) { [call] a = own.f (x) [after] y = Neg (a) }
<domain: "own", opset_import: ["" : 17]>
f (v) => (o) { [inner] t = Tanh (v) [sp] o = Softplus (t) }
"""
BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
branching (bool flag, float[2] x) => (float[2] y)
{
    [if] y = If (flag) <
        then_branch = t () => (float[2] p) { [sp] p = Softplus (x) },
        else_branch = e () => (float[2] q) { n = Neg (x) [sp_2] q = Softplus (n) }
    >
}
"""
X = np.array([[0.5, -1, 2, 0.25, 1, -2], [1, 2, 3, 0.5, 0.1, 0]], np.float32)
V = np.array([0.5, -1], np.float32)


def softplus_is_off(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    if node.op_type == "Softplus":
        add_after(graph, node, "Mul", 1.25)


def found_in(text: str, feeds: dict[str, Array], spoil: planted_engine.Spoil) -> tuple[Scene, tuple[Confirmed, ...]]:
    scene = planted_engine.scene(onnx.parser.parse_model(text), feeds, planted_engine.lab(spoil))
    suspects = where.suspects(scene)
    return scene, confirm.on_trial(scene, suspects)


@pytest.mark.parametrize(
    ("text", "feeds", "name", "graph"),
    [
        (CHAIN, {"x": X}, "three", ""),
        (LOOP, {"x": V}, "sp", "loop.body"),
        (FUNCTION, {"x": V}, "sp", "f"),
        (BRANCHES, {"flag": np.array(True), "x": V}, "sp", "if.then_branch"),
    ],
)
def test_the_node_that_adds_the_error_is_named(text: str, feeds: dict[str, Array], name: str, graph: str) -> None:
    _, found = found_in(text, feeds, softplus_is_off)
    finding = found[0].finding
    assert (finding.kind, [(node.name, node.graph) for node in finding.nodes]) == ("wrong", [(name, graph)])
    assert finding.added == pytest.approx(0.25, rel=1e-3)
    assert finding.added_own == pytest.approx(0.25, rel=1e-3)
    assert finding.side == "engine" and finding.desktop_off is not None and finding.desktop_off < 1e-6
    assert f"> Softplus {name}" in finding.picture and "[wrong: 0.25]" in finding.picture


def test_the_first_turn_of_a_loop_is_named_for_the_later_ones_have_wrong_inputs() -> None:
    _, found = found_in(LOOP, {"x": V}, softplus_is_off)
    assert [each.finding.nodes[0].turn for each in found] == [0]


def test_a_healthy_engine_has_no_suspect() -> None:
    for text, feeds in ((CHAIN, {"x": X}), (LOOP, {"x": V}), (FUNCTION, {"x": V})):
        _, found = found_in(text, feeds, lambda graph, node: None)
        assert found == ()


def test_its_twin_in_the_branch_that_is_not_taken_is_found_by_trying_it() -> None:
    feeds = {"flag": np.array(True), "x": V}
    _, found = found_in(BRANCHES, feeds, softplus_is_off)
    assert found[0].finding.names == ("sp", "sp_2")


NAMELESS = """
<ir_version: 8, opset_import: ["" : 17]>
nameless (bool flag, float[2] x) => (float[2] y)
{
    a = Tanh (x)
    b = Softplus (a)
    c = Softplus (b)
    d = If (flag) <then_branch = t () => (float[2] p) { p = Softplus (c) }, else_branch = e () => (float[2] q) {
        n = Neg (x) q = Softplus (n) }>
    y = Add (d, c)
}
"""


def test_nodes_without_names_are_called_by_what_they_give_everywhere() -> None:
    _, (found, *_) = found_in(NAMELESS, {"flag": np.array(True), "x": V}, softplus_is_off)
    finding = found.finding
    assert finding.nodes[0].label == "Softplus → b" and finding.names == ()
    assert finding.nameless_twins == ("→ c", "→ p", "→ q")
    said = write_up.told([finding], 3)
    assert said[0].startswith("Softplus → b is the first that is wrong")
    assert any("→ c, → p, → q" in sentence for sentence in said)
    assert "> Softplus → b" in finding.picture and "  Softplus → c" in finding.picture
    assert "__" not in finding.picture  # no name that the model does not have


def test_what_comes_after_a_wrong_node_is_known() -> None:
    scene, (found, *_) = found_in(NAMELESS, {"flag": np.array(True), "x": V}, softplus_is_off)
    after = scene.descendants([node.line_name for node in found.finding.nodes])
    assert [node.op_type for node in after if node.op_type != "Identity"] == ["Softplus", "Softplus", "Add"]


def test_what_is_in_a_loop_is_called_as_the_model_calls_it() -> None:
    text = LOOP.replace("[in] ", "").replace("[sp] ", "").replace("[loop] ", "")
    _, found = found_in(text, {"x": V}, softplus_is_off)
    (node,) = found[0].finding.nodes
    assert (node.label, node.graph, node.turn) == ("Softplus → w", "y.body", 0)


def test_where_nan_arises_is_said() -> None:
    def nan(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
        if node.op_type == "Softplus":
            add_after(graph, node, "Pow", float("nan"))

    _, found = found_in(CHAIN, {"x": X}, nan)
    assert found[0].finding.kind == "nonfinite" and found[0].finding.added == float("inf")
    assert "arises here" in found[0].finding.note


def fused_is_off(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    """Tanh and Softplus are only wrong together: where nothing else reads what is between them."""
    makers = {name: each for each in graph.node for name in each.output}
    before = makers.get(node.input[0]) if node.input else None
    given = {info.name for info in graph.output}
    if node.op_type == "Softplus" and before is not None and before.op_type == "Tanh" and before.output[0] not in given:
        add_after(graph, node, "Mul", 1.25)


def test_a_fault_of_fused_nodes_that_looking_hides_is_found_by_ever_shorter_models() -> None:
    scene = planted_engine.scene(onnx.parser.parse_model(CHAIN), {"x": X}, planted_engine.lab(fused_is_off))
    assert where.suspects(scene) == [] and scene.masked
    hidden = where.hidden_suspect(scene)
    assert hidden is not None and hidden.name == "three"
    (found,) = confirm.on_trial(scene, [hidden])
    assert [node.name for node in found.finding.nodes] == ["two", "three"]
    assert "together" in found.finding.note


def test_a_node_that_only_enlarges_small_errors_is_not_called_wrong() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) <float o = {-1000}> { [sp] a = Softplus (x) [shift] b = Add (a, o) [up] y = Exp (b) }
    """

    def slightly(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
        if node.op_type == "Softplus":
            add_after(graph, node, "Mul", 1 + 2e-5)

    feeds = {"x": np.array([1001, 1000.5], np.float32)}
    scene = planted_engine.scene(onnx.parser.parse_model(text), feeds, planted_engine.lab(slightly))
    suspects = where.suspects(scene)
    assert [node.name for node in suspects] == ["shift"]
    assert confirm.on_trial(scene, suspects) == ()
    loud = confirm.amplifier(scene, suspects)
    assert loud is not None and loud.finding.kind == "amplifies"
    assert loud.finding.gain is not None and loud.finding.gain > 100


def test_the_least_that_fails_is_one_node_with_small_dimensions() -> None:
    scene, found = found_in(CHAIN, {"x": X}, softplus_is_off)
    stages: list[str] = []
    sample = write_up.smallest(scene.lab, found[0], DEFAULT, stages.append)
    assert stages[0].startswith("Making the smallest model that fails, models 1 to ")
    assert sample is not None
    assert [node.op_type for node in sample.model.graph.node] == ["Softplus"]
    assert sample.elements <= 2
    assert isinstance(scene.lab, planted_engine.PlantedLab)
    assert scene.lab.asked <= 15, "each is the start of a browser"
