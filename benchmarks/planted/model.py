"""The model that faults are planted in: one node of each kind, weights that are the same each time."""

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

ARRAY = np.ndarray


def weights() -> dict[str, ARRAY]:
    """Return the weights by name: float32, drawn from one seed."""
    rng = np.random.default_rng(7)

    def drawn(*shape: int) -> ARRAY:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "conv_w": 0.4 * drawn(8, 3, 3, 3),
        "conv_b": drawn(8),
        "norm_s": np.abs(drawn(8)) + 0.5,
        "norm_b": drawn(8),
        "norm_m": 0.1 * drawn(8),
        "norm_v": np.abs(drawn(8)) + 0.5,
        "dense_w": 0.3 * drawn(128, 16),
        "dense_b": drawn(16),
        "mix_w": 0.3 * drawn(16, 16),
        "shift_b": drawn(16),
        "large": np.array(20_000.0, np.float32),
    }


def model() -> ModelProto:
    """Return the model: a picture of 8 × 8 in; scores and shares of 4 × 4, and large numbers, out."""
    shape = np.array([-1, 4, 4], np.int64)
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "conv_w", "conv_b"], ["a"], "conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        node("BatchNormalization", ["a", "norm_s", "norm_b", "norm_m", "norm_v"], ["b"], "norm", epsilon=1e-3),
        node("LeakyRelu", ["b"], ["c"], "leaky", alpha=0.1),
        node("Transpose", ["c"], ["d"], "turn", perm=[0, 1, 3, 2]),
        node("MaxPool", ["d"], ["e"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["e"], ["f"], "flat", axis=1),
        node("Gemm", ["f", "dense_w", "dense_b"], ["g"], "dense"),
        node("Tanh", ["g"], ["h"], "bend"),
        node("MatMul", ["h", "mix_w"], ["i"], "mix"),
        node("Add", ["i", "shift_b"], ["j"], "shift"),
        node("Reshape", ["j", "shape"], ["scores"], "shape_scores"),
        node("Softmax", ["scores"], ["shares"], "soft", axis=2),
        node("Mul", ["scores", "large"], ["large_scores"], "enlarge"),
    ]
    stored = [numpy_helper.from_array(array, name) for name, array in (*weights().items(), ("shape", shape))]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "planted",
        [helper.make_tensor_value_info("x", floats, [1, 3, 8, 8])],
        [helper.make_tensor_value_info(name, floats, [1, 4, 4]) for name in ("scores", "shares", "large_scores")],
        stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
