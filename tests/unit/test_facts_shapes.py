"""Shape inference: what is known of every value, for symbolic and for given dimensions."""

from pathlib import Path

import onnx
import pytest
from models_text import LINEAR, LOCAL_FUNCTION, NESTED_IF, PRIVATE_DOMAIN, loaded, parse
from onnx import TensorProto, helper

from edgekit.child.process import ChildLimits
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.facts import shapes, strip
from edgekit.facts.types import ValueType
from edgekit.model import io as model

# The weight is large enough to be stripped; the Reshape needs the values of a small one.
STRIPPED = """
<ir_version: 8, opset_import: ["" : 17]>
big (float[N, 2, 32] x) => (y)
<int64[2] flat = {0, -1}>
{
    c = Constant <value = float[64] {0}> ()
    a = Reshape(x, flat)
    y = MatMul(a, w)
}
"""


def test_every_value_gets_its_type_with_symbols_where_no_size_is_given(tmp_path: Path) -> None:
    table = shapes.infer(loaded(LINEAR, tmp_path))
    assert table.values == {
        "x": ValueType("tensor(float)", "float32", ("N", 2)),
        "w": ValueType("tensor(float)", "float32", (2, 3)),
        "a": ValueType("tensor(float)", "float32", ("N", 3)),
        "y": ValueType("tensor(float)", "float32", ("N", 3)),
    }
    assert table.problem is None


def test_given_sizes_take_the_places_of_symbols(tmp_path: Path) -> None:
    table = shapes.infer(loaded(LINEAR, tmp_path), {"N": 5})
    assert {name: value.shape for name, value in table.values.items()} == {
        "x": (5, 2),
        "w": (2, 3),
        "a": (5, 3),
        "y": (5, 3),
    }


def test_a_dimension_without_a_name_is_named_by_its_place(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    model.save(proto, tmp_path / "model.onnx")
    found = model.load(tmp_path / "model.onnx")
    assert shapes.free_dimensions(found.proto) == ("x[0]",)
    assert shapes.infer(found, {"x[0]": 7}).values["a"].shape == (7, 3)


def test_a_dimension_that_the_model_does_not_have_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no free dimension 'M'") as caught:
        shapes.infer(loaded(LINEAR, tmp_path), {"M": 5})
    assert caught.value.hint == "Free dimensions of its inputs: N."


def test_values_in_branches_are_found_from_where_they_are_used(tmp_path: Path) -> None:
    table = shapes.infer(loaded(NESTED_IF, tmp_path))
    inner = ("y", "then_branch", "t", "else_branch")
    assert table.scopes[inner]["te"].shape == (2,)
    assert table.look("x", inner) == ValueType("tensor(float)", "float32", (2,))
    assert table.look("te") is None


def test_large_weights_are_not_handed_over_and_their_types_are_known(tmp_path: Path) -> None:
    proto = parse(STRIPPED)
    proto.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [64, 64], b"\0" * 16384, raw=True))
    value = helper.make_tensor("", TensorProto.FLOAT, [5000], b"\1" * 20_000, raw=True)
    proto.graph.node[0].attribute[0].t.CopyFrom(value)
    model.save(proto, tmp_path / "model.onnx")
    found = model.load(tmp_path / "model.onnx")
    assert len(strip.without_weights(found).SerializeToString()) < 1000
    table = shapes.infer(found, {"N": 64})
    assert {name: value.shape for name, value in table.values.items()} == {
        "x": (64, 2, 32),
        "flat": (2,),
        "w": (64, 64),
        "c": (5000,),
        "a": (64, 64),
        "y": (64, 64),
    }


def test_shapes_are_computed_from_small_tensors_in_external_data(tmp_path: Path) -> None:
    proto = parse(STRIPPED)
    flat = proto.graph.initializer[0]
    (tmp_path / "w.bin").write_bytes(b"\0" * 8 + b"\xff" * 8)
    flat.ClearField("int64_data")
    flat.data_location = TensorProto.EXTERNAL
    flat.external_data.add(key="location", value="w.bin")
    model.save(proto, tmp_path / "model.onnx")
    assert shapes.infer(model.load(tmp_path / "model.onnx"), {"N": 3}).values["a"].shape == (3, 64)


def test_calls_of_local_functions_are_inferred_call_by_call(tmp_path: Path) -> None:
    table = shapes.infer(loaded(LOCAL_FUNCTION, tmp_path), {"N": 4})
    assert table.values["a"].shape == (4,)
    assert [node.op_type for node in table.inlined.graph.node] == ["Add", "Identity", "Add", "Identity"]


def test_a_function_that_calls_itself_is_an_error(tmp_path: Path) -> None:
    proto = parse(LOCAL_FUNCTION)
    proto.functions[0].node[0].CopyFrom(helper.make_node("Twice", ["v"], ["u"], domain="mine"))
    model.save(proto, tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="'Twice' calls itself"):
        shapes.infer(model.load(tmp_path / "model.onnx"))


def test_functions_that_unfold_without_end_are_an_error(tmp_path: Path) -> None:
    proto = parse(LOCAL_FUNCTION)
    for level in range(40):
        called = helper.make_node("Twice" if level == 0 else f"F{level - 1}", ["v"], ["u"], domain="mine")
        again = helper.make_node("Twice" if level == 0 else f"F{level - 1}", ["u"], ["w"], domain="mine")
        opsets = [helper.make_opsetid("mine", 1)]
        proto.functions.append(helper.make_function("mine", f"F{level}", ["v"], ["w"], [called, again], opsets))
    proto.graph.node[0].op_type = "F39"
    model.save(proto, tmp_path / "model.onnx")
    with pytest.raises(LimitError, match="unfold to more than"):
        shapes.infer(model.load(tmp_path / "model.onnx"))


def test_what_follows_an_unknown_operator_is_not_known_and_the_rest_is(tmp_path: Path) -> None:
    table = shapes.infer(loaded(PRIVATE_DOMAIN, tmp_path))
    assert "a" not in table.values
    assert table.values["y"].shape == ("N", 4)


def test_a_conflict_is_told_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 7
    model.save(proto, tmp_path / "model.onnx")
    table = shapes.infer(model.load(tmp_path / "model.onnx"))
    assert table.problem is not None
    assert "MatMul" in table.problem
    assert table.values["y"].shape == ("N", 3)


def test_a_limit_ends_inference(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="inferring the shapes"):
        shapes.infer(loaded(LINEAR, tmp_path), limits=ChildLimits(seconds=0.01))


def test_the_model_itself_is_left_as_it_was(tmp_path: Path) -> None:
    found = loaded(LINEAR, tmp_path)
    before = found.proto.SerializeToString()
    shapes.infer(found, {"N": 5})
    assert found.proto.SerializeToString() == before
    assert isinstance(found.proto, onnx.ModelProto)


# The length of the Range is computed from a size; onnx's own data propagation stops at Div.
COMPUTED_SIZE = """
<ir_version: 8, opset_import: ["" : 17]>
halves (float[N, 2] x) => (y)
<int64 first = {0}, int64 two = {2}, int64 zero = {0}, int64 one = {1}>
{
    size = Shape(x)
    rows = Gather(size, first)
    half = Div(rows, two)
    y = Range(zero, half, one)
}
"""

# The pads of the branch are stored in the main graph, and its condition is computed from constants.
BRANCH = """
<ir_version: 8, opset_import: ["" : 17]>
branch (float[N, 2] x) => (y)
<int64[4] pads = {0, 1, 0, 3}, int64 a = {1}, int64 b = {2}>
{
    less = Less(a, b)
    y = If (less) <
        then_branch = taken () => (t) { t = Pad(x, pads) },
        else_branch = other () => (e) { e = Shape(x) f = Cast <to = 1> (e) }
    >
}
"""


def test_sizes_that_the_graph_computes_are_computed(tmp_path: Path) -> None:
    assert shapes.infer(loaded(COMPUTED_SIZE, tmp_path), {"N": 10}).values["y"] == ValueType(
        "tensor(int64)", "int64", (5,)
    )


def test_sizes_that_depend_on_a_symbol_stay_unknown(tmp_path: Path) -> None:
    shape = shapes.infer(loaded(COMPUTED_SIZE, tmp_path)).values["y"].shape
    assert shape is not None
    assert not isinstance(shape[0], int)


def test_a_branch_sees_the_constants_around_it_and_one_that_is_always_taken_gives_its_type(tmp_path: Path) -> None:
    table = shapes.infer(loaded(BRANCH, tmp_path), {"N": 4})
    assert table.scopes["y", "then_branch"]["t"].shape == (4, 6)
    assert table.values["y"].shape == (4, 6)


def test_what_is_folded_stays_in_the_model_that_is_given_back(tmp_path: Path) -> None:
    table = shapes.infer(loaded(COMPUTED_SIZE, tmp_path), {"N": 10})
    assert [node.op_type for node in table.inlined.graph.node] == ["Shape", "Gather", "Div", "Range"]


def test_a_huge_constant_is_not_computed(tmp_path: Path) -> None:
    text = COMPUTED_SIZE.replace("half = Div(rows, two)", "half = Identity(huge)").replace(
        "<int64 first", "<int64 huge = {1000000000000}, int64 first"
    )
    assert shapes.infer(loaded(text, tmp_path)).values["y"].shape == (10**12,)


def test_a_size_that_is_stored_as_a_negative_number_is_unknown(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    for info in (*proto.graph.input, *proto.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = -1
    model.save(proto, tmp_path / "model.onnx")
    assert shapes.infer(model.load(tmp_path / "model.onnx"), {"x[0]": 3}).values["y"].shape == (3, 3)
