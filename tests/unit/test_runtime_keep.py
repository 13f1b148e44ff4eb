"""What is kept of a runtime: each source gives its part, and without a recording the margin is wider."""

from dataclasses import replace

import pytest
from small_profile import ADD_FLOAT, FAILURES, START, THREADS, profile

from edgekit.facts.operators import Operator, OperatorDtypes
from edgekit.runtime import keep
from edgekit.runtime.profile import OperatorFunctions

ALWAYS = START | THREADS
FLOATS, INTS = ("float32", "float32"), ("int64", "int64")


def operator(
    op_type: str, *dtypes: tuple[tuple[str, ...], tuple[str, ...]], since: int | None = 14, **more: str
) -> Operator:
    of_nodes = tuple(OperatorDtypes(inputs, outputs, 1) for inputs, outputs in dtypes)
    return Operator(more.get("domain", "ai.onnx"), op_type, 1, opset=17, since=since, dtypes=of_nodes)


ADD = operator("Add", (FLOATS, ("float32",)))
RELU = operator("Relu", (("float32",), ("float32",)))


def test_a_recorded_model_keeps_start_up_its_operators_in_their_dtypes_and_what_it_entered() -> None:
    found = keep.choose(profile(), [ADD], recorded={1, 10, 500})
    assert found.functions == ALWAYS | {10, 11, 12, 500}
    assert found.added == (
        ("start-up and sessions", len(ALWAYS)),
        ("the model's operators", 3),
        ("the model, recorded", 1),
    )


def test_a_recording_that_broke_off_keeps_what_a_model_without_one_keeps_and_what_it_entered() -> None:
    alone = keep.choose(profile(), [ADD, RELU], recorded=None)
    broken = keep.choose(profile(), [ADD, RELU], recorded={500}, whole=False)
    assert broken.functions == alone.functions | {500}


def test_what_other_gpus_enter_is_kept_and_counted_apart() -> None:
    found = keep.choose(profile(), [ADD], recorded={1, 500}, elsewhere={500, 900})
    assert {500, 900} <= found.functions
    assert dict(found.added)["other GPUs"] == 1


def test_without_a_recording_failures_every_dtype_and_what_fusions_enter_are_kept_too() -> None:
    found = keep.choose(profile(), [ADD, RELU], recorded=None)
    assert found.functions == ALWAYS | FAILURES | {10, 11, 12, 13, 14, 30, 700, 50, 51}
    assert dict(found.added)["fused operators"] == 2
    # A model that has only some of the nodes of a measured one is not fused as that one is.
    assert not {50, 51, 60, 61} & keep.choose(profile(), [ADD], recorded=None).functions


def test_the_operators_that_the_optimized_graph_has_are_kept_where_nothing_was_recorded() -> None:
    gelu = [("com.microsoft", "Gelu")]
    assert {40, 41} <= keep.choose(profile(), [ADD], recorded=None, optimized=gelu).functions
    assert not {40, 41} & keep.choose(profile(), [ADD], recorded=None).functions
    # Fused nodes stand for the model's own ones in a measured model too.
    relu = [("ai.onnx", "Relu")]
    assert {50, 51, 30} <= keep.choose(profile(), [ADD], recorded=None, optimized=relu).functions


@pytest.mark.parametrize(
    ("operator_", "kept", "why"),
    [
        (ADD, {10, 11, 12}, "version and dtype agree"),
        (operator("Add", (INTS, ("int64",))), {10, 11, 13}, "another dtype"),
        (operator("Add", (FLOATS, ("float32",)), (INTS, ("int64",))), {10, 11, 12, 13}, "nodes of two dtypes"),
        (operator("Add", (("float32", "unknown"), ("unknown",))), {10, 11, 12}, "one input tells the variable"),
        (operator("Add", (("unknown", "unknown"), ("unknown",))), {10, 11, 12, 13}, "nothing tells the dtype"),
        (operator("Add"), {10, 11, 12, 13}, "no shape inference: every dtype of the version"),
        (operator("Add", since=7), {10, 14}, "another version"),
        (operator("Add", since=None), {10, 11, 12, 13, 14}, "the version is not known"),
        (operator("Add", since=1), {10, 11, 12, 13, 14}, "nothing measured in that version: all that was"),
        (operator("Add", (("bfloat16",) * 2, ("bfloat16",))), {10, 11, 12, 13, 14}, "nor with that dtype"),
        (operator("Cast", (("float32",), ("int64",)), since=13), {20, 21}, "two variables"),
        (operator("Cast", (("int64",), ("unknown",)), since=13), {20, 22}, "one of two known"),
        (operator("Gelu", (("float32",), ("float32",)), since=None, domain="com.microsoft"), {40, 41}, "no schema"),
        (operator("Add", domain="com.example"), set(), "another domain's operator"),
        (operator("Conv"), set(), "not measured"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_operators_are_kept_in_the_versions_and_dtypes_of_their_nodes(
    operator_: Operator, kept: set[int], why: str
) -> None:
    found = keep.choose(profile(), [operator_], recorded=())
    assert found.functions == ALWAYS | kept, why


def test_a_variable_that_the_measured_node_did_not_use_agrees_with_any_dtype() -> None:
    unused = replace(ADD_FLOAT, dtypes=("-",), functions=frozenset({77}))
    found = keep.choose(profile(operators=(unused,)), [ADD], recorded=())
    assert 77 in found.functions


def test_what_a_device_missed_is_kept_and_counted_for_itself() -> None:
    found = keep.choose(profile(), [ADD], recorded=(), reported={12, 800, 801})
    assert {800, 801} <= found.functions
    assert found.added[-1] == ("reported misses", 2)


@pytest.mark.parametrize(("recorded", "least"), [((), keep.SHARED_WITH_RECORDING), (None, keep.SHARED_ALONE)])
def test_what_many_operators_enter_belongs_to_none_of_them(recorded: tuple[int, ...] | None, least: int) -> None:
    def shared_by(count: int) -> frozenset[int]:
        operators = tuple(OperatorFunctions("", f"Op{k}", 1, (), frozenset({900})) for k in range(count))
        return keep.choose(profile(operators=operators), [], recorded=recorded).functions

    assert 900 in shared_by(least)
    assert 900 not in shared_by(least - 1)
    # An operator counts once, however many of its dtypes enter the function.
    dtypes = tuple(OperatorFunctions("", "Op", 1, (str(k),), frozenset({900})) for k in range(least))
    assert 900 not in keep.choose(profile(operators=dtypes), [], recorded=recorded).functions


def test_every_operator_of_a_domain_is_kept_in_each_version_and_dtype_and_no_other_domain() -> None:
    onnx = keep.every(profile(), "")
    assert onnx.functions == ALWAYS | FAILURES | {10, 11, 12, 13, 14, 20, 21, 22, 30, 700}
    assert onnx.added == (("every operator", len(onnx.functions)),)
    assert keep.every(profile(), "com.microsoft").functions == ALWAYS | FAILURES | {40, 41}
    assert keep.every(profile(), "com.example").functions == ALWAYS | FAILURES
