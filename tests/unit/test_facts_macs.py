"""Multiply-accumulates of one node, against counts made by hand."""

import pytest
from onnx import helper

from edgekit.facts import macs
from edgekit.facts.macs import UnknownShapeError

Shape = tuple[int, ...] | None

_HEADS = {"q_num_heads": 3, "kv_num_heads": 3}


def counted(op_type: str, inputs: list[Shape], outputs: list[Shape], domain: str = "", **attributes: object) -> int:
    names = [f"i{index}" for index in range(len(inputs))]
    node = helper.make_node(op_type, names, [f"o{index}" for index in range(len(outputs))], domain=domain, **attributes)
    return macs.count(node, inputs, outputs)


@pytest.mark.parametrize(
    ("op_type", "inputs", "output", "attributes", "by_hand"),
    [
        # 4 × 6 × 6 outputs, each over 3 channels × 3 × 3.
        ("Conv", [(1, 3, 8, 8), (4, 3, 3, 3)], (1, 4, 6, 6), {}, 4 * 36 * 27),
        # Depthwise: each of 8 × 4 × 4 outputs over one channel × 3 × 3.
        ("Conv", [(1, 8, 4, 4), (8, 1, 3, 3)], (1, 8, 4, 4), {"group": 8}, 8 * 16 * 9),
        # Two groups of 2 channels in, 3 out, on a signal.
        ("Conv", [(2, 4, 10), (6, 2, 5)], (2, 6, 6), {"group": 2}, 2 * 6 * 6 * 10),
        # Each of 2 × 3 × 3 inputs goes through 4 kernels of 2 × 2.
        ("ConvTranspose", [(1, 2, 3, 3), (2, 4, 2, 2)], (1, 4, 6, 6), {"strides": [2, 2]}, 18 * 16),
        ("MatMul", [(5, 7), (7, 3)], (5, 3), {}, 5 * 3 * 7),
        ("MatMul", [(2, 5, 7), (7, 3)], (2, 5, 3), {}, 2 * 5 * 3 * 7),
        ("MatMul", [(7,), (7,)], (), {}, 7),
        ("Gemm", [(5, 7), (3, 7)], (5, 3), {"transB": 1}, 5 * 3 * 7),
        ("Gemm", [(7, 5), (7, 3)], (5, 3), {"transA": 1}, 5 * 3 * 7),
        ("Einsum", [(2, 3, 4), (2, 4, 5)], (2, 3, 5), {"equation": "bij, bjk -> bik"}, 2 * 3 * 4 * 5),
        ("Einsum", [(6, 2, 3), (6, 3, 4)], (6, 2, 4), {"equation": "...ij,...jk->...ik"}, 6 * 2 * 3 * 4),
        ("Einsum", [(4, 4)], (), {"equation": "ii"}, 0),
        # 10 steps × batch 2 × 4 gates × 8 units × (6 inputs + 8 units).
        ("LSTM", [(10, 2, 6), (1, 32, 6), (1, 32, 8)], (10, 1, 2, 8), {"hidden_size": 8}, 10 * 2 * 4 * 8 * 14),
        ("GRU", [(10, 2, 6), (2, 24, 6), (2, 24, 8)], (10, 2, 2, 8), {"hidden_size": 8}, 10 * 2 * 2 * 3 * 8 * 14),
        ("RNN", [(10, 2, 6), (1, 8, 6), (1, 8, 8)], (10, 1, 2, 8), {"hidden_size": 8}, 10 * 2 * 8 * 14),
        # Scores: 2 × 3 heads × 5 × 7 × 4; with the values: × 6.
        ("Attention", [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)], (2, 3, 5, 6), {}, 2 * 3 * 5 * 7 * (4 + 6)),
        ("Attention", [(2, 5, 12), (2, 7, 12), (2, 7, 18)], (2, 5, 18), _HEADS, 2 * 3 * 5 * 7 * (4 + 6)),
        ("Relu", [(5, 7)], (5, 7), {}, 0),
        ("Add", [None, None], None, {}, 0),
    ],
)  # fmt: skip
def test_counts_are_those_made_by_hand(
    op_type: str, inputs: list[Shape], output: Shape, attributes: dict[str, object], by_hand: int
) -> None:
    assert counted(op_type, inputs, [output], **attributes) == by_hand


def test_contrib_operators_are_counted_too() -> None:
    ms = "com.microsoft"
    assert counted("FusedMatMul", [(7, 5), (7, 3)], [(5, 3)], ms, transA=1) == 105
    assert counted("DynamicQuantizeLSTM", [(10, 2, 6), (1, 6, 32), (1, 8, 32)], [(10, 1, 2, 8)], ms) == 10 * 2 * 32 * 14
    assert counted("MatMulNBits", [(5, 64), (3, 2, 16)], [(5, 3)], ms, K=64, N=3) == 5 * 3 * 64
    assert counted("MultiHeadAttention", [(2, 5, 12), (2, 7, 12), (2, 7, 12)], [(2, 5, 12)], ms) == 2 * 5 * 7 * 24


def test_an_operator_of_the_same_name_in_another_domain_is_not_counted() -> None:
    assert counted("MatMul", [(5, 7), (7, 3)], [(5, 3)], "my.company") == 0
    assert not macs.is_known("my.company", "MatMul")


@pytest.mark.parametrize(
    ("op_type", "inputs", "output"),
    [
        ("Conv", [(1, 3, 8, 8), None], (1, 4, 6, 6)),
        ("Conv", [(1, 3, 8, 8)], (1, 4, 6, 6)),
        ("MatMul", [None, (7, 3)], (5, 3)),
        ("MatMul", [(), ()], ()),
        ("Gemm", [(5, 7, 2), (7, 3)], (5, 3)),
        ("LSTM", [(10, 2), (1, 32, 6), (1, 32, 8)], (10, 1, 2, 8)),
        ("Attention", [(2, 5, 12), (2, 7, 12), (2, 7, 18)], (2, 5, 18)),
    ],
)
def test_what_is_unknown_or_does_not_fit_is_said(op_type: str, inputs: list[Shape], output: Shape) -> None:
    with pytest.raises(UnknownShapeError):
        counted(op_type, inputs, [output])
