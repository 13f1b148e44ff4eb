"""What sessions do beside arithmetic: both branches, every opset, every dtype of initializers, many nodes."""

import onnx
import pytest

from edgekit.conformance import attributes, desktop, long_models, machinery
from edgekit.conformance.cases import Case


@pytest.fixture(scope="module")
def by_name() -> dict[str, Case]:
    return {case.name: case for case in machinery.cases()}


def test_both_branches_of_an_if_are_taken(by_name: dict[str, Case]) -> None:
    taken, other = desktop.replay([by_name["machinery If of input True"], by_name["machinery If of input False"]])
    assert taken.outputs[0].array is not None
    assert other.outputs[0].array is not None
    assert (taken.outputs[0].array >= 0).all()
    assert (other.outputs[0].array < 0).any()


def test_a_loop_runs_as_often_as_its_input_says(by_name: dict[str, Case]) -> None:
    replies = desktop.replay([by_name[f"machinery Loop adding {count}"] for count in (0, 1, 4)])
    assert [r.outputs[1].array.shape[0] for r in replies if r.outputs[1].array is not None] == [0, 1, 4]


def test_there_is_a_network_of_every_opset(by_name: dict[str, Case]) -> None:
    models = [onnx.load_from_string(c.model) for name, c in by_name.items() if name.startswith("machinery opset")]
    assert {model.opset_import[0].version for model in models} == set(range(7, 24))


def test_initializers_are_of_every_dtype_raw_and_listed(by_name: dict[str, Case]) -> None:
    held = [t for c in by_name.values() for t in onnx.load_from_string(c.model).graph.initializer]
    raw = {tensor.data_type for tensor in held if tensor.HasField("raw_data")}
    listed = {tensor.data_type for tensor in held if not tensor.HasField("raw_data")}
    assert listed - raw == {onnx.TensorProto.STRING}
    assert raw - listed == set()
    assert len(listed) == 13


def test_functions_are_of_the_model_itself(by_name: dict[str, Case]) -> None:
    model = onnx.load_from_string(by_name["machinery function nested float32"].model)
    assert {function.name for function in model.functions} == {"twice", "more", "leaky"}
    assert model.graph.node[0].domain == "local"


def test_long_models_are_long() -> None:
    assert max(len(onnx.load_from_string(case.model).graph.node) for case in long_models.cases()) > 600


def test_a_reduction_of_scattered_elements_matters() -> None:
    found = {case.name: case for case in attributes.cases()}
    replies = desktop.replay([found[f"ScatterElements {how} float32 0"] for how in ("add", "mul", "max")])
    arrays = [reply.outputs[0].array for reply in replies]
    assert len({array.tobytes() for array in arrays if array is not None}) == 3
