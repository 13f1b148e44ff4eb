"""Mistakes in a TOML file are told in the words of those who write it, not in Python's."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from edgekit import tables
from edgekit.errors import UsageError


@dataclass(frozen=True)
class Part:
    count: int = 0


@dataclass(frozen=True)
class Whole:
    title: str
    share: float = 0.0
    fast: bool = False
    names: tuple[str, ...] = ()
    part: Part = field(default_factory=Part)
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = 1", "'title' must be a text in quotes, not 1."),
        ("title = 1979-05-27", "'title' must be a text in quotes, not 1979-05-27."),
        ("title = ['a', true]", "'title' must be a text in quotes, not [\"a\", true]."),
        ("share = 'half'", "'share' must be a number, not \"half\"."),
        ("fast = 1", "'fast' must be true or false, not 1."),
        ("names = 'a'", "'names' must be a list, not \"a\"."),
        ("names = [['a']]", "'names[]' must be a text in quotes, not [\"a\"]."),
        ("part = 3", "'part' must be a table, not 3."),
        ("part.count = 2.5", "'part.count' must be a whole number, not 2.5."),
        ("part.count = { a = 1 }", "'part.count' must be a whole number, not a table."),
        ("parts = [1]", "'parts[]' must be a table, not 1."),
        ("by_name = []", "'by_name' must be a table, not []."),
        ("by_name.x = true", "'by_name.x' must be a table, not true."),
        (f"share = '{'x' * 5000}'", "…."),
    ],
)
def test_a_wrong_type_is_said_as_the_file_would(text: str, said: str) -> None:
    title = "" if text.startswith("title") else "title = 'a'\n"
    with pytest.raises(UsageError) as caught:
        tables.build(Whole, tomllib.loads(title + text), "a.toml")
    assert caught.value.message.endswith(said) and len(caught.value.message) < 200
    assert not re.search(r"\b(str|int|float|bool|tuple|dict|Mapping|None|NoneType|True|False)\b", caught.value.message)


def test_a_whole_number_is_a_number_and_what_is_right_is_read() -> None:
    text = "title = 'a'\nshare = 1\nnames = ['x']\nparts = [{ count = 1 }]\nby_name.x.count = 2"
    found = tables.build(Whole, tomllib.loads(text), "a.toml")
    assert (found.share, found.names, found.parts) == (1.0, ("x",), (Part(1),)) and found.by_name["x"] == Part(2)
    with pytest.raises(UsageError, match="missing key title"):
        tables.build(Whole, {}, "a.toml")
