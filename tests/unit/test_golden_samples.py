import io
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
import safetensors.numpy

from edgekit.errors import LimitError, UsageError
from edgekit.facts.survey import Argument
from edgekit.golden import samples
from edgekit.golden.samples import Sample
from edgekit.records import array_files
from edgekit.records.tensors import NUMPY_DTYPES, Array

TOKENS = Argument("tokens", "tensor(int64)", "int64", ("batch", 3))
SCALE = Argument("scale", "tensor(float)", "float32", ())
TEXT = Argument("text", "tensor(string)", "string", (None,))
BOTH = (TOKENS, SCALE)


def ints(*shape: int, dtype: str = "int64") -> Array:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def by_name(sample: Sample) -> dict[str, Array | None]:
    return {value.name: value.array for value in sample[1]}


def only(path: Path, *arguments: Argument) -> dict[str, Array | None]:
    (sample,) = samples.load([path], arguments)
    return by_name(sample)


def write_pb(path: Path, array: Array, name: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())


def test_npz_gives_one_case_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    path = tmp_path / "real <b>.npz"
    np.savez_compressed(path, scale=np.float32(2), tokens=ints(2, 3))

    ((origin, values),) = samples.load([path], BOTH)

    assert origin == "sample real <b>.npz"
    assert [value.name for value in values] == ["tokens", "scale"]
    assert [value.shape for value in values] == [(2, 3), ()]


def test_safetensors_gives_one_case(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({"tokens": ints(1, 3), "scale": np.array(1, np.float32)}, path)

    assert only(path, *BOTH).keys() == {"tokens", "scale"}


def test_npy_goes_to_the_only_input_whatever_its_name(tmp_path: Path) -> None:
    np.save(tmp_path / "anything.npy", np.asfortranarray(ints(2, 3).astype(">i8")))

    array = only(tmp_path / "anything.npy", TOKENS)["tokens"]

    np.testing.assert_array_equal(array, ints(2, 3))
    assert array is not None
    assert array.dtype.isnative


def test_npy_that_names_no_input_of_several_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "anything.npy", ints(2, 3))

    with pytest.raises(UsageError, match="does not tell which of the model's 2 inputs it is for"):
        samples.load([tmp_path / "anything.npy"], BOTH)


def test_folder_of_files_named_after_inputs_is_one_case(tmp_path: Path) -> None:
    np.save(tmp_path / "tokens.npy", ints(2, 3))
    write_pb(tmp_path / "scale.pb", np.array(3, np.float32))
    (tmp_path / "README.md").write_text("not a sample")

    assert only(tmp_path, *BOTH)["scale"] == 3


def test_onnx_test_data_sets_are_a_case_each_and_outputs_are_not_read(tmp_path: Path) -> None:
    for number in range(2):
        folder = tmp_path / f"test_data_set_{number}"
        write_pb(folder / "input_0.pb", ints(2, 3) + number)
        write_pb(folder / "input_1.pb", np.array(number, np.float32))
        write_pb(folder / "output_0.pb", ints(7))

    found = samples.load([tmp_path], BOTH)

    assert [origin for origin, _ in found] == ["sample test_data_set_0", "sample test_data_set_1"]
    assert [by_name(sample)["scale"] for sample in found] == [0, 1]


def test_onnx_tensors_are_placed_by_their_own_name_first(tmp_path: Path) -> None:
    write_pb(tmp_path / "input_0.pb", np.array(5, np.float32), "scale")
    write_pb(tmp_path / "input_1.pb", ints(1, 3), "tokens")

    assert only(tmp_path, *BOTH)["scale"] == 5


def test_folder_of_other_files_has_a_case_each(tmp_path: Path) -> None:
    for number in range(3):
        np.save(tmp_path / f"recording {number}.npy", ints(1, 3) + number)

    found = samples.load([tmp_path, tmp_path / "recording 0.npy"], [TOKENS])

    assert [origin[-5:] for origin, _ in found] == ["0.npy", "1.npy", "2.npy", "0.npy"]


def test_folder_without_samples_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")

    with pytest.raises(UsageError, match="holds no samples"):
        samples.load([tmp_path], [TOKENS])


@pytest.mark.parametrize("name", ["missing.npy", "missing.txt"])
def test_missing_file_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"There is no (such )?file"):
        samples.load([tmp_path / name], [TOKENS])


def test_too_many_cases_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ints(1, 3))

    with pytest.raises(LimitError, match="more than 64 samples"):
        samples.load([tmp_path / "x.npy"] * 65, [TOKENS])


def test_missing_input_and_unknown_key_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "missing.npz", tokens=ints(1, 3))
    np.savez(tmp_path / "unknown.npz", tokens=ints(1, 3), scale=np.float32(1), other=np.zeros(1))

    with pytest.raises(UsageError, match=r"missing\.npz gives no value for 'scale'") as caught:
        samples.load([tmp_path / "missing.npz"], BOTH)
    assert caught.value.hint == "The model's inputs: 'tokens' int64 [batch, 3], 'scale' float32 []."
    with pytest.raises(UsageError, match=r"unknown\.npz holds 'other', which is not an input"):
        samples.load([tmp_path / "unknown.npz"], BOTH)


def test_optional_input_may_be_missing_and_other_non_tensors_cannot_be_given(tmp_path: Path) -> None:
    optional = Argument("hint", "optional(tensor(float))", None, None)
    sequence = Argument("list", "seq(tensor(float))", None, None)
    np.savez(tmp_path / "a.npz", tokens=ints(1, 3))
    np.savez(tmp_path / "b.npz", tokens=ints(1, 3), list=np.zeros(1))

    assert only(tmp_path / "a.npz", TOKENS, optional).keys() == {"tokens"}
    with pytest.raises(UsageError, match=r"'list' is seq\(tensor\(float\)\), which samples cannot hold"):
        samples.load([tmp_path / "b.npz"], (TOKENS, sequence))


@pytest.mark.parametrize(
    ("array", "dtype", "change"),
    [
        (ints(1, 3, dtype="int32"), "int64", "x: int32 to int64, the same values"),
        (ints(1, 3), "int32", "x: int64 to int32, the same values"),
        (ints(1, 3), "uint8", "x: int64 to uint8, the same values"),
        (ints(1, 3), "float32", "x: int64 to float32, the same values"),
        (np.array([[0.5, np.nan, np.inf]]), "float32", "x: float64 to float32, the same values"),
        (np.array([[0.1, 0.2, 0.3]]), "float32", "x: float64 to float32, rounded"),
        (np.array([[0.1, 0.2, 0.3]]), "bfloat16", "x: float64 to bfloat16, rounded"),
    ],
)
def test_dtype_is_changed_where_that_is_safe_and_said(tmp_path: Path, array: Array, dtype: str, change: str) -> None:
    np.save(tmp_path / "x.npy", array)
    argument = Argument("x", dtype, dtype, (1, 3))

    ((origin, (value,)),) = samples.load([tmp_path / "x.npy"], [argument])

    assert origin == f"sample x.npy ({change})"
    assert value.array is not None
    assert value.array.dtype == NUMPY_DTYPES[dtype]
    np.testing.assert_array_equal(value.array, array.astype(NUMPY_DTYPES[dtype]))


@pytest.mark.parametrize(
    ("array", "dtype", "words"),
    [
        (np.array([[0, 1, 300]]), "uint8", "int64 [1, 3], of which some values would change"),
        (np.array([[0, 1, 2**31]]), "int32", "some values would change"),
        (np.array([[0, 1, 2**24 + 1]]), "float32", "some values would change"),
        (
            np.array([[0, 1, 0.5]]),
            "int64",
            "float64 [1, 3], of which some values would change but the model wants int64",
        ),
        (np.array([[0, 1, np.nan]]), "int64", "some values would change"),
        (np.array([[0, 1, 1e300]]), "float32", "some values are too large"),
        (np.array([["a", "b", "c"]]), "float32", "string [1, 3] but the model wants float32 [1, 3]"),
        (np.array([[0, 1, 2]]), "string", "int64 [1, 3] but the model wants string"),
        (np.array([[0, 1, 2j]]), "float32", "complex128 [1, 3]"),
        (np.zeros((1, 4)), "float64", "'x' is float64 [1, 4] but the model wants float64 [1, 3]"),
        (np.zeros(3), "float64", "float64 [3] but the model wants float64 [1, 3]"),
    ],
)
def test_misfit_names_file_input_found_and_wanted(tmp_path: Path, array: Array, dtype: str, words: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, array)

    with pytest.raises(UsageError) as caught:
        samples.load([path], [Argument("x", dtype, dtype, (1, 3))])

    assert words in caught.value.message
    assert str(path) in caught.value.message


@pytest.mark.parametrize("words", [np.array(["é", ""]), np.array(["é".encode(), b""])])
def test_text_and_utf8_bytes_become_strings(tmp_path: Path, words: Array) -> None:
    np.save(tmp_path / "t.npy", words)

    array = only(tmp_path / "t.npy", TEXT)["text"]

    assert array is not None
    assert array.tolist() == ["é", ""]


def test_bfloat16_survives_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1.5, 2], ml_dtypes.bfloat16))

    array = only(tmp_path / "x.npy", Argument("x", "tensor(bfloat16)", "bfloat16", ("N",)))["x"]

    assert array is not None
    assert array.astype(float).tolist() == [1.5, 2]


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", tokens=np.array([{}], dtype=object))

    for name in ("x.npy", "x.npz"):
        with pytest.raises(UsageError, match="Python objects"):
            samples.load([tmp_path / name], [TOKENS])


def npy_that_claims(shape: str, dtype: str = "<f8") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"\x93NUMPY\x09\x00",
        npy_that_claims("(1,)")[:-60],
        npy_that_claims("(1,)", "nonsense"),
        npy_that_claims("(1000000000000,)"),
        npy_that_claims("(0, 99999999999999999999)"),
        npy_that_claims("(-1,)"),
        npy_that_claims("(" * 500),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_broken_or_lying_arrays_are_refused_without_their_memory(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    if kind == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tokens.npy", data)
    else:
        path.write_bytes(data)

    with pytest.raises(UsageError, match=r"x\.np[yz] is not a \.npy array"):
        samples.load([path], [TOKENS])


@pytest.mark.parametrize("name", ["x.npz", "x.safetensors", "x.pb"])
@pytest.mark.parametrize("data", [b"hello <b>", b"PK\x03\x04" + b"\xff" * 40, b"\xff" * 64])
def test_broken_containers_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    with pytest.raises(UsageError, match=name):
        samples.load([path], [TOKENS])


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "LARGEST_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "x.npz", tokens=np.zeros((1 << 17) + 1))
    np.savez_compressed(tmp_path / "y.npz", tokens=np.zeros((1000, 3), np.int64))

    with pytest.raises(LimitError, match="unpacks to more than"):
        samples.load([tmp_path / "x.npz"], [TOKENS])
    assert only(tmp_path / "y.npz", TOKENS)


def test_too_large_a_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as stream:
        stream.truncate(array_files.LARGEST_BYTES + 1)

    with pytest.raises(LimitError, match="at most"):
        samples.load([tmp_path / "x.npy"], [TOKENS])


def test_onnx_tensor_with_external_data_is_refused(tmp_path: Path) -> None:
    tensor = onnx.TensorProto(name="tokens", data_type=onnx.TensorProto.INT64, dims=[1, 3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    (tmp_path / "x.pb").write_bytes(tensor.SerializeToString())

    with pytest.raises(UsageError, match="in another file, which is not read"):
        samples.load([tmp_path / "x.pb"], [TOKENS])


def test_picture_in_a_folder_joins_the_other_inputs(tmp_path: Path) -> None:
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (4, 2), (255, 0, 0)).save(picture, "PNG")
    (tmp_path / "image.png").write_bytes(picture.getvalue())
    np.save(tmp_path / "scale.npy", np.float32(1))
    image = Argument("image", "tensor(float)", "float32", (1, 3, None, None))

    array = only(tmp_path, image, SCALE)["image"]

    assert array is not None
    assert array.shape == (1, 3, 2, 4)
    assert array[0, :, 0, 0].tolist() == [1, 0, 0]
