import numpy as np
import pytest
from trimming import kept

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_arithmetic_on_known_sizes_becomes_a_constant() -> None:
    model = """g (float[2, 3, 4] x) => (float[6, 4] y) {
        s = Shape(x) i = Constant <value_int = 0> () j = Constant <value_int = 1> () z = Constant <value_ints = [0]> ()
        n = Gather(s, i) c = Gather(s, j) p = Mul(n, c) q = Unsqueeze(p, z) l = Constant <value_ints = [4]> ()
        t = Concat <axis = 0> (q, l) y = Reshape(x, t)
    }"""

    assert kept(model, {"x": X}).operators == ["Reshape"]


def test_a_known_size_beside_unknown_ones_becomes_a_constant() -> None:
    model = """g (float[N, 3, M] x) => (int64[1] y) {
        s = Shape(x) i = Constant <value_ints = [1]> () n = Gather(s, i) y = Mul(n, n)
    }"""

    assert "Mul" not in kept(model, {"x": X}).operators


@pytest.mark.parametrize("batch", [2, 0])
def test_one_missing_size_is_said_by_minus_one(batch: int) -> None:
    model = """g (float[N, 3, 4] x) => (float[N, 12] y) {
        s = Shape(x) i = Constant <value_ints = [0]> () n = Gather(s, i) l = Constant <value_ints = [12]> ()
        t = Concat <axis = 0> (n, l) y = Reshape(x, t)
    }"""

    assert kept(model, {"x": X[:batch]}).operators == ["Reshape"]


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 0, 4)])
def test_sizes_that_stay_in_place_are_copied(shape: tuple[int, ...]) -> None:
    model = """g (float[N, M, 4] x) => (float[N, M, 2, 2] y) {
        s = Shape(x) b = Constant <value_ints = [0]> () e = Constant <value_ints = [2]> () n = Slice(s, b, e)
        l = Constant <value_ints = [2, 2]> () t = Concat <axis = 0> (n, l) y = Reshape(x, t)
    }"""

    assert kept(model, {"x": np.ones(shape, np.float32)}).operators == ["Reshape"]


def test_sizes_that_change_places_stay_computed() -> None:
    model = """g (float[N, M] x) => (float[M, N] y) {
        s = Shape(x) i = Constant <value_ints = [1, 0]> () t = Gather(s, i) y = Reshape(x, t)
    }"""

    assert "Gather" in kept(model, {"x": X[0]}).operators


def test_a_symbol_and_a_missing_size_are_not_mixed() -> None:
    """-1 beside a copied 0 has no meaning for an empty input."""
    model = """g (float[N, M, K] x) => (float[N, P] y) {
        s = Shape(x) i = Constant <value_ints = [0]> () n = Gather(s, i)
        j = Constant <value_ints = [1]> () k = Constant <value_ints = [2]> ()
        m = Gather(s, j) q = Gather(s, k) p = Mul(m, q)
        t = Concat <axis = 0> (n, p) y = Reshape(x, t)
    }"""

    done = kept(model, {"x": X})
    kept(model, {"x": X[:0]})

    assert "Mul" in done.operators


def test_a_division_of_negative_numbers_is_left_to_the_runtime() -> None:
    model = """g (float[2, 3] x) => (int64[1] y) {
        s = Shape(x) i = Constant <value_ints = [1]> () n = Gather(s, i) m = Constant <value_ints = [-2]> ()
        y = Div(n, m)
    }"""

    kept(model, {"x": X[0, :2, :3]})


def test_recorded_sizes_are_not_believed() -> None:
    """An exporter that wrote down the size of its sample must not turn it into a constant."""
    model = """g (float[N, 4] x) => (int64[2] y)
    <float[7, 4] a> { a = Neg(x) y = Shape(a) }"""

    assert "Shape" in kept(model, {"x": X[0]}).operators
