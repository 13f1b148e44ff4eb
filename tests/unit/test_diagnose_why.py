import json
from dataclasses import replace

import numpy as np
import onnx
import onnx.parser
import planted_engine

from edgekit.diagnose import why
from edgekit.diagnose.lab import case_of
from edgekit.diagnose.result import Diagnosis, Finding, NodeFacts, Trial, ValueFacts, to_json
from edgekit.diagnose.why import Failing, Options
from edgekit.records.cases import Tolerance
from edgekit.records.settings import DEFAULT
from edgekit.records.tensors import value_of
from edgekit.report import diagnosis as report
from edgekit.runtime import pins

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) { [one] a = Neg (x) [bad] y = Softplus (a) }
"""
X = value_of("x", np.array([1, -2], np.float32))


def off(graph: onnx.GraphProto, node: onnx.NodeProto) -> None:
    if node.op_type == "Softplus":
        planted_engine.add_after(graph, node, "Mul", 1.25)


def failing(proto: onnx.ModelProto, lab: planted_engine.PlantedLab) -> Failing:
    (right,) = lab.desktop([case_of(proto, (X,))])
    return Failing("only", 0, (X,), right.outputs, {"y": Tolerance(1e-3, 1e-6)})


def test_each_change_is_tried_and_says_whether_it_cures() -> None:
    proto, lab = onnx.parser.parse_model(TEXT), planted_engine.lab(off)
    asked = why.changes(lab, proto, DEFAULT, ["bad"], Options((), elsewhere=False))
    trials = why.rerun(lab, proto, [failing(proto, lab)], asked)
    assert [trial.change for trial in trials if trial.cures] == ["layout NCHW", "on the CPU: bad"]
    assert all(trial.error is not None and abs(trial.error - 0.25) < 1e-3 for trial in trials if not trial.cures)
    cure = next(trial for trial in trials if trial.change.startswith("on the CPU"))
    assert cure.settings is not None and cure.settings.cpu_nodes == ("bad",)


def test_elsewhere_means_variants_threads_and_the_other_engine() -> None:
    proto, lab = onnx.parser.parse_model(TEXT), planted_engine.lab(off)
    files = {name: "" for variant in pins.load().variants for name in variant.files}
    lab = replace(lab, place=replace(lab.place, dist=replace(lab.place.dist, files=files)))
    names = [change.name for change in why.changes(lab, proto, DEFAULT, [], Options(pins.load().variants))]
    assert {"variant asyncify", "variant wasm", "2 threads", "engine firefox"} <= set(names)
    assert not any(name.startswith("on the CPU") or "float16" in name for name in names)


def test_a_cure_must_cure_the_other_failing_cases_too() -> None:
    proto, lab = onnx.parser.parse_model(TEXT), planted_engine.lab(off)
    first = failing(proto, lab)
    other = Failing("other", 0, (X,), (value_of("y", np.zeros(2, np.float32)),), first.tolerances)
    asked = why.changes(lab, proto, DEFAULT, ["bad"], Options((), elsewhere=False))
    assert not any(trial.cures for trial in why.rerun(lab, proto, [first, other], asked))


def test_float16_is_tried_as_float32() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[2] x) => (float16[2] y) { y = Mul (x, x) }
    """
    proto, lab = onnx.parser.parse_model(text), planted_engine.lab()
    x = value_of("x", np.array([300, 2], np.float16))  # 90,000 is beyond float16
    right = (value_of("y", np.array([90000, 4], np.float32)),)
    case = Failing("only", 0, (x,), right, {"y": Tolerance(1e-2, 1e-4)})
    asked = why.changes(lab, proto, DEFAULT, [], Options((), elsewhere=False))
    cures = [trial.change for trial in why.rerun(lab, proto, [case], asked) if trial.cures]
    assert cures == ["float32 instead of float16"]


def _diagnosis(name: str) -> Diagnosis:
    node = NodeFacts(name, name, "Conv", "", "if.then_branch", None, (("pads", "[1, 1]"),),
                     (ValueFacts("x", "float32", (1, 2)),), (ValueFacts("y", "float32", (1, 2)),), name)  # fmt: skip
    finding = Finding("wrong", (node,), 0.5, float("inf"), "engine", 0.5, 1e-7, None, (), "", f"> Conv {name}")
    trials = (Trial("layout NCHW", "done", 1e-7, True), Trial("engine firefox", "not run", None, None, "no Firefox"))
    return Diagnosis(
        "found", "t", "wasm", "chromium jspi", "onnxruntime-web 1", "", "only", 0, (), (finding,), trials, ("So.",)
    )


def test_the_tables_and_lines_say_where_and_why() -> None:
    found = _diagnosis("bad")
    (row,) = report.where_table(found).rows
    assert row == ("Conv 'bad'", "if.then_branch", "0.5", "∞", "0.5", "1e-07", "the browser")
    assert [row[2] for row in report.why_table(found).rows] == ["yes", "–"]
    lines = report.lines(found)
    assert "> Conv bad" in lines and any("pads=[1, 1]" in line for line in lines) and lines[-1] == "  So."


def test_how_far_both_sides_are_off_is_never_left_out() -> None:
    kept = [column.title for column in report.where_table(_diagnosis("bad")).columns if not column.spare]
    assert kept == ["node", "browser off float64", "desktop off float64", "wrong"]


def test_the_document_has_no_numbers_that_json_lacks() -> None:
    document = to_json(_diagnosis("bad"))
    json.dumps(document, allow_nan=False)
    assert document["cures"] == ["layout NCHW"]
    assert document["findings"][0]["added_own"] == "Infinity"
