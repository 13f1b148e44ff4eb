"""Write a model whose weights lie in a store: into one file, or with external data cut under a size; streamed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from edgekit import files
from edgekit.errors import LimitError
from edgekit.files import disk_errors
from edgekit.model import external_data, walk
from edgekit.model.io import MAX_BYTES
from edgekit.trim.plan import OutputFile
from edgekit.trim.weights import Store, point

# Where a large tensor begins, so that it can be mapped into memory as it is (a page).
_PAGE = 4096
_PAGED_BYTES = 1 << 20
_ALIGN = 64
_ROOM = 1 << 20


@dataclass(frozen=True)
class Packing:
    """How weights are stored. ``external``: None does as the input did. ``file_bytes``: the most of one data file."""

    external: bool | None = None
    file_bytes: int | None = None


def write(proto: onnx.ModelProto, store: Store, folder: Path, name: str, *, external: bool, most: int | None) -> None:
    """Write ``name`` and, when ``external``, its data files into ``folder``.

    Raises LimitError when one file cannot hold it, or a single tensor is larger than ``most`` bytes.
    """
    final = onnx.ModelProto()
    final.CopyFrom(proto)
    if external:
        _write_data(final, store, folder, name, most)
    else:
        _embed(final, store, name)
    for tensor in walk.all_tensors(final):
        _shorten(tensor)
    path = folder / name
    with disk_errors(path):
        path.write_bytes(final.SerializeToString(deterministic=True))


def _embed(proto: onnx.ModelProto, store: Store, name: str) -> None:
    tensors = [tensor for tensor in walk.all_tensors(proto) if external_data.is_external(tensor)]
    total = proto.ByteSize() + sum(external_data.tensor_bytes(tensor) for tensor in tensors)
    if total > MAX_BYTES - _ROOM:
        raise LimitError(
            f"{name} would have about {total:,} bytes; one ONNX file holds at most {MAX_BYTES:,} (2 GiB).",
            hint="Keep the weights in external data: --split-weights 1GB.",
        )
    for tensor in tensors:
        part = external_data.span(tensor)
        raw = store.read(part.location, part.offset, external_data.tensor_bytes(tensor))
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
        tensor.raw_data = raw


def _write_data(proto: onnx.ModelProto, store: Store, folder: Path, name: str, most: int | None) -> None:
    """Copy what the tensors point to, each span once, into data files of at most ``most`` bytes."""
    spans: dict[tuple[str, int, int], tuple[str, int]] = {}
    number, used = 0, 0
    for tensor in walk.all_tensors(proto):
        if not external_data.is_external(tensor):
            continue
        part, size = external_data.span(tensor), external_data.tensor_bytes(tensor)
        if most is not None and size > most:
            raise LimitError(
                f"Tensor '{tensor.name}' has {size:,} bytes, more than the {most:,} that a file may have.",
                hint="A tensor cannot be cut in two. Give --split-weights a larger size, or quantize the model.",
            )
        key = (part.location, part.offset, size)
        if key not in spans:
            align = _PAGE if size >= _PAGED_BYTES else _ALIGN
            start = used + -used % align
            if most is not None and start + size > most:
                number, start = number + 1, 0
            spans[key] = (data_name(name, number), start)
            _append(folder / spans[key][0], start, store.chunks(*key))
            used = start + size
        point(tensor, spans[key][0], spans[key][1], size)


def data_name(name: str, number: int) -> str:
    """Return the name of a data file: ``model.onnx.data``, then ``model.onnx.data_1`` and so on."""
    return f"{name}.data" if number == 0 else f"{name}.data_{number}"


def _append(path: Path, start: int, chunks: Iterator[bytes]) -> None:
    with disk_errors(path), path.open("ab") as stream:
        stream.write(b"\0" * (start - stream.tell()))
        for chunk in chunks:
            stream.write(chunk)


def _shorten(tensor: onnx.TensorProto) -> None:
    """Store a short list of small integers as protobuf numbers, which take a byte or two each in place of eight."""
    if tensor.data_type != onnx.TensorProto.INT64 or not tensor.raw_data or len(tensor.raw_data) > _PAGE:
        return
    numbers = np.frombuffer(tensor.raw_data, dtype="<i8")
    if len(numbers) != external_data.elements(tensor):
        return
    size = sum(10 if number < 0 else max(1, -(-int(number).bit_length() // 7)) for number in numbers)
    if size < len(tensor.raw_data):
        tensor.ClearField("raw_data")
        tensor.int64_data.extend(int(number) for number in numbers)


def put(folder: Path, destination: Path) -> tuple[OutputFile, ...]:
    """Move what ``write`` wrote to its place: data files first, the model last. Returns the files."""
    names = sorted((path.name for path in folder.iterdir()), key=lambda name: name == destination.name)
    written = []
    for name in names:
        source = folder / name
        written.append(OutputFile(name, source.stat().st_size, files.sha256_file(source)))
        with disk_errors(destination), source.open("rb") as stream:
            os.fsync(stream.fileno())
    for name in names:
        with disk_errors(destination):
            (folder / name).replace(destination.parent / name)
    return tuple(reversed(written))
