"""A corpus of malformed and hostile model files, made anew from a seed: the same files on every machine.

``corpus`` lists them without making them: a file of a gigabyte costs nothing until ``Malformed.make`` writes it.
Kinds that are made by hand are in ``malformed_models`` and ``malformed_files``; here are those that damage real models.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import malformed_files
import malformed_models
import models_text
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

ROOT = Path(__file__).resolve().parent.parent

CONTROL = """
<ir_version: 8, opset_import: ["" : 17]>
control (float[N, 2] x, int64 trips, bool go, float[4, 2] steps) => (float[N, 2] y, float[2] sum, float[4, 2] all)
{
    y = Loop (trips, go, x) <body = turn (int64 i, bool c, float[N, 2] v) => (bool d, float[N, 2] w) {
        d = Identity(c)
        w = Add(v, v)
    }>
    zero = Constant <value = float[2] {0, 0}> ()
    sum, all = Scan <num_scan_inputs = 1, body = add (float[2] s, float[2] t) => (float[2] u, float[2] o) {
        u = Add(s, t)
        o = Identity(u)
    }> (zero, steps)
}
"""

SEQUENCES = """
<ir_version: 10, opset_import: ["" : 21]>
sequences (float[2] x, seq(float[2]) s, optional(float[2]) o) => (seq(float[2]) t, float[M] y, bool has)
{
    t = SequenceInsert(s, x)
    y = ConcatFromSequence <axis = 0> (t)
    has = OptionalHasElement(o)
}
"""

SHAPES = """
<ir_version: 8, opset_import: ["" : 17]>
shapes (float[N, 3, H, W] x) => (float[N, 3, P, Q] y, float[R] f)
<int64[1] start = {2}, int64[1] stop = {4}, int64[1] two = {2}, float[0] none = {}, int64[1] flat = {-1},
 float[8, 3, 3, 3] w = {0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54}>
{
    shape = Shape(x)
    tail = Slice(shape, start, stop)
    double = Mul(tail, two)
    head = Slice(shape, zero, start)
    zero = Constant <value = int64[1] {0}> ()
    sizes = Concat <axis = 0> (head, double)
    y = Resize(x, none, none, sizes)
    f = Reshape(x, flat)
}
"""

QUANTIZED = """
<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
quantized (float[N, 2] x, string[N] words) => (float[N, 2] y, int64[N] keys)
<float scale = {0.5}, int8 zero = {0}>
{
    q = QuantizeLinear(x, scale, zero)
    y = DequantizeLinear(q, scale, zero)
    keys = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2], default_int64 = -1> (words)
}
"""

TEXTS = {
    "linear": models_text.LINEAR,
    "branches": models_text.NESTED_IF,
    "functions": models_text.LOCAL_FUNCTION,
    "old": models_text.INITIALIZER_AS_INPUT,
    "embedding": models_text.EMBEDDING,
    "control flow": CONTROL,
    "sequences": SEQUENCES,
    "shape arithmetic": SHAPES,
    "quantized": QUANTIZED,
}

BACKEND = Path(onnx.__file__).parent / "backend" / "test" / "data"
REAL = {
    "digits": ROOT / "examples" / "digits" / "digits.onnx",
    "conv": BACKEND / "pytorch-converted" / "test_Conv2d" / "model.onnx",
    "batch norm": BACKEND / "pytorch-converted" / "test_BatchNorm2d_eval" / "model.onnx",
}

TRUNCATIONS, FLIPS, BLOCKS, LENGTHS, FIELDS = 60, 20, 12, 14, 16


@dataclass(frozen=True)
class Malformed:
    """One file. ``make`` writes it, and what lies beside it, into an empty folder, and returns its path."""

    kind: str
    name: str
    make: Callable[[Path], Path]


def corpus() -> Iterator[Malformed]:
    """Yield every file, kind by kind, in the same order each time."""
    yield from _damaged("cut short", TRUNCATIONS, cut)
    yield from _damaged("flipped bits", FLIPS, flip)
    yield from _damaged("moved blocks", BLOCKS, move)
    yield from _damaged("wrong lengths", LENGTHS, relength)
    yield from _damaged("extreme fields", FIELDS, extreme)
    for kind, name, proto in malformed_models.models():
        yield Malformed(kind, name, _written(proto))
    for kind, name, make in malformed_files.files():
        yield Malformed(kind, name, make)


@cache
def bases() -> dict[str, bytes]:
    """The models that are damaged, by name."""
    found = {name: models_text.parse(text).SerializeToString() for name, text in TEXTS.items()}
    found["sparse"] = malformed_models.sparse_base().SerializeToString()
    return found | {name: path.read_bytes() for name, path in REAL.items()}


def _damaged(kind: str, count: int, change: Callable[[bytes, random.Random, int, int], bytes]) -> Iterator[Malformed]:
    for base in bases():
        for number in range(count):
            yield Malformed(kind, f"{base} {number}", _changed(kind, base, number, count, change))


def _changed(
    kind: str, base: str, number: int, count: int, change: Callable[[bytes, random.Random, int, int], bytes]
) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        chance = random.Random(f"{kind} {base} {number}")  # noqa: S311
        (folder / "m.onnx").write_bytes(change(bases()[base], chance, number, count))
        return folder / "m.onnx"

    return make


def _written(proto: Callable[[], onnx.ModelProto]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "m.onnx").write_bytes(proto().SerializeToString())
        return folder / "m.onnx"

    return make


def cut(data: bytes, _chance: random.Random, number: int, count: int) -> bytes:
    """Return the beginning of a file; the ends are spread evenly over it."""
    return data[: len(data) * number // count]


def flip(data: bytes, chance: random.Random, _number: int, _count: int) -> bytes:
    """Flip one bit, or some."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def move(data: bytes, chance: random.Random, _number: int, _count: int) -> bytes:
    """Remove a block, double it, overwrite it with noise, zeros or ones, or put it elsewhere."""
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.randrange(1, 65))
    block, rest = data[start:end], data[:start] + data[end:]
    place = chance.randrange(len(rest) + 1)
    return chance.choice(
        (
            rest,
            data[:end] + block + data[end:],
            data[:start] + chance.randbytes(len(block)) + data[end:],
            data[:start] + b"\0" * len(block) + data[end:],
            data[:start] + b"\xff" * len(block) + data[end:],
            rest[:place] + block + rest[place:],
        )
    )


def relength(data: bytes, chance: random.Random, _number: int, _count: int) -> bytes:
    """Let one field of the wire format claim another length than it has."""
    places = list(_lengths(data, 0, len(data), 0))
    start, end, value = chance.choice(places)
    wrong = chance.choice((0, 1, value + 1, max(0, value - 1), value * 2, 1 << 31, (1 << 63) - 1, (1 << 64) - 1))
    return data[:start] + malformed_models.varint(wrong) + data[end:]


def _lengths(data: bytes, start: int, end: int, depth: int) -> Iterator[tuple[int, int, int]]:
    """Yield where the lengths of fields stand: (start, end, value). What could be a message is looked into."""
    place = start
    while place < end:
        tag, place = _number(data, place, end)
        wire = tag & 7
        if wire == 2:
            length, after = _number(data, place, end)
            if after + length > end or tag >> 3 == 0:
                return
            yield place, after, length
            if depth < 8:
                yield from _lengths(data, after, after + length, depth + 1)
            place = after + length
        elif wire == 0:
            _, place = _number(data, place, end)
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            return


def _number(data: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 70:
        value |= (data[place] & 0x7F) << shift
        place += 1
        if data[place - 1] < 0x80:
            break
        shift += 7
    return value, place


NUMBERS = (0, -1, 1, 255, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))
WORDS = ("", "x" * 1_000_000, "a\0b", "\x1b[31m\x1b]0;title\a", "../../etc/passwd", "\u202ename", "😀" * 300, "\n" * 50)


def extreme(data: bytes, chance: random.Random, _number: int, _count: int) -> bytes:
    """Give one field of a model that still parses an extreme value, drop it, or repeat what it holds."""
    proto = onnx.ModelProto.FromString(data)
    fields = [(message, field) for message in _messages(proto) for field in message.DESCRIPTOR.fields]
    weights = [4 if _is_set(message, field) else 0.05 for message, field in fields]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        message, field = chance.choices(fields, weights)[0]
        _disturb(message, field, chance)
    try:
        return proto.SerializeToString()
    except (ValueError, DecodeError):  # a message may have been dropped around one that was changed after it
        return data[:-1]


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if _is_repeated(field) else (value,):
            yield from _messages(each)


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _is_set(message: Message, field: FieldDescriptor) -> bool:
    return any(each is field or each.number == field.number for each, _ in message.ListFields())


def _disturb(message: Any, field: FieldDescriptor, chance: random.Random) -> None:
    if _is_repeated(field):
        _repeat(getattr(message, field.name), message, field, chance)
    elif field.message_type is not None:
        if chance.random() < 0.5:
            message.ClearField(field.name)
        else:
            getattr(message, field.name).Clear()
            getattr(message, field.name).SetInParent()
    elif chance.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _value(field, chance))


def _repeat(values: Any, message: Any, field: FieldDescriptor, chance: random.Random) -> None:
    way = chance.randrange(4)
    if way == 0 or (way < 3 and not values and field.message_type is not None):
        message.ClearField(field.name)
    elif field.message_type is not None:
        each = chance.choice(list(values)) if values else field.message_type._concrete_class()
        for _ in range((1, 1, 3, 200)[way]):
            values.add().CopyFrom(each)
    elif way == 1 and values:
        values[chance.randrange(len(values))] = _value(field, chance)
    elif way == 2 and values:
        values.extend(list(values) * min(1000, 100_000 // len(values)))
    else:
        values.extend(_value(field, chance) for _ in range(chance.choice((1, 5))))


def _value(field: FieldDescriptor, chance: random.Random) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        word = chance.choice(WORDS)
        return word.encode() if field.type == FieldDescriptor.TYPE_BYTES else word
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return chance.choice((0.0, -1.0, float("inf"), float("nan"), 1e38, -1e-45))
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return chance.choice([each.number for each in field.enum_type.values])
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    number = chance.choice(NUMBERS)
    if kind == FieldDescriptor.CPPTYPE_INT32:
        return max(-(1 << 31), min((1 << 31) - 1, number))
    return max(0, number) if kind in (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64) else number
