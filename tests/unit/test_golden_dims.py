"""Sizes for free dimensions."""

import itertools

import pytest

from edgekit.errors import UsageError
from edgekit.facts.survey import Argument
from edgekit.golden.dims import choose, first_sizes, fits, free_axes, other_sizes, shape_of


def argument(name: str, *shape: int | str | None, dtype: str = "float32") -> Argument:
    return Argument(name, f"tensor({dtype})", dtype, shape)


def roles(*arguments: Argument) -> dict[str, str]:
    return {axis.key: axis.role for axis in free_axes(arguments, {})}


def test_roles_come_from_names_and_places() -> None:
    assert roles(argument("x", "batch", 3, "height", "width")) == {
        "batch": "batch",
        "height": "picture",
        "width": "picture",
    }
    assert roles(argument("audio", None, None)) == {"audio[0]": "batch", "audio[1]": "signal"}
    assert roles(argument("ids", 1, "seq_len", dtype="int64")) == {"seq_len": "length"}
    assert roles(argument("x", "unk__12", 2048, dtype="int32")) == {"unk__12": "batch"}
    assert roles(argument("frames", "sequence_length", 576)) == {"sequence_length": "length"}


def test_a_name_is_one_axis_and_unknown_dimensions_are_each_their_own() -> None:
    axes = free_axes([argument("a", "n", None), argument("b", "n", None)], {})
    assert [axis.key for axis in axes] == ["n", "a[1]", "b[1]"]


def test_the_axis_of_a_state_may_be_the_batch() -> None:
    axes = {axis.key: axis for axis in free_axes([argument("state", 2, None, 128)], {})}
    assert axes["state[1]"].ambiguous


def test_first_sizes_try_an_ambiguous_axis_as_batch_and_as_length() -> None:
    axes = free_axes([argument("x", None, None), argument("state", 2, None, 128)], {})
    tried = list(itertools.islice(first_sizes(axes, []), 4))
    assert tried[0] == {"x[0]": 1, "x[1]": 1024, "state[1]": 1}
    assert tried[1] == {"x[0]": 1, "x[1]": 1024, "state[1]": 16}


def test_first_sizes_end_with_the_sizes_of_the_weights() -> None:
    axes = free_axes([argument("x", "n", "features")], {})
    assert list(first_sizes(axes, [30]))[-1] == {"n": 1, "features": 30}


def test_frozen_dimensions_are_not_free() -> None:
    arguments = [argument("x", "n", None)]
    assert [axis.key for axis in free_axes(arguments, {"x[1]": 7})] == ["n"]
    assert shape_of(arguments[0], {"n": 2, "x[1]": 7}) == (2, 7)


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        ({"bacth": 1}, "no free dimension 'bacth'; did you mean 'batch'"),
        ({"x[1]": 1}, r"no free dimension 'x\[1\]'"),
        ({"batch": 0}, "below 1"),
    ],
)
def test_a_wrong_dimension_is_named(frozen: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        free_axes([argument("x", "batch", 4)], frozen)
    assert caught.value.hint is None or "batch" in caught.value.hint


def test_other_sizes_have_another_batch_and_unequal_sides() -> None:
    axes = free_axes([argument("x", "N", 3, "H", "W")], {})
    base = {"N": 1, "H": 96, "W": 96}
    proposed = other_sizes(axes, base)
    assert {"N": 3, "H": 96, "W": 96} in proposed
    assert any(sizes["H"] != sizes["W"] for sizes in proposed)
    assert base not in proposed


def test_chosen_sizes_give_every_axis_two_in_few_steps() -> None:
    axes = free_axes([argument("x", "N", 3, "H", "W")], {})
    base = {"N": 1, "H": 96, "W": 96}
    chosen = choose(axes, base, other_sizes(axes, base))
    assert chosen[0] == base
    assert len(chosen) == 3
    assert all(len({sizes[axis.key] for sizes in chosen}) == 2 for axis in axes)


def test_axes_that_only_move_together_are_moved_together() -> None:
    axes = free_axes([argument("a", "n1", 4), argument("b", "n2", 4)], {})
    base = {"n1": 1, "n2": 1}
    accepted = [sizes for sizes in other_sizes(axes, base) if sizes["n1"] == sizes["n2"]]
    assert choose(axes, base, accepted) == [base, {"n1": 3, "n2": 3}]


def test_nothing_accepted_leaves_the_base_alone() -> None:
    axes = free_axes([argument("x", "n", 4)], {})
    assert choose(axes, {"n": 1}, []) == [{"n": 1}]


def test_inputs_of_a_fixed_shape_fit_however_large() -> None:
    large = argument("x", 1, 3, 2048, 2048)
    assert fits([large], {})
    assert not fits([argument("x", "n", 3, "h", "w")], {"n": 3, "h": 2048, "w": 2048})
