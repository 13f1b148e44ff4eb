"""Weights apart from the graph while passes work: every large tensor lies once in a file, whatever happens around it.

A copy of the graph is then small, so that each pass can leave one for its proof, and memory holds one tensor at a time.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir

from edgekit.files import disk_errors
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel
from edgekit.passes.share import digest_in_memory

# Smaller tensors stay in the graph: shape inference and the runtime read sizes and axes from there.
LARGE_BYTES = 4096
STORE = "weights.bin"
CHUNK_BYTES = 4 << 20
_ALIGN = 64


class Store:
    """A folder with the large tensors of a model in files: the model's own external data, and ``STORE`` for others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests: dict[tuple[str, int, int], str] = {}
        (folder / STORE).touch()

    def detach(self, model: LoadedModel) -> onnx.ModelProto:
        """Return a copy of the model's graph with its large tensors in this folder. Raises LimitError: disk full."""
        places = {}
        for number, file in enumerate(model.external_files):
            places[file.location] = f"external-{number}.bin"
            _link_or_copy(file.path, self.folder / places[file.location])
        proto = onnx.ModelProto()
        proto.CopyFrom(model.proto)
        for tensor in walk.all_tensors(proto):
            if external_data.is_external(tensor):
                self._localise(tensor, places)
        for tensor in _movable(proto):
            if not external_data.is_external(tensor) and _is_large(tensor):
                raw = tensor.raw_data or _values(tensor)
                if len(raw) == external_data.tensor_bytes(tensor):  # a damaged tensor stays for the runtime to refuse
                    self.move_out(tensor, raw)
        return proto

    def _localise(self, tensor: onnx.TensorProto, places: dict[str, str]) -> None:
        part = external_data.span(tensor)
        size = external_data.tensor_bytes(tensor)
        if size < LARGE_BYTES:
            raw = self.read(places[part.location], part.offset, size)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = raw
        else:
            point(tensor, places[part.location], part.offset, size)

    def move_out(self, tensor: onnx.TensorProto, raw: bytes) -> None:
        """Append a tensor's bytes to the store, and let it point there."""
        path = self.folder / STORE
        with disk_errors(path), path.open("ab") as stream:
            pad(stream, _ALIGN)
            offset = stream.tell()
            stream.write(raw)
        for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
            tensor.ClearField(name)
        point(tensor, STORE, offset, len(raw))

    def settle(self, proto: onnx.ModelProto) -> None:
        """Move out what passes have made that is large."""
        for tensor in _movable(proto):
            if not external_data.is_external(tensor) and _is_large(tensor):
                self.move_out(tensor, tensor.raw_data or _values(tensor))

    def read(self, location: str, offset: int, size: int) -> bytes:
        """Return bytes of a file of this folder."""
        with (self.folder / location).open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    def chunks(self, location: str, offset: int, size: int) -> Iterator[bytes]:
        """Yield bytes of a file of this folder, a few megabytes at a time."""
        with (self.folder / location).open("rb") as stream:
            stream.seek(offset)
            while size > 0 and (chunk := stream.read(min(CHUNK_BYTES, size))):
                yield chunk
                size -= len(chunk)

    def digest(self, tensor: ir.TensorProtocol) -> str | None:
        """Return the sha256 of a tensor's bytes, read in chunks; each stored tensor is read once."""
        if not isinstance(tensor, ir.ExternalTensor):
            return digest_in_memory(tensor)
        size = int(tensor.nbytes)
        return self.digest_at(os.fspath(tensor.location), tensor.offset or 0, size)

    def digest_at(self, location: str, offset: int, size: int) -> str:
        """Return the sha256 of bytes in this folder."""
        key = (location, offset, size)
        if key not in self._digests:
            digest = hashlib.sha256()
            for chunk in self.chunks(location, offset, size):
                digest.update(chunk)
            self._digests[key] = digest.hexdigest()
        return self._digests[key]


def point(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    """Let a tensor's values lie in a file."""
    tensor.ClearField("external_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def pad(stream: BinaryIO, align: int) -> None:
    """Write zeros up to the next multiple of ``align``."""
    stream.write(b"\0" * (-stream.tell() % align))


def stored_bytes(proto: onnx.ModelProto) -> int:
    """Return what the model would take with all its weights: its message, and what it points to, each span once."""
    spans = set()
    pointers = 0
    for tensor in walk.all_tensors(proto):
        if external_data.is_external(tensor):
            part = external_data.span(tensor)
            spans.add((part.location, part.offset, external_data.tensor_bytes(tensor)))
            pointers += sum(entry.ByteSize() + 2 for entry in tensor.external_data) + 2
    message: int = proto.ByteSize()
    return message - pointers + sum(size + 6 for _, _, size in spans)


def _movable(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Tensors that may lie outside of the graph: initializers, and the values of Constant nodes."""
    for graph in walk.all_graphs(proto):
        yield from graph.initializer
        for node in graph.node:
            if node.op_type == "Constant":
                yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))


def _values(tensor: onnx.TensorProto) -> bytes:
    """Return values that are stored as protobuf numbers, as the bytes they are in memory."""
    return ir.serde.deserialize_tensor(tensor).tobytes()


def _is_large(tensor: onnx.TensorProto) -> bool:
    bits = external_data.BITS.get(tensor.data_type)
    return bits is not None and external_data.tensor_bytes(tensor) >= LARGE_BYTES


def _link_or_copy(source: Path, destination: Path) -> None:
    """Give a file a second name in the work folder; copy it where the file system cannot.

    A symbolic link would not do: the runtime refuses external data that leads out of the model's folder.
    """
    with disk_errors(destination):
        try:
            os.link(source.resolve(), destination)
        except OSError:
            shutil.copyfile(source, destination)
