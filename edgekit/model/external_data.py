"""The files of weights beside a model. A model is untrusted: it may only name files inside its own folder.

The rules are the ONNX specification's (docs/ExternalData.md): a relative POSIX path, decimal offset and length.
Nothing is read here; ``edgekit.model.io`` does that.
"""

import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx

from edgekit.errors import ModelError

# Bits of one element, by TensorProto.DataType. Strings have no fixed size and cannot be external.
BITS: dict[int, int] = {
    onnx.TensorProto.DataType.Value(name): bits
    for bits, names in {
        2: ("INT2", "UINT2"),
        4: ("INT4", "UINT4", "FLOAT4E2M1"),
        6: ("FLOAT6E2M3", "FLOAT6E3M2"),
        8: ("BOOL", "INT8", "UINT8", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"),
        16: ("INT16", "UINT16", "FLOAT16", "BFLOAT16"),
        32: ("INT32", "UINT32", "FLOAT"),
        64: ("INT64", "UINT64", "DOUBLE", "COMPLEX64"),
        128: ("COMPLEX128",),
    }.items()
    for name in names
    if name in onnx.TensorProto.DataType.keys()  # noqa: SIM118  an enum wrapper, not a dict; older onnx lacks some names
}

_MOST_ELEMENTS = 1 << 48

_AGAIN = "Export the model again, or put its weights into the model file with onnx.save."
_BESIDE = (
    "Keep the weights in the model's folder and record their name alone, for example with "
    "onnx.save(model, 'model.onnx', save_as_external_data=True, location='model.onnx.data')."
)


@dataclass(frozen=True)
class ExternalFile:
    """A file of weights: ``location`` as the model records it, ``path`` as found inside the model's folder."""

    location: str
    path: Path
    bytes: int


@dataclass(frozen=True)
class Span:
    """Where one tensor's bytes lie. ``length`` None: to the end of the file."""

    location: str
    offset: int
    length: int | None


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether the tensor's values lie in another file."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def tensor_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of the tensor's values as its type and shape say, packed. Raises ModelError when these make no sense."""
    bits = BITS.get(tensor.data_type)
    if bits is None:
        raise ModelError(f"Tensor {tensor.name!r} has a type of no fixed size ({tensor.data_type}).", hint=_AGAIN)
    return (elements(tensor) * bits + 7) // 8


def elements(tensor: onnx.TensorProto) -> int:
    """The number of elements that the tensor's shape says. Raises ModelError for a shape that cannot be."""
    if any(size < 0 for size in tensor.dims):
        raise ModelError(f"Tensor {tensor.name!r} has a negative dimension: {list(tensor.dims)[:8]}.", hint=_AGAIN)
    if 0 in tensor.dims:
        return 0
    product = 1
    for size in tensor.dims:
        product *= size
        if product > _MOST_ELEMENTS:  # stop: a million huge dimensions would multiply for hours
            raise ModelError(f"Tensor {tensor.name!r} has an impossible shape: {list(tensor.dims)[:8]}.", hint=_AGAIN)
    return product


def span(tensor: onnx.TensorProto) -> Span:
    """Read a tensor's external-data entries. Raises ModelError where they are missing, malformed or impossible."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    _check_location(tensor.name, location)
    offset = _number(tensor.name, "offset", entries.get("offset", "0"))
    length = None if "length" not in entries else _number(tensor.name, "length", entries["length"])
    if tensor.data_type == onnx.TensorProto.STRING:
        raise ModelError(
            f"Tensor {tensor.name!r} holds strings in external data, which ONNX does not allow.", hint=_AGAIN
        )
    needed = tensor_bytes(tensor)
    if length is not None and length != needed:
        raise ModelError(
            f"Tensor {tensor.name!r} is {needed:,} bytes by its type and shape, but its external data {location!r} "
            f"says {length:,} bytes.",
            hint=_AGAIN,
        )
    return Span(location, offset, length)


def _number(tensor: str, key: str, text: str) -> int:
    # int() also takes signs, spaces, underscores and other digits; 19 digits hold any file size.
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise ModelError(f"Tensor {tensor!r} has an external-data {key} that is no number: {text[:40]!r}.", hint=_AGAIN)
    return int(text)


def _check_location(tensor: str, location: str) -> None:
    where = f"Tensor {tensor!r} keeps its values in {location[:200]!r}"
    if not location or "\0" in location:
        raise ModelError(f"Tensor {tensor!r} has external data without a usable file name.", hint=_AGAIN)
    if location.startswith("*/_ORT_MEM_ADDR_/"):
        # onnxruntime reads this mark, which it uses inside one process, as an address in memory.
        raise ModelError(f"{where}, which is an address in memory, not a file.", hint=_AGAIN)
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor:
        raise ModelError(f"{where}, an absolute path. External data must be named relative to the model.", hint=_BESIDE)
    if "\\" in location:
        raise ModelError(f"{where}. External data is named with forward slashes.", hint=_BESIDE)
    if ".." in PurePosixPath(location).parts:
        raise ModelError(
            f"{where}. External data must lie inside the model's folder ('..' is not allowed).", hint=_BESIDE
        )


class MissingDataError(ModelError):
    """A file of weights is not there."""


def resolve(model: Path, tensors: Iterable[onnx.TensorProto], *, complete: bool = True) -> tuple[ExternalFile, ...]:
    """Find and check every external file that ``tensors`` name; each once, in the order in which they are met.

    ``complete`` False: files that are missing are left out, and files that are too short are taken as they are.

    Raises ModelError when a file is missing, too short, no ordinary file, or outside the model's folder.
    """
    found: dict[str, ExternalFile] = {}
    absent: set[str] = set()
    for tensor in tensors:
        if not is_external(tensor):
            continue
        part = span(tensor)
        if part.location not in found and part.location not in absent:
            try:
                found[part.location] = _find(model, tensor.name, part.location)
            except MissingDataError:
                if complete:
                    raise
                absent.add(part.location)
        file = found.get(part.location)
        needed = part.offset + tensor_bytes(tensor)
        if complete and file is not None and needed > file.bytes:
            raise ModelError(
                f"The external data file {file.path} is too short: tensor {tensor.name!r} needs its bytes up to "
                f"{needed:,}, and it has {file.bytes:,}.",
                hint="The file was cut short, or belongs to another model. Copy or export both files again.",
            )
    return tuple(found.values())


def _find(model: Path, tensor: str, location: str) -> ExternalFile:
    path = model.parent / location
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except FileNotFoundError as error:
        raise MissingDataError(
            f"The external data file {path} is missing (tensor {tensor!r} keeps its values there).",
            hint="Copy it beside the model, at the same relative place; the two files belong together.",
        ) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links, before Python 3.13
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        message = f"The external data file {path} (of tensor {tensor!r}) cannot be read: {reason}."
        raise ModelError(message, hint=_AGAIN) from error
    # A model that is itself a link (a download cache) may have its weights beside the link's end: onnxruntime agrees.
    folders = (model.parent.resolve(), model.resolve().parent)
    if not any(real.is_relative_to(folder) for folder in folders):
        raise ModelError(
            f"The external data file {path} (of tensor {tensor!r}) is a link that leads out of the model's folder, "
            f"to {real}.",
            hint="Copy the file itself into the model's folder.",
        )
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"The external data file {path} (of tensor {tensor!r}) is not an ordinary file.", hint=_AGAIN)
    return ExternalFile(location, path, status.st_size)
