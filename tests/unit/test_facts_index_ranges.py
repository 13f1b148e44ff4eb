"""How far an input that is used as an index may go."""

from pathlib import Path

import pytest
from models_text import EMBEDDING, LINEAR, loaded

from edgekit.facts.index_ranges import index_limit

_HEAD = '<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1, "ai.onnx.ml" : 3, "mine" : 1]>'


def graph(body: str, *, signature: str = "(int64[N] ids) => (float[M] y)", weights: str = "float[10] t = {0}") -> str:
    """A model whose table ``t`` has ten entries."""
    return f"{_HEAD} g {signature} <{weights}> {{ {body} }}"


TWO_AXES = "float[4, 7] t = {0}"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (EMBEDDING, 10),
        (graph("y = Gather(t, ids)"), 10),
        (graph("y = Gather<axis = 1>(t, ids)", weights=TWO_AXES), 7),
        (graph("y = Gather<axis = -1>(t, ids)", weights=TWO_AXES), 7),
        (graph("y = Gather<axis = 5>(t, ids)", weights=TWO_AXES), None),
        (graph("y = GatherElements<axis = 1>(t, ids)", weights=TWO_AXES), 7),
        (graph("y = GatherND(t, ids)", weights=TWO_AXES), 4),
        (
            graph("y = GatherND(t, ids)", signature="(int64[N, 1] ids) => (float[M] y)", weights="float[9, 3] t = {0}"),
            9,
        ),
        (graph("y = ScatterElements(t, ids, u)", weights="float[10] t = {0}, float[2] u = {0}"), 10),
        (graph("y = ScatterND(t, ids, u)", weights="float[10] t = {0}, float[2] u = {0}"), 10),
        (graph("y = OneHot(ids, d, v)", weights="int64 d = {6}, float[2] v = {0, 1}"), 6),
        (graph("d = Constant<value_int = 6>() y = OneHot(ids, d, v)", weights="float[2] v = {0, 1}"), 6),
        (graph("y = ai.onnx.ml.ArrayFeatureExtractor(t, ids)", weights=TWO_AXES), 7),
        (
            graph(
                "y, m = com.microsoft.EmbedLayerNormalization(ids, , t, p)",
                weights="float[12, 2] t = {0}, float[5, 2] p = {0}",
            ),
            12,
        ),
        # What the table went through
        (graph("d = DequantizeLinear(t, s) y = Gather(d, ids)", weights="uint8[8, 2] t = {0}, float s = {1}"), 8),
        (graph("r = Transpose(t) y = Gather(r, ids)", weights=TWO_AXES), 7),
        (graph("r = Transpose<perm = [0, 1]>(t) y = Gather(r, ids)", weights=TWO_AXES), 4),
        (graph("r = Mul(t, s) y = Gather(r, ids)", weights="float[4, 7] t = {0}, float s = {1}"), 4),
        (graph("c = Constant<value = float[3] {1, 2, 3}>() y = Gather(c, ids)"), 3),
        (graph("y = Gather(x, ids)", signature="(int64[N] ids, float[5, K] x) => (float[M] y)"), 5),
        (graph("y = Gather(x, ids)", signature="(int64[N] ids, float[B, K] x) => (float[M] y)"), None),
        # What the index went through
        (
            graph(
                "a = Reshape(ids, s) b = Concat<axis = 0>(a, a) y = Gather(t, b)",
                weights="float[10] t = {0}, int64[1] s = {-1}",
            ),
            10,
        ),
        (graph("a = Add(ids, two) y = Gather(t, a)", weights="float[10] t = {0}, int64 two = {2}"), 8),
        (graph("a = Add(o, ids) y = Gather(t, a)", weights="float[30] t = {0}, int64[3] o = {0, 10, 20}"), 10),
        (graph("a = Sub(ids, two) y = Gather(t, a)", weights="float[10] t = {0}, int64 two = {2}"), 12),
        (graph("a = Mul(ids, two) y = Gather(t, a)", weights="float[10] t = {0}, int64 two = {2}"), None),
        (
            graph(
                "n = Less(ids, zero) w = Add(ids, ten) i = Where(n, w, ids) y = Gather(t, i)",
                weights="float[10] t = {0}, int64 zero = {0}, int64 ten = {10}",
            ),
            10,
        ),
        # The strictest of several tables
        (
            graph("a = Gather(t, ids) b = Gather(s, ids) y = Add(a, b)", weights="float[10] t = {0}, float[4] s = {0}"),
            4,
        ),
        # No index at all
        (graph("a = Gather(ids, i) y = Cast<to = 1>(a)", weights="int64[1] i = {0}"), None),
        (graph("y = Cast<to = 1>(ids)"), None),
    ],
)
def test_the_limit_of_an_index_is_found(tmp_path: Path, text: str, limit: int | None) -> None:
    assert index_limit(loaded(text, tmp_path), "ids") == limit


BRANCH = """
    y = If (flag) <
        then_branch = a () => (float[M] p) { p = Gather(t, ids) },
        else_branch = b () => (float[M] q) <float[3] s = {0}> { q = Gather(s, ids) }
    >
"""
BRANCH_RESULT = """
    i = If (flag) <
        then_branch = a () => (int64[N] p) { p = Identity(ids) },
        else_branch = b () => (int64[N] q) { q = Neg(ids) }
    >
    y = Gather(t, i)
"""
LOOP = """
    y = Loop (n, flag, ids) <
        body = b (int64 i, bool go, int64[N] state) => (bool go2, int64[N] state2, float[M] r) {
            go2 = Identity(go)
            state2 = Identity(state)
            r = Gather(t, state)
        }
    >
"""
SCAN = """
    y = Scan <num_scan_inputs = 1, body = b (int64 one) => (float r) { r = Gather(t, one) }> (ids)
"""
WITH_FLAG = "(int64[N] ids, bool flag, int64 n) => (float[M] y)"


@pytest.mark.parametrize(
    ("body", "limit"),
    [(BRANCH, 3), (BRANCH_RESULT, 10), (LOOP, 10), (SCAN, 10)],
    ids=["if", "if result", "loop", "scan"],
)
def test_an_index_is_followed_into_nested_graphs(tmp_path: Path, body: str, limit: int) -> None:
    assert index_limit(loaded(graph(body, signature=WITH_FLAG), tmp_path), "ids") == limit


def test_an_index_is_followed_through_functions(tmp_path: Path) -> None:
    text = graph("a, b = mine.Look(t, ids) y = Gather(s, b)", weights="float[10] t = {0}, float[6] s = {0}")
    function = (
        '<opset_import: ["" : 18], domain: "mine"> Look (table, i) => (v, j) { v = Gather(table, i) j = Identity(i) }'
    )
    assert index_limit(loaded(text + function, tmp_path), "ids") == 6
    assert index_limit(loaded(text.replace("Gather(s, b)", "Identity(a)") + function, tmp_path), "ids") == 10


def test_functions_that_call_each_other_without_end_do_not_hang(tmp_path: Path) -> None:
    head = '<opset_import: ["" : 18, "mine" : 1], domain: "mine">'
    own = f"{head} F (i) => (j) {{ k = mine.F(i) j = mine.F(k) }}"
    assert index_limit(loaded(graph("a = mine.F(ids) y = Gather(t, ids)") + own, tmp_path), "ids") == 10
    tower = "".join(f"{head} F{k} (i) => (j) {{ k = mine.F{k + 1}(i) j = mine.F{k + 1}(k) }}" for k in range(40))
    top = f"{head} F40 (i) => (j) {{ j = Identity(i) }}"
    assert index_limit(loaded(graph("y = Gather(t, ids) a = mine.F0(ids)") + tower + top, tmp_path), "ids") == 10


def test_an_input_that_is_no_index_has_no_limit(tmp_path: Path) -> None:
    assert index_limit(loaded(LINEAR, tmp_path), "x") is None
    assert index_limit(loaded(LINEAR, tmp_path), "no such input") is None
