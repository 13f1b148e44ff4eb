import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from trimming import parse, run

from edgekit import pipeline
from edgekit.child.process import ChildLimits
from edgekit.errors import LimitError, ModelError, ParityError, UsageError
from edgekit.golden.make import CaseOptions
from edgekit.passes import no_ops, unique_names
from edgekit.passes.values import Known
from edgekit.trim import steps
from edgekit.trim.output import Packing
from edgekit.trim.plan import Plan
from edgekit.trim.request import Shape
from edgekit.trim.run import TrimOptions

NET = """g (float[N, 4] x) => (float[N, 3] y, float[N, 4] a) <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}> {
    h = Abs(x) a = Identity(h) m = MatMul(a, w) i = Identity(m) y = Relu(i)
}"""
X = np.array([[1, -2, 3, -4]], np.float32)
USUAL = TrimOptions()


def trimmed(model: str | onnx.ModelProto, folder: Path, options: TrimOptions = USUAL) -> tuple[Plan, onnx.ModelProto]:
    (folder / "in").mkdir(exist_ok=True)
    source = folder / "in" / "model.onnx"
    source.write_bytes(parse(model).SerializeToString())
    plan = pipeline.trim(source, folder / "out" / "small.onnx", options)
    return plan, onnx.load(folder / "out" / "small.onnx")


def operators(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def saved_plan(folder: Path) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads((folder / "out" / "small.plan.json").read_text())
    return document


def test_a_model_is_trimmed_proven_and_written_with_its_plan(tmp_path: Path) -> None:
    plan, proto = trimmed(NET, tmp_path)

    assert operators(proto) == ["Abs", "MatMul", "Relu"]
    assert plan.proof == "identical" and plan.cases
    assert {record.name: record.proof for record in plan.passes}["no-op nodes"] == "identical"
    assert saved_plan(tmp_path)["nodes_after"] == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["small.onnx", "small.plan.json"]
    for a, b in zip(run(parse(NET), {"x": X}), run(proto, {"x": X}), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_file_newer_than_the_runtime_states_an_older_ir_version_on_request(tmp_path: Path) -> None:
    newer = parse(NET)
    newer.ir_version = 16
    with pytest.raises(ModelError, match="nothing can be proven"):
        trimmed(newer, tmp_path)

    plan, proto = trimmed(newer, tmp_path, TrimOptions(ir=8))

    assert (proto.ir_version, plan.proof) == (8, "identical")
    assert "The IR version was 16 and is 8: the number alone is another." in plan.notes
    np.testing.assert_array_equal(run(proto, {"x": X})[0], run(parse(NET), {"x": X})[0])


@pytest.mark.sweep
def test_whole_numbers_leave_int64_and_are_proven_at_both_ends_of_a_range(tmp_path: Path) -> None:
    model = """g (float[N, M] x) => (bool[1] y) <int64 i = {0}, int64 j = {1}, int64[1] ax = {0}, int64[1] one = {1}> {
        s = Shape(x) n = Gather(s, i) m = Gather(s, j) p = Mul(n, m) q = Unsqueeze(p, ax) r = Neg(q) t = Sub(r, one)
        y = Less(t, one)
    }"""
    asked = TrimOptions(int32=True, shape=Shape(ranges={"N": (1, 9), "M": (2, 300)}))

    plan, proto = trimmed(model, tmp_path, asked)

    assert plan.proof == "identical"
    assert {record.name: record.proof for record in plan.passes}["int64 to int32"] == "identical"
    assert any("between -90,001 and 90,000" in note for note in plan.notes)
    assert any("M=300" in case.origin for case in plan.cases)
    cast = next(node for node in proto.graph.node if node.op_type == "Cast")
    assert cast.attribute[0].i == onnx.TensorProto.INT32
    assert "int64 to int32" not in [record.name for record in trimmed(model, tmp_path)[0].passes]


@pytest.mark.parametrize(
    ("model", "least"),
    [(NET, 8), ('<ir_version: 16, opset_import: ["" : 13]> g (float[4] x) => (float[4] y) { y = Abs(x) }', 7)],
)
def test_an_ir_version_without_what_the_model_uses_is_refused(model: str, least: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"needs IR version {least} or newer"):
        trimmed(model, tmp_path, TrimOptions(ir=least - 1))
    assert trimmed(model, tmp_path, TrimOptions(ir=least))[1].ir_version == least


def test_a_pass_that_changes_an_answer_is_undone_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def harmful(node: Any, _known: Known) -> Any:
        return node.inputs[0]

    monkeypatch.setitem(no_ops._RULES, "Abs", harmful)

    plan, proto = trimmed(NET, tmp_path)

    undone = [record for record in plan.passes if record.proof == "undone"]
    assert [record.name for record in undone] == ["no-op nodes"]
    assert re.search(r"output 'a' of case \d+ differs", undone[0].reason or "")
    assert "Abs" in operators(proto)
    np.testing.assert_array_equal(run(proto, {"x": X})[0], run(parse(NET), {"x": X})[0])


def test_a_pass_that_breaks_the_graph_is_undone_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(model: Any, _known: Known, **_: Any) -> bool:
        next(iter(model.graph)).op_type = "NoSuchOperator"
        return True

    monkeypatch.setattr(no_ops, "apply", breaking)

    plan, proto = trimmed(NET, tmp_path)

    assert [record.name for record in plan.passes if record.proof == "undone"] == ["no-op nodes"]
    assert "Abs" in operators(proto)


def test_a_pass_that_fails_is_reported_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_model: Any) -> bool:
        raise KeyError("lost")

    monkeypatch.setattr(unique_names, "apply", failing)

    plan, proto = trimmed(NET, tmp_path)

    failed = {record.name: record.reason for record in plan.passes if record.proof == "failed"}
    assert failed["names made unique"] == "KeyError: 'lost'"
    assert operators(proto) == ["Abs", "MatMul", "Relu"]


def test_some_outputs_and_what_they_need(tmp_path: Path) -> None:
    plan, proto = trimmed(NET, tmp_path, TrimOptions(shape=Shape(outputs=("a",))))

    assert operators(proto) == ["Abs"]
    assert [info.name for info in proto.graph.output] == ["a"]
    assert plan.proof == "identical"


def test_a_part_is_proven_with_what_the_whole_computes_before_it(tmp_path: Path) -> None:
    plan, proto = trimmed(NET, tmp_path, TrimOptions(shape=Shape(inputs=("m",), outputs=("y",))))

    assert [info.name for info in proto.graph.input] == ["m"]
    assert operators(proto) == ["Relu"]
    assert plan.proof == "identical" and plan.cases


def test_frozen_sizes_and_batch(tmp_path: Path) -> None:
    _, proto = trimmed(NET, tmp_path, TrimOptions(shape=Shape(batch=2)))

    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert [dim.dim_value for dim in proto.graph.output[0].type.tensor_type.shape.dim] == [2, 3]


def test_a_range_is_proven_at_both_ends(tmp_path: Path) -> None:
    plan, proto = trimmed(NET, tmp_path, TrimOptions(shape=Shape(ranges={"N": (2, 5)})))

    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert {"N=2", "N=5"} <= {part for case in plan.cases for part in re.findall(r"N=\d+", case.origin)}


def test_a_size_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no free dimension 'M'"):
        trimmed(NET, tmp_path, TrimOptions(shape=Shape(freeze={"M": 1})))


def test_a_batch_that_is_fixed_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="first axis of 2"):
        trimmed("g (float[2] x) => (float[2] y) { y = Neg(x) }", tmp_path, TrimOptions(shape=Shape(batch=1)))


OLD = """<ir_version: 3, opset_import: ["" : 8]> g (float[1, 2, 3, 3] x, float[2] s) => (float[1, 2, 6, 6] y)
<float[2] s = {1, 2}> {
    b = BatchNormalization(x, s, s, s, s) d = Dropout(b)
    y = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]> (d)
}"""


@pytest.mark.sweep
@pytest.mark.parametrize(("opset", "operator"), [(None, "Upsample"), (17, "Resize")])
def test_an_old_file_becomes_a_current_one(tmp_path: Path, opset: int | None, operator: str) -> None:
    plan, proto = trimmed(OLD, tmp_path, TrimOptions(opset=opset))

    onnx.checker.check_model(proto)
    assert proto.ir_version >= 4 and [info.name for info in proto.graph.input] == ["x"]
    assert operators(proto) == ["BatchNormalization", operator]
    assert proto.opset_import[0].version == (opset or 8)
    assert plan.proof == "identical"


def test_an_opset_that_nothing_converts_to_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="opset 99"):
        trimmed(OLD, tmp_path, TrimOptions(opset=99))


CONV = """g (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y)
<float[2, 2, 1, 1] w = {0.3, 0.7, -0.2, 0.9}, float[2] s = {0.7, 1.3}, float[2] b = {0.1, 0.2},
 float[2] m = {0.3, -0.1}, float[2] v = {0.9, 1.7}> { c = Conv(x, w) y = BatchNormalization(c, s, b, m, v) }"""


def test_arithmetic_is_reordered_only_when_allowed(tmp_path: Path) -> None:
    plan, proto = trimmed(CONV, tmp_path, TrimOptions(allow_rounding=True))

    assert operators(proto) == ["Conv"]
    assert plan.proof == "rounding" and plan.difference is not None and 0 < plan.difference < 1e-5
    plan, proto = trimmed(CONV, tmp_path)
    assert operators(proto) == ["Conv", "BatchNormalization"]
    assert plan.proof == "identical"


RANDOM = "g (float[4] x) => (float[4] y) { r = RandomNormal <shape = [4]> () i = Identity(r) y = Add(x, i) }"


def test_a_random_model_is_proven_with_seeds_that_are_not_in_the_output(tmp_path: Path) -> None:
    plan, proto = trimmed(RANDOM, tmp_path)

    assert operators(proto) == ["RandomNormal", "Add"]
    assert plan.proof == "identical"
    assert not any(attribute.name == "seed" for attribute in proto.graph.node[0].attribute)


PRIVATE = """<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]> g (float[4] x) => (float[4] y)
<float[4] never = {1, 2, 3, 4}> { a = my.own.Do(x) i = Identity(a) y = Neg(i) }"""


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nothing can be proven") as caught:
        trimmed(PRIVATE, tmp_path)

    assert "--unproven" in (caught.value.hint or "")
    assert not (tmp_path / "out" / "small.onnx").exists()


def test_unproven_means_structural_passes_alone(tmp_path: Path) -> None:
    plan, proto = trimmed(PRIVATE, tmp_path, TrimOptions(unproven=True))

    assert operators(proto) == ["Do", "Identity", "Neg"]
    assert not proto.graph.initializer
    assert plan.proof == "structural" and {record.proof for record in plan.passes} == {"structural"}


def test_a_cycle_is_a_clear_error(tmp_path: Path) -> None:
    proto = parse("g (float[4] x) => (float[4] y) { a = Add(x, x) b = Neg(a) y = Abs(b) }")
    proto.graph.node[0].input[1] = "b"

    with pytest.raises(ModelError, match="cannot be sorted"):
        trimmed(proto, tmp_path)


def test_the_input_is_never_replaced(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(parse(NET).SerializeToString())

    with pytest.raises(UsageError, match="would replace the model"):
        pipeline.trim(source, source, TrimOptions())


def test_an_unknown_pass_is_an_error_that_lists_the_passes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no pass 'folding'") as caught:
        trimmed(NET, tmp_path, TrimOptions(skip=("folding",)))

    assert "constant folding" in (caught.value.hint or "")


def test_a_skipped_pass_is_left_out(tmp_path: Path) -> None:
    _, proto = trimmed(NET, tmp_path, TrimOptions(skip=("no-op nodes",)))

    assert operators(proto).count("Identity") == 2


def test_a_failed_run_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "small.onnx").write_bytes(b"old")

    with pytest.raises(ModelError):
        trimmed(PRIVATE, tmp_path)

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["small.onnx"]
    assert (tmp_path / "out" / "small.onnx").read_bytes() == b"old"


def test_an_answer_that_asked_for_changes_do_not_keep_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgekit.trim.native import Native

    def wrong(_self: Native, proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
        proto.graph.node[0].op_type = "Neg"
        proto.opset_import[0].version = opset
        return proto

    monkeypatch.setattr(Native, "convert", wrong)

    with pytest.raises(ParityError, match="the pass 'opset 18' changes the answers"):
        trimmed(NET, tmp_path, TrimOptions(opset=18))


def test_weights_are_only_stored_otherwise_without_passes(tmp_path: Path) -> None:
    plan, proto = trimmed(NET, tmp_path, TrimOptions(passes=False, packing=Packing(external=True)))

    assert operators(proto) == [node.op_type for node in parse(NET).graph.node]
    assert plan.proof == "structural" and not plan.cases


def test_a_sample_of_the_user_is_among_the_cases(tmp_path: Path) -> None:
    np.savez(tmp_path / "real.npz", x=X)

    plan, _ = trimmed(NET, tmp_path, TrimOptions(cases=CaseOptions(samples=(tmp_path / "real.npz",))))

    assert any("real.npz" in case.origin for case in plan.cases)


def test_a_runtime_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    endless = """g (float[1] x) => (float[1] y) <int64 n = {9223372036854775807}, bool go = {1}> {
        y = Loop (n, go, x)
            <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) { d = Identity(c) w = Neg(v) }>
    }"""

    # Less than a run may compute: otherwise the run is stopped by itself, and the runtime "refuses" the inputs.
    with pytest.raises(LimitError, match="Stopped after 2 s"):
        trimmed(
            endless,
            tmp_path,
            TrimOptions(cases=CaseOptions(limits=ChildLimits(seconds=2)), limits=ChildLimits(seconds=2)),
        )


def test_every_pass_is_in_the_documentation() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "trim.md").read_text(encoding="utf-8")

    assert [name for name in steps.names() if f"`{name}`" not in page] == []


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "out" / ".small.onnx.0123abcd.tmp"
    left.mkdir(parents=True)
    (left / ".lock").touch()
    (left / "weights.bin").write_bytes(b"many")

    trimmed("g (float[2] x) => (float[2] y) { y = Neg(x) }", tmp_path)

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["small.onnx", "small.plan.json"]


def test_inlining_that_grows_the_file_is_left(tmp_path: Path) -> None:
    body = " ".join(f"v{n + 1} = Add(v{n}, v0)" for n in range(30))
    calls = " ".join(f"x{n + 1} = mine.Long(x{n})" for n in range(3))
    model = f"""<ir_version: 8, opset_import: ["" : 17, "mine" : 1]> g (float[2] x0) => (float[2] x3) {{ {calls} }}
    <opset_import: ["" : 17], domain: "mine"> Long (v0) => (v30) {{ {body} }}"""

    plan, proto = trimmed(model, tmp_path)

    assert len(proto.functions) == 1
    assert plan.bytes_after <= plan.bytes_before
