"""The drawing of a model: what is on it, that it is safe, and how a record colours it."""

import base64
import hashlib
import json
import re
from pathlib import Path

import onnx
import pytest
from models_text import LINEAR, LOCAL_FUNCTION, NESTED_IF, loaded, parse
from onnx import TensorProto, helper

from edgekit.errors import LimitError
from edgekit.facts import shapes
from edgekit.report import graph
from edgekit.report.graph import graph_html
from edgekit.report.graph_panels import CUSTOM, Marks, attribute_text, panels, statuses

HOSTILE = "</script><script>alert('x')</script>\x1b[2J\n\"q\" größe\u202e"

# Two outputs: y comes through b, z through c; a leads to both.
FORK = """
<ir_version: 8, opset_import: ["" : 17]>
fork (float[N] x) => (float[N] y, float[N] z)
{
    a = Relu(x)
    b = Exp(a)
    y = Neg(b)
    c = Abs(a)
    z = Neg(c)
}
"""


def about(page: str) -> dict[str, list[str]]:
    found = re.search(r'id="about-data">(.*?)</script>', page, re.S)
    assert found is not None
    document: dict[str, list[str]] = json.loads(found[1])
    return document


def test_nodes_inputs_and_outputs_are_boxes_and_weights_are_not(tmp_path: Path) -> None:
    model = loaded(LINEAR, tmp_path)
    (panel,) = panels(model.proto, shapes.infer(model, {"N": 2}), Marks())
    assert [(box.kind, box.title, box.shape) for box in panel.boxes] == [
        ("input", "x", "float32 [N, 2]"),
        ("node", "MatMul", "float32 [2, 3]"),
        ("node", "Relu", "float32 [2, 3]"),
        ("output", "y", "float32 [N, 3]"),
    ]
    assert panel.edges == ((0, 1), (1, 2), (2, 3))
    assert ("input", "w  float32 [2, 3], stored") in panel.boxes[1].about


def test_branches_are_panels_of_their_own_and_their_node_opens_them() -> None:
    found = panels(parse(NESTED_IF), None, Marks())
    assert [(panel.number, panel.title, panel.parent) for panel in found] == [
        (1, "main graph", None),
        (2, "→ y · then_branch", 1),
        (3, "→ t · then_branch", 2),
        (4, "→ t · else_branch", 2),
        (5, "→ y · else_branch", 1),
    ]
    (node,) = [box for box in found[0].boxes if box.kind == "node"]
    assert node.opens == (2, 5)
    # What the branches read stands in an edge: flag, inner and x all lead to the If.
    assert {source for source, target in found[0].edges if target == 3} == {0, 1, 2}


def test_local_functions_are_panels_and_calls_open_them() -> None:
    main, body = panels(parse(LOCAL_FUNCTION), None, Marks())
    assert (body.title, len(body.boxes)) == ("function mine:Twice", 4)
    calls = [box for box in main.boxes if box.kind == "node"]
    assert [(box.family, box.opens) for box in calls] == [(CUSTOM, (2,)), (CUSTOM, (2,))]


def test_nodes_out_of_order_and_in_a_circle_are_drawn() -> None:
    proto = parse(LINEAR)
    proto.graph.node.insert(0, helper.make_node("Add", ["y", "q"], ["p"]))
    proto.graph.node.insert(0, helper.make_node("Neg", ["p"], ["q"]))
    assert "circle" not in graph_html(proto, "m", "")


@pytest.mark.parametrize(
    ("wrong", "right", "expected"),
    [
        ({"y"}, {"z"}, {1: "suspect", 2: "wrong", 4: "right"}),
        ({"y", "z"}, set(), {0: "suspect", 1: "suspect", 2: "wrong", 3: "suspect", 4: "wrong"}),
        (set(), {"y", "z"}, {2: "right", 4: "right"}),
        (set(), set(), {}),
    ],
)
def test_what_leads_to_wrong_outputs_only_is_suspect(
    wrong: set[str], right: set[str], expected: dict[int, str]
) -> None:
    assert statuses(parse(FORK).graph, Marks(frozenset(wrong), frozenset(right))) == expected


def test_a_record_gives_the_colours_and_the_legend() -> None:
    page = graph_html(parse(FORK), "fork", "", marks=Marks(frozenset({"y"}), frozenset({"z"})))
    for words in ("gives a wrong output", "gives a right output", "leads to wrong outputs only"):
        assert words in page
    assert page.count('class="card wrong"') == page.count('class="card output wrong"') == 1
    assert page.count('class="card output right"') == 1
    assert "activation" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    plain = graph_html(parse(FORK), "fork", "")
    assert "gives a wrong output" not in plain
    assert "activation" in plain


def test_a_click_tells_the_operator_its_attributes_and_values() -> None:
    proto = parse(LINEAR)
    proto.graph.node[0].name = "first"
    page = graph_html(proto, "m", "")
    assert about(page)["1"] == [
        "operator\tMatMul",
        "name\tfirst",
        "input\tx  float32 [N, 2]",
        "input\tw  float32 [2, 3], stored",
        "output\ta",
    ]


def test_hostile_names_stay_text() -> None:
    proto = parse(LINEAR)
    proto.graph.node[0].name = proto.graph.node[0].op_type = HOSTILE
    proto.graph.node[1].output[0] = proto.graph.output[0].name = HOSTILE
    proto.graph.node[0].attribute.append(helper.make_attribute("a\tb", HOSTILE))
    page = graph_html(proto, HOSTILE, HOSTILE)
    assert page.count("<script") == 2
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert about(page)["1"][2].count("\t") == 1


def test_the_page_allows_itself_nothing_but_its_own_style_and_script() -> None:
    page = graph_html(parse(LINEAR), "m", "")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for tag, kind in (("style", "style"), ("script", "script")):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)[-1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert not re.search(r'(src|href)="(?!#)', page)
    assert " style=" not in page


def test_the_same_model_gives_the_same_page() -> None:
    assert graph_html(parse(NESTED_IF), "m", "s") == graph_html(parse(NESTED_IF), "m", "s")


def test_a_model_of_too_many_nodes_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_MOST_NODES", 3)
    with pytest.raises(LimitError, match="4 nodes"):
        graph_html(parse(LINEAR), "m", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.5, "0.5"),
        ("SAME_UPPER", "SAME_UPPER"),
        ([1, 2], "[1, 2]"),
        (list(range(20)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, … 20 in all]"),
        (helper.make_tensor("t", TensorProto.INT64, [2, 0], []), "int64 [2, 0]"),
        (parse(LINEAR).graph, "a graph"),
    ],
)
def test_attributes_are_written_short(value: object, text: str) -> None:
    assert attribute_text(helper.make_attribute("a", value)) == text


def test_an_attribute_of_the_caller_is_named() -> None:
    assert attribute_text(onnx.AttributeProto(name="a", ref_attr_name="alpha")) == "the caller's alpha"
