"""Conformance cases made by hand, for tests that need no collection of the real ones."""

from collections.abc import Sequence

import numpy as np
import onnx.parser

from edgekit.conformance.cases import Case, operator_of
from edgekit.records.tensors import Array, Value, value_of


def case(text: str, inputs: dict[str, Array], outputs: dict[str, Array], name: str = "case", run: bool = True) -> Case:
    """Return a standard case of a model in ONNX text."""
    model = onnx.parser.parse_model(text)
    return Case(
        name,
        "standard",
        model.SerializeToString(),
        values(inputs),
        values(outputs),
        operator_of(model),
        run,
    )


def values(arrays: dict[str, Array]) -> tuple[Value, ...]:
    """Return named values."""
    return tuple(value_of(name, array) for name, array in arrays.items())


def one_node(text: str, types: str = "float[2] x => float[2] y", opset: int = 17) -> str:
    """Return the text of a model of one node: ``one_node("y = Relu(x)")``."""
    inputs, _, outputs = types.partition(" => ")
    return f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {{ {text} }}'


def floats(*numbers: float) -> Array:
    """Return a float32 vector."""
    return np.array(numbers, dtype=np.float32)


X, RELU_X = floats(-1, 2), floats(0, 2)


def relu(name: str = "relu", expected: Sequence[float] = (0, 2)) -> Case:
    """Return the case of a Relu."""
    return case(one_node("y = Relu(x)"), {"x": X}, {"y": floats(*expected)}, name)


def unknown(name: str = "unknown") -> Case:
    """Return the case of an operator that no runtime has."""
    return case(one_node("y = NoSuchOperator(x)"), {"x": X}, {"y": X}, name)


def crash(name: str = "crash") -> Case:
    """Return a case that ends a desktop process on x86: the smallest integer divided by -1."""
    smallest = np.array([np.iinfo(np.int32).min], dtype=np.int32)
    types = "int32[1] x, int32[1] d => int32[1] y"
    feeds = {"x": smallest, "d": np.array([-1], dtype=np.int32)}
    return case(one_node("y = Div(x, d)", types), feeds, {"y": smallest}, name)
