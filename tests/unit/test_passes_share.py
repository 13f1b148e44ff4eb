import numpy as np
from trimming import kept, passes

X = np.array([1, -2], np.float32)


def test_equal_initializers_are_stored_once() -> None:
    model = (
        """g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {1, 2}> { c = Add(x, a) y = Mul(c, b) }"""
    )

    assert len(kept(model, {"x": X}).proto.graph.initializer) == 1


def test_equal_bytes_of_another_dtype_shape_or_sign_are_not_equal() -> None:
    model = """g (float[2] x) => (float[2] y, int32[2] z, float[2, 1] w)
    <float[2] a = {0, 0}, float[2] b = {-0.0, 0}, int32[2] c = {0, 0}, float[2, 1] d = {0, 0}> {
        p = Max(x, a) y = Div(p, b) q = Cast <to = 6> (x) z = Mul(q, c) w = Neg(d)
    }"""

    done = kept(model, {"x": X}, skip=["constant folding"])

    assert len(done.proto.graph.initializer) == 4


def test_constants_of_branches_are_shared_with_the_graph_around() -> None:
    model = """g (bool c, float[2] x) => (float[2] y) <float[2] w = {5, 6}> {
        h = Add(x, w)
        y = If (c) <then_branch = t () => (float[2] a) { k = Constant <value = float[2] {5, 6}> () a = Add(h, k) },
                    else_branch = e () => (float[2] b) { k = Constant <value = float[2] {5, 6}> () b = Mul(h, k) }>
    }"""

    for condition in (True, False):
        assert len(kept(model, {"c": condition, "x": X}).proto.graph.initializer) == 1


def test_equal_strings_are_stored_once() -> None:
    model = """<ir_version: 8, opset_import: ["" : 19]> g (string[1] x) => (bool[1] y, bool[1] z)
    <string[1] a = {"é"}, string[1] b = {"é"}, string[1] c = {"e"}> {
        y = Equal(x, a) p = Equal(x, b) q = Equal(x, c) z = Or(p, q)
    }"""

    done = passes(model)

    assert sorted(t.string_data[0].decode() for t in done.proto.graph.initializer) == ["e", "é"]


def test_equal_computations_are_done_once() -> None:
    model = "g (float[2] x) => (float[2] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }"

    assert kept(model, {"x": X}).operators.count("Exp") == 1


def test_equal_outputs_stay_two_outputs() -> None:
    done = kept("g (float[2] x) => (float[2] y, float[2] z) { y = Exp(x) z = Exp(x) }", {"x": X})

    assert [info.name for info in done.proto.graph.output] == ["y", "z"]


def test_two_draws_are_not_one() -> None:
    model = """g (float[2] x) => (float[2] y) {
        a = RandomNormal <shape = [2]> () b = RandomNormal <shape = [2]> ()
        c = Bernoulli <dtype = 1> (x) d = Bernoulli <dtype = 1> (x)
        e = Sub(a, b) f = Sub(c, d) y = Add(e, f)
    }"""

    done = passes(model)

    assert done.operators.count("RandomNormal") == done.operators.count("Bernoulli") == 2


def test_what_nobody_knows_is_not_merged() -> None:
    model = """<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]>
    g (float[2] x) => (float[2] y) { a = my.own.Next(x) b = my.own.Next(x) y = Sub(a, b) }"""

    assert passes(model).operators.count("Next") == 2
