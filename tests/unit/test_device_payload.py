import json
from typing import Any

import numpy as np
import pytest

from edgekit.device import payload
from edgekit.errors import UsageError
from edgekit.records.tensors import Value, same_bits, value_of

DTYPES = {"x": "float32", "n": "int64", "b": "bool", "t": "string", "u": "uint8", "h": "float16"}


def read(inputs: Any) -> dict[str, Value]:
    return {value.name: value for value in payload.from_json(json.dumps({"inputs": inputs}).encode(), DTYPES)}


def test_nested_lists_become_tensors_of_the_model_s_dtypes() -> None:
    found = read({"x": [[1, 2.5], [3, "NaN"]], "n": [2**62], "b": [True], "t": [["a"]], "u": 255, "h": []})
    assert (found["x"].dtype, found["x"].shape) == ("float32", (2, 2))
    assert found["x"].array is not None and np.isnan(found["x"].array[1, 1])
    assert found["n"].array is not None and found["n"].array.tolist() == [2**62]
    assert (found["u"].shape, found["h"].shape, found["t"].shape) == ((), (0,), (1, 1))


def test_numbers_in_a_row_take_their_shape() -> None:
    found = read({"x": {"shape": [2, 1, 3], "data": [1, 2, 3, 4, 5, 6]}, "h": {"shape": [0, 4], "data": []}})
    assert (found["x"].shape, found["h"].shape) == ((2, 1, 3), (0, 4))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"y": [1]}, "no input 'y'"),
        ({"x": [[1], [1, 2]]}, "'x' does not hold values of float32"),
        ({"x": [[1], [1, 2]]}, r"the shapes \[1\] and \[2\]"),
        ({"x": [1, [1]]}, "'x' does not hold"),
        ({"x": ["1"]}, '"1" is none'),
        ({"x": [None]}, "null is none"),
        ({"x": [True]}, "true is none"),
        ({"x": [3.5e38]}, "a number is beyond float32"),
        ({"x": [10**400]}, "a number is beyond float32"),
        ({"h": [65520.0]}, "a number is beyond float16"),
        ({"t": ["\ud800"]}, "half a character"),
        (
            {"x": {"dtype": "float64", "shape": [1], "data": [1]}},
            'it is "float64", and the model takes',
        ),
        ({"x": {"shape": [1, 1], "data": [[1]]}}, "nested lists"),
        ({"x": {"shape": [2], "data": [1]}}, r"1 values do not fill the shape \[2\]"),
        ({"n": [1.5]}, "'n' does not hold"),
        ({"n": [2**63]}, "outside"),
        ({"u": [-1]}, "outside"),
        ({"b": [1]}, "'b' does not hold"),
        ({"t": [1]}, "'t' does not hold"),
        ({"x": {"shape": [3], "data": [1]}}, "'x' does not hold"),
        ({"x": {"shape": [-1], "data": [1]}}, "nested lists"),
        ({"x": {"shape": [1 << 40, 1 << 40], "data": []}}, "nested lists"),
        ({"x": {"data": [1]}}, "nested lists"),
        ({"x": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}, "deeper"),
    ],
)
def test_what_is_no_tensor_is_named(inputs: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(inputs)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"inputs": []}', b'{"inputs": {}, "more": 1}', b'{"inputs": {"x": [NaN]}}', b"\xff",
     b'{"inputs":{"x":' + b"[" * 100_000, b'{"inputs": {"n": [' + b"9" * 10_000 + b"]}}"],
)  # fmt: skip
def test_a_body_that_is_not_what_it_must_be_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError):
        payload.from_json(body, DTYPES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"inputs": {"n": [1], "n": [2]}}', 'in.json is not JSON: the key "n" stands in it twice.'),
        ('{"inputs": {"x": [1e999]}}', "'x' does not hold values of float32 .* a number is beyond every float"),
        ('{"inputs": {"x": [-1e999]}}', "a number is beyond every float"),
        ('{"inputs": {"n": [' + "9" * 5000 + "]}}", "in.json is not JSON: a number in it has more than 4,300 digits."),
        ('{"inputs": {"x": [NaN]}}', "in.json is not JSON: NaN is none of it; write it as a text."),
        ("[" * 100_000, "in.json is not JSON: it is nested too deeply."),
        ("[]", "in.json must be "),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_json(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        payload.from_json(text.encode(), DTYPES, "in.json")


def test_an_output_as_it_is_answered_is_taken_as_an_input() -> None:
    value = value_of("x", np.array([[1.5, np.inf]], np.float32))
    told = json.loads(payload.to_json([value], 1.0))["outputs"]
    assert same_bits(read(told)["x"], value)


def test_floats_read_back_to_the_same_bits() -> None:
    numbers = np.array([0.1, -0.0, 1e-45, 3.4e38, np.nan, np.inf, -np.inf], np.float32)
    told = json.loads(payload.to_json([value_of("y", numbers)], 1.0))["outputs"]["y"]
    (back,) = payload.from_json(json.dumps({"inputs": {"x": told["data"]}}).encode(), {"x": told["dtype"]})
    assert same_bits(value_of("x", numbers), back)


def test_safetensors_go_there_and_back_and_hold_no_text() -> None:
    value = value_of("y", np.arange(6, dtype=np.int16).reshape(2, 3))
    (back,) = payload.from_safetensors(payload.to_safetensors([value]))
    assert same_bits(value, back)
    with pytest.raises(UsageError, match="text"):
        payload.to_safetensors([value_of("t", np.array(["a"]))])
    with pytest.raises(UsageError, match="not a safetensors"):
        payload.from_safetensors(b"{}")
