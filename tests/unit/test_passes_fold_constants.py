import numpy as np
from trimming import kept, passes

IDS = np.array([3, 0, 7], np.int64)


def test_a_chain_of_constants_becomes_one() -> None:
    """Where(a >= b, ...) on constants at opset 13 decides a shape; the shape is then known."""
    model = """<ir_version: 8, opset_import: ["" : 13]> g (float[2, 6] x) => (float[A, B, C] y)
    <int64 four = {4}, int64 three = {3}, int64[3] a = {2, 3, 2}, int64[3] b = {2, 2, 3}> {
        ge = GreaterOrEqual(four, three) le = LessOrEqual(four, three)
        p = Where(ge, a, b) s = Where(le, b, p) r = Reshape(x, s) y = Softmax <axis = -1> (r)
    }"""

    done = kept(model, {"x": np.arange(12, dtype=np.float32).reshape(2, 6)})

    assert done.operators == ["Reshape", "Softmax"]
    assert [dim.dim_value for dim in done.proto.graph.output[0].type.tensor_type.shape.dim] == [2, 3, 2]


def test_folding_never_grows_the_file() -> None:
    model = """g (int64[K] ids) => (float[K, 512] y)
    <int64 zero = {0}, int64 n = {512}, int64 one = {1}, int64[1] ax = {1}, int64[2] nn = {512, 512}> {
        r = Range(zero, n, one) f = Cast <to = 1> (r) c = Unsqueeze(f, ax) e = Expand(c, nn) y = Gather(e, ids)
    }"""

    done = kept(model, {"ids": IDS})

    assert done.proto.ByteSize() <= 600


def test_a_large_result_that_frees_as_much_is_kept() -> None:
    values = ", ".join(str(n / 7) for n in range(2000))
    model = f"""g (float[2000] x) => (float[2000] y) <float[2000] w = {{{values}}}> {{
        a = Abs(w) b = Sqrt(a) y = Mul(x, b)
    }}"""

    assert kept(model, {"x": np.ones(2000, np.float32)}).operators == ["Mul"]


def test_a_constant_that_others_use_too_is_not_copied() -> None:
    values = ", ".join(str(n / 7) for n in range(2000))
    model = f"""g (float[2000] x) => (float[2000] y) <float[2000] w = {{{values}}}> {{
        a = Abs(w) b = Mul(x, a) y = Add(b, w)
    }}"""

    assert "Abs" in kept(model, {"x": np.ones(2000, np.float32)}).operators


def test_random_nodes_are_not_folded() -> None:
    model = "g (float[4] x) => (float[4] y) { r = RandomNormal <shape = [4]> () y = Add(x, r) }"

    assert "RandomNormal" in passes(model).operators


def test_quantized_weights_are_not_unpacked() -> None:
    model = """g (float[2, 2] x) => (float[2, 2] y)
    <int8[2, 2] q = {1, 2, 3, 4}, float scale = {0.5}, int8 zero = {0}> {
        w = DequantizeLinear(q, scale, zero) y = MatMul(x, w)
    }"""

    assert "DequantizeLinear" in kept(model, {"x": np.eye(2, dtype=np.float32)}).operators


def test_a_constant_output_stays_an_output() -> None:
    model = """g (float[1] x) => (float[1] y, float[2] c) <float[2] w = {1, 4}> { y = Neg(x) c = Sqrt(w) }"""

    done = kept(model, {"x": np.ones(1, np.float32)})

    assert sorted(done.operators) == ["Constant", "Neg"]


def test_an_operator_that_the_runtime_lacks_does_not_hinder_the_others() -> None:
    model = """<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]> g (float[1] x) => (float[1] y, float[1] z)
    <float[1] w = {4}> { a = Sqrt(w) y = Add(x, a) b = my.own.Thing(w) z = Add(x, b) }"""

    assert passes(model).operators == ["Add", "Thing", "Add"]


def test_small_results_alone_are_folded_when_weights_may_not_be() -> None:
    values = ", ".join(str(n / 7) for n in range(64))
    model = f"""g (float[2, 8] x) => (float[16] y)
    <float[8, 8] w = {{{values}}}, int64[1] a = {{4}}, int64[1] b = {{4}}> {{
        t = Transpose <perm = [1, 0]> (w) m = MatMul(x, t) s = Mul(a, b) y = Reshape(m, s)
    }}"""
    feed = {"x": np.ones((2, 8), np.float32)}

    assert "Transpose" in kept(model, feed, spare_weights=True).operators
    assert "Mul" not in kept(model, feed, spare_weights=True).operators
    assert "Transpose" not in passes(model).operators
