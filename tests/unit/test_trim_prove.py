from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from trimming import parse

from edgekit.child.process import ChildLimits
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import value_of
from edgekit.trim.prove import Prover, Verdict

X = np.array([1, -2, np.nan, -0.0], np.float32)
RIGHT = "g (float[4] x) => (float[4] y) { y = Abs(x) }"
# On x86 the smallest integer divided by -1 ends the process with SIGFPE: a real crash of a real runtime.
CRASH = """g (float[4] x) => (float[4] y) <int32[1] a = {-2147483648}, int32[1] b = {-1}> {
    d = Div(a, b) f = Cast <to = 1> (d) y = Add(x, f) }"""


def write(text: str, folder: Path, name: str) -> Path:
    path = folder / f"{name}.onnx"
    path.write_bytes(parse(text).SerializeToString())
    return path


def judge(folder: Path, *others: str, right: str = RIGHT, outputs: Sequence[str] = ("y",)) -> list[Verdict]:
    case = GoldenCase("one", "by hand", (value_of("x", X),), ())
    prover = Prover(write(right, folder, "right"), (case,), tuple(outputs), ChildLimits(seconds=60))
    return prover.judge([write(text, folder, f"other{number}") for number, text in enumerate(others)])


def test_the_same_bits_are_identical(tmp_path: Path) -> None:
    (verdict,) = judge(tmp_path, "g (float[4] x) => (float[4] y) { a = Abs(x) y = Identity(a) }")

    assert verdict.identical
    assert verdict.compared == 1


def test_all_models_are_judged_whatever_happens_to_one(tmp_path: Path) -> None:
    found = judge(
        tmp_path,
        CRASH,
        RIGHT,
        "g (float[4] x) => (float[4] y) <float one = {1.001}> { a = Abs(x) y = Mul(a, one) }",
        "g (float[4] x) => (float[2, 2] y) <int64[2] s = {2, 2}> { a = Abs(x) y = Reshape(a, s) }",
        "g (float[4] x) => (double[4] y) { a = Abs(x) y = Cast <to = 11> (a) }",
        "g (float[4] x) => (float[4] z) { z = Abs(x) }",
        "g (float[4] x) => (float[4] y) { y = NoSuchOperator(x) }",
    )

    crash, same, rounded, shape, dtype, name, unknown = found
    assert "crash" in (crash.error or "")
    assert same.identical
    assert 1e-4 < rounded.difference < 1e-2 and not rounded.identical
    assert rounded.worst == "'y' of case 1"
    assert all(each.difference == float("inf") for each in (shape, dtype, name))
    assert "NoSuchOperator" in (unknown.error or "")


def test_a_sign_of_zero_is_not_the_same_bits(tmp_path: Path) -> None:
    (verdict,) = judge(
        tmp_path,
        "g (float[4] x) => (float[4] y) <float o = {0}> { y = Add(x, o) }",
        right="g (float[4] x) => (float[4] y) { y = Identity(x) }",
    )

    assert not verdict.identical
    assert 0 < verdict.difference < 1e-300


def test_nothing_compared_is_not_identical(tmp_path: Path) -> None:
    (verdict,) = judge(tmp_path, RIGHT, outputs=())

    assert not verdict.identical


@pytest.mark.parametrize("right", [CRASH, "g (float[4] x) => (float[4] y) { y = NoSuchOperator(x) }"])
def test_a_right_model_that_cannot_be_run_proves_nothing(tmp_path: Path, right: str) -> None:
    found = judge(tmp_path, RIGHT, RIGHT, right=right)

    assert [verdict.identical for verdict in found] == [False, False]
    assert all(verdict.error for verdict in found)
