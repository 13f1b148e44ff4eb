"""Words that a graph compares its string inputs with, and inputs that no case can see."""

from pathlib import Path

import numpy as np
import pytest
from models_text import loaded

from edgekit.desktop import run as desktop
from edgekit.facts import survey as facts
from edgekit.golden import probe, vocabulary
from edgekit.golden.inert import inert
from edgekit.golden.probe import Run
from edgekit.model.io import LoadedModel
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import value_of

_HEAD = '<ir_version: 8, opset_import: ["" : 19, "ai.onnx.ml" : 2]>'
_ONE_HOT = 'ai.onnx.ml.OneHotEncoder<cats_strings = ["Bern", "Rome"], zeros = 1>'
_LABELS = 'ai.onnx.ml.LabelEncoder<keys_strings = ["x", "é"], values_int64s = [1, 2]>'
_BOTH = "i = Identity(a) ab = Concat<axis = 1>(i, b)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"g (string[N, 1] city) => (float[N, 1, 2] y) {{ y = {_ONE_HOT}(city) }}", {"city": ("Bern", "Rome")}),
        (
            f"g (string[N, 1] a, string[N, 1] b) => (float[N, 2, 2] y) {{ {_BOTH} y = {_ONE_HOT}(ab) }}",
            {"a": ("Bern", "Rome"), "b": ("Bern", "Rome")},
        ),
        (
            f"g (string[N] city) => (int64[N] y) {{ y = {_LABELS}(city) }}",
            {"city": ("x", "é")},
        ),
        (
            'g (string[N] city) => (bool[N] y) { c = Constant<value_strings = ["here"]>() y = Equal(city, c) }',
            {"city": ("here",)},
        ),
        ("g (string[N] city) => (string[N] y) { y = Identity(city) }", {}),
        ("g (float[N] x) => (float[N] y) { y = Neg(x) }", {}),
    ],
)
def test_tables_tell_the_words(text: str, expected: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    model = loaded(f"{_HEAD} {text}", tmp_path)
    assert vocabulary.words(model, facts.survey(model).inputs) == expected


def test_a_broken_table_of_texts_tells_nothing(tmp_path: Path) -> None:
    text = 'g (string[N] city) => (bool[N] y) <string[1] c = {"here"}> { y = Equal(city, c) }'
    model = loaded(f"{_HEAD} {text}", tmp_path)
    assert vocabulary.words(model, facts.survey(model).inputs) == {"city": ("here",)}
    model.proto.graph.initializer[0].dims[0] = 7
    assert vocabulary.words(model, facts.survey(model).inputs) == {}


def runner(model: LoadedModel) -> Run:
    return lambda feeds, _: desktop.run(model.path, feeds).results


def test_generated_texts_are_words_of_the_table(tmp_path: Path) -> None:
    model = loaded(f"{_HEAD} g (string[N, 1] city) => (float[N, 1, 2] y) {{ y = {_ONE_HOT}(city) }}", tmp_path)
    plan = probe.explore(model, facts.survey(model).inputs, {}, None, runner(model))
    (value,) = plan.feed(probe.recipe("normal", 1), probe.Setup({"N": 20})).inputs
    assert value.array is not None
    assert set(value.array.ravel()) == {"Bern", "Rome"}


def test_an_input_that_changes_nothing_is_found_and_one_that_does_is_not(tmp_path: Path) -> None:
    text = "g (float[2] x, float[2] dead) => (float[2] y) <float z = {0}> { a = Mul(dead, z) y = Add(x, a) }"
    model = loaded(f"{_HEAD} {text}", tmp_path)
    cases = [
        GoldenCase(
            f"{n}",
            "",
            (value_of("x", np.full(2, n, np.float32)), value_of("dead", np.full(2, n, np.float32))),
            (value_of("y", np.full(2, n, np.float32)),),
        )
        for n in (1, 2)
    ]
    assert inert(cases, runner(model)) == ["dead"]
    assert inert(cases[:1], runner(model)) == []
