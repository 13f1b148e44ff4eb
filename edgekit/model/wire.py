"""Weigh a model file before it is parsed: what its bytes become in memory, by a look at protobuf's wire format.

Two bytes can say "an empty node", which is 150 bytes when parsed, and a list of a billion numbers takes one byte each
in the file and sixteen in memory. So every length and tag is read here first, in windows of the file: values of tensors
are jumped over, and a file that would grow beyond its budget is noticed after a few megabytes of it.

The format: https://protobuf.dev/programming-guides/encoding. Fields and their types come from onnx's own descriptors.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

import numpy as np
import onnx

from edgekit.model import walk

# What upb, protobuf's parser in C, takes; measured with two to seventeen million of each. An array that grows leaves
# its smaller forms behind: whole numbers take 16 to 24 bytes each, floats half of it, texts 32 to 38 besides their own.
_STRING_BYTES = 40
_NUMBER_BYTES = 20
_FLOAT_BYTES = 10
# A shape is a tuple, a message and a line of text as well, wherever it is looked at.
_DIMENSION_BYTES = 200
_DIMENSIONS = ("TensorProto.dims", "SparseTensorProto.dims", "TensorShapeProto.dim")
# Names are copied wherever they are shown; bytes (values of tensors) are not.
_COPIES_OF_TEXT = 4
_LONGEST_TEXT_BYTES = 16 << 20
_MESSAGE_BYTES = 48
_MESSAGE_BYTES_PER_FIELD = 8
# Each tensor is a row of the survey, has a name, values and a place; 400,000 empty ones took trim 1.1 GB.
_TENSOR_BYTES = 400

# A parsed model may take this much, and its file's size, besides the values of tensors.
_BUDGET_BYTES = 96 << 20
# Decision forests alone keep millions of numbers in lists of attributes. One of 3,000,000 tree nodes has 120 MB, and
# takes 655 MB when parsed, and 1.4 GB in a session. Nothing but the runtime looks at each entry.
_FOREST_BYTES, _FOREST_BYTES_PER_BYTE = 1200 << 20, 8
_FOREST_LISTS = (b"nodes_", b"target_", b"class_", b"leaf_", b"classlabels_", b"tree_", b"membership_values")
_LISTS_OF_ATTRIBUTES = ("AttributeProto.ints", "AttributeProto.floats", "AttributeProto.strings")
# Each takes a microsecond here and several wherever all of them are looked at. A real model has ten to a node, and a
# vocabulary of a million words has a million. A forest has a text to a tree node.
_MOST_FIELDS, _MOST_FOREST_FIELDS = 3_000_000, 6_000_000

_WINDOW_BYTES = 1 << 20
# A tag and a length take at most ten bytes each.
_HEAD_BYTES = 20
# Runs of numbers shorter than this are quicker one by one.
_RUN_BYTES = 64

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_MOST_DEPTH = 100  # protobuf's own limit

# What a field with a length holds. _VALUES: those of a tensor, which take no more in memory than in the file.
_MESSAGE, _TEXT, _TEXTS, _BLOBS, _VALUES, _PACKED_VARINTS, _PACKED_FIXED, _NOTHING = range(8)

_NODES = ("GraphProto.node", "FunctionProto.node")


@dataclass(frozen=True, eq=False)
class _Kind:
    """A message: what it takes, what its fields with a length hold, and the names of its lists of numbers, by tag."""

    bytes: int
    fields: dict[int, "tuple[int, str, _Kind | None]"]
    numbers: dict[int, str]


_UNKNOWN: tuple[int, str, _Kind | None] = (_NOTHING, "", None)


class BrokenError(Exception):
    """The bytes are no message of protobuf's."""


class TooDeepError(BrokenError):
    """Messages lie in each other more than 100 deep, which protobuf does not read."""


class TooMuchError(Exception):
    """The model would take too much memory or time; the text says of what it has too many."""


def weigh(stream: BinaryIO, size: int) -> None:
    """Look at every field of the model of ``size`` bytes in ``stream``.

    Raises BrokenError where the bytes are no message (it does not see all that protobuf refuses), TooMuchError where
    there is more than a machine should be asked to hold: the text says of what. Reads no further then.
    """
    _Reader(stream, size).read()


@cache
def _model() -> _Kind:
    """The kind of a whole model."""
    found: dict[str, _Kind] = {}

    def learn(message: Any) -> _Kind:
        if (kind := found.get(message.full_name)) is not None:
            return kind
        size = _MESSAGE_BYTES + _MESSAGE_BYTES_PER_FIELD * len(message.fields)
        size = _TENSOR_BYTES if message is onnx.TensorProto.DESCRIPTOR else size
        kind = found[message.full_name] = _Kind(size, {}, {})
        for field in message.fields:
            name, tag = f"{message.name}.{field.name}", field.number << 3
            if field.message_type is not None:
                kind.fields[tag | _BYTES] = (_MESSAGE, name, learn(field.message_type))
            elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
                one, many = (_TEXT, _TEXTS) if field.type == field.TYPE_STRING else (_VALUES, _BLOBS)
                kind.fields[tag | _BYTES] = (many if field.is_repeated else one, name, None)
            else:
                wire = {field.TYPE_FLOAT: _FIXED32, field.TYPE_DOUBLE: _FIXED64}.get(field.type, _VARINT)
                kind.numbers[tag | wire] = name if field.is_repeated else ""
                if field.is_repeated:
                    packed = _VALUES if message.name == "TensorProto" else _PACKED_FIXED
                    kind.fields[tag | _BYTES] = (_PACKED_VARINTS if wire == _VARINT else packed, name, None)
        return kind

    return learn(onnx.ModelProto.DESCRIPTOR)


class _Reader:
    """Reads the fields of messages in messages. ``place``: of the next byte, in the window that begins at ``base``."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream, self.size = stream, size
        self.budget = _BUDGET_BYTES + size
        self.forest_budget = min(_FOREST_BYTES, _BUDGET_BYTES + _FOREST_BYTES_PER_BYTE * size)
        self.window = b""
        self.base = self.place = 0
        self.weight = self.fields = self.forest_weight = self.forest_fields = 0
        self.in_forest = False
        self.lists: Counter[str] = Counter()

    def read(self) -> None:
        """Read every field."""
        kind, end = _model(), self.size
        around: list[tuple[_Kind, int]] = []
        while True:
            here = self.base + self.place
            while here >= end:
                if here > end:
                    raise BrokenError
                if not around:
                    return
                kind, end = around.pop()
            if len(self.window) - self.place < _HEAD_BYTES and self.base + len(self.window) < self.size:
                self._load(here)
            tag = self._number()
            if tag & 7 != _BYTES:
                self._single(kind, tag, end)
                continue
            length = self._number()
            here = self.base + self.place
            if here + length > end:
                raise BrokenError
            what, name, inner = kind.fields.get(tag, _UNKNOWN)
            if inner is None:
                self._skip(what, name, tag, length)
                continue
            self._count(name, _DIMENSION_BYTES if name in _DIMENSIONS else inner.bytes)
            if length:
                if len(around) >= _MOST_DEPTH:
                    raise TooDeepError
                around.append((kind, end))
                kind, end = inner, here + length

    def _skip(self, what: int, name: str, tag: int, length: int) -> None:
        """Count a field that is no message, and go past it."""
        if what == _PACKED_VARINTS:
            self._packed(name, length)
            return
        if what == _NOTHING:
            self._unknown(tag)
        elif what == _PACKED_FIXED:
            self._numbers(name, length // 4)
        elif what == _BLOBS:
            self._count(name, _STRING_BYTES + length)
        elif what != _VALUES:
            if length > _LONGEST_TEXT_BYTES:
                raise TooMuchError(f"a text of {length:,} bytes as {name}")
            self._count(name, _COPIES_OF_TEXT * length + (_STRING_BYTES if what == _TEXTS else 0))
            if name == "AttributeProto.name":  # it stands before the lists, as every exporter writes it
                self.in_forest = self.window.startswith(_FOREST_LISTS, self.place)
        self.place += length

    def _single(self, kind: _Kind, tag: int, end: int) -> None:
        """Count a field of one number, and all of the same field that follow it."""
        wire = tag & 7
        name = kind.numbers.get(tag)
        if wire != _VARINT and wire not in _FIXED:
            raise BrokenError
        if wire == _VARINT:
            self._number()
        else:
            self.place += _FIXED[wire]
        if name is None:
            self._unknown(tag)
        elif name:
            self._numbers(name, 1)
            if end - self.base - self.place > _RUN_BYTES and tag < 0x80:
                self._run(name, tag, end)

    def _run(self, name: str, tag: int, end: int) -> None:
        """Go past numbers of one field that follow each other, each with its tag, many at a time."""
        left = self.window[self.place : min(len(self.window), end - self.base)]
        if not left or left[0] != tag:
            return
        data = np.frombuffer(left, np.uint8)
        width = _FIXED.get(tag & 7)
        if width is not None:
            heads = data[:: width + 1][: len(data) // (width + 1)]
            count = _leading(heads == tag)
            size = count * (width + 1)
        else:
            ends = np.flatnonzero(data < 0x80)  # of tags and values in turn; a tag below 128 is one byte
            ends = ends[: len(ends) // 2 * 2]
            starts = np.concatenate(([0], ends[:-1] + 1))[::2]
            count = _leading((data[starts] == tag) & (starts == ends[::2]))
            size = int(ends[2 * count - 1]) + 1 if count else 0
        self.place += size
        self._numbers(name, count)

    def _packed(self, name: str, length: int) -> None:
        """Count the numbers of a packed list: each ends with a byte below 128."""
        while length > 0:
            if self.place >= len(self.window):
                self._load(self.base + self.place)
                if not self.window:
                    raise BrokenError  # the file has become shorter
            part = self.window[self.place : self.place + length]
            count = int(np.count_nonzero(np.frombuffer(part, np.uint8) < 0x80))
            self._numbers(name, count)
            self.place += len(part)
            length -= len(part)

    def _count(self, name: str, cost: int, entries: int = 1) -> None:
        """Count ``entries`` of a list that take ``cost`` bytes together; they are one step of this reader."""
        self.lists[name] += entries
        if self.in_forest and name in _LISTS_OF_ATTRIBUTES:
            self.forest_weight += cost
            self.forest_fields += 1
            too_much = self.forest_weight > self.forest_budget or self.forest_fields > _MOST_FOREST_FIELDS
        else:
            self.weight += cost
            self.fields += 1
            too_many_nodes = name in _NODES and sum(self.lists[each] for each in _NODES) > walk.MOST_NODES
            too_much = too_many_nodes or self.weight > self.budget or self.fields > _MOST_FIELDS
        if too_much:
            most, count = self.lists.most_common(1)[0]
            raise TooMuchError(f"at least {count:,} of {most}")

    def _numbers(self, name: str, count: int) -> None:
        each = _FLOAT_BYTES if name == "AttributeProto.floats" else _NUMBER_BYTES
        self._count(name, count * (_DIMENSION_BYTES if name in _DIMENSIONS else each), count)

    def _unknown(self, tag: int) -> None:
        if tag >> 3 == 0:
            raise BrokenError
        self._count(f"the unknown field {tag >> 3}", 0)

    def _number(self) -> int:
        """Read a number in base 128."""
        window, place = self.window, self.place
        try:
            value = window[place]
            place += 1
            if value >= 0x80:
                value &= 0x7F
                for shift in range(7, 70, 7):
                    byte = window[place]
                    place += 1
                    value |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                else:
                    raise BrokenError
        except IndexError:
            raise BrokenError from None
        self.place = place
        return value

    def _load(self, start: int) -> None:
        self.stream.seek(start)
        self.window = self.stream.read(_WINDOW_BYTES)
        self.base, self.place = start, 0


def _leading(true: Any) -> int:
    """How many are true before the first that is not."""
    return len(true) if true.all() else int(np.argmin(true))
