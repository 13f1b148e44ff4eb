from collections.abc import Sequence

import numpy as np
import onnx
import onnx.parser
from onnx.reference import ReferenceEvaluator

from edgekit.isolate import reduce as reducing
from edgekit.isolate.reduce import Sample
from edgekit.records.tensors import value_of

CONV = """
<ir_version: 8, opset_import: ["" : 17]>
conv (float[1, 13, 9] x) => (float[1, 8, 9] y)
{ [conv] y = Conv <kernel_shape = [3], pads = [1, 1], dilations = [1]> (x, w, b) }
"""


def sample() -> Sample:
    proto = onnx.parser.parse_model(CONV)
    random = np.random.default_rng(1)
    for name, shape in (("w", (8, 13, 3)), ("b", (8,))):
        array = random.normal(size=shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return Sample(proto, (value_of("x", random.normal(size=(1, 13, 9)).astype(np.float32)),))


def fails(each: Sample) -> bool:
    """A made-up fault: of a convolution that runs, more than two channels in, and padded."""
    try:
        ReferenceEvaluator(each.model).run(None, {value.name: value.array for value in each.inputs})
    except Exception:
        return False
    node = each.model.graph.node[0]
    pads = next((list(a.ints) for a in node.attribute if a.name == "pads"), [0])
    return each.inputs[0].array is not None and each.inputs[0].array.shape[1] > 2 and any(pads)


def test_dimensions_attributes_inputs_and_values_become_plain_while_it_fails() -> None:
    asked = []

    def judge(candidates: Sequence[Sample]) -> list[bool]:
        asked.append(len(candidates))
        return [fails(each) for each in candidates]

    small = reducing.reduce(sample(), judge)
    assert fails(small)
    x = small.inputs[0].array
    assert x is not None and x.shape == (1, 3, 1)
    (node,) = small.model.graph.node
    assert [attribute.name for attribute in node.attribute] == ["pads"]
    assert list(node.input) == ["x", "w"]
    (w,) = (onnx.numpy_helper.to_array(tensor) for tensor in small.model.graph.initializer)
    assert w.shape[:2] == (1, 3)
    assert np.all(w == 1) and np.all(x == 1)
    assert len(asked) <= 12, "judging starts a browser"


def test_what_never_fails_stays_as_it_is() -> None:
    whole = sample()
    assert reducing.reduce(whole, lambda candidates: [False] * len(candidates)) is whole


def test_the_fewest_nodes_that_fail_are_found() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    chain (float[2] x) => (float[2] y) { [p] a = Neg (x) [q] b = Abs (a) [r] c = Exp (b) [s] y = Neg (c) }
    """
    proto = onnx.parser.parse_model(text)
    values = {name: np.ones(2, np.float32) for name in "xabcy"}

    def judge(candidates: Sequence[Sample]) -> list[bool]:
        return [{"q", "r"} <= {node.name for node in each.model.graph.node} for each in candidates]

    found = reducing.fewer_nodes(proto, ["p", "q", "r", "s"], values, judge)
    assert found is not None
    assert found[0] == ("q", "r")
    assert [value.name for value in found[1].inputs] == ["a"]
    assert reducing.fewer_nodes(proto, ["p", "s"], values, judge) is None
