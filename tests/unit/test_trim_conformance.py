"""A sample of the onnx package's conformance cases: trimmed, each answers its recorded inputs as before.

All of them, and the package's other models, go through ``benchmarks/trim_sweep.py``.
"""

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases
from trimming import assert_same_bits, passes, run

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# One of each kind that trimming may stumble over: subgraphs, sequences, optionals, empty and scalar tensors, strings,
# random nodes, functions written out, low-precision types.
NAMES = (
    "test_if", "test_if_seq", "test_if_opt", "test_loop11", "test_loop13_seq", "test_scan9_sum", "test_scan_sum",
    "test_sequence_map_add_1_sequence_1_tensor", "test_sequence_insert_at_front", "test_split_to_sequence_1",
    "test_identity_opt",
    "test_identity_sequence", "test_reshape_allowzero_reordered", "test_reshape_zero_dim", "test_reshape_negative_dim",
    "test_expand_dim_changed", "test_squeeze_negative_axes", "test_unsqueeze_unsorted_axes", "test_slice_neg_steps",
    "test_slice_start_out_of_bounds", "test_shape_start_1_end_negative_1", "test_size",
    "test_constantofshape_int_shape_zero",
    "test_range_float_type_positive_delta_expanded", "test_gather_negative_indices", "test_transpose_default",
    "test_dropout_default_mask", "test_dropout_default_old", "test_training_dropout_zero_ratio_mask",
    "test_batchnorm_epsilon_training_mode",
    "test_clip_default_min",
    "test_clip_default_int8_max_expanded", "test_max_one_input", "test_sum_one_input", "test_mean_one_input",
    "test_concat_1d_axis_0", "test_tile", "test_where_example", "test_nonzero_example",
    "test_layer_normalization_2d_axis0_expanded",
    "test_gelu_tanh_1_expanded", "test_center_crop_pad_crop_expanded", "test_group_normalization_epsilon_expanded",
    "test_affine_grid_3d_expanded", "test_ai_onnx_ml_array_feature_extractor", "test_lstm_defaults",
)  # fmt: skip


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    state = np.random.get_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    np.random.set_state(state)
    return {case.name: case for case in found}


@pytest.mark.parametrize("name", NAMES)
def test_a_conformance_case_answers_alike(cases: dict[str, Any], name: str) -> None:
    case = cases[name]
    model: onnx.ModelProto = case.model
    model.ir_version = min(model.ir_version, onnx.helper.find_min_ir_version_for(model.opset_import))
    given = {info.name: value for info, value in zip(model.graph.input, case.data_sets[0][0], strict=True)}
    feed = {k: np.asarray(v) if isinstance(v, np.generic) else v for k, v in given.items() if v is not None}
    right = run(model, feed)

    trimmed = passes(model, spare_weights=True)

    _compare(right, run(trimmed.proto, feed))


def _compare(before: Any, after: Any, same: Callable[..., None] = assert_same_bits) -> None:
    """Sequences are compared part by part."""
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        if isinstance(a, list):
            _compare(a, b)
        else:
            same([a], [b])


@pytest.fixture(scope="module")
def sweep() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trim_sweep", BENCHMARKS / "trim_sweep.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("group", ["simple", "pytorch-converted", "pytorch-operator", "light"])
def test_the_sweep_has_every_model_of_the_onnx_package_by_name(sweep: ModuleType, group: str) -> None:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / group
    there = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".onnx"}
    assert there and there <= {sample.name for sample in sweep.samples(group)}


def test_the_recorded_sweep_counts_every_model_and_none_is_wrong(cases: dict[str, Any], sweep: ModuleType) -> None:
    document = json.loads((BENCHMARKS / "results" / "trim_sweep.json").read_text())
    if document["onnx"] != onnx.__version__:
        pytest.skip(f"recorded with onnx {document['onnx']}")
    assert set(document["groups"]) == set(sweep.GROUPS)
    assert document["groups"]["node"]["models"] == len(cases)
    for name, group in document["groups"].items():
        assert sum(group["verdicts"].values()) == group["models"]
        assert set(group["verdicts"]) <= {"identical", "undone", "not run"}, name
        if name != "node":
            assert group["models"] == len(list(sweep.samples(name)))
