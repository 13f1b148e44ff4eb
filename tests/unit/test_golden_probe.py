"""Finding what a graph takes, by running it on the desktop."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from models_text import EMBEDDING, LINEAR, loaded

from edgekit.desktop import run as desktop
from edgekit.desktop.run import DesktopResult, Feed
from edgekit.errors import ModelError, UsageError
from edgekit.facts import survey as facts
from edgekit.golden.inputs import Domain, recipe
from edgekit.golden.probe import Plan, explore
from edgekit.records.cases import FeedBack

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def explored(text: str, folder: Path, feed_back: FeedBack | None = None, **frozen: int) -> Plan:
    model = loaded(text, folder)

    def run(feeds: Sequence[Feed], _: str) -> tuple[DesktopResult, ...]:
        return desktop.run(model.path, feeds).results

    return explore(model, facts.survey(model).inputs, frozen, feed_back, run)


def sizes(plan: Plan, key: str) -> set[int]:
    return {setup.sizes[key] for setup in plan.setups}


def test_a_batch_has_one_and_three(tmp_path: Path) -> None:
    assert sizes(explored(LINEAR, tmp_path), "N") == {1, 3}


def test_a_frozen_dimension_has_its_size_alone(tmp_path: Path) -> None:
    assert sizes(explored(LINEAR, tmp_path, N=5), "N") == {5}


def test_an_index_stays_inside_its_table(tmp_path: Path) -> None:
    domain = explored(EMBEDDING, tmp_path).domains["ids"]
    assert (domain.low, domain.high) == (0, 9)


def test_a_float_that_becomes_an_index_stays_inside_the_table(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[N, 4] x) => (float[N, 4] y) <float[7] t = {{1, 2, 3, 4, 5, 6, 7}}> "
        "{ i = Cast<to = 7>(x) y = Gather(t, i) }"
    )
    plan = explored(text, tmp_path)
    assert (plan.domains["x"].high, plan.domains["x"].whole) == (6, True)
    assert "x" in plan.exact


def test_a_range_that_no_table_tells_is_found_by_trying(tmp_path: Path) -> None:
    # k of TopK is at most the size of the axis, which is 6; of the ranges that are tried, 0 to 3 is the widest in it.
    text = f"{_HEAD} g (float[1, 6] x, int64[1] k) => (float[1, K] y, int64[1, K] i) {{ y, i = TopK(x, k) }}"
    assert explored(text, tmp_path).domains["k"].high == 3


def test_negative_values_are_used_where_they_are_taken(tmp_path: Path) -> None:
    taken = f"{_HEAD} g (int64[N, 4] x) => (int64[N, 4] y) {{ y = Abs(x) }}"
    assert explored(taken, tmp_path).domains["x"].signed
    refused = f"{_HEAD} g (float[1, 6] x, int64[1] k) => (float[1, K] y, int64[1, K] i) {{ y, i = TopK(x, k) }}"
    assert not explored(refused, tmp_path).domains["k"].signed


def test_a_mask_holds_zeros_and_ones(tmp_path: Path) -> None:
    text = f"{_HEAD} g (int64[N, 4] attention_mask) => (int64[N, 4] y) {{ y = Neg(attention_mask) }}"
    assert explored(text, tmp_path).domains["attention_mask"] == Domain(0, 1)


def test_dimensions_that_must_be_equal_but_have_other_names_are_found(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[a, 4] x, float[b, 4] z) => (float[c, 8] y) {{ y = Concat<axis = 1>(x, z) }}"
    plan = explored(text, tmp_path)
    assert [dict(setup.sizes) for setup in plan.setups] == [{"a": 1, "b": 1}, {"a": 3, "b": 3}]


def test_the_unnamed_batch_of_a_state_is_found(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[?, ?] x, float[2, ?, 4] state) => (float[2, M, 4] y) <int64[1] axis = {{0}}, "
        "int64[1] one = {1}> { m = ReduceMean<axes = [1], keepdims = 1>(x) c = Concat<axis = 1>(m, m, m, m) "
        "u = Unsqueeze(c, axis) v = Concat<axis = 0>(u, u) s = Shape(state) t = Shape(v) e = Expand(v, s) "
        "y = Concat<axis = 2>(e, state) }"
    )
    plan = explored(text.replace("(float[2, M, 4] y)", "(float[2, M, 8] y)"), tmp_path)
    assert sizes(plan, "state[1]") >= {1, 3}


def test_an_unnamed_feature_axis_has_the_size_of_its_weight(tmp_path: Path) -> None:
    text = LINEAR.replace("float[N, 2] x", "float[N, C] x")
    plan = explored(text, tmp_path)
    assert sizes(plan, "C") == {2}
    assert any("C" in words for words in plan.refused)


def test_a_scalar_takes_every_setting(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[1, T] x, int64 sr) => (float[1, U] y) <int64 rate = {{16000}}> {{ is = Equal(sr, rate) "
        "y = If (is) < then_branch = a () => (float[1, P] p) { p = Neg(x) }, "
        "else_branch = b () => (float[1, Q] q) { q = Concat<axis = 1>(x, x) } > }"
    )
    plan = explored(text, tmp_path)
    assert plan.domains["sr"].settings == (16000.0, 8000.0)
    assert {setup.setting for setup in plan.setups} == {0, 1}
    assert "sr=8000" in plan.describe(plan.setups[-1])


def test_an_input_of_unknown_rank_is_given_one(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[] x) => (float[M] y) <float[3, 2] w = {{1, 2, 3, 4, 5, 6}}> {{ y = MatMul(x, w) }}"
    model = loaded(text, tmp_path)
    model.proto.graph.input[0].type.tensor_type.ClearField("shape")
    model.path.write_bytes(model.proto.SerializeToString())
    plan = explore(model, facts.survey(model).inputs, {}, None, lambda feeds, _: desktop.run(model.path, feeds).results)
    (value,) = plan.feed(recipe("normal", 0), plan.setups[0]).inputs
    assert value.shape is not None
    assert value.shape[-1] == 3


def test_a_state_that_is_fed_back_starts_at_zero(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[N, 4] x, float[N, 4] state) => (float[N, 4] next) {{ next = Add(x, state) }}"
    plan = explored(text, tmp_path, FeedBack(3, {"state": "next"}))
    x, state = plan.feed(recipe("normal", 0), plan.setups[0]).inputs
    assert np.any(x.array)
    assert not np.any(state.array)


def test_a_model_that_takes_nothing_says_why_and_what_to_do(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[N, C] x) => (float[N, 3] y) <int64[2] s = {{7, 13}}> {{ y = Reshape(x, s) }}"
    with pytest.raises(ModelError, match="Reshape") as caught:
        explored(text, tmp_path)
    assert caught.value.hint is not None
    assert "--dim N=N" in caught.value.hint
    assert "--sample" in caught.value.hint


def test_a_dimension_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'batch'"):
        explored(LINEAR, tmp_path, batch=1)


@pytest.mark.parametrize("dimension", ["N", "length"])
def test_a_size_that_must_be_a_multiple_of_an_odd_number_is_found(dimension: str, tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[{dimension}, 2] x) => (float[K, 14] y) <int64[2] s = {{-1, 26}}> {{ y = Reshape(x, s) }}"
    assert {size % 13 for size in sizes(explored(text, tmp_path), dimension)} == {0}
    assert len(sizes(explored(text, tmp_path), dimension)) == 2


def test_a_length_that_must_be_twice_the_other_is_found(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[1, 3, height, width] x) => (float[1, 6, H, W] y) "
        "{ a, b = Split<axis = 2>(x) t = Transpose<perm = [0, 1, 3, 2]>(b) y = Concat<axis = 1>(a, t) }"
    )
    plan = explored(text, tmp_path)
    assert all(setup.sizes["height"] == 2 * setup.sizes["width"] for setup in plan.setups)
