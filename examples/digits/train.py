"""Train the sample model: a small convolutional classifier of scikit-learn's handwritten digits.

Run ``python train.py`` in this folder to write ``digits.onnx`` and ``samples.npz``, or ``python train.py --check`` to
measure the committed model on the test images that training never saw. Needs numpy, onnx and scikit-learn; the check
also needs onnxruntime. The seed is fixed: the same versions on the same kind of machine give the same bytes.

The network, for images of shape [batch, 1, 8, 8] with values from 0 (black) to 1 (white ink):
Conv 16, Relu, Conv 32, Relu, MaxPool 2, Conv 32, Relu, Flatten, Gemm 64, Relu, Gemm 10 (logits), Softmax.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Weights = dict[str, Floats]

FOLDER = Path(__file__).resolve().parent
MODEL, SAMPLES = FOLDER / "digits.onnx", FOLDER / "samples.npz"
SEED = 20
EPOCHS = 60
BATCH = 64
LEARNING_RATE = 2e-3
# Without smoothing the softmax saturates, and a saturated output hides small errors: poor material for golden cases.
LABEL_SMOOTHING = 0.1
SAMPLE_COUNT = 6


def data() -> tuple[Floats, Floats, Labels, Labels]:
    """Return training images, test images ([n, 1, 8, 8], 0 to 1) and their labels; a quarter is kept for the test."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    split: tuple[Floats, Floats, Labels, Labels] = tuple(
        train_test_split(images, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target)
    )
    return split


def initial(random: np.random.Generator) -> Weights:
    """He initialization, zero biases."""
    shapes = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "conv3": (32, 32, 3, 3), "dense1": (64, 512)}
    shapes["dense2"] = (10, 64)
    weights: Weights = {}
    for name, shape in shapes.items():
        fan_in = int(np.prod(shape[1:]))
        weights[f"{name}.weight"] = (random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    return weights


def patches(x: Floats) -> Floats:
    """[n, c, h, w] to [n, h, w, c * 9]: the 3 × 3 surroundings of each pixel, zero beyond the edge."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, h, w, c * 9)


def conv(x: Floats, weight: Floats, bias: Floats) -> tuple[Floats, Callable[[Floats], tuple[Floats, Floats, Floats]]]:
    """3 × 3 convolution with padding 1, and the function from its output's gradient to those of x, weight, bias."""
    columns, flat = patches(x), weight.reshape(len(weight), -1)

    def backward(gradient: Floats) -> tuple[Floats, Floats, Floats]:
        g = gradient.transpose(0, 2, 3, 1)
        rows = g.reshape(-1, g.shape[-1])
        dweight = (rows.T @ columns.reshape(len(rows), -1)).reshape(weight.shape)
        # The gradient of x is a convolution of the gradient with the kernel turned by 180°, channels exchanged.
        turned = weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3).reshape(weight.shape[1], -1)
        dx = (patches(gradient) @ turned.T).transpose(0, 3, 1, 2)
        return dx, dweight, rows.sum(axis=0)

    return (columns @ flat.T + bias).transpose(0, 3, 1, 2), backward


def max_pool(x: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """2 × 2 maximum, and the function from its output's gradient to that of x."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    largest = blocks.max(axis=(3, 5), keepdims=True)
    chosen = (blocks == largest).astype(np.float32)
    chosen /= chosen.sum(axis=(3, 5), keepdims=True)
    return largest[:, :, :, 0, :, 0], lambda g: (chosen * g[:, :, :, None, :, None]).reshape(x.shape)


def step(weights: Weights, x: Floats, labels: Labels) -> tuple[float, Weights]:
    """Return the loss on a batch and the gradient of every weight."""
    w = weights
    a1, back1 = conv(x, w["conv1.weight"], w["conv1.bias"])
    a2, back2 = conv(np.maximum(a1, 0), w["conv2.weight"], w["conv2.bias"])
    pooled, back_pool = max_pool(np.maximum(a2, 0))
    a3, back3 = conv(pooled, w["conv3.weight"], w["conv3.bias"])
    flat = np.maximum(a3, 0).reshape(len(x), -1)
    hidden = flat @ w["dense1.weight"].T + w["dense1.bias"]
    active = np.maximum(hidden, 0)
    logits = active @ w["dense2.weight"].T + w["dense2.bias"]

    wanted = np.full(logits.shape, LABEL_SMOOTHING / 10, np.float32)
    wanted[np.arange(len(x)), labels] += 1 - LABEL_SMOOTHING
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    g: Weights = {}
    d = (np.exp(log_p) - wanted) / np.float32(len(x))
    g["dense2.weight"], g["dense2.bias"] = d.T @ active, d.sum(axis=0)
    d = (d @ w["dense2.weight"]) * (hidden > 0)
    g["dense1.weight"], g["dense1.bias"] = d.T @ flat, d.sum(axis=0)
    d = (d @ w["dense1.weight"]).reshape(a3.shape) * (a3 > 0)
    d, g["conv3.weight"], g["conv3.bias"] = back3(d)
    d = back_pool(d) * (a2 > 0)
    d, g["conv2.weight"], g["conv2.bias"] = back2(d)
    _, g["conv1.weight"], g["conv1.bias"] = back1(d * (a1 > 0))
    return float(-(wanted * log_p).sum() / len(x)), g


def batches(x: Floats, labels: Labels, random: np.random.Generator) -> Iterator[tuple[Floats, Labels]]:
    """One epoch in random order, each image moved by up to one pixel each way."""
    order = random.permutation(len(x))
    for start in range(0, len(x), BATCH):
        chosen = order[start : start + BATCH]
        moved = np.stack([np.roll(x[i], random.integers(-1, 2, 2), axis=(1, 2)) for i in chosen])
        yield moved, labels[chosen]


def train(x: Floats, labels: Labels) -> Weights:
    """Adam (Kingma and Ba, 2015) with a learning rate that falls as a half cosine."""
    random = np.random.default_rng(SEED)
    weights = initial(random)
    first = {name: np.zeros_like(w) for name, w in weights.items()}
    second = {name: np.zeros_like(w) for name, w in weights.items()}
    count = 0
    for epoch in range(EPOCHS):
        rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        losses = []
        for images, wanted in batches(x, labels, random):
            loss, gradients = step(weights, images, wanted)
            losses.append(loss)
            count += 1
            for name, g in gradients.items():
                first[name] = 0.9 * first[name] + 0.1 * g
                second[name] = 0.999 * second[name] + 0.001 * g * g
                move = (first[name] / (1 - 0.9**count)) / (np.sqrt(second[name] / (1 - 0.999**count)) + 1e-8)
                weights[name] = (weights[name] - rate * move).astype(np.float32)
        if epoch % 10 == 9:
            say(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")
    return weights


def to_onnx(weights: Weights) -> onnx.ModelProto:
    """Write the network as ONNX, opset 17, batch size free."""
    node = helper.make_node
    same: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], name="conv1", **same),
        node("Relu", ["conv1"], ["relu1"], name="relu1"),
        node("Conv", ["relu1", "conv2.weight", "conv2.bias"], ["conv2"], name="conv2", **same),
        node("Relu", ["conv2"], ["relu2"], name="relu2"),
        node("MaxPool", ["relu2"], ["pool"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["pool", "conv3.weight", "conv3.bias"], ["conv3"], name="conv3", **same),
        node("Relu", ["conv3"], ["relu3"], name="relu3"),
        node("Flatten", ["relu3"], ["flat"], name="flatten"),
        node("Gemm", ["flat", "dense1.weight", "dense1.bias"], ["dense1"], name="dense1", transB=1),
        node("Relu", ["dense1"], ["relu4"], name="relu4"),
        node("Gemm", ["relu4", "dense2.weight", "dense2.bias"], ["logits"], name="dense2", transB=1),
        node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=1),
    ]
    f32 = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", f32, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info(name, f32, ["batch", 10]) for name in ("logits", "probabilities")],
        [numpy_helper.from_array(np.ascontiguousarray(w), name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="edgekit-example")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def accuracy(x: Floats, labels: Labels) -> float:
    """Return the fraction of images that the committed model labels rightly, in desktop onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": x})
    return float((np.argmax(logits, axis=1) == labels).mean())


def say(text: str) -> None:
    """Tell the person at the terminal."""
    sys.stderr.write(text + "\n")


def main() -> int:
    """Train and write the files, or check the committed model; 1 when the accuracy is below 97 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="measure the committed model, write nothing")
    check = parser.parse_args().check
    x, x_test, labels, labels_test = data()
    if not check:
        MODEL.write_bytes(to_onnx(train(x, labels)).SerializeToString(deterministic=True))
        # The first test image of each of the first labels: real handwriting that training never saw.
        first = [int(np.flatnonzero(labels_test == digit)[0]) for digit in range(SAMPLE_COUNT)]
        np.savez(SAMPLES, image=x_test[first])
    measured = accuracy(x_test, labels_test)
    say(f"test accuracy {measured:.2%} on {len(x_test)} images, {MODEL.stat().st_size:,} bytes")
    return 0 if measured >= 0.97 else 1


if __name__ == "__main__":
    sys.exit(main())
