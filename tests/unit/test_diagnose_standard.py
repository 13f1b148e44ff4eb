"""Who is right: the float64 evaluation against an engine, the desktop, or both."""

from dataclasses import replace

import numpy as np
import onnx
import onnx.parser
import planted_engine
import pytest
from onnx import numpy_helper

from edgekit.diagnose import confirm, exact, standard, where, write_up
from edgekit.diagnose.lab import Error, arrays_of, as_dtype, case_of, error_of
from edgekit.diagnose.result import Finding, Side
from edgekit.records.cases import Tolerance
from edgekit.records.settings import DEFAULT
from edgekit.records.tensors import value_of

# Column i comes from floor(i * 20 / 12) by the standard; in float32 some are one pixel off.
RESIZE = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1, 1, 1, 20] x) => (float[1, 1, 1, 12] y)
<int64[4] sizes = {1, 1, 1, 12}>
{ [before] a = Relu (x) [resize] y = Resize <mode = "nearest", nearest_mode = "floor",
    coordinate_transformation_mode = "asymmetric"> (a, , , sizes) }
"""


def test_what_every_engine_gets_wrong_alike_is_told() -> None:
    proto = onnx.parser.parse_model(RESIZE)
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 1, 20)
    lab = planted_engine.lab()
    (found,) = standard.against_standard(planted_engine.scene(proto, {"x": x}, lab))
    assert [node.name for node in found.finding.nodes] == ["resize"]
    assert found.finding.side == "both"
    assert "browser and the desktop are both wrong" in " ".join(write_up.sentences(found.finding))
    small = write_up.smallest(lab, found, DEFAULT)
    assert small is not None
    kept = {attribute.name for attribute in small.model.graph.node[0].attribute}
    assert kept == {"mode", "nearest_mode", "coordinate_transformation_mode"}, "another mode would be another fault"


def test_what_is_right_by_the_standard_is_not() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[2, 3] x) => (uint8[2, 3] q, float[2, 3] y)
    <float s = {0.1}, uint8 z = {3}>
    { a = Tanh (x) y = Softmax (a) q = QuantizeLinear (x, s, z) b = Cast <to = 7> (x) c = Floor (x) }
    """
    x = np.array([[0.05, 0.15, 0.25], [0.35, 0.45, -3.05]], np.float32)
    assert (
        standard.against_standard(planted_engine.scene(onnx.parser.parse_model(text), {"x": x}, planted_engine.lab()))
        == ()
    )


CASTS = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (uint8[4] y, float[4] z)
{ [before] a = Identity (x) [cast] y = Cast <to = 2> (a) [back] z = Cast <to = 1> (y) }
"""


def _cast_at_fault(x: list[float], answers: list[int]) -> Finding:
    """Diagnose CASTS in a browser that casts ``x`` to ``answers``."""

    def other(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
        if node.op_type == "Cast" and node.output[0] == "y":
            graph.initializer.append(numpy_helper.from_array(np.array(answers, np.uint8), "answers"))
            node.op_type, node.input[0] = "Identity", "answers"
            del node.attribute[:]

    feeds = {"x": np.array(x, np.float32)}
    scene = planted_engine.scene(onnx.parser.parse_model(CASTS), feeds, planted_engine.lab(other))
    (found,) = confirm.on_trial(scene, where.suspects(scene))
    return found.finding


@pytest.mark.parametrize("open_number", [-3.5, 256.0, np.nan, np.inf, -1.0])
def test_nobody_is_wrong_where_the_standard_leaves_a_cast_open(open_number: float) -> None:
    finding = _cast_at_fault([1.5, open_number, 255.9, -0.5], [1, 7, 255, 0])
    assert [node.name for node in finding.nodes] == ["cast"]
    assert finding.side == "open" and "neither side is wrong" in " ".join(write_up.sentences(finding))


def test_a_cast_is_wrong_where_the_standard_settles_it_beside_what_it_leaves_open() -> None:
    finding = _cast_at_fault([1.5, -3.5, 255.9, -0.5], [1, 7, 254, 0])
    assert finding.side == "engine"


def test_the_desktop_is_not_held_to_the_evaluation_where_the_standard_leaves_a_cast_open() -> None:
    feeds = {"x": np.array([1.5, -3.5, 1e9, np.nan], np.float32)}
    scene = planted_engine.scene(onnx.parser.parse_model(CASTS), feeds, planted_engine.lab())
    assert standard.against_standard(scene) == ()


@pytest.mark.parametrize("side", ["engine", "desktop", "both", "neither", "open", "unknown"])
def test_what_is_filed_reads_as_one_sentence(side: Side) -> None:
    finding = replace(_cast_at_fault([1.5, 2, 3, 4], [1, 7, 3, 4]), side=side)
    said = " ".join(write_up.sentences(finding, filed=True))
    assert ",," not in said and "the float64 evaluation" not in said.casefold()


def test_the_evaluation_is_in_float64_and_runs_in_a_process_of_its_own() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y, int64[2] n) <float[2] w = {0.1, 0.2}> { y = Add (x, w) n = Cast <to = 7> (x) }
    """
    broken = text.replace("Add (x, w)", "Frobnicate (x, w)")
    inputs = (value_of("x", np.array([1, 1e-9], np.float32)),)
    cases = [case_of(onnx.parser.parse_model(each), inputs) for each in (text, broken)]
    right, failed = exact.evaluate(cases)
    y = arrays_of(right)["y"]
    assert y.dtype == np.float64
    assert y[1] == np.float64(np.float32(0.2)) + np.float64(np.float32(1e-9))
    assert as_dtype(y, np.zeros(2, np.float32)).dtype == np.float32
    assert failed.outcome == "failed" and failed.error


def test_an_error_is_relative_to_the_scale_and_infinite_where_numbers_end() -> None:
    tolerance = Tolerance(1e-3, 1e-6)
    right = np.array([300, 0], np.float32)
    assert not error_of(np.array([300.1, 0.1], np.float32), right, tolerance).wrong
    assert error_of(np.array([300.1, 1], np.float32), right, tolerance).wrong
    assert error_of(np.array([np.nan, 0], np.float32), right, tolerance) == Error(np.inf, wrong=True, nonfinite=True)
    assert error_of(None, right, tolerance).wrong
    assert error_of(np.array([1]), np.array([2]), Tolerance(0, 0)).wrong
    assert not error_of(np.array([1e-9], np.float32), np.zeros(1, np.float32), tolerance).wrong
