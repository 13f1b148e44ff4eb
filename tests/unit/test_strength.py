"""How strong golden cases are, measured on tiny models with faults that are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from models_text import LOCAL_FUNCTION, NESTED_IF, loaded, parse

from edgekit.child.process import DEFAULT_LIMITS
from edgekit.desktop import run as desktop
from edgekit.desktop.run import Feed
from edgekit.errors import UsageError
from edgekit.model.detach import detached
from edgekit.model.io import load
from edgekit.records import strength as strengths
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.tensors import Value
from edgekit.strength import choose, measure
from edgekit.strength.faults import all_faults, with_fault

# Two paths: what the second gives is multiplied by zero, so no case can watch it.
TWO_PATHS = """
<ir_version: 8, opset_import: ["" : 17]>
paths (float[N, 2] x) => (float[N, 2] y)
<float[2, 2] w = {0.5, -1, 2, 1}, float[2] b = {1, -1}, float[2, 2] dead = {1, 2, 3, 4}, float zero = {0}>
{
    [seen] a = MatMul(x, w)
    [bias] c = Add(a, b)
    [unseen] d = MatMul(x, dead)
    [off] e = Mul(d, zero)
    [sum] f = Add(c, e)
    [soft] y = Softmax <axis = 1> (f)
}
"""
TOLERANCE = {"float32": Tolerance(1e-3, 1e-6)}


def cases(model: Path, *inputs: tuple[float, ...]) -> CaseSet:
    feeds = [Feed((Value("x", "float32", np.array([values], np.float32)),)) for values in inputs]
    done = desktop.run(model, feeds)
    found = tuple(
        GoldenCase(f"case-{number}", "by hand", feed.inputs, result.outputs or ())
        for number, (feed, result) in enumerate(zip(feeds, done.results, strict=True))
    )
    return CaseSet("0" * 64, Reference("r", "onnxruntime", "", "disabled"), TOLERANCE, {}, found)


def test_what_the_cases_see_is_caught_and_what_they_cannot_see_is_named(tmp_path: Path) -> None:
    model = loaded(TWO_PATHS, tmp_path).path
    found = measure.measure(model, cases(model, (1.0, -2.0)))
    assert found.problem is None
    assert {node.node for node in found.unwatched} == {"unseen", "off"}
    counts = {count.kind: (count.caught, count.ran) for count in found.kinds}
    assert counts["bias"] == (1, 1)
    assert counts["zeroed"] == (4, 6)
    assert counts["weight"] == (2, 4)  # "dead" and the zero are weights too
    assert all(missed.share == 0 for missed in found.missed if missed.node == "unseen")


def test_the_twin_a_case_of_zeros_watches_less(tmp_path: Path) -> None:
    model = loaded(TWO_PATHS, tmp_path).path
    strong = measure.measure(model, cases(model, (1.0, -2.0)))
    weak = measure.measure(model, cases(model, (0.0, 0.0)))
    assert weak.caught < strong.caught
    assert "seen" in {node.node for node in weak.unwatched}


def test_the_same_cases_are_as_strong_each_time_and_a_looser_tolerance_makes_them_weaker(tmp_path: Path) -> None:
    model = loaded(TWO_PATHS, tmp_path).path
    given = cases(model, (1.0, -2.0))
    first = measure.measure(model, given)
    assert strengths.to_json(first) == strengths.to_json(measure.measure(model, given))
    assert measure.measure(model, given, tolerance={"y": Tolerance(10.0, 10.0)}).caught == 0


def test_the_budget_decides_how_many_are_tried_and_the_seed_which(tmp_path: Path) -> None:
    layers = "\n".join(f"a{k + 1} = Add(a{k}, b)" for k in range(40))
    text = f"""<ir_version: 8, opset_import: ["" : 17]> long (float[N, 2] a0) => (float[N, 2] a40)
    <float[2] b = {{1, 2}}> {{ {layers} }}"""
    model = loaded(text, tmp_path).path
    feed = Feed((Value("a0", "float32", np.ones((1, 2), np.float32)),))
    outputs = desktop.run(model, [feed]).results[0].outputs or ()
    given = replace(cases_of("x", feed, outputs))
    found = [measure.outcomes(model, given, seed=seed, budget_seconds=0.0) for seed in (0, 0, 1)]
    assert len(found[0].faults) == 16 < found[0].possible
    assert found[0].faults == found[1].faults != found[2].faults


def cases_of(name: str, feed: Feed, outputs: tuple[Value, ...]) -> CaseSet:
    case = GoldenCase(name, "by hand", feed.inputs, outputs)
    return CaseSet("0" * 64, Reference("r", "onnxruntime", "", "disabled"), TOLERANCE, {}, (case,))


def test_a_case_that_sees_what_others_miss_is_added(tmp_path: Path) -> None:
    model = loaded(TWO_PATHS, tmp_path).path
    blind, spare = cases(model, (0.0, 0.0)).cases, cases(model, (0.0, 0.0), (1.0, -2.0), (3.0, 1.0)).cases
    improve = choose.improver(model, TOLERANCE, {}, seed=0, limits=DEFAULT_LIMITS)
    added = improve(blind, lambda: spare)
    assert [case.id for case in added] == ["case-1"]
    seeing = cases(model, (1.0, -2.0)).cases
    assert improve(seeing, lambda: spare) == ()


def test_nothing_is_measured_where_no_case_passes_on_the_desktop(tmp_path: Path) -> None:
    model = loaded(TWO_PATHS, tmp_path).path
    given = cases(model, (1.0, -2.0))
    wrong = replace(given.cases[0], outputs=(Value("y", "float32", np.array([[9, 9]], np.float32)),))
    found = measure.measure(model, replace(given, cases=(wrong,)))
    assert found.problem == "No fault could be tried."
    assert found.ran == found.caught == 0


def test_a_model_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08")
    model = loaded(TWO_PATHS, tmp_path).path
    assert "broken.onnx" in str(measure.measure(path, cases(model, (1.0, 2.0))).problem)


ATTRIBUTES = """
<ir_version: 8, opset_import: ["" : 17]>
attributes (float[1, 2, 4, 4] x) => (float[1, 5, 5, 3] y, float[1, 1, 1, 1] z)
<float[3, 2, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8}, int64[1] far = {2}>
{
    c = Conv <pads = [1, 1, 1, 1]> (x, w)
    l = LeakyRelu <alpha: float = 0.1> (c)
    y = Transpose <perm = [0, 2, 3, 1]> (l)
    g = Gelu.Gelu <approximate = "tanh"> (l)
    s = ReduceMean <axes = [1, 2, 3], keepdims = 1> (x)
    u = Unsqueeze(s, far)
    q = Squeeze(u, far)
    z = Identity(q)
}
"""


def test_each_kind_of_fault_changes_one_node(tmp_path: Path) -> None:
    text = ATTRIBUTES.replace('g = Gelu.Gelu <approximate = "tanh"> (l)\n', "")
    model = loaded(text, tmp_path)
    proto = detached(model, tmp_path)
    faults = all_faults(proto, None)
    said = {fault.what for fault in faults}
    assert {"a pad moved to the other side", "alpha 10 % larger", "the last two axes of perm swapped",
            "keepdims 1 for 0", "axes 'far' off by -1", "weights 'w' disturbed by 1 %"} <= said  # fmt: skip
    for fault in faults:
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        with_fault(model, copy, fault, None, 0)
        own = [node for node in copy.graph.node if node.op_type != "Constant"]
        changed = [a.op_type for a, b in zip(own, proto.graph.node, strict=True) if a != b]
        assert changed == [fault.op_type]


@pytest.mark.parametrize("text", [NESTED_IF, LOCAL_FUNCTION])
def test_nodes_in_branches_and_functions_are_reached(text: str, tmp_path: Path) -> None:
    proto = parse(text)
    found = all_faults(proto, None)
    assert len({fault.site for fault in found}) <= 8
    model = loaded(text, tmp_path)
    for fault in found:
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        with_fault(model, copy, fault, None, 0)
        assert copy != proto
        onnx.checker.check_model(copy)


def test_the_same_tensor_stays_right_for_other_nodes(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> shared (float[2] x) => (float[2] y, float[2] z)
    <float[2] w = {1, 2}> { y = Mul(x, w) z = Div(x, w) }"""
    model = loaded(text, tmp_path)
    proto = detached(model, tmp_path)
    fault = next(fault for fault in all_faults(proto, None) if fault.op_type == "Div")
    with_fault(model, proto, fault, None, 0)
    assert proto.graph.node[0].input[1] == "w"
    assert proto.graph.initializer[0] == load(model.path).proto.graph.initializer[0]


def test_strength_survives_its_file_and_a_malformed_one_is_refused(tmp_path: Path) -> None:
    model = loaded(TWO_PATHS, tmp_path).path
    found = measure.measure(model, cases(model, (1.0, -2.0)))
    document = strengths.to_json(found)
    assert strengths.from_json(document) == found
    with pytest.raises(UsageError, match=r"strength\.json"):
        strengths.from_json({**document, "tried": -1})
