"""Which inputs and outputs a model declares without a shape: onnxruntime tells those like a number alone, "[]".

Read from the file itself, as protobuf lays it down (https://protobuf.dev/programming-guides/encoding): what else could
read it, the package onnx, is not on a device. The numbers of the fields are those of onnx.proto.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

_GRAPH, _INPUT, _OUTPUT = 7, 11, 12
_NAME, _TYPE, _TENSOR, _SHAPE = 1, 2, 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def unknown(model: Path) -> frozenset[str]:
    """Return the names of the inputs and outputs whose rank the model leaves open; none for what is no model."""
    try:
        with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return frozenset(_names(data))
    except (OSError, ValueError, IndexError):
        return frozenset()


def _names(data: mmap.mmap) -> Iterator[str]:
    for field, start, end in _fields(data, 0, len(data)):
        if field != _GRAPH:
            continue
        for inner, first, last in _fields(data, start, end):
            if inner not in (_INPUT, _OUTPUT):
                continue
            parts = {number: (a, b) for number, a, b in _fields(data, first, last)}
            kinds = {number: (a, b) for number, a, b in _fields(data, *parts.get(_TYPE, (0, 0)))}
            if _TENSOR in kinds and _SHAPE not in {number for number, *_ in _fields(data, *kinds[_TENSOR])}:
                a, b = parts.get(_NAME, (0, 0))
                yield data[a:b].decode()


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of each field of a message; values that have no length are passed over."""
    place = start
    while place < end:
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == _VARINT:
            _, after = _varint(data, place)
        elif kind == _BYTES:
            length, place = _varint(data, place)
            after = place + length
        elif kind in (_FIXED64, _FIXED32):
            after = place + (8 if kind == _FIXED64 else 4)
        else:
            raise ValueError(f"no kind of a field: {kind}")
        if after > end:
            raise ValueError("a field ends behind its message")
        yield tag >> 3, place, after
        place = after


def _varint(data: mmap.mmap, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
