"""The estimate of a run's work, against sums made by hand."""

from pathlib import Path

import pytest
from models_text import LINEAR, LOCAL_FUNCTION, PRIVATE_DOMAIN, loaded

from edgekit.errors import UsageError
from edgekit.facts.places import NodePlace
from edgekit.facts.study import study
from edgekit.facts.work import OperatorWork, Work

# 4 bytes each: x 8, a 12, b 8, c 12, y 12 for N = 1.
CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[N, 2] x) => (float[N, 3] y)
<float[2, 3] w = {0, 0, 0, 0, 0, 0}, float[2, 3] v = {0, 0, 0, 0, 0, 0}>
{
    a = MatMul(x, w)
    b = Neg(x)
    c = MatMul(b, v)
    y = Add(a, c)
}
"""

BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
branches (bool flag, float[4, 4] x) => (float[4, 4] y)
{
    y = If (flag) <
        then_branch = once () => (float[4, 4] t) { t = MatMul(x, x) },
        else_branch = twice () => (float[4, 4] e) { d = MatMul(x, x) e = MatMul(d, x) }
    >
}
"""

LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
repeat (float[4, 4] x TRIPS) => (float[4, 4] y)
<CONSTANT bool go = {1}>
{
    y = Loop (trips, go, x) <
        body = step (int64 i, bool c, float[4, 4] s) => (bool k, float[4, 4] n) { k = Identity(c) n = MatMul(s, s) }
    >
}
"""

SCAN = """
<ir_version: 8, opset_import: ["" : 17]>
steps (float[4, 4] s, float[6, 4, 4] xs) => (float[4, 4] last)
{
    last = Scan <num_scan_inputs: int = 1,
        body = step (float[4, 4] a, float[4, 4] b) => (float[4, 4] n) { n = MatMul(a, b) }
    > (s, xs)
}
"""


def work_of(text: str, folder: Path, **dims: int) -> Work:
    work = study(loaded(text, folder), dims).facts.work
    assert work is not None
    return work


def test_macs_and_the_peak_are_those_made_by_hand(tmp_path: Path) -> None:
    work = work_of(CHAIN, tmp_path, N=10)
    assert work.macs == 2 * 10 * 2 * 3
    # While y is made, x (an input) lives on, a, c and y are there, and b is gone.
    assert (work.peak_bytes, work.peak_at) == (10 * (8 + 12 + 12 + 12), NodePlace("Add", "→ y", ""))
    assert work.operators[0] == OperatorWork("ai.onnx", "MatMul", nodes=2, macs=120, output_bytes=240, unknown=0)
    assert [(each.name, each.bytes) for each in work.largest] == [("a", 120), ("c", 120), ("y", 120), ("b", 80)]
    assert (work.values, work.unknown_values, work.assumed, work.missing_dims) == (4, 0, (), ())


def test_a_batch_that_is_not_given_is_taken_as_one_and_said(tmp_path: Path) -> None:
    work = work_of(CHAIN, tmp_path)
    assert (work.dims, work.assumed, work.macs) == ({"N": 1}, ("N",), 12)


@pytest.mark.parametrize(
    ("x", "state", "assumed"),
    [
        ("float[batch, 2]", "float[2, batch]", ("batch",)),
        ("float[seq_len, 2]", "float[1]", ()),
        ("float[N]", "float[1]", ()),
    ],
)
def test_the_batch_is_the_first_dimension_that_is_no_length(
    tmp_path: Path, x: str, state: str, assumed: tuple[str, ...]
) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({x} x, {state} s) => (y) {{ y = Relu(x) }}'
    assert work_of(text, tmp_path).assumed == assumed


def test_a_length_that_is_not_given_is_missing_and_what_follows_unknown(tmp_path: Path) -> None:
    text = LINEAR.replace("float[N, 2] x", "float[3, T] x").replace("float[N, 3] y", "y")
    work = work_of(text, tmp_path)
    assert (work.missing_dims, work.assumed) == (("T",), ())
    assert work_of(text, tmp_path, T=2).macs == 3 * 2 * 3


def test_of_branches_the_one_that_does_more_counts(tmp_path: Path) -> None:
    work = work_of(BRANCHES, tmp_path)
    assert work.macs == 2 * 4 * 4 * 4
    assert work.notes == ("Of the branches of an If the one that computes more is counted.",)
    # In the branch d and e are there, and x around it; then y beside it.
    assert work.peak_bytes == 64 * 4 + 1


def test_a_loop_counts_as_often_as_it_runs_where_that_is_stored(tmp_path: Path) -> None:
    stored = LOOP.replace(" TRIPS", "").replace("CONSTANT", "int64 trips = {5},")
    assert work_of(stored, tmp_path).macs == 5 * 64
    given = LOOP.replace(" TRIPS", ", int64 trips").replace("CONSTANT", "")
    work = work_of(given, tmp_path)
    assert work.macs == 64
    assert work.notes == ("The body of Loop → y is counted once: it runs as data decide.",)


def test_a_scan_counts_once_a_step(tmp_path: Path) -> None:
    assert work_of(SCAN, tmp_path).macs == 6 * 64


def test_every_call_of_a_local_function_counts(tmp_path: Path) -> None:
    rows = {row.op_type: row.nodes for row in work_of(LOCAL_FUNCTION, tmp_path).operators}
    assert rows == {"Add": 2, "Identity": 2}


def test_what_a_private_operator_does_is_said_to_be_unknown(tmp_path: Path) -> None:
    work = work_of(PRIVATE_DOMAIN, tmp_path)
    assert work.unknown_values == 1
    assert work.notes == ("What Frobnicate of my.company computes is not known.",)


def test_a_dimension_that_the_model_does_not_have_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no free dimension 'M'"):
        study(loaded(CHAIN, tmp_path), {"M": 1})
