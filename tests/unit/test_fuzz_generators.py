"""Cases are drawn by number: always the same, of every operator, and valid."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import pytest

from edgekit.conformance import desktop
from edgekit.errors import UsageError
from edgekit.fuzz import generators, templates
from edgekit.fuzz.draw import Draw
from edgekit.records.tensors import value_of

# Desktop onnxruntime has no kernel for these, so nobody can say what is right.
NOTHING_TO_COMPARE = {"ImageDecoder", "SequenceMap", "SwiGLU"}


def test_every_operator_of_the_conformance_list_has_a_generator() -> None:
    assert set(templates.operators()) <= set(generators.every())


def test_a_number_of_a_seed_is_always_the_same_case() -> None:
    among = generators.families()
    first, again = (generators.draw(7, 11, among) for _ in range(2))
    assert first.case is not None and again.case is not None
    assert (first.choices, first.case.model) == (again.choices, again.case.model)
    assert all(np.array_equal(a.array, b.array) for a, b in zip(first.case.inputs, again.case.inputs, strict=True))


def test_another_seed_draws_other_cases() -> None:
    among = generators.families()
    drawn = [[generators.draw(seed, number, among).choices for number in range(5)] for seed in (1, 2)]
    assert drawn[0] != drawn[1]


def test_choices_give_their_case_again() -> None:
    among = generators.families()
    for number in range(40):
        drawn = generators.draw(3, number, among)
        again = generators.redraw(among[drawn.generator], drawn.choices)
        assert drawn.case is None or (again.case is not None and again.case.model == drawn.case.model)


def test_nearly_all_of_what_is_drawn_runs_on_the_desktop() -> None:
    among = generators.families()
    drawn = [generators.draw(1, number, among) for number in range(300)]
    replies = desktop.replay([one.case for one in drawn if one.case is not None])
    assert Counter(reply.outcome for reply in replies)["done"] > 260


def test_the_inputs_are_small_numbers_that_floats_hold_exactly() -> None:
    draw = Draw(np.random.default_rng(1))
    array = draw.numbers("x", [50])
    assert array.dtype == np.float32
    assert np.abs(array).max() <= 4 and np.array_equal(array * 2, np.round(array * 2))


def test_the_simplest_choices_of_each_family_are_a_valid_model() -> None:
    made = [generators.redraw(generator, {}) for generator in generators.families().values()]
    assert [one.generator for one in made if one.case is None] == []
    for one in made:
        assert one.case is not None
        onnx.checker.check_model(onnx.load_from_string(one.case.model))


def test_named_operators_bring_their_chains() -> None:
    assert set(generators.chosen(["Conv"])) >= {"Conv", "Conv+activation", "Pad+Conv"}


def test_an_unknown_operator_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="Conw"):
        generators.chosen(["Conw"])


def test_a_cast_of_what_the_integers_do_not_hold_is_not_drawn() -> None:
    case = generators.redraw(generators.every()["Cast"], {"CastLike": 1}).case
    assert case is not None
    like = value_of("like", np.zeros(1, np.uint16))
    for number, is_defined in ((3.0, True), (-1.0, False), (70_000.0, False), (np.nan, False)):
        given = replace(case, inputs=(value_of("x", np.array([number], np.float32)), like))
        assert templates._is_defined("CastLike", given) is is_defined


@pytest.mark.parametrize(("name", "said"), [("Cnov", "There is no operator 'Cnov'. Did you mean 'Conv'?"),
                                            ("RandomNormal", "No generator draws the operator")])  # fmt: skip
def test_what_is_not_drawn_is_told_apart_from_what_is_no_operator(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        generators.chosen([name])
