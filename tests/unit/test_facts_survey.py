"""What a survey says of models whose facts are known."""

import json
from dataclasses import asdict
from pathlib import Path

import onnx
import pytest
from models_text import (
    EMBEDDING,
    INITIALIZER_AS_INPUT,
    LINEAR,
    LOCAL_FUNCTION,
    NESTED_IF,
    PRIVATE_DOMAIN,
    loaded,
    parse,
)
from onnx import TensorProto, helper

from edgekit.errors import ModelError
from edgekit.facts import survey as facts
from edgekit.facts.graph import Domain, GraphFacts, SymbolicDimension
from edgekit.facts.operators import Operator
from edgekit.facts.origin import Origin, Quirk
from edgekit.facts.survey import Argument, Facts
from edgekit.facts.weights import ExternalData, Stored, WeightFacts, Weights
from edgekit.model import io as model
from edgekit.records.jsonable import jsonable


def surveyed(proto: onnx.ModelProto, folder: Path) -> Facts:
    model.save(proto, folder / "model.onnx")
    return facts.survey(model.load(folder / "model.onnx"))


def test_a_plain_model_is_described_whole(tmp_path: Path) -> None:
    found = facts.survey(loaded(LINEAR, tmp_path))
    size = (tmp_path / "model.onnx").stat().st_size
    assert found == Facts(
        file="model.onnx",
        file_bytes=size,
        total_bytes=size,
        graph_name="linear",
        ir_version=8,
        opsets={"ai.onnx": 17},
        unused_opsets=(),
        producer_name="by hand",
        producer_version="1",
        metadata={},
        inputs=(Argument("x", "tensor(float)", "float32", ("N", 2)),),
        outputs=(Argument("y", "tensor(float)", "float32", ("N", 3)),),
        nodes=2,
        subgraphs=0,
        functions=0,
        operators=(
            Operator("ai.onnx", "MatMul", 1, opset=17, since=13),
            Operator("ai.onnx", "Relu", 1, opset=17, since=14),
        ),
        graph=GraphFacts(
            dimensions=(SymbolicDimension("N", ("x[0]",), ("y[0]",)),),
            domains=(Domain("ai.onnx", "standard", 17, 2),),
            unknown=(),
            random=(),
            training=(),
            control_flow=(),
            data_sized=(),
            unsorted=(),
            nameless=2,
            shared_names=(),
        ),
        weights=WeightFacts(
            by_dtype=(Weights("float32", 1, 6, 24),),
            parameters=6,
            bytes=24,
            largest=(Stored("w", "", "initializer", "float32", (2, 3), 6, 24),),
            duplicates=(),
            unused=(),
            also_inputs=(),
            constant_nodes=0,
            constant_bytes=0,
            external=(),
        ),
        external_files=(),
        origin=Origin("by hand 1", (Quirk("nameless-nodes", "There are 2 nodes without a name."),), 0),
    )


@pytest.mark.parametrize("text", [LINEAR, NESTED_IF, LOCAL_FUNCTION, INITIALIZER_AS_INPUT, PRIVATE_DOMAIN, EMBEDDING])
def test_facts_are_json(tmp_path: Path, text: str) -> None:
    document = jsonable(asdict(facts.survey(loaded(text, tmp_path))))
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_nodes_in_branches_are_counted_at_every_depth(tmp_path: Path) -> None:
    found = facts.survey(loaded(NESTED_IF, tmp_path))
    counts = {operator.op_type: operator.count for operator in found.operators}
    assert counts == {"If": 2, "Constant": 2, "Add": 1, "Mul": 1, "Relu": 1}
    assert (found.nodes, found.subgraphs) == (7, 4)


def test_values_of_constant_nodes_are_parameters(tmp_path: Path) -> None:
    found = facts.survey(loaded(NESTED_IF, tmp_path))
    assert (found.weights.parameters, found.weights.bytes) == (3, 12)


def test_every_kind_of_constant_is_counted(tmp_path: Path) -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", TensorProto.DOUBLE, [2], [1.0, 2.0]),
        helper.make_tensor("i", TensorProto.INT64, [2], [0, 99]),
        [100],
    )
    values = {
        "value_ints": [1, 2, 3],
        "value_int": 4,
        "value_floats": [1.0, 2.0],
        "value_strings": ["ab", "c"],
        "value_string": "defg",
        "sparse_value": sparse,
    }
    proto = parse(LINEAR)
    for name, value in values.items():
        proto.graph.node.add().CopyFrom(helper.make_node("Constant", [], [name], **{name: value}))
    found = {weights.dtype: weights for weights in surveyed(proto, tmp_path).weights.by_dtype}
    assert found == {
        "float32": Weights("float32", 2, 8, 32),
        "float64": Weights("float64", 1, 2, 32),
        "int64": Weights("int64", 2, 4, 32),
        "string": Weights("string", 2, 3, 7),
    }


def test_a_tensor_attribute_of_another_operator_is_not_a_weight(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    proto.graph.node.add().CopyFrom(helper.make_node("ConstantOfShape", ["x"], ["c"], value=value))
    assert surveyed(proto, tmp_path).weights.parameters == 6


def test_a_functions_body_is_counted_once_however_often_it_is_called(tmp_path: Path) -> None:
    found = facts.survey(loaded(LOCAL_FUNCTION, tmp_path))
    assert found.operators == (
        Operator("mine", "Twice", 2, local=True, opset=1),
        Operator("ai.onnx", "Add", 1, opset=17, since=14),
        Operator("ai.onnx", "Identity", 1, opset=17, since=16),
    )
    assert (found.nodes, found.functions) == (4, 1)


def test_initializers_that_are_also_inputs_are_not_inputs(tmp_path: Path) -> None:
    found = facts.survey(loaded(INITIALIZER_AS_INPUT, tmp_path))
    assert [argument.name for argument in found.inputs] == ["x"]


def test_sparse_initializers_are_weights_and_not_inputs(tmp_path: Path) -> None:
    proto = parse(INITIALIZER_AS_INPUT)
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [5.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [1])
    del proto.graph.initializer[:]
    proto.graph.sparse_initializer.add().CopyFrom(helper.make_sparse_tensor(values, indices, [2]))
    found = surveyed(proto, tmp_path)
    assert [argument.name for argument in found.inputs] == ["x"]
    assert found.weights.by_dtype == (Weights("float32", 1, 1, 12),)


@pytest.mark.parametrize(
    ("dimensions", "shape"),
    [
        (["N", 3], ("N", 3)),
        ([None, 0], (None, 0)),
        ([-1, 3], (None, 3)),
        (["", "?"], (None, None)),
        ([], ()),
        (None, None),
    ],
)
def test_shapes_say_what_is_known(tmp_path: Path, dimensions: list[int | str | None] | None, shape: object) -> None:
    proto = parse(LINEAR)
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, dimensions))
    assert surveyed(proto, tmp_path).inputs[0].shape == shape


def tensor(element: int) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(element, None)


@pytest.mark.parametrize(
    ("kind", "text", "dtype"),
    [
        (tensor(TensorProto.DOUBLE), "tensor(double)", "float64"),
        (tensor(TensorProto.STRING), "tensor(string)", "string"),
        (tensor(TensorProto.BFLOAT16), "tensor(bfloat16)", "bfloat16"),
        (tensor(TensorProto.INT4), "tensor(int4)", "int4"),
        (tensor(TensorProto.UNDEFINED), "tensor(undefined)", None),
        (tensor(99), "tensor(type 99)", None),
        (helper.make_sparse_tensor_type_proto(1, [2]), "sparse_tensor(float)", None),
        (helper.make_sequence_type_proto(tensor(TensorProto.INT64)), "seq(tensor(int64))", None),
        (helper.make_optional_type_proto(tensor(TensorProto.BOOL)), "optional(tensor(bool))", None),
        (
            helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, tensor(TensorProto.FLOAT))),
            "seq(map(int64,tensor(float)))",
            None,
        ),
        (onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(domain="d", name="n")), "opaque(d,n)", None),
        (onnx.TypeProto(), "unknown", None),
    ],
)
def test_types_are_spelled_as_onnx_spells_them(
    tmp_path: Path, kind: onnx.TypeProto, text: str, dtype: str | None
) -> None:
    proto = parse(LINEAR)
    proto.graph.output[0].type.CopyFrom(kind)
    assert surveyed(proto, tmp_path).outputs == (Argument("y", text, dtype, None),)


def test_opsets_have_one_name_a_domain_and_unused_ones_are_listed(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.opset_import.extend([helper.make_opsetid("ai.onnx", 16), helper.make_opsetid("ai.onnx.ml", 3)])
    proto.graph.node[0].domain = "ai.onnx"
    found = surveyed(proto, tmp_path)
    assert found.opsets == {"ai.onnx": 17, "ai.onnx.ml": 3}
    assert found.unused_opsets == ("ai.onnx.ml",)
    assert {operator.domain for operator in found.operators} == {"ai.onnx"}


def test_a_domain_used_only_in_a_function_is_used(tmp_path: Path) -> None:
    assert facts.survey(loaded(LOCAL_FUNCTION, tmp_path)).unused_opsets == ()


def test_external_files_are_listed_with_their_bytes_and_counted_once(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    second = proto.graph.initializer.add()
    second.CopyFrom(proto.graph.initializer[0])
    second.name = "v"
    for weights, location in zip(proto.graph.initializer, ("größe 1.bin", "./größe 1.bin"), strict=True):
        del weights.float_data[:]
        weights.data_location = TensorProto.EXTERNAL
        weights.external_data.add(key="location", value=location)
    (tmp_path / "größe 1.bin").write_bytes(b"\0" * 30)
    found = surveyed(proto, tmp_path)
    assert found.external_files == (ExternalData("größe 1.bin", 30, 1), ExternalData("./größe 1.bin", 30, 1))
    assert found.total_bytes == found.file_bytes + 30
    assert (found.weights.parameters, found.weights.bytes) == (12, 48)


def test_packed_weights_are_counted_as_stored(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.initializer.add(name="n", data_type=TensorProto.INT4, dims=[3], raw_data=b"\0\0")
    assert Weights("int4", 1, 3, 2) in surveyed(proto, tmp_path).weights.by_dtype


def test_an_impossible_shape_of_a_weight_is_an_error(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.initializer[0].dims[0] = -2
    with pytest.raises(ModelError, match="'w' has a negative dimension"):
        surveyed(proto, tmp_path)


def test_metadata_is_shown_as_it_is(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    helper.set_model_props(proto, {"author": "<script>", "größe": "1"})
    assert surveyed(proto, tmp_path).metadata == {"author": "<script>", "größe": "1"}
