"""Rewrites of a graph: the same answers from other kernels."""

from typing import Any

import numpy as np
import onnx
import pytest
from models_text import parse
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from edgekit.model import walk
from edgekit.repair import rewrite

CONV = """
<ir_version: 8, opset_import: ["" : {opset}]>
g (float[1,6,9] x) => (float[1,4,9] y)
<float[4,6,3] w, float[4] b>
{{
    [convolution] y = Conv <kernel_shape = [3], pads = [1, 1]> (x, w, b)
}}
"""
IN_A_BRANCH = """
<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[1,6,9] x) => (float[1,4,N] y)
<float[4,6,3] w>
{
    y = If (c) <
        then_branch = one () => (float[1,4,N] a) { [deep] a = Conv <pads = [1, 1]> (x, w) },
        else_branch = two () => (float[1,4,N] a) { [other] a = Conv (x, w) }
    >
}
"""
RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 6, 9), np.float32)


def with_weights(text: str) -> onnx.ModelProto:
    """Give the model's declared weights values."""
    proto = parse(text)
    given = {info.name for info in proto.graph.input}
    for info in proto.graph.value_info:
        if info.name not in given:
            shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            values = RNG.standard_normal(shape).astype(np.float32)
            proto.graph.initializer.append(numpy_helper.from_array(values, info.name))
    del proto.graph.value_info[:]
    return proto


def answers(proto: onnx.ModelProto, **inputs: Any) -> Any:
    onnx.checker.check_model(proto, full_check=True)
    return ReferenceEvaluator(proto).run(None, inputs)[0]


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 21])
@pytest.mark.parametrize("change", rewrite.REWRITES, ids=lambda change: change.apply.__name__)
def test_the_answers_stay(change: rewrite.Rewrite, opset: int) -> None:
    proto = with_weights(CONV.format(opset=opset))
    before = proto.SerializeToString(deterministic=True)
    changed = change.apply(proto)
    assert changed is not None
    assert proto.SerializeToString(deterministic=True) == before
    assert [node.op_type for node in changed.graph.node] == ["Pad", "Conv"]
    if opset >= 11:  # the evaluator knows no older Pad
        np.testing.assert_allclose(answers(changed, x=X), answers(proto, x=X), rtol=1e-5, atol=1e-6)


def test_convolutions_in_branches_are_changed_where_they_stand_and_weights_that_they_share_once_each() -> None:
    proto = with_weights(IN_A_BRANCH)
    padded = rewrite.pad_channels(proto)
    assert padded is not None
    for condition in (True, False):
        given = {"c": np.array(condition), "x": X}
        np.testing.assert_allclose(answers(padded, **given), answers(proto, **given), rtol=1e-5, atol=1e-6)
    separate = rewrite.separate_padding(proto)
    assert separate is not None
    branches = {attribute.name: attribute.g for attribute in separate.graph.node[0].attribute}
    assert [node.op_type for node in branches["then_branch"].node] == ["Pad", "Conv"]
    assert [node.op_type for node in branches["else_branch"].node] == ["Conv"]


@pytest.mark.parametrize(
    "text",
    [
        CONV.format(opset=17).replace("6", "8"),
        CONV.format(opset=17)
        .replace("kernel_shape", "group = 2, kernel_shape")
        .replace("float[4,6,3]", "float[4,3,3]"),
        CONV.format(opset=17).replace("(float[1,6,9] x)", "(float[1,6,9] x, float[4,6,3] w)"),
        "<ir_version: 8, opset_import: ['' : 17]> g (float[1] x) => (float[1] y) { y = Neg (x) }".replace("'", '"'),
    ],
    ids=["a multiple already", "grouped", "weights that are an input", "no convolution"],
)
def test_what_has_no_channels_to_pad_is_left(text: str) -> None:
    assert rewrite.pad_channels(with_weights(text)) is None


@pytest.mark.parametrize("pads", ['auto_pad = "SAME_UPPER"', "pads = [0, 0]", "strides = [1]"])
def test_what_does_not_pad_by_itself_is_left(pads: str) -> None:
    assert rewrite.separate_padding(with_weights(CONV.format(opset=17).replace("pads = [1, 1]", pads))) is None


def test_nodes_without_a_name_are_given_one_that_nothing_has() -> None:
    model = parse("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N] x, bool c) => (float[N] y) {
            [Relu] a = Relu (x)
            b = If (c) <
                then_branch = t () => (float[N] d) { d = Relu (a) },
                else_branch = e () => (float[N] f) { [Tanh] f = Tanh (a) }>
            y = Tanh (b) }""")
    made = rewrite.named(model)
    assert made is not None
    names = [node.name for graph in walk.graphs(made.graph) for node in graph.node]
    assert sorted(names) == ["If", "Relu", "Relu_1", "Tanh", "Tanh_1"]
    onnx.checker.check_model(made)
    assert rewrite.named(made) is None
