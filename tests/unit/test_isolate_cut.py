import numpy as np
import onnx
import onnx.parser
from models_text import NESTED_IF
from onnx.reference import ReferenceEvaluator

from edgekit.isolate import promote
from edgekit.isolate.cut import exposed, part

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[2] x) => (float[2] y)
<float[2] w = {3, 4}>
{
    [one] a = Mul (x, w)
    [two] b = Neg (a)
    [three] c = Add (a, b)
    [four] y = Add (c, w)
}
"""
X = np.array([1, 2], np.float32)
VALUES = {
    "x": X,
    "a": np.array([3, 8], np.float32),
    "b": np.array([-3, -8], np.float32),
    "c": np.zeros(2, np.float32),
    "y": np.array([3, 4], np.float32),
}


def test_any_value_can_be_given_beside_the_outputs_or_alone() -> None:
    proto = onnx.parser.parse_model(CHAIN)
    beside = exposed(proto, ["a", "b"])
    assert [info.name for info in beside.graph.output] == ["y", "a", "b"]
    alone = exposed(proto, ["b"], only=True)
    assert [node.name for node in alone.graph.node] == ["one", "two"]
    assert np.array_equal(ReferenceEvaluator(alone).run(None, {"x": X})[0], VALUES["b"])
    assert [info.name for info in proto.graph.output] == ["y"]


def test_a_node_is_cut_out_with_its_constants_and_the_values_that_it_read() -> None:
    made = part(onnx.parser.parse_model(CHAIN), ["four"], VALUES)
    assert made is not None
    model, inputs = made
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in inputs] == ["c"]
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]
    assert np.array_equal(ReferenceEvaluator(model).run(None, {"c": VALUES["c"]})[0], VALUES["y"])


def test_several_nodes_give_what_others_read_of_them() -> None:
    made = part(onnx.parser.parse_model(CHAIN), ["one", "two"], VALUES)
    assert made is not None
    model, inputs = made
    assert [value.name for value in inputs] == ["x"]
    assert [info.name for info in model.graph.output] == ["a", "b"]


def test_what_is_only_read_inside_of_a_branch_is_an_input_too() -> None:
    proto = onnx.parser.parse_model(NESTED_IF)
    proto.graph.node[0].name = "if"
    values = {"flag": np.array(True), "inner": np.array(True), "x": X, "y": X}
    made = part(proto, ["if"], values)
    assert made is not None
    assert {value.name for value in made[1]} == {"flag", "inner", "x"}


def test_a_node_whose_values_are_not_known_is_not_cut_out() -> None:
    assert part(onnx.parser.parse_model(CHAIN), ["three"], {"a": X}) is None


def test_all_floats_change_their_precision_and_nothing_else() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, int64 n) => (float[2] y)
    <float[2] w = {0.1, 0.2}>
    { c = Constant <value_float: float = 0.5> () a = Mul (x, w) k = Cast <to = 1> (n) b = Add (a, k) y = Mul (b, c) }
    """
    proto = onnx.parser.parse_model(text)
    wide = promote.promote(proto, ("float32",), "float64")
    onnx.checker.check_model(wide, full_check=True)
    (y,) = ReferenceEvaluator(wide).run(None, {"x": X.astype(np.float64), "n": np.array(1)})
    assert y.dtype == np.float64
    assert wide.graph.input[1].type.tensor_type.elem_type == onnx.TensorProto.INT64
    assert proto.graph.initializer[0].data_type == onnx.TensorProto.FLOAT
