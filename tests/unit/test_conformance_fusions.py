"""Models of several nodes: onnxruntime makes of them what their names say."""

from pathlib import Path

import onnx
import onnxruntime as ort
import pytest

from edgekit.conformance import fusions_conv, fusions_dense, fusions_graph, fusions_quantized
from edgekit.conformance.cases import Case

MICROSOFT, BLOCKED = "com.microsoft", "com.microsoft.nchwc"

FUSED = [
    ("fusion conv BatchNormalization+Relu 32-16-2", MICROSOFT, "FusedConv"),
    ("fusion conv nothing 16-16-16", BLOCKED, "Conv"),
    ("fusion conv MaxPool 16-16-16", BLOCKED, "MaxPool"),
    ("fusion conv Upsample linear 3-8-1", BLOCKED, "Upsample"),
    ("fusion Gemm+Relu 64x96x80", MICROSOFT, "FusedGemm"),
    ("fusion MatMul+Mul 2x4x3", MICROSOFT, "FusedMatMul"),
    ("fusion LayerNormalization 16 float32", "", "LayerNormalization"),
    ("fusion SkipLayerNormalization 16 float32", MICROSOFT, "SkipLayerNormalization"),
    ("fusion Gelu 16 float32", MICROSOFT, "Gelu"),
    ("fusion BiasGelu 64 float32", MICROSOFT, "BiasGelu"),
    ("fusion QuickGelu 16 float32", MICROSOFT, "QuickGelu"),
    ("rewritten Slice as Split", "", "Split"),
    ("quantized Conv 3-8-1 uint8 int8", MICROSOFT, "QLinearConv"),
    ("quantized Add uint8", MICROSOFT, "QLinearAdd"),
    ("quantized Softmax int8", MICROSOFT, "QLinearSoftmax"),
    ("quantized dynamic MatMul 2-D 2x4x3 uint8", MICROSOFT, "DynamicQuantizeMatMul"),
    ("quantized int4 by block MatMul 32x16", MICROSOFT, "MatMulNBits"),
]


@pytest.fixture(scope="module")
def by_name() -> dict[str, Case]:
    modules = (fusions_conv, fusions_dense, fusions_graph, fusions_quantized)
    return {case.name: case for module in modules for case in module.cases()}


def optimized(case: Case, folder: Path, level: ort.GraphOptimizationLevel) -> set[tuple[str, str]]:
    """Return the operators that desktop onnxruntime has after its optimization."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    ort.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    return {(node.domain, node.op_type) for node in onnx.load(folder / "optimized.onnx").graph.node}


@pytest.mark.parametrize(("name", "domain", "op_type"), FUSED)
def test_a_case_is_fused_and_only_by_the_optimization(
    name: str, domain: str, op_type: str, by_name: dict[str, Case], tmp_path: Path
) -> None:
    levels = ort.GraphOptimizationLevel
    # The last level chooses layouts too, which take other convolutions on other processors: there the one before tells.
    every = optimized(by_name[name], tmp_path, levels.ORT_ENABLE_ALL)
    assert (domain, op_type) in every | optimized(by_name[name], tmp_path, levels.ORT_ENABLE_EXTENDED)
    assert (domain, op_type) not in optimized(by_name[name], tmp_path, levels.ORT_DISABLE_ALL)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("rewritten Identity", "Identity"),
        ("rewritten Dropout", "Dropout"),
        ("rewritten Transpose twice", "Transpose"),
        ("rewritten Not+Where", "Not"),
        ("rewritten Reshape+Transpose, open shape", "Shape"),
    ],
)
def test_what_does_nothing_is_taken_out(name: str, gone: str, by_name: dict[str, Case], tmp_path: Path) -> None:
    assert ("", gone) not in optimized(by_name[name], tmp_path, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)


def test_what_does_something_is_not(by_name: dict[str, Case], tmp_path: Path) -> None:
    level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert ("", "Slice") in optimized(by_name["rewritten Slice twice"], tmp_path, level)


def test_channels_groups_and_dimensions_vary(by_name: dict[str, Case]) -> None:
    shapes = set()
    for name, case in by_name.items():
        if name.startswith("fusion conv"):
            weights = {
                tensor.name: tuple(tensor.dims) for tensor in onnx.load_from_string(case.model).graph.initializer
            }
            shapes.add(weights.get("w", ()))
    assert {len(shape) - 2 for shape in shapes if shape} == {1, 2, 3}
    assert {shape[0] for shape in shapes if shape} >= {4, 8, 16, 32}
