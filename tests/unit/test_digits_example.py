"""The sample model is what its README says, and the script that trained it agrees with it."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def train() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train", FOLDER / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return onnx.load(FOLDER / "digits.onnx")


def test_the_committed_model_labels_unseen_images_as_well_as_stated(train: ModuleType) -> None:
    _, images, _, labels = train.data()
    assert len(labels) == 450
    assert f"{train.accuracy(images, labels):.2%}" == "99.11%"
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "99.11 % of 450 test images" in readme


def test_the_twin_shifted_images_are_labelled_badly(train: ModuleType) -> None:
    _, images, _, labels = train.data()
    assert train.accuracy(np.roll(images, 4, axis=3), labels) < 0.5


def test_the_model_is_small_and_has_what_a_gpu_can_do(model: onnx.ModelProto) -> None:
    assert (FOLDER / "digits.onnx").stat().st_size < 400_000
    assert {"Conv", "Relu", "MaxPool", "Gemm", "Softmax"} <= {node.op_type for node in model.graph.node}
    assert model.opset_import[0].version == 17
    (image,) = model.graph.input
    dims = [d.dim_param or d.dim_value for d in image.type.tensor_type.shape.dim]
    assert (image.name, dims) == ("image", ["batch", 1, 8, 8])


def test_the_script_writes_the_committed_model_from_its_weights(train: ModuleType, model: onnx.ModelProto) -> None:
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert train.to_onnx(weights).SerializeToString(deterministic=True) == (FOLDER / "digits.onnx").read_bytes()


def test_a_step_of_training_follows_the_gradient(train: ModuleType) -> None:
    """Each weight's gradient, against the loss measured on both sides of it, in float64."""
    images, _, labels, _ = train.data()
    random = np.random.default_rng(0)
    # Biases off zero: on black parts of an image a bias of 0 sits on the corner of a Relu.
    weights = {name: w + 0.1 * random.standard_normal(w.shape) for name, w in train.initial(random).items()}
    x, wanted = images[:8].astype(np.float64), labels[:8]
    _, gradients = train.step(weights, x, wanted)
    for name, weight in weights.items():
        place = tuple(random.integers(0, n) for n in weight.shape)
        losses = []
        for shift in (1e-6, -1e-6):  # at 1e-5 some maximum already moves to another pixel
            moved = weight.copy()
            moved[place] += shift
            losses.append(train.step(weights | {name: moved}, x, wanted)[0])
        assert gradients[name][place] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-3, abs=1e-6)


def test_the_samples_are_real_images_the_model_labels_rightly(train: ModuleType) -> None:
    samples = np.load(FOLDER / "samples.npz")
    assert samples.files == ["image"]
    assert samples["image"].shape == (6, 1, 8, 8)
    assert train.accuracy(samples["image"], np.arange(6)) == 1.0
