"""From replies to a table."""

import dataclasses

import numpy as np
from conformance_samples import case, floats, one_node, relu, unknown, values

from edgekit.conformance import contrib, desktop, limits
from edgekit.conformance import table as tables
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.conformance.table import Runtime, Table
from edgekit.conformance.tabulate import tabulate

RUNTIME = Runtime("onnxruntime", "0", "cpu", "cpu")
RIGHT = Reply("done", values({"y": floats(0, 2)}))
WRONG = Reply("done", values({"y": floats(5, 5)}))
NO_KERNEL = Reply("refused", error="Could not find an implementation for Relu(14) node with name ''")
INVALID = Reply("refused", error="This is an invalid model. [ShapeInferenceError] axes is missing")


def table(*pairs: tuple[Case, Reply]) -> Table:
    return tabulate(RUNTIME, [case for case, _ in pairs], [reply for _, reply in pairs])


def look(made: Table, dtype: str = "float32") -> str:
    return made.look("", "Relu", 14, [dtype])


def generated(**changes: object) -> Case:
    return dataclasses.replace(relu(), source="generated", **changes)  # type: ignore[arg-type]


def test_one_right_answer_shows_that_a_combination_works_and_the_others_are_named() -> None:
    made = table((relu("a"), RIGHT), (relu("b"), WRONG), (relu("c"), NO_KERNEL))
    assert look(made) == "passes"
    support = made.support("", "Relu", 14)
    assert support is not None
    assert sorted(support.cases) == ["b", "c"]
    assert support.cases["b"].startswith("wrong: y: 5.0 at [0]")
    assert made.cases["a"] == ("passes", None)


def test_wrong_and_refused_are_told_apart() -> None:
    assert look(table((relu(), WRONG))) == "wrong"
    assert look(table((relu(), NO_KERNEL))) == "refused"
    assert look(table((relu(), Reply("failed", error="no")))) == "refused"
    assert look(table((relu(), Reply("crashed", error="the browser's tab crashed")))) == "refused"
    assert look(table((relu(), Reply("loaded")))) == "unknown"


def test_a_generated_model_is_refused_only_for_want_of_a_kernel() -> None:
    assert look(table((generated(), NO_KERNEL))) == "refused"
    assert look(table((generated(), INVALID))) == "unknown"
    assert look(table((relu(), INVALID))) == "refused"
    assert look(table((generated(outputs=()), Reply("failed", error="axes is missing")))) == "unknown"


def test_what_the_casts_of_the_frame_cannot_do_says_nothing() -> None:
    said = "Could not find an implementation for Cast(13) node with name 'edgekit_frame_x'"
    assert look(table((generated(frame="edgekit_frame"), Reply("refused", error=said)))) == "unknown"
    assert look(table((generated(frame="edgekit_frame"), WRONG))) == "unknown"


def test_a_node_is_on_the_cpu_when_all_of_it_is() -> None:
    cpu, mixed = ("CPUExecutionProvider",), ("CPUExecutionProvider", "WebGpuExecutionProvider")
    for placement, place in ((cpu, "cpu"), (mixed, "accelerator"), ((), "accelerator")):
        made = table((relu(), dataclasses.replace(RIGHT, placement=placement)))
        assert made.place("", "Relu", 14, ["float32"]) == place


def test_reasons_hold_nothing_that_changes_from_run_to_run() -> None:
    made = table((relu(), Reply("refused", error="Exception 0x7f12ab at 12345678901 and 14.9519160")))
    assert made.cases["relu"][1] == "Exception … at … and 14.9519160"


def test_a_model_of_several_nodes_counts_for_no_operator() -> None:
    two = case(one_node("t = Relu(x) y = Relu(t)"), {"x": floats(1)}, {"y": floats(0, 2)}, "two")
    made = table((two, RIGHT))
    assert made.operators == {}
    assert made.cases["two"][0] == "passes"


def test_the_table_of_the_desktop_says_what_it_really_does() -> None:
    int8 = case(
        one_node("y = Relu(x)", "int16[2] x => int16[2] y"),
        {"x": np.array([-1, 2], dtype=np.int16)},
        {"y": np.array([0, 2], dtype=np.int16)},
        "int16",
    )
    cases = [relu(), unknown(), int8, *limits.probes()]
    made = tabulate(RUNTIME, cases, desktop.replay(cases))
    assert look(made) == "passes"
    assert look(made, "int16") == "refused"
    assert made.opsets[""] >= 26
    assert made.ir_version >= 13
    assert tables.to_bytes(made) == tables.to_bytes(made)


def test_limits_are_the_highest_that_load() -> None:
    cases = limits.probes()
    replies = [
        Reply("loaded" if case.name in {"limit ir 9", "limit ai.onnx 21", "limit ai.onnx 20"} else "refused")
        for case in cases
    ]
    assert limits.highest(cases, replies) == (9, {"": 21})


def test_contributed_operators_are_looked_up_by_their_own_signature() -> None:
    chosen = [c for c in contrib.contrib() if c.operator and c.operator.op_type in ("FusedMatMul", "BiasAdd")]
    made = tabulate(RUNTIME, chosen, desktop.replay(chosen))
    fused, bias = (made.support("com.microsoft", name, 1) for name in ("FusedMatMul", "BiasAdd"))
    assert fused is not None
    assert bias is not None
    assert ("float32",) in fused.loads
    assert made.look("com.microsoft", "FusedMatMul", 1, ["bfloat16", "bfloat16"]) == "refused"
    assert made.look("com.microsoft", "BiasAdd", 1, ["float32", "float32", "float32"]) == "refused"


def test_classical_operators_are_tried_in_each_version() -> None:
    versions = {
        c.operator.since_version for c in contrib.contrib() if c.operator and c.operator.op_type == "LabelEncoder"
    }
    assert {1, 2, 4} <= versions
