"""Read files of arrays that users bring: .npz, .npy, .safetensors. They are untrusted: bounded, and never unpickled."""

import io
import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from edgekit.errors import LimitError, UsageError
from edgekit.records import tensors
from edgekit.records.tensors import Array

# Larger than any sensible sample; a bundle that held more could not be fetched by a browser anyway.
LARGEST_BYTES = 1 << 30

# numpy's header is Python text, and reading a broken one raises what Python's parser raises.
_BAD_HEADER = (
    ValueError, KeyError, TypeError, SyntaxError, MemoryError, OverflowError, RecursionError, tokenize.TokenError
)  # fmt: skip


def read_arrays(path: Path) -> dict[str, Array]:
    """Read a .npz or .safetensors file: arrays by key, dtypes and shapes as stored (byte order made native).

    Raises UsageError for a file that is not what its name says, LimitError for more than 1 GiB of data.
    """
    if path.suffix.lower() == ".npz":
        return _read_npz(path)
    return tensors.decode(read_bytes(path), f"{path}")


def read_bytes(path: Path) -> bytes:
    """Read a whole file of at most 1 GiB. Raises UsageError where it cannot be read, LimitError where it is larger."""
    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file." if path.exists() else f"There is no file {path}.")
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise LimitError(f"{path} has {size:,} bytes; at most {LARGEST_BYTES:,} are read.")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error


def read_npy(path: Path) -> Array:
    """Read a .npy file. Raises UsageError for a file that is not one, or that holds Python objects."""
    data = read_bytes(path)
    return _read_array(io.BytesIO(data), len(data), str(path))


def _read_npz(path: Path) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    left = LARGEST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            for entry in archive.infolist():
                left -= entry.file_size
                if left < 0:
                    raise LimitError(f"{path} unpacks to more than {LARGEST_BYTES:,} bytes.")
                name = entry.filename.removesuffix(".npy")
                with archive.open(entry) as stream:
                    arrays[name] = _read_array(stream, entry.file_size, f"'{name}' in {path}")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"{path} is not a .npz file: {error}", hint="Write it with numpy.savez.") from error
    return arrays


def _read_array(stream: IO[bytes], size: int, what: str) -> Array:
    """Read an array of which the header, too, is checked: numpy would allocate whatever it claims."""
    hint = "Write it with numpy.save, without Python objects."
    try:
        version = np.lib.format.read_magic(stream)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[
            version
        ]
        shape, column_major, dtype = read_header(stream)
        if dtype.hasobject:
            raise UsageError(f"{what} holds Python objects, which are never loaded.", hint="Save text as dtype str.")
        count = math.prod(shape)
        if count < 0 or count * dtype.itemsize > size:
            raise ValueError(f"its header says {list(shape)} of {dtype}, which is more than it holds")
        data = stream.read(count * dtype.itemsize)
        array: Array = np.frombuffer(data, dtype=dtype, count=count).reshape(shape, order="F" if column_major else "C")
    except _BAD_HEADER as error:
        raise UsageError(f"{what} is not a .npy array: {error}", hint=hint) from error
    return array.astype(dtype.newbyteorder("="), copy=False)
