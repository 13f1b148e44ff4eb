"""Where nodes ran, in words, and for the nodes of a model's drawing."""

import json
import re
from dataclasses import replace

import pytest
from models_text import LOCAL_FUNCTION, NESTED_IF, parse
from report_samples import HOSTILE, entry, sample

from edgekit.records.run_record import Placed, PlacedNode, RunRecord
from edgekit.report.graph import graph_html
from edgekit.report.graph_panels import Marks, match_placement, panels
from edgekit.report.html import report_html
from edgekit.report.placement import UNKNOWN, Placement, fallback, placement_of, placement_words
from edgekit.report.text import summary

GPU, CPU = "WebGpuExecutionProvider", "CPUExecutionProvider"


def nodes(*named: tuple[str, str]) -> tuple[PlacedNode, ...]:
    return tuple(PlacedNode(name, op_type) for op_type, name in named)


def placed(provider: str, count: int, *named: tuple[str, str], copies: int = 0) -> Placed:
    return Placed(provider, count, copies, nodes(*named))


def record(*parts: Placed, ran: str | None = "webgpu") -> RunRecord:
    made = sample()[1]
    return replace(made, placement=parts, environment=replace(made.environment, execution_provider=ran))


MIXED = record(
    placed(CPU, 3, ("Gather", "a"), ("If", "b"), ("Gather", "c")),
    placed(GPU, 87, copies=6),
)


@pytest.mark.parametrize(
    ("made", "said", "elsewhere"),
    [
        (MIXED, "87 of 90 nodes of the optimized graph on WebGPU; on the CPU: Gather ×2, If ×1; 6 copies", True),
        (record(placed(GPU, 11)), "all 11 nodes of the optimized graph on WebGPU", False),
        (record(placed(GPU, 1)), "the only node of the optimized graph on WebGPU", False),
        (record(placed(CPU, 2, ("Det", ""), ("Det", ""))),
         "0 of 2 nodes of the optimized graph on WebGPU; on the CPU: Det ×2; no copies", True),
        (record(placed(CPU, 78), ran="wasm"), "all 78 nodes of the optimized graph on the CPU", False),
        (record(placed(GPU, 1, copies=1), placed(CPU, 30_000)),
         "1 of 30,001 nodes of the optimized graph on WebGPU; on the CPU: 30,000 nodes; 1 copy", True),
        (record(placed("XyzExecutionProvider", 1, ("Add", "")), placed(GPU, 2)),
         "2 of 3 nodes of the optimized graph on WebGPU; on Xyz: Add ×1; no copies", True),
        (record(), "no nodes", False),
    ],
)  # fmt: skip
def test_a_line_says_how_many_nodes_ran_where_and_what_it_costs(made: RunRecord, said: str, elsewhere: bool) -> None:
    assert placement_words(made) == said
    assert fallback(made) == elsewhere


def test_of_many_operators_the_most_frequent_are_named_and_the_others_counted() -> None:
    many = [(f"Op{i}", "") for i in range(9)] + [("Shape", "")] * 2
    said = placement_words(record(placed(CPU, 20, *many), placed(GPU, 1)))
    assert said is not None and "on the CPU: Shape ×2, Op0 ×1, Op1 ×1, Op2 ×1, Op3 ×1, Op4 ×1, 13 more" in said
    long = placement_words(record(placed(CPU, 1, ("x" * 500, ""))))
    assert long is not None and len(long) < 120


def test_what_is_not_known_is_said_and_where_nothing_ran_nothing_is() -> None:
    unknown = replace(MIXED, placement=None)
    assert (placement_words(unknown), fallback(unknown), placement_of(unknown)) == (UNKNOWN, False, None)
    nowhere = replace(unknown, environment=replace(unknown.environment, execution_provider=None))
    assert placement_words(nowhere) is None and placement_words(None) is None


def test_the_summary_and_the_page_of_a_record_say_it() -> None:
    case_set, _ = sample()
    told = "87 of 90 nodes of the optimized graph on WebGPU"
    for made, said in ((MIXED, told), (replace(MIXED, placement=None), UNKNOWN)):
        both = entry(case_set, made)
        assert any(line.startswith(f"  {said}") for line in summary(both.verdict, made))
        page = report_html([both])
        found = re.search(r"<dt>Placement</dt><dd>(.*?)</dd>", page)
        assert found is not None and found[1].startswith(said)
        assert ("fallback" in found[1]) == (made is MIXED)
    assert not any("nodes" in line for line in summary(both.verdict))
    assert "Placement" not in report_html([entry(case_set, None)])


def matched(model: str, *parts: Placed) -> tuple[dict[tuple[str, str], str], list[tuple[str, str, str]]]:
    found = match_placement(parse(model), Marks(placement=Placement(parts, "")))
    told = {(node.op_type, node.name): provider for node, provider in found.providers.items()}
    return told, [(provider, node.op_type, node.name) for provider, node in found.others]


CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[N] x) => (float[N] y)
{
    [one] a = Relu(x)
    [two] b = Relu(a)
    c = Exp(b)
    d = Exp(c)
    y = Neg(d)
}
"""


def test_nodes_are_matched_by_operator_and_name_and_what_is_new_is_kept_apart() -> None:
    told, others = matched(
        CHAIN,
        placed(GPU, 4, ("Relu", "one"), ("Exp", ""), ("Transpose", "t"), ("Abs", "two")),
        placed(CPU, 3, ("Relu", "two_token_3_token_1"), ("Exp", ""), ("Neg", "n")),
    )
    # The two Exp cannot be told apart, and ran in two places; Neg has another name.
    assert told == {("Relu", "one"): GPU, ("Relu", "two"): CPU}
    assert others == [(GPU, "Transpose", "t"), (GPU, "Abs", "two"), (CPU, "Neg", "n")]


def test_nodes_without_a_name_have_a_place_when_all_of_their_operator_share_it() -> None:
    assert matched(CHAIN, placed(CPU, 2, ("Exp", ""), ("Exp", "")), placed(GPU, 1, ("Neg", "")))[0] == {
        ("Exp", ""): CPU,
        ("Neg", ""): GPU,
    }
    # One was fused into another node: which of them this is, nobody knows.
    assert matched(CHAIN, placed(CPU, 1, ("Exp", "")))[0] == {}


def test_where_the_runtime_names_no_node_all_are_in_one_place() -> None:
    told, others = matched(CHAIN, placed(GPU, 4), placed(CPU, 0))
    assert set(told.values()) == {GPU} and len(told) == 4 and others == []
    assert matched(CHAIN, placed(GPU, 4), placed(CPU, 9))[0] == {}


def test_branches_are_matched_and_bodies_of_functions_are_not() -> None:
    inner = placed(CPU, 1, ("Mul", ""))
    branch = [
        box for panel in panels(parse(NESTED_IF), None, Marks(placement=Placement((inner,), ""))) for box in panel.boxes
    ]
    assert [box.provider for box in branch if box.title == "Mul"] == [CPU]
    function = panels(parse(LOCAL_FUNCTION), None, Marks(placement=Placement((placed(GPU, 3),), "")))
    assert {box.provider for box in function[0].boxes if box.kind == "node"} == {GPU}
    assert {box.provider for box in function[1].boxes} == {None}


def test_the_drawing_is_coloured_by_placement_and_by_result_and_begins_with_what_is_wrong() -> None:
    placement = placement_of(record(placed(GPU, 2, ("Relu", "one"), ("Mul", HOSTILE)), placed(CPU, 1, ("Relu", "two"))))
    right = graph_html(parse(CHAIN), "m", "", marks=Marks(frozenset(), frozenset({"y"}), placement))
    assert re.findall(r'class="card (\w+)" data-looks="([^"]*)"', right) == [
        ("input", "input|input"), ("gpu", "gpu|idle"), ("cpu", "cpu|idle"), ("idle", "idle|idle"),
        ("idle", "idle|idle"), ("idle", "idle|right"), ("output", "output|output right"),
    ]  # fmt: skip
    assert re.findall(r'<ul class="legend"[^>]*>', right)[1].endswith("hidden>")
    assert "2 of 3 nodes of the optimized graph on WebGPU; on the CPU: Relu ×1; no copies." in right
    others = re.search(r'<details class="others">(.*?)</details>', right, re.S)
    assert others is not None and "Mul (&lt;script&gt;" in others[1] and "<script" not in others[1]
    wrong = graph_html(parse(CHAIN), "m", "", marks=Marks(frozenset({"y"}), frozenset(), placement))
    assert 'data-looks="suspect|gpu"' in wrong
    about = re.search(r'id="about-data">(.*?)</script>', wrong, re.S)
    assert about is not None and "placed on\tWebGPU" in json.loads(about[1])["1"]


def test_a_drawing_by_a_record_without_a_placement_says_that_it_is_unknown() -> None:
    page = graph_html(parse(CHAIN), "m", "", marks=Marks(frozenset({"y"})))
    assert UNKNOWN in page and "data-looks=" not in page.split("<script>")[0]
    assert UNKNOWN not in graph_html(parse(CHAIN), "m", "")
