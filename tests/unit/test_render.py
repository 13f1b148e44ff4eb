"""Templates: undefined names are errors, and a hostile name stays text."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest

from edgekit.render import render, script_json

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><b>",
    "\"'&<>",
    "<!--",
    "]]>",
    "line\nend\u2028\u2029",
    "\x1b[31m",
    "né",
]


class Elements(HTMLParser):
    """Collects the elements of a page and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_json_in_a_script_element_survives_a_browser(name: str) -> None:
    text = script_json({name: [name]})
    page = Elements(f'<script type="application/json">{text}</script>')
    assert page.tags == ["script"]
    assert json.loads("".join(page.texts)) == {name: [name]}
    assert not re.search("[<>&\u2028\u2029]", text)


def test_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json(float("nan"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_in_a_page_is_escaped(tmp_path: Path, name: str) -> None:
    (tmp_path / "page.html.j2").write_text('<p title="{{ name }}">{{ name }}</p>')
    assert Elements(render(tmp_path, "page.html.j2", {"name": name})).tags == ["p"]


def test_json_in_a_template_is_not_escaped_twice(tmp_path: Path) -> None:
    (tmp_path / "page.html.j2").write_text("{{ value | script_json }}")
    assert json.loads(render(tmp_path, "page.html.j2", {"value": ["&<"]})) == ["&<"]


def test_an_undefined_name_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "page.html.j2").write_text("{{ nmae }}")
    with pytest.raises(jinja2.UndefinedError, match="nmae"):
        render(tmp_path, "page.html.j2", {"name": "x"})


def test_the_same_context_gives_the_same_text(tmp_path: Path) -> None:
    (tmp_path / "page.html.j2").write_text("{% for key in names %}\n  {{ key }}\n{% endfor %}\n")
    assert render(tmp_path, "page.html.j2", {"names": ["a", "b"]}) == "  a\n  b\n"
