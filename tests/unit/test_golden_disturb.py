"""Copies of models with other weights."""

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from models_text import LINEAR, LOCAL_FUNCTION, NESTED_IF, loaded, parse

from edgekit.golden.disturb import Change, write_disturbed
from edgekit.model import io as models
from edgekit.model.io import LoadedModel

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]>'


def disturbed(text: str, folder: Path, change: Change = "percent", **how: bool) -> tuple[LoadedModel, LoadedModel]:
    original = loaded(text, folder)
    path = write_disturbed(original, folder / "copy", change, seed=0, **how)
    assert path is not None
    return original, models.load(path)


def weight(model: LoadedModel, name: str) -> np.ndarray:
    (tensor,) = (tensor for tensor in model.proto.graph.initializer if tensor.name == name)
    return models.to_array(model, tensor)


def test_one_percent_moves_weights_by_about_that(tmp_path: Path) -> None:
    before, after = (weight(model, "w") for model in disturbed(LINEAR, tmp_path))
    assert (before != after).all()
    assert 0.001 < np.abs(after / before - 1).max() < 0.05


def test_one_ulp_moves_weights_to_their_neighbours(tmp_path: Path) -> None:
    before, after = (weight(model, "w") for model in disturbed(LINEAR, tmp_path, "ulp"))
    assert (np.abs(after.view(np.int32) - before.view(np.int32)) == 1).all()


def test_the_same_seed_gives_the_same_bytes_and_the_original_stays(tmp_path: Path) -> None:
    original = loaded(LINEAR, tmp_path)
    before = original.proto.SerializeToString(deterministic=True)
    copies = [write_disturbed(original, tmp_path / name, "percent", seed=3) for name in ("a", "b")]
    assert copies[0] is not None
    assert copies[1] is not None
    assert copies[0].read_bytes() == copies[1].read_bytes()
    assert original.proto.SerializeToString(deterministic=True) == before


def test_constants_in_nested_branches_are_weights_too(tmp_path: Path) -> None:
    original, copy = disturbed(NESTED_IF, tmp_path)
    assert original.proto.SerializeToString(deterministic=True) != copy.proto.SerializeToString(deterministic=True)


def test_a_model_without_weights_has_no_copy(tmp_path: Path) -> None:
    assert write_disturbed(loaded(LOCAL_FUNCTION, tmp_path), tmp_path / "copy", "percent", seed=0) is None


def test_the_infinity_of_a_mask_is_no_weight(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[2] x) => (float[2] y) <float big = {{-3.4e38}}> {{ y = Mul(x, big) }}"
    assert write_disturbed(loaded(text, tmp_path), tmp_path / "copy", "percent", seed=0) is None


def test_scales_and_exponents_of_operators_stay(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[1, 1, 2, 2] x) => (float[1, 1, A, B] y) "
        "<float[4] scales = {1, 1, 2, 2}, float[2] two = {2, 2}, float[2] w = {3, 4}> "
        "{ a = Pow(x, two) b = Mul(a, w) y = Resize(b, , scales) }"
    )
    original, copy = disturbed(text, tmp_path)
    for name in ("scales", "two"):
        assert np.array_equal(weight(original, name), weight(copy, name))
    assert not np.array_equal(weight(original, "w"), weight(copy, "w"))


def test_vectors_stay_when_only_matrices_are_disturbed(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {{1, 2, 3, 4}}, float[2] b = {{1, 2}}> "
        "{ a = MatMul(x, w) y = Add(a, b) }"
    )
    original, copy = disturbed(text, tmp_path, matrices_only=True)
    assert np.array_equal(weight(original, "b"), weight(copy, "b"))
    assert not np.array_equal(weight(original, "w"), weight(copy, "w"))


def test_int8_weights_move_by_a_step_where_there_are_no_floats(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (uint8[1, 2] x) => (int32[1, 8] y) <int8[2, 8] w = {{"
        + ", ".join(str(n) for n in [-128, 127, *range(14)])
        + "}> { y = MatMulInteger(x, w) }"
    )
    before, after = (weight(model, "w").astype(int) for model in disturbed(text, tmp_path))
    assert set(np.unique(np.abs(after - before))) == {0, 1}


def test_classical_models_keep_their_weights_in_attributes(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[N, 2] x) => (float[N, 1] y) "
        "{ y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0], intercepts = [0.5], targets = 1>(x) }"
    )
    original, copy = disturbed(text, tmp_path)
    values = [
        {a.name: list(a.floats) for a in model.proto.graph.node[0].attribute if a.floats} for model in (original, copy)
    ]
    assert values[0]["coefficients"] != values[1]["coefficients"]
    assert values[0]["coefficients"] == pytest.approx(values[1]["coefficients"], rel=0.05)


@pytest.mark.parametrize("location", ["data", "weights.bin"])
def test_external_data_is_copied_beside_the_copy(location: str, tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(400, dtype=np.int64), "numbers"))
    proto.graph.node.append(onnx.helper.make_node("Identity", ["numbers"], ["unused"]))
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location=location, size_threshold=0)
    original = models.load(path)
    assert original.external_files
    copied = write_disturbed(original, tmp_path / "copy", "percent", seed=0)
    assert copied is not None
    copy = models.load(copied)
    assert not np.array_equal(weight(original, "w"), weight(copy, "w"))
    assert np.array_equal(weight(copy, "numbers"), np.arange(400))
    assert all(file.path.parent == tmp_path / "copy" for file in copy.external_files)
