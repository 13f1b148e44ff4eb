"""The operators of classical machine learning: each has cases, and their attributes matter."""

import numpy as np
import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as native

from edgekit.conformance import desktop, ml


def test_every_operator_of_the_desktop_has_a_case() -> None:
    kernels = {k.op_name for k in native.get_all_opkernel_def() if k.domain == "ai.onnx.ml"}
    made = {node.op_type for case in ml.cases() for node in onnx.load_from_string(case.model).graph.node}
    assert kernels - made == set()


def test_several_trees_give_another_answer_by_how_they_are_aggregated() -> None:
    found = {case.name: case for case in ml.cases()}
    names = [f"ml TreeEnsembleRegressor 3 {how} 3x2 float32" for how in ("SUM 1", "AVERAGE 1", "MAX 1")]
    replies = desktop.replay([found[name] for name in names])
    total, mean, most = (reply.outputs[0].array for reply in replies)
    assert total is not None
    assert mean is not None
    assert most is not None
    np.testing.assert_allclose(total, mean * 2, rtol=1e-5)
    assert not np.array_equal(total, most)


def test_labels_that_are_unknown_become_the_default() -> None:
    (case,) = (case for case in ml.cases() if case.name == "ml LabelEncoder 4 string int64")
    (reply,) = desktop.replay([case])
    assert reply.outputs[0].array is not None
    assert reply.outputs[0].array.tolist() == [[1, 2], [3, -1]]


def test_only_maps_are_not_run() -> None:
    assert {case.name.split()[1] for case in ml.cases() if not case.run} == {"ZipMap", "DictVectorizer", "CastMap"}
