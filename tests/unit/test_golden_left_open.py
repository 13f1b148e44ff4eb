"""What of reference outputs the standard leaves open, found with the real desktop runtime."""

from pathlib import Path

import numpy as np
import pytest
from models_text import loaded

from edgekit.child.process import DEFAULT_LIMITS
from edgekit.desktop.run import Feed
from edgekit.golden import trial
from edgekit.golden.left_open import marked
from edgekit.progress import silent
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import Array, value_of

X = np.array([0.0, -1.9, 127.9, 300.0, 1e10, np.nan, -np.inf], np.float32)


def open_in(text: str, folder: Path, *inputs: Array) -> dict[str, list[bool]]:
    """Run a model in ONNX text on inputs, and return where its outputs are left open."""
    model = loaded(text, folder)
    names = [info.name for info in model.proto.graph.input]
    values = tuple(value_of(name, array) for name, array in zip(names, inputs, strict=True))
    with trial.bench(model, seed=0, limits=DEFAULT_LIMITS, progress=silent) as bench:
        (result,) = bench.run([Feed(values)], "")
        assert result.outputs is not None, result.error
        (case,) = marked(model, [GoldenCase("only", "by hand", values, result.outputs)], bench)
    return {name: mask.tolist() for name, mask in case.left_open.items()}


def model(signature: str, nodes: str, *, opset: int = 17) -> str:
    return f'<ir_version: 8, opset_import: ["" : {opset}]> g {signature} {{ {nodes} }}'


def test_what_integers_cannot_hold_is_open_for_each_type_and_what_they_can_is_not(tmp_path: Path) -> None:
    text = model(
        "(float[N] x) => (int8[N] i8, uint8[N] u8, int32[N] i32, int64[N] i64)",
        "i8 = Cast<to: int = 3>(x) u8 = Cast<to: int = 2>(x) i32 = Cast<to: int = 6>(x) i64 = Cast<to: int = 7>(x)",
    )
    assert open_in(text, tmp_path, X) == {
        "i8": [False, False, False, True, True, True, True],
        "u8": [False, True, False, True, True, True, True],
        "i32": [False, False, False, False, True, True, True],
        "i64": [False, False, False, False, False, True, True],
    }


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(7, -(2.0**63), np.nextafter(2.0**63, 0)), (6, -(2.0**31) - 0.5, 2.0**31 - 0.5), (5, -32768.5, 32767.5)],
)
def test_the_ends_of_a_range_are_defined_and_what_is_next_to_them_is_not(
    dtype: int, least: float, most: float, tmp_path: Path
) -> None:
    text = model("(double[N] x) => (double[N] y)", f"c = Cast<to: int = {dtype}>(x) y = Cast<to: int = 11>(c)")
    x = np.array([least, most, np.nextafter(least, -np.inf) if dtype == 7 else least - 0.5, most + 1025.0])
    assert open_in(text, tmp_path, x) == {"y": [False, False, True, True]}


def test_what_follows_from_it_is_open_and_what_does_not_hang_on_it_is_not(tmp_path: Path) -> None:
    text = model(
        "(float[N] x) => (float[N] y, float[1] most, int32[N] sign)",
        """c = Cast<to: int = 6>(x) zero = Sub(c, c) sign = Add(zero, c)
        f = Cast<to: int = 1>(c) y = Mul(f, f) most = ReduceMax<keepdims: int = 1>(x)""",
    )
    found = open_in(text, tmp_path, X)
    assert found == {name: [False] * 4 + [True] * 3 for name in ("y", "sign")}


def test_a_cast_in_a_branch_is_found(tmp_path: Path) -> None:
    text = model(
        "(bool flag, float[N] x) => (int32[N] y)",
        """y = If (flag) <
            then_branch = a () => (int32[N] t) { t = Cast<to: int = 6>(x) },
            else_branch = b () => (int32[N] e) { n = Neg(x) e = Cast<to: int = 6>(n) }
        >""",
    )
    assert open_in(text, tmp_path, np.array(True), X) == {"y": [False] * 4 + [True] * 3}


def test_a_cast_like_another_tensor_is_found(tmp_path: Path) -> None:
    text = model("(float[N] x, uint8[M] like) => (uint8[N] y)", "y = CastLike(x, like)")
    assert open_in(text, tmp_path, X, np.ones(1, np.uint8)) == {"y": [False, True, False, True, True, True, True]}


def test_an_output_whose_size_hangs_on_it_is_open_as_a_whole(tmp_path: Path) -> None:
    text = model(
        "(float[1] x) => (float[N] y)",
        """c = Cast<to: int = 6>(x) wide = Cast<to: int = 7>(c) four = Constant<value = int64[1] {4}> ()
        n = Mod(wide, four) five = Constant<value = int64[1] {5}> () size = Add(n, five) y = ConstantOfShape(size)""",
    )
    found = open_in(text, tmp_path, np.array([np.nan], np.float32))
    assert found and all(found["y"])


@pytest.mark.parametrize(
    "text",
    [
        model("(float[N] x) => (float[N] y)", "a = Cast<to: int = 11>(x) y = Cast<to: int = 1>(a)"),
        model("(float[N] x) => (int8[N] y)", "a = Constant<value = int32[1] {300}> () y = Cast<to: int = 3>(a)"),
        model("(float[N] x) => (bool[N] y)", "y = Cast<to: int = 9>(x)"),
        model("(float[N] x) => (int8[N] y)", "y = Cast<to: int = 3>(x)", opset=8),
    ],
    ids=["floats to floats", "integers to smaller ones", "floats to bools", "an opset before Where"],
)
def test_other_casts_leave_nothing_open(text: str, tmp_path: Path) -> None:
    assert open_in(text, tmp_path, X) == {}


def test_numbers_that_fit_leave_nothing_open(tmp_path: Path) -> None:
    text = model("(float[N] x) => (int8[N] y)", "y = Cast<to: int = 3>(x)")
    assert open_in(text, tmp_path, np.array([-128.9, 127.9, -0.0], np.float32)) == {}


def test_what_is_random_is_not_called_open(tmp_path: Path) -> None:
    text = model(
        "(float[N] x) => (float[N] y, int32[N] z)",
        "r = RandomUniformLike<dtype: int = 1>(x) y = Add(r, r) z = Cast<to: int = 6>(x)",
    )
    assert open_in(text, tmp_path, X) == {"z": [False] * 4 + [True] * 3}


def test_a_name_that_the_model_has_already_is_not_taken_again(tmp_path: Path) -> None:
    text = model("(float[N] left_open) => (int8[N] y)", "y = Cast<to: int = 3>(left_open)")
    assert open_in(text, tmp_path, np.array([1.0, 300.0], np.float32)) == {"y": [False, True]}
