"""Cases made from standard ones: other dtypes, older schema versions."""

import numpy as np
import onnx
import pytest
from conformance_samples import case, floats, one_node, relu, unknown

from edgekit.conformance import desktop, generate, references
from edgekit.conformance.cases import Case
from edgekit.conformance.judge import judge
from edgekit.records.tensors import NUMPY_DTYPES, Array


def squeeze() -> Case:
    x, axes = np.ones((1, 2), dtype=np.float32), np.array([0])
    types = "float[1, 2] x, int64[1] axes => float[2] y"
    return case(one_node("y = Squeeze(x, axes)", types), {"x": x, "axes": axes}, {"y": x[0]})


def cast() -> Case:
    text = one_node("y = Cast<to = 7>(x)", "float[2] x => int64[2] y")
    return case(text, {"x": floats(1.5, 2.5)}, {"y": np.array([1, 2])})


def by_key(cases: tuple[Case, ...]) -> dict[tuple[int, tuple[str, ...]], Case]:
    return {(c.operator.since_version, c.operator.dtypes): c for c in cases if c.operator is not None}


def test_every_schema_version_and_dtype_gets_a_case() -> None:
    found = by_key(generate.generated([relu()]))
    assert {since for since, _ in found} == {6, 13, 14}
    assert {dtypes for since, dtypes in found if since == 6} == {("float16",), ("float32",), ("float64",)}
    assert (14, ("int8",)) in found
    assert (13, ("int8",)) not in found


def test_an_input_becomes_the_attribute_that_an_older_version_takes() -> None:
    found = by_key(generate.generated([squeeze()]))
    node = onnx.load_from_string(found[11, ("float32",)].model).graph.node[0]
    assert list(node.input) == ["x"]
    assert [(a.name, list(a.ints)) for a in node.attribute] == [("axes", [0])]
    assert list(onnx.load_from_string(found[13, ("float32",)].model).graph.node[0].input) == ["x", "axes"]


def test_an_attribute_that_states_a_dtype_follows_it() -> None:
    found = by_key(generate.generated([cast()]))
    model = onnx.load_from_string(found[13, ("int32", "float64")].model)
    assert model.graph.node[0].attribute[0].i == onnx.TensorProto.DOUBLE
    assert model.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE


def test_a_dtype_that_javascript_does_not_have_goes_through_casts() -> None:
    found = by_key(generate.generated([relu()]))[14, ("bfloat16",)]
    model = onnx.load_from_string(found.model)
    assert [node.op_type for node in model.graph.node] == ["Cast", "Relu", "Cast"]
    assert {info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)} == {1}
    assert len({node.name for node in model.graph.node}) == 3
    assert found.frame == generate.FRAME


def test_every_case_is_a_valid_model_that_some_runtime_runs() -> None:
    cases = references.by_evaluator(generate.generated([relu(), squeeze(), cast()]))
    replies = desktop.replay(cases)
    statuses = [judge(case, reply)[0] for case, reply in zip(cases, replies, strict=True)]
    assert statuses.count("passes") > len(cases) / 2
    assert all("invalid" not in (reply.error or "") for reply in replies)


def test_a_case_without_a_schema_or_without_elements_is_no_template() -> None:
    empty = case(one_node("y = Relu(x)", "float[0] x => float[0] y"), {"x": floats()}, {"y": floats()})
    assert generate.generated([unknown(), empty]) == ()


def test_generating_twice_gives_the_same() -> None:
    once, twice = generate.generated([relu(), cast()]), generate.generated([cast(), relu()])
    assert [(c.name, c.model) for c in once] == [(c.name, c.model) for c in twice]


@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, "string"])
@pytest.mark.parametrize(
    "array", [floats(-0.3, 0, 1.7, np.inf, np.nan), np.array([-5, 0, 300]), np.array([True, False]), np.array(["a"])]
)
def test_values_become_another_dtype_without_a_warning(array: Array, dtype: str) -> None:
    converted = generate.convert(array, dtype)
    assert converted.shape == array.shape
    assert converted.dtype == (object if dtype == "string" else NUMPY_DTYPES[dtype])


def test_fractions_become_whole_numbers_that_are_not_zero() -> None:
    assert generate.convert(floats(-0.1, 0.1, 1.0), "int32").tolist() == [1, 1, 3]
    assert generate.convert(np.array([-5, 300]), "uint8").tolist() == [5, 255]


def test_the_evaluator_and_the_desktop_must_agree_on_a_generated_answer() -> None:
    (made,) = (c for c in generate.generated([relu()]) if c.operator and c.operator.dtypes == ("int8",))
    (known,) = references.by_evaluator([made])
    (reply,) = desktop.replay([known])
    assert references.agreed([known], [reply])[0].outputs == known.outputs
    other = (*desktop.replay([relu(expected=(1, 1))]),)[0]
    assert references.agreed([known], [other])[0].outputs == ()
    assert references.with_desktop([made], [reply])[0].outputs == reply.outputs


def test_standard_answers_are_never_replaced() -> None:
    wrong = relu(expected=(1, 1))
    (reply,) = desktop.replay([wrong])
    assert references.agreed([wrong], [reply])[0] is wrong
    assert references.with_desktop([wrong], [reply])[0] is wrong


def test_what_is_random_has_no_answer() -> None:
    text = one_node("y = RandomNormalLike(x)")
    made = generate.generated([case(text, {"x": floats(1, 2)}, {})])
    assert made
    assert all(c.outputs == () for c in references.by_evaluator(made))


def test_a_second_case_is_of_another_template() -> None:
    small, large = (
        relu(),
        case(one_node("y = Relu(x)", "float[2, 2] x => float[2, 2] y"), {"x": floats(1, -2, 3, 4).reshape(2, 2)}, {}),
    )
    first, second = by_key(generate.generated([small, large])), by_key(generate.again([small, large], {"Relu"}))
    assert second.keys() == first.keys()
    assert {c.inputs[0].shape for c in first.values()} == {small.inputs[0].shape}
    assert {c.inputs[0].shape for c in second.values()} == {(2, 2)}
    assert generate.again([small, large], {"Abs"}) == ()


def test_a_second_case_without_another_template_has_other_numbers() -> None:
    first, second = by_key(generate.generated([cast()])), by_key(generate.again([cast()], {"Cast"}))
    pairs = [(first[key].inputs[0].array, made.inputs[0].array) for key, made in second.items()]
    assert pairs
    assert all(a is not None and b is not None and a.tolist() == b.tolist()[::-1] for a, b in pairs)
