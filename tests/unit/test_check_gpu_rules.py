"""Rules on GPU sessions: where exactly they find something, and how bad it is for which target."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from check_samples import BOTH, CPU_ALONE, GPU_ALONE, find, ids, in_this_process, measure, measured, without_sessions
from onnx import ModelProto, TensorProto, helper, numpy_helper

from edgekit.check.finding import Finding
from edgekit.conformance.table import OperatorSupport
from edgekit.targets.load import Gpu, Target


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch)
    without_sessions(monkeypatch)
    measure(monkeypatch, None)


def conv(
    channels: int = 6, outputs: int = 4, kernel: int = 3, size: int | str = 16, dims: int = 1, **attributes: object
) -> ModelProto:
    """A model that is one Conv with stored weights; 1-D or 2-D, square."""
    group = attributes.get("group", 1)
    assert isinstance(group, int)
    weights = np.ones([outputs, channels // group] + [kernel] * dims, np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels] + [size] * dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def rules(folder: Path, target: Target = BOTH, **values: object) -> set[str]:
    return {rule for rule in ids(find(conv(**values), folder, target)) if rule.startswith("conv-")}  # type: ignore[arg-type]


# Every row was measured in Chromium with onnxruntime-web 1.30.0: wrong here, right below.
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"channels": 9},
        {"channels": 33},
        {"channels": 129, "outputs": 8},
        {"outputs": 64},
        {"pads": [1, 1]},
        {"pads": [1, 0]},
        {"strides": [2]},
        {"pads": [2, 2], "dilations": [2]},
        {"kernel": 1, "strides": [2]},
        {"kernel": 1, "pads": [1, 1]},
        {"kernel": 2, "strides": [2]},
        {"kernel": 3, "size": 3, "pads": [1, 1]},
        {"size": "N"},
        {"dims": 2, "pads": [1, 1, 1, 1], "size": 7},
        {"dims": 2, "channels": 21, "pads": [1, 1, 1, 1], "size": 7},
    ],
)
def test_a_convolution_over_channels_of_three_is_found(tmp_path: Path, values: dict[str, object]) -> None:
    assert rules(tmp_path, **values) == {"conv-channels-of-three"}


@pytest.mark.parametrize(
    "values",
    [
        {"channels": 3},
        {"channels": 12},
        {"channels": 5},
        {"channels": 64},
        {"outputs": 5},
        {"outputs": 6},
        {"channels": 12, "outputs": 8, "group": 2},
        {"kernel": 1},
        {"kernel": 16},
        {"dims": 2, "outputs": 5, "size": 7},
        {"dims": 2, "channels": 3, "size": 7},
    ],
)
def test_a_convolution_that_is_computed_rightly_is_not(tmp_path: Path, values: dict[str, object]) -> None:
    assert rules(tmp_path, **values) == set()


@pytest.mark.parametrize(
    "values",
    [
        {"channels": 4, "kernel": 1, "pads": [0, 1]},
        {"channels": 4, "kernel": 16, "pads": [0, 1]},
        {"channels": 5, "outputs": 5, "kernel": 1, "dims": 2, "size": 6, "pads": [0, 0, 1, 1]},
        {"channels": 4, "kernel": 6, "dims": 2, "size": 6, "pads": [0, 0, 2, 2]},
    ],
)
def test_padding_behind_the_data_alone_is_found(tmp_path: Path, values: dict[str, object]) -> None:
    assert rules(tmp_path, **values) == {"conv-padding-behind"}


@pytest.mark.parametrize(
    "values",
    [
        {"channels": 4, "kernel": 1, "pads": [1, 1]},
        {"channels": 4, "kernel": 1, "pads": [0, 1], "strides": [2]},
        {"channels": 4, "kernel": 3, "pads": [0, 1]},
        {"channels": 4, "kernel": 1},
        {"channels": 4, "kernel": 16, "size": 16},
    ],
)
def test_other_padding_is_not(tmp_path: Path, values: dict[str, object]) -> None:
    assert rules(tmp_path, **values) == set()


def test_the_cpu_computes_both_rightly(tmp_path: Path) -> None:
    assert rules(tmp_path, CPU_ALONE) == set()
    assert rules(tmp_path, CPU_ALONE, channels=4, kernel=1, pads=[0, 1]) == set()


def test_the_convolution_is_named_with_its_weights(tmp_path: Path) -> None:
    (found,) = (f for f in find(conv(), tmp_path) if f.rule == "conv-channels-of-three")
    assert (found.severity, found.node, found.tensor) == ("warning", "conv", "w")
    assert "6 input channels" in found.message


CUMSUM = """
<ir_version: 8, opset_import: ["" : 17]>
g (double[4] x, int32 a) => (double[4] y) { [sum] y = CumSum(x, a) }
"""


def refused(folder: Path, target: Target) -> list[Finding]:
    return [finding for finding in find(CUMSUM, folder, target) if finding.rule == "operator-refused"]


def test_what_a_gpu_refuses_is_an_error_without_a_fallback_and_else_a_warning_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = OperatorSupport("", "CumSum", 14, ("T", "T2"), refused=frozenset({("float64", "int32")}))
    runs = replace(fails, refused=frozenset(), passes=fails.refused)
    tables = {"jspi": measured(fails), "wasm": measured(runs)}
    monkeypatch.setattr("edgekit.check.providers._measured", lambda package, version, variants: tables[variants[0]])
    (alone,) = refused(tmp_path, GPU_ALONE)
    assert (alone.severity, alone.node) == ("error", "sum")
    assert "CumSum (float64, int32)" in alone.message
    (chain,) = refused(tmp_path, BOTH)
    assert chain.severity == "warning"
    assert chain.message.endswith("The page then falls back to wasm.")
    assert refused(tmp_path, CPU_ALONE) == []


def test_what_every_provider_refuses_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = OperatorSupport("", "CumSum", 14, ("T", "T2"), refused=frozenset({("float64", "int32")}))
    measure(monkeypatch, measured(fails))
    assert [finding.severity for finding in refused(tmp_path, BOTH)] == ["error", "warning"]


HALF = """
<ir_version: 8, opset_import: ["" : 17]>
g (float16[4] x) => (float16[4] y) { y = Neg(x) }
"""


def test_float16_is_no_matter_where_the_target_has_it(tmp_path: Path) -> None:
    has_it = replace(GPU_ALONE, gpu=Gpu(features=("shader-f16",)))
    assert "shader-f16" not in ids(find(HALF, tmp_path, has_it))
    (found,) = (f for f in find(HALF, tmp_path, GPU_ALONE) if f.rule == "shader-f16")
    assert found.severity == "error"


def test_nodes_left_to_the_cpu_are_counted_with_the_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = OperatorSupport("", "Abs", 13, ("T",), passes=frozenset({("float32",)}), on_cpu=frozenset({("float32",)}))
    gpu = OperatorSupport("", "Neg", 13, ("T",), passes=frozenset({("float32",)}))
    measure(monkeypatch, measured(cpu, gpu))
    text = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) { a = Neg(x) b = Abs(a) c = Neg(b) d = Abs(c) y = Neg(d) }
"""
    (found,) = (f for f in find(text, tmp_path) if f.rule == "cpu-fallback")
    assert found.severity == "warning"
    assert "2 of 5 nodes" in found.message
    assert "about 4 values are copied" in found.message
    one = text.replace("d = Abs(c) y = Neg(d)", "y = Neg(c)")
    (found,) = (f for f in find(one, tmp_path) if f.rule == "cpu-fallback")
    assert found.severity == "note"
