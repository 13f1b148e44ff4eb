from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from edgekit.errors import UsageError
from edgekit.records.array_files import read_arrays, read_bytes, read_npy


def test_arrays_are_read_as_they_were_written(tmp_path: Path) -> None:
    arrays = {"a/b": np.arange(6.0).reshape(2, 3).T, "none": np.zeros((0, 2), np.int8), "one": np.array(True)}
    np.savez(tmp_path / "x.npz", **arrays)
    safetensors.numpy.save_file(
        {name: np.array(a, order="C") for name, a in arrays.items()}, tmp_path / "x.safetensors"
    )

    for name in ("x.npz", "x.safetensors"):
        read = read_arrays(tmp_path / name)
        assert read.keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(read[key], array)
            assert read[key].dtype == array.dtype


def test_byte_order_becomes_native(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 2], ">i4"))

    array = read_npy(tmp_path / "x.npy")

    assert (array.tolist(), array.dtype.isnative) == ([1, 2], True)


def test_truncated_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(100))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-1])

    with pytest.raises(UsageError, match=r"x\.npy is not a \.npy array"):
        read_npy(tmp_path / "x.npy")


def test_folder_and_missing_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        read_bytes(tmp_path)
    with pytest.raises(UsageError, match="There is no file"):
        read_bytes(tmp_path / "x")
