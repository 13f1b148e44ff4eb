"""How many multiply-accumulates one node does, from the shapes of what goes in and out.

Only what multiplies and adds up is counted: convolutions, matrix products, recurrent cells, attention. Formulas follow
the operators' definitions (onnx docs/Operators.md, onnxruntime docs/ContribOperators.md).
"""

import math
from collections.abc import Callable, Mapping, Sequence

import onnx

from edgekit.model.walk import domain_name

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]

# Operators that do real arithmetic of a kind that is not counted here.
UNCOUNTED = frozenset(
    {
        ("ai.onnx", "DFT"), ("ai.onnx", "STFT"), ("ai.onnx", "Det"), ("ai.onnx", "RoiAlign"), ("ai.onnx", "GridSample"),
        ("ai.onnx.ml", "TreeEnsemble"), ("ai.onnx.ml", "TreeEnsembleClassifier"),
        ("ai.onnx.ml", "TreeEnsembleRegressor"), ("ai.onnx.ml", "SVMClassifier"), ("ai.onnx.ml", "SVMRegressor"),
    }
)  # fmt: skip


class UnknownShapeError(Exception):
    """A shape that the count needs is not known."""


def count(node: onnx.NodeProto, inputs: Shapes, outputs: Shapes) -> int:
    """Count the multiply-accumulates of one node; 0 for operators that only move, compare or map values.

    Raises UnknownShapeError where a shape that matters is unknown, or does not fit the operator.
    """
    formula = _FORMULAS.get((domain_name(node.domain), node.op_type))
    if formula is None:
        return 0
    try:
        return formula(_Node(node, inputs, outputs))
    except (IndexError, ValueError, ZeroDivisionError) as error:
        raise UnknownShapeError(str(error)) from error


def is_known(domain: str, op_type: str) -> bool:
    """Whether there is a formula for an operator."""
    return (domain, op_type) in _FORMULAS


class _Node:
    """A node with the shapes around it; asking for one that is unknown raises UnknownShapeError."""

    def __init__(self, node: onnx.NodeProto, inputs: Shapes, outputs: Shapes) -> None:
        self.node = node
        self._inputs = inputs
        self._outputs = outputs

    def input(self, place: int) -> Shape:
        return self._known(self._inputs, place)

    def output(self, place: int = 0) -> Shape:
        return self._known(self._outputs, place)

    def has(self, place: int) -> bool:
        return place < len(self.node.input) and bool(self.node.input[place])

    def number(self, name: str, default: int) -> int:
        return next((attribute.i for attribute in self.node.attribute if attribute.name == name), default)

    def text(self, name: str, default: str) -> str:
        found = next((attribute.s for attribute in self.node.attribute if attribute.name == name), None)
        return default if found is None else found.decode(errors="replace")

    @staticmethod
    def _known(shapes: Shapes, place: int) -> Shape:
        shape = shapes[place] if place < len(shapes) else None
        if shape is None:
            raise UnknownShapeError(f"shape {place}")
        return shape


def _conv(weight: int) -> Callable[[_Node], int]:
    """Each output element adds up a kernel over the channels of its group: weight [M, C/group, k...]."""
    return lambda node: math.prod(node.output()) * math.prod(node.input(weight)[1:])


def _conv_transpose(node: _Node) -> int:
    """Each input element goes through the kernels of its channel: weight [C, M/group, k...]."""
    return math.prod(node.input(0)) * math.prod(node.input(1)[1:])


def _matmul(second: int, *, transposed: str = "") -> Callable[[_Node], int]:
    def formula(node: _Node) -> int:
        first = node.input(0)
        inner = first[-2] if transposed and node.number(transposed, 0) and len(first) > 1 else first[-1]
        node.input(second)  # both must be known
        return math.prod(node.output()) * inner

    return formula


def _matmul_nbits(node: _Node) -> int:
    return math.prod(node.output()) * node.number("K", node.input(0)[-1])


def _gemm(node: _Node) -> int:
    rows, columns = node.input(0)
    return math.prod(node.output()) * (rows if node.number("transA", 0) else columns)


def _einsum(node: _Node) -> int:
    """The loops over every index, as written; a clever order of the products may need fewer."""
    terms = node.text("equation", "").replace(" ", "").partition("->")[0].split(",")
    if len(terms) < 2:
        return 0
    sizes: dict[str, int] = {}
    for place, term in enumerate(terms):
        shape = node.input(place)
        letters = term.replace("...", "")
        ellipsis = len(shape) - len(letters)
        start = term.find("...")
        names = [*letters] if start < 0 else [*term[:start], *(f".{i}" for i in range(ellipsis)), *term[start + 3 :]]
        for name, size in zip(names, shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    return math.prod(sizes.values())


def _recurrent(gates: int) -> Callable[[_Node], int]:
    """Per step, row and direction: gates × hidden × (in + hidden). X [seq, batch, in], W [dirs, gates·hidden, in]."""

    def formula(node: _Node) -> int:
        sequence, batch, size = node.input(0)
        directions, rows, _ = node.input(1)
        hidden = rows // gates
        return sequence * batch * directions * gates * hidden * (size + hidden)

    return formula


def _dynamic_lstm(node: _Node) -> int:
    """com.microsoft: W [dirs, in, 4·hidden], the other way round."""
    sequence, batch, size = node.input(0)
    directions, _, columns = node.input(1)
    return sequence * batch * directions * columns * (size + columns // 4)


def _attention(node: _Node) -> int:
    """Scores and their product with the values. Q [batch, heads, seq, size] or [batch, seq, heads · size]."""
    query, key, value = node.input(0), node.input(1), node.input(2)
    if len(query) == 4:
        batch, heads, rows, size = query
        columns, value_size = key[2], value[3]
    else:
        batch, rows, _ = query
        heads, groups = node.number("q_num_heads", 0), node.number("kv_num_heads", 0)
        columns, size, value_size = key[1], query[2] // heads, value[2] // groups
    if node.has(4):
        columns += node.input(4)[2]
    return batch * heads * rows * columns * (size + value_size)


def _multi_head_attention(node: _Node) -> int:
    """com.microsoft: query [batch, seq, hidden], key and value alike in 3-D; packed forms are not counted."""
    query, key, value = node.input(0), node.input(1), node.input(2)
    batch, rows, hidden = query
    columns = key[1] if len(key) == 3 else key[2]
    value_hidden = value[2] if len(value) == 3 else value[1] * value[3]
    return batch * rows * columns * (hidden + value_hidden)


def _packed_attention(node: _Node) -> int:
    """com.microsoft Attention: input [batch, seq, in], weights [in, 3 · hidden]: projection, then the two products."""
    batch, rows, size = node.input(0)
    columns = node.input(1)[1]
    return batch * rows * size * columns + 2 * batch * rows * rows * (columns // 3)


def _linear(node: _Node) -> int:
    """ai.onnx.ml: as many multiplications a row as there are coefficients."""
    coefficients = next((len(a.floats) for a in node.node.attribute if a.name == "coefficients"), 0)
    shape = node.input(0)
    return (shape[0] if len(shape) > 1 else 1) * coefficients


_FORMULAS: Mapping[tuple[str, str], Callable[[_Node], int]] = {
    ("ai.onnx", "Conv"): _conv(1),
    ("ai.onnx", "ConvInteger"): _conv(1),
    ("ai.onnx", "QLinearConv"): _conv(3),
    ("ai.onnx", "DeformConv"): _conv(1),
    ("ai.onnx", "ConvTranspose"): _conv_transpose,
    ("ai.onnx", "MatMul"): _matmul(1),
    ("ai.onnx", "MatMulInteger"): _matmul(1),
    ("ai.onnx", "QLinearMatMul"): _matmul(3),
    ("ai.onnx", "Gemm"): _gemm,
    ("ai.onnx", "Einsum"): _einsum,
    ("ai.onnx", "LSTM"): _recurrent(4),
    ("ai.onnx", "GRU"): _recurrent(3),
    ("ai.onnx", "RNN"): _recurrent(1),
    ("ai.onnx", "Attention"): _attention,
    ("ai.onnx.ml", "LinearClassifier"): _linear,
    ("ai.onnx.ml", "LinearRegressor"): _linear,
    ("com.microsoft", "FusedConv"): _conv(1),
    ("com.microsoft", "NhwcFusedConv"): _conv(1),
    ("com.microsoft", "FusedMatMul"): _matmul(1, transposed="transA"),
    ("com.microsoft", "DynamicQuantizeMatMul"): _matmul(1),
    ("com.microsoft", "MatMulIntegerToFloat"): _matmul(1),
    ("com.microsoft", "MatMulNBits"): _matmul_nbits,
    ("com.microsoft", "FusedGemm"): _gemm,
    ("com.microsoft", "QGemm"): _gemm,
    ("com.microsoft", "DynamicQuantizeLSTM"): _dynamic_lstm,
    ("com.microsoft", "MultiHeadAttention"): _multi_head_attention,
    ("com.microsoft", "Attention"): _packed_attention,
}
