from pathlib import Path

import numpy as np
import onnx
import pytest
from trimming import HEAD, InProcess, kept, parse, passes, run

from edgekit.child.process import ChildLimits
from edgekit.errors import UsageError
from edgekit.passes import interface
from edgekit.passes.values import Known
from edgekit.trim import carry
from edgekit.trim.carry import Carried

X = np.array([1, -2], np.float32)
NET = f"""{HEAD} g (float[N, 2] x, float[N, 2] z) => (float[N, 2] y, float[N, 2] w) {{
    a = Neg(x) b = Exp(a) y = Add(b, z) w = Abs(z)
}}"""


def opened(text: str, folder: Path) -> tuple[Carried, Known]:
    carried = carry.to_ir(parse(text), folder)
    return carried, InProcess(folder, ChildLimits()).infer(carried)


def cut(text: str, folder: Path, inputs: list[str] | None, outputs: list[str] | None) -> onnx.ModelProto:
    carried, known = opened(text, folder)
    interface.cut(carried.model, inputs, outputs, known)
    return carry.to_proto(carried)


def test_defaults_of_inputs_become_constants() -> None:
    model = "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {3, 4}> { y = Mul(x, w) }"

    done = kept(model, {"x": X})

    assert [info.name for info in done.proto.graph.input] == ["x"]
    assert any("'w'" in note for note in done.work.notes)


def test_a_file_of_ir_version_3_becomes_one_that_may_hold_constants() -> None:
    model = """<ir_version: 3, opset_import: ["" : 8]> g (float[2] x, float[2] w) => (float[2] y)
    <float[2] w = {3, 4}> { y = Mul(x, w) }"""

    done = passes(model)

    assert done.proto.ir_version >= 4
    assert [info.name for info in done.proto.graph.input] == ["x"]
    np.testing.assert_array_equal(run(done.proto, {"x": X})[0], X * np.array([3, 4], np.float32))


def test_an_output_inside_the_graph_can_be_asked_for(tmp_path: Path) -> None:
    part = cut(NET, tmp_path, None, ["b"])

    (answer,) = run(part, {"x": X[None], "z": X[None]})
    np.testing.assert_allclose(answer, np.exp(-X[None]), rtol=1e-6)


def test_a_part_begins_at_a_value_and_ends_at_another(tmp_path: Path) -> None:
    part = passes(cut(NET, tmp_path, ["a", "z"], ["y"])).proto

    assert [info.name for info in part.graph.input] == ["a", "z"]
    assert [node.op_type for node in part.graph.node] == ["Exp", "Add"]


def test_an_input_that_is_still_needed_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="also need the input 'z'"):
        cut(NET, tmp_path, ["a"], ["y"])


def test_a_value_that_does_not_exist_is_named_with_its_neighbours(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no value 'bb'") as caught:
        cut(NET, tmp_path, None, ["bb"])

    assert "b" in (caught.value.hint or "")


def test_frozen_sizes_are_in_the_inputs_and_outputs(tmp_path: Path) -> None:
    carried, _ = opened(NET, tmp_path)

    assert interface.freeze(carried.model, {"N": 3})
    frozen = carry.to_proto(carried).graph
    sizes = [[d.dim_value for d in info.type.tensor_type.shape.dim] for info in (*frozen.input, *frozen.output)]
    assert sizes == [[3, 2]] * 4


def test_sizes_without_a_name_are_frozen_by_place(tmp_path: Path) -> None:
    text = HEAD + "g (float[?, 2] x, float[?, 2] z) => (float[M, 2] y) { y = Concat <axis = 0> (x, z) }"
    carried, _ = opened(text, tmp_path)

    interface.freeze(carried.model, {"x[0]": 3})

    shapes = [info.type.tensor_type.shape.dim[0] for info in carry.to_proto(carried).graph.input]
    assert [dim.dim_value for dim in shapes] == [3, 0]


def test_names_of_output_sizes_stay_and_numbers_are_stated(tmp_path: Path) -> None:
    text = HEAD + "g (float[batch, 2] x) => (float[batch, M] y) { y = Neg(x) }"
    carried, known = opened(text, tmp_path)

    assert interface.declare_outputs(carried.model, known)
    dims = carry.to_proto(carried).graph.output[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, dims[1].dim_value) == ("batch", 2)


AXES = """g (float[3, 4] x) => (float[3, 1, 4] y) <int64 axes = {1}> { u = Unsqueeze(x, axes) y = Neg(u) }"""


def test_axes_that_are_a_scalar_become_a_list() -> None:
    done = kept(AXES, {"x": np.ones((3, 4), np.float32)})

    assert [list(tensor.dims) for tensor in done.proto.graph.initializer] == [[1]]


def test_axes_that_are_a_list_stay() -> None:
    done = kept(AXES.replace("int64 axes", "int64[1] axes"), {"x": np.ones((3, 4), np.float32)})

    assert "axes as lists" not in done.changed_by


ZIPMAP = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
g (float[N, 3] x) => (int64[N] label, float[N, 3] scores) {
    label, raw = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 0.5, 0.5, 0.5],
        intercepts = [0.1, 0.2, 0.3], classlabels_ints = [7, 8, 9], multi_class = 1, post_transform = "SOFTMAX"> (x)
    scores = ai.onnx.ml.ZipMap <classlabels_int64s = [7, 8, 9]> (raw)
}"""


def zipmap() -> onnx.ModelProto:
    proto = parse(ZIPMAP)
    kind = proto.graph.output[1].type
    kind.Clear()
    kind.sequence_type.elem_type.map_type.key_type = onnx.TensorProto.INT64
    kind.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return proto


def test_a_map_becomes_the_tensor_that_it_was_made_of(tmp_path: Path) -> None:
    x = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
    carried = carry.to_ir(zipmap(), tmp_path)

    assert interface.maps_to_tensors(carried.model) == ("scores",)
    carried.types.clear()
    label, scores = run(carry.to_proto(carried), {"x": x})
    right_label, maps = run(zipmap(), {"x": x})
    np.testing.assert_array_equal(label, right_label)
    np.testing.assert_array_equal(scores, np.array([list(row.values()) for row in maps], np.float32))


def test_a_map_stays_a_map_unless_asked(tmp_path: Path) -> None:
    carried = carry.to_ir(zipmap(), tmp_path)

    kinds = [info.type.WhichOneof("value") for info in carry.to_proto(carried).graph.output]
    assert kinds == ["tensor_type", "sequence_type"]
