"""Where a model came from, and the quirks of its exporter."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from models_text import INITIALIZER_AS_INPUT, LINEAR, LOCAL_FUNCTION, parse
from onnx import TensorProto, helper

from edgekit.facts.origin import Origin
from edgekit.facts.survey import survey
from edgekit.model import io as model

Change = Callable[[onnx.ModelProto], object]


def traced(proto: onnx.ModelProto, folder: Path) -> Origin:
    model.save(proto, folder / "model.onnx")
    return survey(model.load(folder / "model.onnx")).origin


def size(proto: onnx.ModelProto, axis: int = 0) -> onnx.TensorShapeProto.Dimension:
    dimension: onnx.TensorShapeProto.Dimension = proto.graph.input[0].type.tensor_type.shape.dim[axis]
    return dimension


def rename(name: str) -> Change:
    return lambda proto: setattr(size(proto), "dim_param", name)


def fix(number: int) -> Change:
    return lambda proto: setattr(size(proto), "dim_value", number)


def add(node: onnx.NodeProto) -> Change:
    return lambda proto: proto.graph.node.append(node)


def old_opset(proto: onnx.ModelProto) -> None:
    proto.opset_import[0].version = 9


def twice(proto: onnx.ModelProto) -> None:
    proto.opset_import.add(domain="ai.onnx", version=17)


def unused(proto: onnx.ModelProto) -> None:
    proto.opset_import.add(domain="ai.onnx.ml", version=3)


def names(proto: onnx.ModelProto) -> None:
    for node in proto.graph.node:
        node.name = "same"


def swap(proto: onnx.ModelProto) -> None:
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))


def no_tensor(proto: onnx.ModelProto) -> None:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    proto.graph.output[0].type.CopyFrom(kind)


def stack_traces(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].doc_string = "File model.py, line 3\n" * 1000


def weights_in_a_node(proto: onnx.ModelProto) -> None:
    value = helper.make_tensor("", TensorProto.FLOAT, [5000], b"\1" * 20_000, raw=True)
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["big"], value=value))


def unfused(proto: onnx.ModelProto) -> None:
    proto.graph.node.append(helper.make_node("Conv", ["x", "w"], ["c"]))
    proto.graph.node.append(helper.make_node("BatchNormalization", ["c", "w", "w", "w", "w"], ["n"]))


def scalar_axes(proto: onnx.ModelProto) -> None:
    proto.graph.initializer.append(helper.make_tensor("axis", TensorProto.INT64, [], [1]))
    proto.graph.node.append(helper.make_node("Unsqueeze", ["y", "axis"], ["z"]))


def layout(proto: onnx.ModelProto) -> None:
    proto.opset_import.add(domain="com.microsoft.nchwc", version=1)
    proto.graph.node[1].domain = "com.microsoft.nchwc"


def dropout(proto: onnx.ModelProto) -> None:
    proto.graph.initializer.append(helper.make_tensor("on", TensorProto.BOOL, [], [True]))
    proto.graph.node.append(helper.make_node("Dropout", ["y", "", "on"], ["z"]))


@pytest.mark.parametrize(
    ("change", "rule", "said"),
    [
        (fix(1), "frozen-batch", "frozen at 1"),
        (rename("unk__214"), "made-up-dimension", "unk__214"),
        (rename("p2o.DynamicDimension.0"), "made-up-dimension", "DynamicDimension"),
        (rename("image_dynamic_axes_1"), "made-up-dimension", "image_dynamic_axes_1"),
        (rename("s77"), "made-up-dimension", "s77"),
        (rename("224"), "made-up-dimension", "224"),
        (fix(-1), "negative-dimension", "x[0]"),
        (dropout, "training-mode", "Dropout → z"),
        (old_opset, "old-opset", "Opset 9"),
        (unused, "unused-opsets", "ai.onnx.ml"),
        (twice, "opset-imported-twice", "ai.onnx"),
        (names, "shared-names", "same"),
        (swap, "unsorted", "main graph"),
        (no_tensor, "non-tensor-output", "y (seq(tensor(float)))"),
        (stack_traces, "texts", "22,000 bytes"),
        (weights_in_a_node, "weights-in-constant-nodes", "20,000 bytes"),
        (add(helper.make_node("Identity", ["y"], ["z"])), "idle-nodes", "There is 1 node of Identity"),
        (unfused, "unfused-batch-normalization", "There is 1 node"),
        (scalar_axes, "scalar-axes", "Unsqueeze → z"),
        (layout, "optimized-for-one-machine", "com.microsoft.nchwc"),
    ],
)
def test_a_quirk_is_recognised_and_its_twin_has_none(tmp_path: Path, change: Change, rule: str, said: str) -> None:
    proto = parse(LINEAR)
    assert rule not in {quirk.rule for quirk in traced(proto, tmp_path).quirks}
    change(proto)
    found = {quirk.rule: quirk.message for quirk in traced(proto, tmp_path).quirks}
    assert said in found[rule]


def test_initializers_that_are_inputs_are_a_quirk(tmp_path: Path) -> None:
    rules = {quirk.rule for quirk in traced(parse(INITIALIZER_AS_INPUT), tmp_path).quirks}
    assert {"initializers-as-inputs", "old-opset"} <= rules


@pytest.mark.parametrize("name", ["N", "batch", "batch_size", "sequence", "height", "seq_len", "samples", "T"])
def test_a_name_that_a_person_gave_is_no_quirk(tmp_path: Path, name: str) -> None:
    proto = parse(LINEAR)
    rename(name)(proto)
    assert "made-up-dimension" not in {quirk.rule for quirk in traced(proto, tmp_path).quirks}


@pytest.mark.parametrize(
    ("producer", "graph", "exporter"),
    [
        ("pytorch", "main_graph", "PyTorch 2.4"),
        ("tf2onnx", "g", "TensorFlow (tf2onnx) 2.4"),
        ("skl2onnx", "g", "scikit-learn (skl2onnx) 2.4"),
        ("somebody", "g", "somebody 2.4"),
        ("", "Model from PaddlePaddle.", "PaddlePaddle (Paddle2ONNX) 2.4"),
    ],
)
def test_the_exporter_is_named(tmp_path: Path, producer: str, graph: str, exporter: str) -> None:
    proto = parse(LINEAR)
    proto.producer_name, proto.producer_version, proto.graph.name = producer, "2.4", graph
    assert traced(proto, tmp_path).exporter == exporter


def test_the_newer_exporter_of_pytorch_is_known_by_its_functions(tmp_path: Path) -> None:
    proto = parse(LOCAL_FUNCTION)
    proto.producer_name = "pytorch"
    assert traced(proto, tmp_path).exporter == "PyTorch"
    proto.functions[0].domain = "pkg.onnxscript.torch_lib"
    assert traced(proto, tmp_path).exporter == "PyTorch (torch.export)"


def test_a_file_that_does_not_say_has_no_exporter(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.producer_name = proto.producer_version = ""
    assert traced(proto, tmp_path).exporter is None
