"""The conformance cases of the onnx package, as edgekit takes them."""

import numpy as np
import onnx
import pytest
from conformance_samples import case, floats, one_node, unknown
from onnx import helper

from edgekit.conformance import cases as conformance_cases
from edgekit.conformance.cases import Operator, operator_of

pytestmark = pytest.mark.xdist_group("conformance")  # collecting the cases takes seconds, once a process


def test_every_case_is_there_once_and_in_order() -> None:
    found = conformance_cases.standard()
    names = [case.name for case in found]
    assert names == sorted(set(names))
    assert len(found) > 1800
    assert sum(case.run for case in found) > 1600
    assert {case.name: case.model for case in found} == {c.name: c.model for c in conformance_cases.standard()}


def test_collecting_leaves_numpy_s_generator_alone() -> None:
    before = np.random.get_state()[1]
    conformance_cases.standard()
    assert np.array_equal(before, np.random.get_state()[1])


def test_no_case_is_refused_for_an_ir_version_that_it_does_not_need() -> None:
    for found in conformance_cases.standard():
        model = onnx.load_from_string(found.model)
        assert model.ir_version <= helper.find_min_ir_version_for(model.opset_import)


def test_what_is_random_has_no_right_answer() -> None:
    found = {case.name: case for case in conformance_cases.standard()}
    assert found["test_training_dropout"].outputs == ()
    assert found["test_training_dropout_zero_ratio"].outputs != ()
    assert found["test_bernoulli"].outputs == ()
    assert len(list(conformance_cases.plain(tuple(found.values())))) < sum(case.run for case in found.values())


def test_a_case_with_a_sequence_can_only_be_loaded() -> None:
    found = {case.name: case for case in conformance_cases.standard()}
    assert not found["test_sequence_insert_at_back"].run
    assert found["test_sequence_insert_at_back"].outputs == ()


def test_a_model_of_one_node_tries_its_operator() -> None:
    clip = case(one_node("y = Clip(x)"), {"x": floats(1)}, {"y": floats(1)})
    assert clip.operator == Operator("", "Clip", 13, ("float32",))
    gather = one_node("y = Gather(x, i)", "float[2] x, int32[1] i => float[1] y")
    assert operator_of(onnx.parser.parse_model(gather)) == Operator("", "Gather", 13, ("float32", "int32"))


def test_a_model_of_two_nodes_or_of_an_unknown_operator_tries_none() -> None:
    assert operator_of(onnx.parser.parse_model(one_node("t = Relu(x) y = Relu(t)"))) is None
    assert unknown().operator is None
