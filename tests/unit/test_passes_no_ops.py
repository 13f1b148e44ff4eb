import numpy as np
import pytest
from trimming import kept, passes

X = np.array([[1.5, -0.0, np.inf], [np.nan, 3e-40, -2]], np.float32)

# Each line gives y from x; nothing but y = Neg(x) or so is needed.
NOTHING = {
    "identity": "a = Identity(x) y = Neg(a)",
    "identities in a row": "a = Identity(x) b = Identity(a) y = Neg(b)",
    "cast to the same": "a = Cast <to = 1> (x) y = Neg(a)",
    "transpose by identity": "a = Transpose <perm = [0, 1]> (x) y = Neg(a)",
    "two transposes": "a = Transpose <perm = [1, 0]> (x) b = Transpose <perm = [1, 0]> (a) y = Neg(b)",
    "dropout": "a = Dropout(x) y = Neg(a)",
    "concat of one": "a = Concat <axis = 0> (x) y = Neg(a)",
    "sum of one": "a = Sum(x) y = Neg(a)",
    "two negations": "a = Neg(x) b = Neg(a) y = Neg(b)",
    "reshape to the same": "s = Constant <value_ints = [2, 3]> () a = Reshape(x, s) y = Neg(a)",
    "reshape by zeros": "s = Constant <value_ints = [0, 0]> () a = Reshape(x, s) y = Neg(a)",
    "reshape by its own shape": "s = Shape(x) a = Reshape(x, s) y = Neg(a)",
    "expand by ones": "s = Constant <value_ints = [1, 1]> () a = Expand(x, s) y = Neg(a)",
    "tile once": "s = Constant <value_ints = [1, 1]> () a = Tile(x, s) y = Neg(a)",
    "pad by nothing": "s = Constant <value_ints = [0, 0, 0, 0]> () a = Pad(x, s) y = Neg(a)",
    "whole slice": """s = Constant <value_ints = [0]> () e = Constant <value_ints = [9223372036854775807]> ()
        a = Slice(x, s, e) y = Neg(a)""",
    "times one": "o = Constant <value_float = 1.0> () a = Mul(x, o) y = Neg(a)",
    "one times": "o = Constant <value_float = 1.0> () a = Mul(o, x) y = Neg(a)",
    "divided by one": "o = Constant <value_float = 1.0> () a = Div(x, o) y = Neg(a)",
    "minus zero": "o = Constant <value_float = 0.0> () a = Sub(x, o) y = Neg(a)",
    "there and back": "s = Constant <value_ints = [1]> () a = Unsqueeze(x, s) b = Squeeze(a, s) y = Neg(b)",
    "last of several reshapes": """s = Constant <value_ints = [6]> () t = Constant <value_ints = [2, 3]> ()
        a = Reshape(x, s) b = Reshape(a, t) y = Neg(b)""",
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_does_nothing_goes(name: str) -> None:
    model = f"g (float[2, 3] x) => (float[2, 3] y) {{ {NOTHING[name]} }}"

    done = kept(model, {"x": X})

    if name == "there and back":
        assert done.operators.count("Neg") == 1
    else:
        assert done.operators == ["Neg"]


# The operator that stays, and what it is in.
SOMETHING = {
    "plus zero": ("Add", "o = Constant <value_float = 0.0> () a = Add(x, o) y = Neg(a)"),  # turns -0 into 0
    "a guard": ("Add", "o = Constant <value_float = 1e-8> () a = Add(x, o) y = Log(a)"),
    "nearly one": ("Mul", "o = Constant <value_float = 1.000001> () a = Mul(x, o) y = Neg(a)"),
    "minus nearly zero": ("Sub", "o = Constant <value_float = 1e-12> () a = Sub(x, o) y = Neg(a)"),
    "zero minus": ("Sub", "o = Constant <value_float = 0.0> () a = Sub(o, x) y = Neg(a)"),
    "one divided by": ("Div", "o = Constant <value_float = 1.0> () a = Div(o, x) y = Neg(a)"),
    "to a power of nearly one": ("Pow", "o = Constant <value_float = 1.01> () a = Pow(x, o) y = Neg(a)"),
    "a transpose": ("Transpose", "a = Transpose <perm = [1, 0]> (x) b = Neg(a) y = Transpose <perm = [1, 0]> (b)"),
    "a cast": ("Cast", "a = Cast <to = 10> (x) b = Cast <to = 1> (a) y = Neg(b)"),
    "a slice": (
        "Slice",
        "s = Constant <value_ints = [1]> () e = Constant <value_ints = [9]> () a = Slice(x, s, e) y = Neg(a)",
    ),
}


@pytest.mark.parametrize("name", SOMETHING)
def test_what_does_something_stays(name: str) -> None:
    operator, nodes = SOMETHING[name]
    rows = "N" if operator == "Slice" else "2"

    assert operator in kept(f"g (float[2, 3] x) => (float[{rows}, 3] y) {{ {nodes} }}", {"x": X}).operators


def test_a_factor_of_one_that_widens_the_result_stays() -> None:
    model = "g (float[3] x) => (float[1, 3] y) <float[1, 1] one = {1}> { a = Mul(x, one) y = Neg(a) }"

    assert kept(model, {"x": X[0]}).operators == ["Mul", "Neg"]


def test_dropout_in_training_stays() -> None:
    model = """g (float[2, 3] x) => (float[2, 3] y)
    <float ratio = {0.5}, bool train = {1}> { a = Dropout(x, ratio, train) y = Neg(a) }"""

    assert "Dropout" in passes(model).operators


def test_a_dropout_whose_mask_is_used_stays() -> None:
    done = kept("g (float[2, 3] x) => (float[2, 3] y, bool[2, 3] m) { y, m = Dropout(x) }", {"x": X})

    assert done.operators == ["Dropout"]


def test_an_output_keeps_its_name_when_the_node_before_it_takes_its_place() -> None:
    done = kept("g (float[2, 3] x) => (float[2, 3] y) { a = Neg(x) y = Identity(a) }", {"x": X})

    assert done.operators == ["Neg"]
    assert done.proto.graph.output[0].name == "y"


def test_an_input_that_is_an_output_keeps_its_identity() -> None:
    done = kept("g (float[2, 3] x) => (float[2, 3] y) { y = Identity(x) }", {"x": X})

    assert done.operators == ["Identity"]


def test_a_branch_that_returns_an_outer_value_keeps_its_identity() -> None:
    model = """g (bool c, float[2, 3] x) => (float[2, 3] y) {
        h = Neg(x)
        y = If (c) <then_branch = t () => (float[2, 3] a) { a = Identity(h) },
                    else_branch = e () => (float[2, 3] b) { b = Abs(h) }>
    }"""

    for condition in (True, False):
        assert "Identity" in kept(model, {"c": condition, "x": X}).operators


def test_a_value_given_twice_keeps_both_outputs() -> None:
    done = kept("g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { y = Neg(x) z = Identity(y) }", {"x": X})

    assert sorted(done.operators) == ["Identity", "Neg"]


def test_an_unknown_size_does_not_count_as_equal() -> None:
    """Two inputs may both call an axis N and have different sizes there."""
    model = "g (float[N] x, float[N] z) => (float[M] y) { s = Shape(z) a = Expand(x, s) y = Neg(a) }"

    done = kept(model, {"x": np.ones(1, np.float32), "z": np.ones(4, np.float32)})

    assert "Expand" in done.operators
