"""Values that a graph compares its scalar inputs with."""

from pathlib import Path

import pytest
from models_text import loaded

from edgekit.facts import survey as facts
from edgekit.golden.constants import settings

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def found(text: str, folder: Path) -> dict[str, tuple[float, ...]]:
    model = loaded(f"{_HEAD} {text}", folder)
    return settings(model, facts.survey(model).inputs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (int64 sr) => (bool y) <int64 r = {48000}> { y = Equal(sr, r) }", {"sr": (48000.0, 16000.0, 8000.0)}),
        ("g (int64 mode) => (bool y) <int64 r = {3}> { y = Equal(r, mode) }", {"mode": (3.0,)}),
        ("g (int64[1] mode) => (bool y) <int64 r = {3}> { y = Equal(mode, r) }", {"mode": (3.0,)}),
        (
            (
                "g (int64 mode) => (bool[1] y) <float r = {3}, int64[1] s = {1}> "
                "{ a = Cast<to = 1>(mode) b = Reshape(a, s) y = Equal(b, r) }"
            ),
            {"mode": (3.0,)},
        ),
        ("g (float low) => (bool[4] y) <float[4] t = {10, 20, 30, 40}> { y = GreaterOrEqual(t, low) }", "lowest"),
        ("g (float low) => (bool[4] y) <float[4] t = {10, 20, 30, 40}> { y = Less(low, t) }", "lowest"),
        ("g (float low) => (bool[4] y) <float[4] t = {10, 20, 30, 40}> { y = LessOrEqual(t, low) }", "highest"),
    ],
)
def test_comparisons_tell_settings(text: str, expected: object, tmp_path: Path) -> None:
    if expected == "lowest":
        expected = {"low": (10.0, 17.5)}
    if expected == "highest":
        expected = {"low": (40.0, 32.5)}
    assert found(text, tmp_path) == expected


def test_comparisons_inside_branches_are_found(tmp_path: Path) -> None:
    text = """g (bool flag, int64 mode) => (bool y) {
        y = If (flag) <
            then_branch = t () => (bool a) { r = Constant <value = int64 {5}> () a = Equal(mode, r) },
            else_branch = e () => (bool b) { s = Constant <value = int64 {6}> () b = Equal(mode, s) }
        >
    }"""
    assert found(text, tmp_path) == {"mode": (5.0, 6.0)}


@pytest.mark.parametrize(
    "text",
    [
        "g (int64[4] ids) => (bool[4] y) <int64 r = {3}> { y = Equal(ids, r) }",
        "g (int64 mode, int64 other) => (bool y) { y = Equal(mode, other) }",
        "g (bool flag) => (bool y) <bool r = {1}> { y = Equal(flag, r) }",
        "g (float x) => (float y) <float r = {3}> { y = Add(x, r) }",
    ],
)
def test_other_inputs_and_operators_have_none(text: str, tmp_path: Path) -> None:
    assert found(text, tmp_path) == {}


def test_a_sampling_rate_is_known_by_its_name(tmp_path: Path) -> None:
    text = "g (int64 sample_rate) => (int64 y) { y = Identity(sample_rate) }"
    assert found(text, tmp_path) == {"sample_rate": (16000.0, 8000.0)}
