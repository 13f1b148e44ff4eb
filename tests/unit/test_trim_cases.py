"""Models made after public bug reports, each small: what trimming must do with them, and must not.

The reports are named where a test is about one; the models are new, and so are the numbers.
"""

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest
from trimming import kept, parse, passes, run

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_free_axes_carried_by_a_shape_chain_keep_their_names() -> None:
    """onnxsim 101, OnnxSlim 102: sizes of a sample must not take the place of names."""
    model = """g (float[batch, sequence, 4] x) => (float[batch, sequence, 4] y) <int64 i = {0}, int64 j = {1},
    int64[1] ax = {0}, int64[1] heads = {2}, int64[1] width = {2}, int64[1] all = {4}> {
        s = Shape(x) a = Gather(s, i) b = Gather(s, j) n = Unsqueeze(a, ax) m = Unsqueeze(b, ax)
        t = Concat <axis = 0> (n, m, heads, width) q = Reshape(x, t) p = Transpose <perm = [0, 2, 1, 3]> (q)
        r = Transpose <perm = [0, 2, 1, 3]> (p) u = Concat <axis = 0> (n, m, all) y = Reshape(r, u)
    }"""

    for shape in ((1, 5, 4), (3, 2, 4)):
        done = kept(model, {"x": normal(*shape)})

    dims = [
        [d.dim_param for d in info.type.tensor_type.shape.dim][:2]
        for info in (*done.proto.graph.input, *done.proto.graph.output)
    ]
    assert dims == [["batch", "sequence"]] * 2
    assert "Shape" not in done.operators


@pytest.mark.parametrize("channels", [1, 3])
def test_an_if_whose_branches_differ_in_rank_stays(channels: int) -> None:
    """pytorch 109292: a condition on a free axis is not constant."""
    model = """g (float[N, C, 4] x) => (float[N, M] y)
    <int64 i = {1}, int64 one = {1}, int64[1] ax = {1}, int64[2] flat = {0, -1}> {
        s = Shape(x) c = Gather(s, i) is = Equal(c, one)
        r = If (is) <then_branch = t () => (float[N, 4] a) { a = Squeeze(x, ax) },
                     else_branch = e () => (float[N, C, 4] b) { b = Identity(x) }>
        y = Reshape(r, flat)
    }"""

    assert "If" in kept(model, {"x": normal(2, channels, 4)}).operators


@pytest.mark.parametrize(("trips", "start"), [(3, 0.0), (0, 1.5), (20, 0.0)])
def test_a_loop_that_runs_never_or_stops_early(trips: int, start: float) -> None:
    """onnxruntime 4210."""
    model = """g (int64 trips, float start) => (float total, int64[T] each) <float five = {5}> {
        total, each = Loop (trips, , start) <body = b (int64 i, bool go, float a) => (bool on, float s, int64 e) {
            f = Cast <to = 1> (i) s = Add(a, f) on = Less(s, five) e = Identity(i)
        }>
    }"""

    kept(model, {"trips": np.int64(trips), "start": np.float32(start)})


def test_a_scan_backwards_over_another_axis() -> None:
    """onnxruntime 8694."""
    model = """g (float[N, T, 2] x, float[N, 2] zero) => (float[N, 2] total, float[N, T, 2] sums) {
        total, sums = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
            scan_output_axes = [1], scan_output_directions = [1],
            body = b (float[N, 2] s, float[N, 2] r) => (float[N, 2] t, float[N, 2] u) { t = Add(s, r) u = Identity(t) }>
            (zero, x)
    }"""

    kept(model, {"x": normal(2, 3, 2), "zero": np.zeros((2, 2), np.float32)})


def test_a_constant_resize_is_folded_as_the_runtime_resizes() -> None:
    """onnxruntime 12098: nearest by asymmetric floor; another rule moves a column."""
    model = """g (float[1, 1, 1, 7] x) => (float[1, 1, 1, 7] y)
    <float[1, 1, 1, 4] w = {1, 2, 3, 4}, int64[4] to = {1, 1, 1, 7}> {
        r = Resize <coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor"> (w, , , to)
        y = Add(x, r)
    }"""

    done = kept(model, {"x": normal(1, 1, 1, 7)})

    assert done.operators == ["Add"]
    folded = onnx.numpy_helper.to_array(done.proto.graph.initializer[0]).ravel()
    np.testing.assert_array_equal(folded, [np.floor(i * 4 / 7) + 1 for i in range(7)])


@pytest.mark.parametrize("rows", [0, 3])
def test_a_gather_with_no_indices(rows: int) -> None:
    """onnxruntime 29030."""
    model = """g (int64[K] ids, float[E, 2] more) => (float[K, 2] rows, float[M, 2] y)
    <float[3, 2] table = {1, 2, 3, 4, 5, 6}> {
        rows = Gather(table, ids) a = Sigmoid(rows) i = Identity(a) y = Concat <axis = 0> (i, more)
    }"""

    kept(model, {"ids": np.arange(rows, dtype=np.int64), "more": normal(2, 2)})


@pytest.mark.parametrize("rate", [8000, 16000])
def test_a_scalar_input_that_chooses_a_branch(rate: int) -> None:
    """ort 12: the branch must stay open, and the scalar a scalar."""
    model = """g (float[1, 4] x, int64 rate) => (float[1, 4] y, float peak) <int64 k = {16000}> {
        c = Equal(rate, k)
        y = If (c) <then_branch = t () => (float[1, 4] a) { a = Neg(x) },
                    else_branch = e () => (float[1, 4] b) { b = Abs(x) }>
        peak = ReduceMax <keepdims = 0> (y)
    }"""

    done = kept(model, {"x": normal(1, 4), "rate": np.int64(rate)})

    assert "If" in done.operators
    assert len(done.proto.graph.output[1].type.tensor_type.shape.dim) == 0


def test_unused_and_doubled_weights_are_stored_never_and_once() -> None:
    """onnxsim 174: 100 KB of which 3 are needed."""
    proto = parse(
        "g (float[N, 24] x) => (float[N, 24] y) { a = MatMul(x, w) b = Relu(a) y = MatMul(b, v) dead = MatMul(x, u) }"
    )
    weight = normal(24, 24)
    for name in ("w", "v"):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(normal(24, 24), "u"))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(normal(150, 160), "never"))

    done = kept(proto, {"x": normal(2, 24)})

    assert done.proto.ByteSize() < 3000 < 100_000 < proto.ByteSize()
    assert done.operators == ["MatMul", "Relu", "MatMul"]


def test_a_tensor_that_is_also_an_output_is_not_fused_past() -> None:
    """onnxruntime 4110."""
    model = """g (float[N, 1, H, W] x) => (float[N, 2, H, W] raw, float[N, 2, H, W] y)
    <float[2, 1, 1, 1] w = {0.5, 2}, float[2] s = {0.3, 0.7}> {
        raw = Conv(x, w) b = BatchNormalization(raw, s, s, s, s) y = Relu(b)
    }"""
    feed = {"x": normal(1, 1, 2, 2)}

    done = passes(model, rounding=True)

    for before, after in zip(run(parse(model), feed), run(done.proto, feed), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


def test_dropout_before_a_reciprocal_goes() -> None:
    """onnxruntime 32413: with Dropout there, no optimization level but none loads the model."""
    model = """<ir_version: 8, opset_import: ["" : 13]> g (float[N, 2] x, float[1] t) => (float[N, 2] y)
    <float[2, 2] w = {1, 2, 3, 4}, float one = {1}> {
        a = Gemm(x, w) b = Dropout(a) i = Div(one, t) z = Mul(i, b) y = Softmax <axis = -1> (z)
    }"""

    done = kept(model, {"x": normal(3, 2), "t": np.array([0.7], np.float32)})

    assert "Dropout" not in done.operators


def test_guards_stay() -> None:
    """MIGraphX 2659: an optimizer that compares with a tolerance removes them, and log(0) and 0/0 appear."""
    model = """g (float[N, 2] x, float[N, 2] p, float[1, 2] s)
    => (float[N, 2] unit, float[N, 2] logp, float[1, 2] scaled)
    <float tiny = {1e-12}, float small = {1e-8}, float near = {1.000001}> {
        n = ReduceL2 <axes = [-1], keepdims = 1> (x) safe = Add(n, tiny) unit = Div(x, safe)
        q = Add(p, small) logp = Log(q) scaled = Mul(s, near)
    }"""
    zeros = np.zeros((1, 2), np.float32)
    feed = {"x": zeros, "p": zeros, "s": np.array([[1e6, 2e6]], np.float32)}

    for rounding in (False, True):
        unit, logp, scaled = run(passes(model, rounding=rounding).proto, feed)
        np.testing.assert_array_equal(unit, zeros)
        np.testing.assert_allclose(logp, np.log(np.float32(1e-8)), rtol=1e-6)
        np.testing.assert_allclose(scaled, [[1000001, 2000002]], rtol=1e-7)


def test_folding_that_would_explode_is_left() -> None:
    """onnxsim 178: 500 bytes became 17 MB, also by the runtime's own optimizer."""
    model = """g (int64[K] ids) => (float[K, 1024] y) <int64[2] n = {1024, 1024}, int64[1] r = {1024}> {
        z = ConstantOfShape <value = float[1] {1.5}> (n) c = CumSum(z, zero) y = Gather(c, ids)
        }"""
    proto = parse(model.replace("int64[1] r = {1024}", "int64 zero = {1}"))

    for rounding in (False, True):
        done = passes(proto, rounding=rounding)
        assert done.proto.ByteSize() <= 2 * proto.ByteSize()
    kept(proto, {"ids": np.array([3], np.int64)})
