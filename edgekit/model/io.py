"""Load and save ONNX models: the only ONNX file I/O. A model file is untrusted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx.numpy_helper
from google.protobuf.message import DecodeError, EncodeError

from edgekit import files
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.model import external_data, sniff, walk, wire
from edgekit.model.external_data import ExternalFile
from edgekit.records.tensors import Array

# protobuf's own limit for one message.
MAX_BYTES = (1 << 31) - 1
_CHUNK_BYTES = 1 << 20
# What is broken in a file up to this size is left to protobuf to find: at worst it takes a hundred times as much.
_LARGE_BYTES = 2 << 20


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model as read. Values in ``external_files`` are not in ``proto``; ``to_array`` reads them when asked."""

    path: Path
    proto: onnx.ModelProto
    external_files: tuple[ExternalFile, ...]


def load(path: Path, *, complete: bool = True) -> LoadedModel:
    """Read an ONNX model and check that it is one, and that its external data is there.

    ``complete`` False: external data may be missing or too short; ``to_array`` then fails for what lies there.

    Raises UsageError when there is no readable file at ``path``, ModelError when the file is no valid ONNX model: it
    then says what the file seems to be, LimitError when it would take far more memory than its size. Operators are not
    checked: those of private domains load too.
    """
    proto = read(path)
    try:
        external_files = external_data.resolve(path, walk.all_tensors(proto), complete=complete)
    except ModelError as error:
        raise ModelError(f"{path}: {error.message}", hint=error.hint) from error
    return LoadedModel(path, proto, external_files)


def read(path: Path) -> onnx.ModelProto:
    """Read an ONNX model as ``load`` does, and raise what it raises, without a look at its external data."""
    proto = _parse(path, _read(path))
    _check(path, proto)
    try:
        walk.check_size(proto)
        walk.check_text(proto)
    except (ModelError, LimitError) as error:
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from error
    return proto


def check_limits(model: LoadedModel, *, ir_version: int, opset: int) -> None:
    """Raise ModelError when the model's IR version or opset is newer than ``ir_version`` or ``opset``."""
    name, found = model.path.name, model.proto.ir_version
    if found > ir_version:
        raise ModelError(
            f"{model.path} has IR version {found}; the target's runtime reads at most IR version {ir_version}.",
            hint="Export it again with an older onnx package. When its operators are old enough, lowering the number "
            f"will do: m = onnx.load({name!r}); m.ir_version = {ir_version}; onnx.save(m, {name!r}).",
        )
    newest = walk.opset(model.proto)
    if newest > opset:
        raise ModelError(
            f"{model.path} uses opset {newest} of ai.onnx; the target's runtime has at most opset {opset}.",
            hint=f"Export it again with opset {opset} or older, or convert it: "
            f"m = onnx.version_converter.convert_version(onnx.load({name!r}), {opset}); onnx.save(m, {name!r}).",
        )


def to_array(model: LoadedModel, tensor: onnx.TensorProto) -> Array:
    """Return a tensor's values, read from external data where they lie there, in the tensor's shape and dtype.

    Strings become an object array. Raises ModelError when the values do not fill the shape.
    """
    if external_data.is_external(tensor):
        tensor = _embedded(model, tensor)
    try:
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(
            f"The values of tensor {tensor.name!r} do not fit its type and shape {list(tensor.dims)}: {error}.",
            hint="The file is damaged, or its exporter is broken. Copy or export it again.",
        ) from error


def raw_bytes(model: LoadedModel, tensor: onnx.TensorProto) -> Iterator[bytes]:
    """Yield a tensor's values as the bytes of its elements, in pieces; external data is not held in memory as a whole.

    Raises ModelError when they are not there, or do not fill the tensor's shape.
    """
    needed = external_data.tensor_bytes(tensor)
    if not external_data.is_external(tensor):
        # Most are stored in these very bytes; others as lists of numbers.
        yield tensor.raw_data if len(tensor.raw_data) == needed else to_array(model, tensor).tobytes()
        return
    part, path = _external_place(model, tensor)
    with _read_errors(path), path.open("rb") as stream:
        stream.seek(part.offset)
        while needed > 0:
            chunk = stream.read(min(needed, _CHUNK_BYTES))
            if not chunk:
                raise ModelError(f"The external data file {path} is too short for tensor {tensor.name!r}.")
            needed -= len(chunk)
            yield chunk


def save(proto: onnx.ModelProto, path: Path) -> None:
    """Write a model, whole or not at all. The same model gives the same bytes. External data is not written."""
    try:
        data = proto.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ModelError(
            f"{path} would be too large for one file: {error}.", hint="Keep its weights in external data."
        ) from error
    files.write_atomic(path, data)


def _embedded(model: LoadedModel, tensor: onnx.TensorProto) -> onnx.TensorProto:
    """Return the tensor with its values read in from the external file that ``load`` found and checked."""
    part, path = _external_place(model, tensor)
    with _read_errors(path), path.open("rb") as stream:
        stream.seek(part.offset)
        data = stream.read(external_data.tensor_bytes(tensor))
    return onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=data)


def _external_place(model: LoadedModel, tensor: onnx.TensorProto) -> tuple[external_data.Span, Path]:
    part = external_data.span(tensor)
    file = next((f for f in model.external_files if f.location == part.location), None)
    if file is None:
        raise ModelError(
            f"The values of tensor {tensor.name!r} are not there: {part.location!r} is not of {model.path}."
        )
    if part.offset + external_data.tensor_bytes(tensor) > file.bytes:
        raise ModelError(f"The external data file {file.path} is too short for tensor {tensor.name!r}.")
    return part, file.path


def _read(path: Path) -> bytes:
    with _read_errors(path):
        if path.is_dir():
            models = sorted(p.name for p in path.glob("*.onnx"))
            hint = f"Name the model in it, for example {path / models[0]}." if models else "Name a model file (.onnx)."
            raise UsageError(f"{path} is a folder, not a model file.", hint=hint)
        size = path.stat().st_size
        if not path.is_file():
            raise UsageError(f"{path} is not an ordinary file.", hint="Name a model file (.onnx).")
        if size == 0:
            raise ModelError(f"{path} is empty (0 bytes).", hint="Download or export the model again.")
        with path.open("rb") as stream:
            if size > MAX_BYTES:
                raise _too_large(path, size, stream.read(sniff.HEAD_BYTES))
            _weigh(path, stream, size)
            stream.seek(0)
            return stream.read(MAX_BYTES)


def _weigh(path: Path, stream: BinaryIO, size: int) -> None:
    """Raise LimitError for a file that would take far more memory than its size, before it takes any of it."""
    try:
        wire.weigh(stream, size)
    except wire.BrokenError as error:
        if size > _LARGE_BYTES or isinstance(error, wire.TooDeepError):
            stream.seek(0)
            raise _not_a_model(path, stream.read(_CHUNK_BYTES), size, error) from error
    except wire.TooMuchError as error:
        stream.seek(0)
        if found := sniff.guess(path, stream.read(sniff.HEAD_BYTES)):
            raise ModelError(f"{path} is not an ONNX model: it is {found.what}.", hint=found.hint) from error
        raise LimitError(
            f"{path} is more than can be read: it holds {error}.",
            hint="Export the model with its weights as tensors, not as lists or nodes, or cut it into parts.",
        ) from error


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {path}.", hint=_nearby(path)) from error
    except PermissionError as error:
        raise UsageError(f"No permission to read {path}.", hint="Change the file's permissions, or copy it.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", hint="Check the path.") from error


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f"The folder {path.parent} does not exist. Check the path."
    models = sorted(p.name for p in path.parent.glob("*.onnx"))
    return f"Models in that folder: {', '.join(models[:5])}." if models else "Check the path."


def _too_large(path: Path, size: int, head: bytes) -> ModelError:
    if found := sniff.guess(path, head):
        return ModelError(f"{path} is not an ONNX model: it is {found.what}.", hint=found.hint)
    return ModelError(
        f"{path} has {size:,} bytes; one ONNX file holds at most {MAX_BYTES:,} (2 GiB).",
        hint="Export the model with its weights in external data. If this is such a file, name the .onnx file.",
    )


def _parse(path: Path, data: bytes) -> onnx.ModelProto:
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise _not_a_model(path, data, len(data), error) from error
    if not proto.HasField("graph") or proto.ir_version <= 0:
        raise _not_a_model(path, data, len(data), None, "no graph" if not proto.HasField("graph") else "no IR version")
    return proto


def _not_a_model(path: Path, data: bytes, size: int, error: Exception | None, lacks: str = "") -> ModelError:
    """Explain why a file that begins with ``data`` is no model: another kind of file, one cut short, a damaged one."""
    if found := sniff.guess(path, data[: sniff.HEAD_BYTES]):
        return ModelError(f"{path} is not an ONNX model: it is {found.what}.", hint=found.hint)
    again = "Download or export the model again."
    if missing := sniff.missing_bytes(data, size):
        return ModelError(
            f"{path} is cut short: at least {missing:,} bytes are missing at its end ({size:,} are there).",
            hint=again,
        )
    if error is None:
        return ModelError(
            f"{path} is not an ONNX model: it has {lacks}.",
            hint="If it is a TensorFlow model (.pb), convert it with the tf2onnx package. If it is a file of weights, "
            "name the .onnx file beside it. If it was an ONNX model, it was cut short: copy it again.",
        )
    if isinstance(error, wire.TooDeepError) or "MaxDepth" in str(error):
        return ModelError(
            f"{path} is nested too deeply (more than 100 messages).",
            hint="No runtime reads such a model. Export it with fewer nested branches.",
        )
    return ModelError(f"{path} is not an ONNX model, or is damaged: its bytes do not parse.", hint=again)


def _check(path: Path, proto: onnx.ModelProto) -> None:
    if not proto.opset_import and proto.ir_version >= 3:
        raise ModelError(
            f"{path} does not say which opset it uses, so no runtime can read it.",
            hint="The file was cut short, or its exporter is broken. Copy or export it again.",
        )
    if not proto.graph.output:
        raise ModelError(
            f"{path} has no outputs: there is nothing to compute.", hint="Export the model with its outputs named."
        )
