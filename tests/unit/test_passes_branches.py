import numpy as np
import pytest
from trimming import kept

X = np.array([1, -2], np.float32)


@pytest.mark.parametrize("flag", [0, 1])
def test_a_constant_condition_leaves_the_branch_that_runs(flag: int) -> None:
    model = f"""g (float[2] x) => (float[2] y) <bool c = {{{flag}}}> {{
        h = Neg(x)
        r = If (c) <then_branch = t () => (float[2] a) {{ k = Constant <value = float[2] {{5, 6}}> () a = Add(h, k) }},
                    else_branch = e () => (float[2] b) {{ b = Mul(h, h) }}>
        y = Abs(r)
    }}"""

    done = kept(model, {"x": X})

    assert done.operators == ["Neg", "Add" if flag else "Mul", "Abs"]


def test_a_constant_condition_in_a_branch_is_seen() -> None:
    model = """g (bool d, float[2] x) => (float[2] y) {
        y = If (d) <
            then_branch = t () => (float[2] a) {
                c = Constant <value = bool {1}> ()
                a = If (c) <then_branch = tt () => (float[2] aa) { aa = Neg(x) },
                            else_branch = te () => (float[2] ab) { ab = Abs(x) }>
            },
            else_branch = e () => (float[2] b) { b = Mul(x, x) }>
    }"""

    for condition in (True, False):
        assert kept(model, {"d": condition, "x": X}).operators.count("If") == 1


def test_an_output_of_the_model_keeps_its_name() -> None:
    model = """g (float[2] x) => (float[2] y) <bool c = {1}> {
        y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                    else_branch = e () => (float[2] b) { b = Abs(x) }>
    }"""

    done = kept(model, {"x": X})

    assert done.operators == ["Neg"]
    assert done.proto.graph.output[0].name == "y"


def test_names_that_both_graphs_use_stay_apart() -> None:
    model = """g (float[2] x) => (float[2] y) <bool c = {1}> {
        p = Abs(x)
        r = If (c) <then_branch = t () => (float[2] a) { q = Neg(x) a = Mul(q, q) },
                    else_branch = e () => (float[2] b) { q = Abs(x) b = Mul(q, q) }>
        z = If (c) <then_branch = t2 () => (float[2] a2) { q = Exp(x) a2 = Mul(q, q) },
                    else_branch = e2 () => (float[2] b2) { b2 = Abs(x) }>
        s = Add(r, z) y = Add(s, p)
    }"""

    assert "If" not in kept(model, {"x": X}).operators


@pytest.mark.parametrize("flag", [True, False])
def test_a_condition_from_an_input_stays(flag: bool) -> None:
    model = """g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                    else_branch = e () => (float[2] b) { b = Abs(x) }>
    }"""

    assert "If" in kept(model, {"c": flag, "x": X}).operators
