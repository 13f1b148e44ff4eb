"""Tensors travel bit for bit: NaN with its payload, infinities, -0, int64, float16, empty and 0-d."""

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edgekit.errors import UsageError
from edgekit.records import tensor_file, tensors
from edgekit.records.tensors import NUMPY_DTYPES, Value, same_bits, value_of

HOSTILE = ["<script>", "a/b", "'\"", "new\nline", "\x1b[0m", "né", "", " ", "__metadata__", "../up", "x" * 3000]


def test_where_ml_dtypes_is_not_installed_bfloat16_is_said_to_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tensors.encode({"brain": np.arange(3).astype(NUMPY_DTYPES["bfloat16"])})
    monkeypatch.delitem(tensor_file.DTYPES, "bfloat16")
    with pytest.raises(UsageError, match="'brain' is of type bfloat16, which needs the package ml-dtypes"):
        tensors.decode(data, "it")


def round_trip(value: Value) -> Value:
    entries, arrays = tensors.split("case/input", [value])
    entries = json.loads(json.dumps(entries))
    (back,) = tensors.join(entries, tensors.decode(tensors.encode(arrays), "it"))
    return back


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (2, 3)])
def test_every_dtype_and_shape_survives(dtype: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape, dtype=int))
    array = np.arange(count).astype(NUMPY_DTYPES[dtype]).reshape(shape)
    value = value_of("x", array)
    back = round_trip(value)
    assert (back.dtype, back.shape) == (dtype, shape)
    assert same_bits(value, back)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_the_odd_floats_survive_bit_for_bit(dtype: str) -> None:
    kind = NUMPY_DTYPES[dtype]
    numbers = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(ml_dtypes.finfo(kind).smallest_subnormal)]
    value = value_of("x", np.array(numbers, dtype=kind))
    assert same_bits(value, round_trip(value))


@given(hnp.arrays(np.uint32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
@settings(max_examples=50, deadline=None)
def test_any_bits_of_a_float32_survive(bits: Any) -> None:
    value = value_of("x", np.array(bits).view(np.float32) if bits.ndim else np.array(bits.view(np.float32)))
    assert same_bits(value, round_trip(value))


def test_the_largest_integers_survive() -> None:
    value = value_of("x", np.array([2**63 - 1, -(2**63)], np.int64))
    assert same_bits(value, round_trip(value))
    value = value_of("x", np.array([2**64 - 1], np.uint64))
    assert same_bits(value, round_trip(value))


def test_strings_travel_as_json() -> None:
    value = value_of("text", np.array([HOSTILE[:3], HOSTILE[3:6]]))
    back = round_trip(value)
    assert (back.dtype, back.shape) == ("string", (2, 3))
    assert same_bits(value, back)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_travels(name: str) -> None:
    value = value_of(name, np.ones(2, np.float32))
    assert same_bits(value, round_trip(value))
    assert round_trip(value).name == name


def test_what_is_not_a_tensor_keeps_its_note() -> None:
    value = Value("maps", "seq(map(int64,tensor(float)))", None, note="a sequence")
    assert round_trip(value) == value or same_bits(round_trip(value), value)
    assert round_trip(value).note == "a sequence"


def test_an_array_that_is_not_contiguous_or_not_native_travels() -> None:
    array = np.arange(12, dtype=">f4").reshape(3, 4).T[::2]
    back = round_trip(value_of("x", array))
    assert back.array is not None
    assert np.array_equal(back.array, array)


def test_the_same_arrays_give_the_same_bytes_in_any_order() -> None:
    a, b = np.ones(3, np.float32), np.zeros(2, np.int8)
    assert tensors.encode({"a": a, "b": b}) == tensors.encode({"b": b, "a": a})


@pytest.mark.parametrize("dtype", [np.complex64, "datetime64[s]"])
def test_a_dtype_that_onnx_lacks_is_refused(dtype: Any) -> None:
    with pytest.raises(UsageError, match="'x' has dtype"):
        value_of("x", np.zeros(2, dtype))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.float32([0.0]), np.float32([-0.0])),
        (np.float32([1]), np.float64([1])),
        (np.float32([1]), np.float32([[1]])),
        (np.float32([1]), np.float32([1 + 1e-7])),
        (np.array(["a"]), np.array(["b"])),
    ],
)
def test_what_differs_is_not_the_same(a: Any, b: Any) -> None:
    assert same_bits(value_of("x", a), value_of("x", a))
    assert not same_bits(value_of("x", a), value_of("x", b))


def test_a_tensor_and_no_tensor_are_not_the_same() -> None:
    there, gone = value_of("x", np.float32(1)), Value("x", "float32", None)
    assert not same_bits(there, gone)
    assert same_bits(gone, gone)


GOOD = tensors.encode({"x": np.ones((2, 2), np.float32)})


@pytest.mark.parametrize("data", [b"", b"12345678", b"\xff" * 64, GOOD[:-1], GOOD + b"\0", GOOD[:20], b"{}" * 50])
def test_malformed_bytes_are_a_usage_error(data: bytes) -> None:
    assert tensors.decode(GOOD, "good")
    with pytest.raises(UsageError, match="the upload is not a safetensors file"):
        tensors.decode(data, "the upload")


@given(st.binary(max_size=300), st.integers(0, len(GOOD) - 1))
@settings(max_examples=100, deadline=None)
def test_no_bytes_crash_the_reader(noise: bytes, place: int) -> None:
    for data in (noise, GOOD[:place] + noise + GOOD[place + len(noise) :]):
        try:
            tensors.decode(data, "it")
        except UsageError:
            continue


def test_a_type_that_onnx_lacks_is_named() -> None:
    header = b'{"x":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}'
    with pytest.raises(UsageError, match="C64"):
        tensors.decode(len(header).to_bytes(8, "little") + header + bytes(8), "it")


def header(entries: dict[str, Any], data: bytes = bytes(8)) -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


X = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header({"x": X | {"data_offsets": [0, 4]}}, bytes(4)), "has 4 bytes"),
        (header({"x": X | {"data_offsets": [8, 16]}}, bytes(16)), "leave a gap"),
        (header({"x": X, "y": X}), "overlap"),
        (header({"x": X | {"data_offsets": [8, 0]}}), "place of 'x'"),
        (header({"x": X | {"shape": [-2]}}), "shape"),
        (header({"x": X | {"shape": [True, 2]}}), "shape"),
        (header({"x": X | {"shape": [1 << 40] * 40}}), "has 8 bytes"),
        (header({"x": X | {"more": 1}}), "not described"),
        (header({"x": [1]}), "not described"),
        (header({"x": X}, bytes(12)), "of none of them"),
        (header({"x": X}, bytes(4)), "behind the end"),
        (header({"x": X}).replace(b'"x"', b'"x": 1, "x"')[2:], "too large"),
        ((1 << 40).to_bytes(8, "little"), "too large"),
        ((2).to_bytes(8, "little") + b"[]", "not a JSON object"),
        ((300_000).to_bytes(8, "little") + b'{"a":' + b"[" * 299_995, "nested|JSON|Expecting"),
    ],
)
def test_each_way_to_be_malformed_is_named(data: bytes, message: str) -> None:
    assert tensors.decode(header({"x": X, "__metadata__": {"a": "b"}}), "it")["x"].shape == (2,)
    with pytest.raises(UsageError, match=message):
        tensors.decode(data, "it")


def test_a_name_that_stands_twice_is_refused() -> None:
    text = (
        b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    )
    with pytest.raises(UsageError, match="twice"):
        tensors.decode(len(text).to_bytes(8, "little") + text + bytes(8), "it")


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ARRAYS = hnp.arrays(
    st.sampled_from([dtype for name, dtype in NUMPY_DTYPES.items() if name != "bfloat16"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@given(st.dictionaries(NAMES, ARRAYS, max_size=5))
@settings(max_examples=100, deadline=None)
def test_the_bytes_are_those_of_the_format_s_own_library(arrays: dict[str, Any]) -> None:
    arrays = {key: np.asarray(array) for key, array in arrays.items() if key != "__metadata__"}
    arrays["brain"] = np.arange(3).astype(NUMPY_DTYPES["bfloat16"])
    encoded = tensors.encode(arrays)
    assert encoded == safetensors.numpy.save(arrays)
    back = tensors.decode(encoded, "it")
    assert all(
        back[key].tobytes() == array.tobytes() and back[key].dtype == array.dtype for key, array in arrays.items()
    )


def test_what_lies_at_an_odd_address_is_copied_for_runtimes() -> None:
    text = (
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}} '
    )
    back = tensors.decode(len(text).to_bytes(8, "little") + text + b"\1" + np.float32(2.5).tobytes(), "it")
    assert back["b"].flags.aligned and back["b"].tolist() == [2.5]


ENTRY = {"name": "x", "dtype": "float32", "shape": [2, 2], "key": "x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "y"}, "'y' is named but not stored"),
        ({"shape": [4]}, r"is float32 \[2, 2\] but said to be float32 \[4\]"),
        ({"shape": None}, "said to be float32 None"),
        ({"dtype": "int32"}, "said to be int32"),
    ],
)
def test_an_entry_must_fit_its_tensor(change: dict[str, Any], message: str) -> None:
    arrays = tensors.decode(GOOD, "good")
    assert len(tensors.join([ENTRY], arrays)) == 1
    with pytest.raises(UsageError, match=message):
        tensors.join([ENTRY | change], arrays)


@pytest.mark.parametrize("shape", [None, [3], [0], [2, 2], [1 << 62, 4]])
def test_strings_must_fill_their_shape(shape: list[int] | None) -> None:
    entry = {"name": "x", "dtype": "string", "shape": [2], "strings": ["a", "b"]}
    assert len(tensors.join([entry], {})) == 1
    with pytest.raises(UsageError, match="do not fill"):
        tensors.join([entry | {"shape": shape}], {})
