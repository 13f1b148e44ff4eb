"""Rules on numbers: weights that are no numbers or leave float16, casts that lose, powers that overflow."""

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import onnx

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Placed, Subject, attributes
from edgekit.errors import ModelError
from edgekit.facts.types import dtype_name
from edgekit.figures import figure
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel, to_array
from edgekit.records.tensors import Array

_LARGEST_HALF = 65504.0
_SMALLEST_HALF = 2.0**-24  # the smallest subnormal: less becomes 0
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_MOST_BYTES = 1 << 30  # in one tensor, read at once; larger ones are not looked at
_AT_ONCE = 1 << 20  # elements: what is computed of them takes no memory to speak of

# Bits of the significand, or of the magnitude: what a dtype holds exactly.
_EXACT_BITS = {
    "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "bool": 1,
    "int8": 7, "uint8": 8, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63, "uint64": 64,
}  # fmt: skip
_NARROW = {"int8", "uint8", "int16", "uint16", "int32", "uint32"}
_OVERFLOWS = {"Exp", "Pow", "ReduceSumSquare", "ReduceL2", "ReduceSumExp", "ReduceLogSumExp", "Cosh", "Sinh"}


@dataclass(frozen=True)
class _Range:
    """What a tensor of weights holds."""

    nan: int
    infinite: int
    too_large: int
    too_small: int
    largest: float

    def with_(self, other: "_Range") -> "_Range":
        return _Range(
            self.nan + other.nan,
            self.infinite + other.infinite,
            self.too_large + other.too_large,
            self.too_small + other.too_small,
            max(self.largest, other.largest),
        )


_Ranges = tuple[tuple[str, str | None, _Range], ...]
# Three rules ask, for each target, and each look goes over all weights.
_known: WeakKeyDictionary[LoadedModel, _Ranges] = WeakKeyDictionary()


def _ranges(subject: Subject) -> _Ranges:
    if subject.model not in _known:
        _known[subject.model] = tuple(_looked_up(subject))
    return _known[subject.model]


def _looked_up(subject: Subject) -> Iterator[tuple[str, str | None, _Range]]:
    """Yield each stored float tensor: its name, the Constant node that holds it, its range."""
    for graph in walk.all_graphs(subject.proto):
        for tensor in graph.initializer:
            if (found := _range(subject, tensor)) is not None:
                yield tensor.name, None, found
    for node in walk.all_nodes(subject.proto):
        value = attributes(node).get("value") if node.op_type == "Constant" else None
        if value is not None and value.HasField("t") and (found := _range(subject, value.t)) is not None:
            yield node.output[0] if node.output else "", node.name or None, found


def _range(subject: Subject, tensor: onnx.TensorProto) -> _Range | None:
    if tensor.data_type not in _FLOATS:
        return None
    try:
        if external_data.tensor_bytes(tensor) > _MOST_BYTES:
            return None
        array = to_array(subject.model, tensor).ravel()
    except ModelError:
        return None
    if not array.size:
        return None
    total = _Range(0, 0, 0, 0, 0.0)
    for start in range(0, array.size, _AT_ONCE):
        total = total.with_(_range_of(array[start : start + _AT_ONCE]))
    return total


def _range_of(array: Array) -> _Range:
    size = np.abs(array if array.dtype == np.float64 else array.astype(np.float32))
    finite = np.isfinite(size)
    with np.errstate(invalid="ignore"):
        too_large = int(np.count_nonzero((size > _LARGEST_HALF) & finite))
        too_small = int(np.count_nonzero((size < _SMALLEST_HALF) & (size > 0)))
    nan = int(np.count_nonzero(np.isnan(size)))
    largest = float(size[finite].max()) if finite.any() else 0.0
    return _Range(nan, int(size.size) - int(np.count_nonzero(finite)) - nan, too_large, too_small, largest)


@rule("weight-nan", "warning")
def weight_nan(subject: Subject) -> Iterator[Hit]:
    """Weights that are no numbers."""
    for name, node, found in _ranges(subject):
        if found.nan:
            yield Hit(f"It holds {found.nan:,} NaN.", node, name, "Training diverged, or the file is damaged.")


@rule("weight-infinite", "note")
def weight_infinite(subject: Subject) -> Iterator[Hit]:
    """Weights that are infinite."""
    for name, node, found in _ranges(subject):
        if found.infinite:
            yield Hit(
                f"It holds infinities ({found.infinite:,}): right for a mask before Softmax, unless a whole row is "
                "masked (then NaN); shaders may also assume that there are none.",
                node,
                name,
                "A large finite number (-1e4 where float16 matters) does the same.",
            )


@rule("float16-range", "note")
def float16_range(subject: Subject) -> Iterator[Hit]:
    """Weights that float16 cannot hold."""
    fix = "Keep these tensors, and the nodes that take them, in float32 when converting to float16."
    known = _ranges(subject)
    if large := [(name, node, found) for name, node, found in known if found.too_large]:
        name, node, _ = max(large, key=lambda each: each[2].largest)
        yield Hit(
            f"{_tensors(len(large))} values beyond float16's largest, 65,504, up to "
            f"{figure(max(found.largest for *_, found in large))}: in float16 they become infinite.",
            node,
            name,
            fix,
        )
    if small := [(name, node, found) for name, node, found in known if found.too_small]:
        name, node, _ = max(small, key=lambda each: each[2].too_small)
        yield Hit(
            f"{_tensors(len(small))} values below float16's smallest, 6e-8 "
            f"({sum(found.too_small for *_, found in small):,} of them): in float16 they become 0.",
            node,
            name,
            fix,
        )


def _tensors(count: int) -> str:
    return "One tensor holds" if count == 1 else f"{count:,} tensors hold"


def _casts(subject: Subject) -> Iterator[tuple[Placed, str, str]]:
    """Yield each Cast, with the dtypes it takes and gives."""
    for placed in subject.nodes:
        if placed.is_standard("Cast") and (to := attributes(placed.node).get("to")) is not None:
            (source,) = subject.dtypes([placed.node.input[0]] if placed.node.input else [""], placed)
            if source is not None:
                yield placed, source, dtype_name(to.i)


@rule("lossy-cast", "note")
def lossy_cast(subject: Subject) -> Iterator[Hit]:
    """A cast and back that loses digits."""
    made = {placed.node.output[0]: (placed, source, to) for placed, source, to in _casts(subject) if placed.node.output}
    for placed, _, back in _casts(subject):
        before = made.get(placed.node.input[0])
        if before is None:
            continue
        _, first, middle = before
        lost = _EXACT_BITS.get(middle, 64)
        if lost < min(_EXACT_BITS.get(first, 0), _EXACT_BITS.get(back, 0)):
            yield Hit(
                f"{first} is cast to {middle} and then to {back}: {middle} holds only {lost} bits exactly, so larger "
                "whole numbers (from " + f"{2**lost + 1:,} on) change on the way.",
                placed.name,
                fix=f"Cast from {first} to {back} directly.",
            )


@rule("undefined-cast", "note")
def undefined_cast(subject: Subject) -> Iterator[Hit]:
    """A cast whose result the standard does not define.

    Measured (BR-092): desktop, wasm and WebGPU give three different sets of integers outside the range.
    """
    for placed, source, to in _casts(subject):
        if source.startswith(("float", "bfloat")) and to in _NARROW:
            yield Hit(
                f"{source} is cast to {to}. For NaN, infinities and numbers outside its range ONNX leaves the result "
                "open, and the desktop, WebAssembly and WebGPU were measured to give three different ones.",
                placed.name,
                fix="Clip to the range before the Cast, where such values can come.",
            )


@rule("float16-overflow", "warning")
def float16_overflow(subject: Subject) -> Iterator[Hit]:
    """A float16 operator that overflows soon."""
    for placed in subject.nodes:
        if not placed.is_standard(*_OVERFLOWS):
            continue
        if subject.dtypes([placed.node.input[0]], placed) == ["float16"]:
            bound = (
                "an input of 12"
                if placed.node.op_type in ("Exp", "Sinh", "Cosh", "ReduceSumExp")
                else "a square of 256"
            )
            yield Hit(
                f"{placed.operator} in float16 leaves its range (65,504) soon: {bound} is too much.",
                placed.name,
                fix="Cast to float32 around this node.",
            )
