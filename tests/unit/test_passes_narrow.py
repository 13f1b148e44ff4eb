"""Whole numbers in int32: what is proven to fit moves, the rest stays, and no answer changes."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trimming import Trimmed, kept, parse, passes, run

from edgekit.passes import narrow

LEAST, MOST = -(2**31), 2**31 - 1
# The place of the largest of eight, then the row of a table that lies two further on: four nodes leave int64.
PLACES = """g (float[N, 8] x) => (float[N, 1] y) <int64 two = {2}, int64 size = {8}, int64 zero = {0},
float[16] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}> {
    i = ArgMax <axis = 1> (x) j = Add(i, two) k = Mod(j, size) m = Max(k, zero) y = Gather(table, m)
}"""
X = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)


def int64_operators(proto: onnx.ModelProto) -> list[str]:
    """Operators that give int64, as shape inference sees it."""
    inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    types = {v.name: v.type.tensor_type.elem_type for v in (*inferred.graph.value_info, *inferred.graph.output)}
    return [n.op_type for n in inferred.graph.node if types.get(n.output[0]) == onnx.TensorProto.INT64]


def notes(done: Trimmed) -> str:
    return " ".join(done.work.notes)


def test_indices_move_with_one_cast_behind_what_gives_int64_alone() -> None:
    model = '<ir_version: 8, opset_import: ["" : 17]> ' + PLACES
    done = kept(model, {"x": X}, int32=True)
    assert int64_operators(done.proto) == ["ArgMax"]
    assert done.operators.count("Cast") == 1
    assert "4 nodes left int64, 1 casts came in" in notes(done)
    assert "between 0 and 9" in notes(done)


def test_without_the_option_nothing_moves() -> None:
    done = passes(PLACES)
    assert narrow.NAME not in done.changed_by
    assert "Cast" not in done.operators


def test_outputs_keep_their_type_and_name() -> None:
    model = """g (float[N, 8] x) => (int64[N, 1] places, bool[N, 1] far) <int64 two = {2}, int64 five = {5}> {
        i = ArgMax <axis = 1> (x) a = Add(i, two) b = Mul(a, two) places = Sub(b, five) far = Greater(b, five)
    }"""
    done = kept(model, {"x": X}, int32=True)
    output = done.proto.graph.output[0]
    assert (output.name, output.type.tensor_type.elem_type) == ("places", onnx.TensorProto.INT64)
    assert done.operators.count("Cast") == 2


@pytest.mark.parametrize(
    ("why", "model"),
    [
        ("an input may hold anything", """g (int64[4] x) => (bool[4] y) <int64 one = {1}> {
            a = Add(x, one) b = Mul(a, one) c = Max(b, one) d = Neg(c) y = Less(d, one) }"""),
        ("a product of two sizes may not fit", """g (float[N, M] x) => (bool[1] y) <int64 i = {0}, int64 j = {1},
            int64[1] ax = {0}, int64[1] one = {1}> { s = Shape(x) n = Gather(s, i) m = Gather(s, j) p = Mul(n, m)
            q = Unsqueeze(p, ax) r = Neg(q) t = Sub(r, one) y = Less(t, one) }"""),
        ("a single node does not pay for its cast", """g (float[N, 8] x) => (bool[N, 1] y) <int64 one = {1}> {
            i = ArgMax <axis = 1> (x) y = Less(i, one) }"""),
        ("the divisor may be zero", """g (float[N, M] x) => (bool[1] y) <int64[1] one = {1}, int64[1] zero = {0},
            int64[1] two = {2}> { s = Shape(x) n = Slice(s, zero, one) m = Slice(s, one, two)
            d = Div(n, m) e = Neg(d) f = Abs(e) y = Less(f, one) }"""),
    ],
)  # fmt: skip
def test_what_is_not_proven_or_does_not_pay_stays(why: str, model: str) -> None:
    done = passes(model, int32=True)
    touched = [snapshot for snapshot in done.snapshots if snapshot.name == narrow.NAME]
    moved = [] if not touched else int64_operators(done.proto)
    assert not touched or {"Neg", "Sub"} & set(moved) or "Div" in moved, why


def test_a_product_fits_where_the_user_bounds_the_sizes() -> None:
    model = """g (float[N, M] x) => (bool[1] y) <int64 i = {0}, int64 j = {1}, int64[1] ax = {0}, int64[1] one = {1}> {
        s = Shape(x) n = Gather(s, i) m = Gather(s, j) p = Mul(n, m) q = Unsqueeze(p, ax) r = Neg(q) t = Sub(r, one)
        y = Less(t, one)
    }"""
    feed = {"x": np.zeros((3, 5), np.float32)}
    assert "Mul" in int64_operators(kept(model, feed, int32=True).proto)
    done = kept(model, feed, int32=True, most={"N": 1000, "M": 2000})
    assert "Mul" not in int64_operators(done.proto)
    assert "4,000,000" in notes(done) and "as you say, N, M" in notes(done)


def test_a_reshape_gets_its_sizes_back_as_int64() -> None:
    model = """g (float[N, 4] x) => (float[K] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] four = {4}> {
        s = Shape(x) n = Slice(s, zero, one) a = Add(n, n) b = Sub(a, n) c = Max(b, one) d = Mul(c, one) e = Min(d, n)
        f = Add(e, e) h = Sub(f, e) r = Concat <axis = 0> (h, four) z = Reshape(x, r) m = Neg(z)
        t = Flatten <axis = 0> (m)
        w = Identity(t) q = Concat <axis = 0> (four, h) u = ReduceProd <keepdims = 1> (q) y = Reshape(w, u)
    }"""
    done = kept(model, {"x": np.ones((3, 4), np.float32)}, int32=True)
    onnx.checker.check_model(done.proto, full_check=True)


def test_branches_read_an_island_of_the_graph_around_them() -> None:
    model = """g (float[N, 8] x, bool c) => (int64[N, 1] y) <int64 two = {2}, int64 nine = {9}> {
        i = ArgMax <axis = 1> (x) a = Add(i, two) b = Mul(a, two)
        y = If (c) <then_branch = t () => (int64[N, 1] p) { q = Sub(b, nine) r = Max(q, two) p = Neg(r) },
                    else_branch = e () => (int64[N, 1] p2) { p2 = Mul(b, two) }>
    }"""
    for flag in (True, False):
        done = kept(model, {"x": X, "c": np.array(flag)}, int32=True)
    assert narrow.NAME in done.changed_by


def test_int32_computes_what_int64_computes_up_to_the_ends() -> None:
    """Values at both ends of int32 come in as int32 themselves: that they fit is certain."""
    model = """g (int32[K] x) => (int64[K] y, bool[K] z, float[K] f) <int64 one = {1}, int64[1] three = {3}> {
        a = Cast <to = 7> (x) b = Identity(a) u = Max(b, three) v = Min(a, three) w = Mod(u, three)
        k = Concat <axis = 0> (u, v, w) n = Slice(k, one0, one1) y = Div(v, three) z = Less(u, v) f = Cast <to = 1> (u)
    }""".replace("n = Slice(k, one0, one1) ", "")
    x = np.array([LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST, 5], np.int32)
    done = kept(model, {"x": x}, int32=True)
    assert narrow.NAME in done.changed_by


UNARY = ("Identity", "Neg", "Abs")
BINARY = ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min")


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Arithmetic on int8, int16 and int32 inputs, widened to int64: some of it fits, some does not."""
    width = draw(st.sampled_from(["int8", "int16", "int32"]))
    names = ["a", "c"]
    lines = ["a = Cast <to = 7> (x)"]
    for number in range(draw(st.integers(2, 8))):
        name = f"v{number}"
        if draw(st.booleans()):
            lines.append(f"{name} = {draw(st.sampled_from(UNARY))}({draw(st.sampled_from(names))})")
        else:
            operator = draw(st.sampled_from(BINARY))
            right = "c" if operator in ("Div", "Mod") else draw(st.sampled_from(names))
            lines.append(f"{name} = {operator}({draw(st.sampled_from(names))}, {right})")
        names.append(name)
    constant = draw(st.sampled_from([1, 2, 3, 7, 255, 70000]))
    lines += [f"y = Identity({names[-1]})", f"z = Less({names[-1]}, {draw(st.sampled_from(names))})",
              f"f = Cast <to = 1> ({names[-1]})"]  # fmt: skip
    return (
        f"g ({width}[K] x) => (int64[K] y, bool[K] z, float[K] f) <int64[1] c = {{{constant}}}> {{ {' '.join(lines)} }}"
    )


def test_random_arithmetic_at_the_ends_of_its_ranges_stays_the_same() -> None:
    moved: set[bool] = set()

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(graphs())
    def stays_the_same(model: str) -> None:
        proto = parse(model)
        kind = onnx.helper.tensor_dtype_to_np_dtype(proto.graph.input[0].type.tensor_type.elem_type)
        ends = np.iinfo(kind)
        x = np.array([ends.min, ends.min + 1, -1, 0, 1, 2, ends.max - 1, ends.max], kind)
        moved.add(narrow.NAME in kept(proto, {"x": x}, int32=True).changed_by)

    stays_the_same()
    assert moved == {True, False}  # the twin: were nothing ever moved, nothing would be tried


def test_a_range_that_is_wrong_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: with the check of ranges off, int32 wraps around and the answer is another."""
    model = """g (int32[K] x) => (bool[K] y) <int64[1] big = {1000}, int64[1] one = {1}> {
        a = Cast <to = 7> (x) b = Mul(a, big) c = Add(b, one) d = Sub(c, one) y = Less(d, a) }"""
    x: dict[str, Any] = {"x": np.array([MOST, 1, LEAST], np.int32)}
    kept(model, x, int32=True)
    monkeypatch.setattr(narrow, "_fits", lambda _found: True)
    wrong = passes(model, int32=True)
    assert not np.array_equal(run(parse(model), x)[0], run(wrong.proto, x)[0])
