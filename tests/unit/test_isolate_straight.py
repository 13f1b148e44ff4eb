"""A straight line gives what the model gives in onnxruntime, which is also asked the way."""

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest
from models_text import NESTED_IF
from onnx import helper

from edgekit.isolate import straight
from edgekit.isolate.straight import Straight
from edgekit.records.tensors import Array

LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
turning (int64 m, float[2] x) => (float[2] y, float[N, 2] all)
<float[2] step = {1, 2}, bool go = {1}>
{
    y, all = Loop (m, go, x) <
        body = turn (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] seen) {
            f = Cast <to = 1> (i)
            s = Mul (f, step)
            w = Add (v, s)
            seen = Neg (w)
            d = Identity (c)
        }
    >
}
"""
# Backwards over the second axis, and stacked along the last one.
SCAN = """
<ir_version: 8, opset_import: ["" : 17]>
scanning (float[2] start, float[2, 3] x) => (float[2] sum, float[2, 3] sums)
{
    sum, sums = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                      scan_output_axes = [1], scan_output_directions = [1],
        body = turn (float[2] before, float[2] part) => (float[2] after, float[2] out) {
            after = Add (before, part)
            out = Mul (after, after)
        }
    > (start, x)
}
"""
FUNCTION = """
<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
calling (float[2] x) => (float[2] y) { a = own.twice (x) y = own.twice (a) }
<domain: "own", opset_import: ["" : 17]>
twice (v) => (w) { [inner] w = Add (v, v) }
"""
X = np.array([1.5, -2.0], np.float32)


def laid_open(text: str, feeds: Mapping[str, Array], **limits: int) -> tuple[onnx.ModelProto, Straight]:
    proto = onnx.parser.parse_model(text)

    def ask(probe: onnx.ModelProto) -> Mapping[str, Array]:
        names = [info.name for info in probe.graph.output]
        return dict(zip(names, results(probe, feeds), strict=True))

    return proto, straight.straighten(proto, ask, **limits)


def results(proto: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = {info.name for info in session.get_inputs()}
    return [np.asarray(each) for each in session.run(None, {k: v for k, v in feeds.items() if k in wanted})]


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (NESTED_IF, {"flag": np.array(True), "inner": np.array(False), "x": X}),
        (NESTED_IF, {"flag": np.array(True), "inner": np.array(True), "x": X}),
        (NESTED_IF, {"flag": np.array(False), "inner": np.array(True), "x": X}),
        (LOOP, {"m": np.array(3), "x": X}),
        (LOOP, {"m": np.array(0), "x": X}),
        (SCAN, {"start": X, "x": np.arange(6, dtype=np.float32).reshape(2, 3)}),
        (FUNCTION, {"x": X}),
    ],
)
def test_the_line_gives_what_the_model_gives(text: str, feeds: dict[str, Array]) -> None:
    proto, line = laid_open(text, feeds)
    assert line.whole == ()
    assert all(np.array_equal(a, b) for a, b in zip(results(proto, feeds), results(line.model, feeds), strict=True))
    names = [node.name for node in line.model.graph.node]
    assert len(set(names)) == len(names) and set(names) == set(line.origins)


def test_other_inputs_take_another_way_so_the_line_is_theirs_alone() -> None:
    taken = {"flag": np.array(True), "inner": np.array(True), "x": X}
    _, line = laid_open(NESTED_IF, taken)
    proto = onnx.parser.parse_model(NESTED_IF)
    other = taken | {"flag": np.array(False)}
    assert not np.array_equal(results(proto, other)[0], results(line.model, other)[0])


def test_each_node_says_where_it_stood() -> None:
    _, line = laid_open(LOOP, {"m": np.array(2), "x": X})
    negs = [origin for origin in line.origins.values() if origin.op_type == "Neg"]
    assert [(origin.turn, origin.graph) for origin in negs] == [(0, "y.body"), (1, "y.body")]
    _, line = laid_open(FUNCTION, {"x": X})
    assert {(origin.graph, origin.name) for origin in line.origins.values()} == {("twice", "inner")}
    _, line = laid_open(NESTED_IF, {"flag": np.array(True), "inner": np.array(True), "x": X})
    assert "y.then_branch/t.then_branch" in {origin.graph for origin in line.origins.values()}


def test_a_long_loop_stays_whole() -> None:
    proto, line = laid_open(LOOP, {"m": np.array(5), "x": X}, most_turns=4)
    assert len(line.whole) == 1 and line.origins[line.whole[0]].op_type == "Loop"
    assert len(line.model.graph.node) == 1
    feeds = {"m": np.array(5), "x": X}
    assert all(np.array_equal(a, b) for a, b in zip(results(proto, feeds), results(line.model, feeds), strict=True))


def test_what_nobody_can_answer_stays_whole() -> None:
    proto = onnx.parser.parse_model(NESTED_IF)
    line = straight.straighten(proto, lambda probe: None)
    assert [line.origins[name].op_type for name in line.whole] == ["If"]


def test_nodes_without_names_and_with_one_name_get_their_own() -> None:
    nodes = [
        helper.make_node("Neg", [a], [b], name=name)
        for a, b, name in (("x", "a", "n"), ("a", "b", "n"), ("b", "y", ""))
    ]
    info = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    proto = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]))
    line = straight.straighten(proto, lambda probe: None)
    names = [node.name for node in line.model.graph.node]
    assert names[0] == "n" and len(set(names)) == 3
    assert [line.origins[name].name for name in names] == ["n", "n", ""]
