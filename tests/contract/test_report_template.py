"""The report's template and its context know the same names: neither side has one too many."""

import re
from dataclasses import fields

import jinja2
import pytest
from jinja2 import meta

from edgekit import resources
from edgekit.render import environment
from edgekit.report import page
from edgekit.report.html import STYLE, TEMPLATE

FOLDER = resources.root("templates") / "report"


def test_the_template_reads_the_fields_of_the_page_and_no_other_names() -> None:
    source = (FOLDER / TEMPLATE).read_text(encoding="utf-8")
    undeclared = meta.find_undeclared_variables(environment(FOLDER).parse(source))
    assert undeclared == {field.name for field in fields(page.Page)}


def test_every_field_of_every_row_is_shown_somewhere() -> None:
    source = (FOLDER / TEMPLATE).read_text(encoding="utf-8")
    for kind in (page.Bar, page.OutputRow, page.OutputGroup, page.Fact, page.Step, page.TimeRow, page.CaseRow,
                 page.Run, page.Cell, page.Matrix, page.MatrixRow, page.Measures, page.Combination, page.ErrorPlot,
                 page.LatencyRow, page.PlacementRow, page.SizeRow, page.Span):  # fmt: skip
        for field in fields(kind):
            assert re.search(rf"\.{field.name}\b", source), f"{kind.__name__}.{field.name}"


def test_a_name_that_the_context_lacks_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        environment(FOLDER).from_string("{{ nothing_of_this_name }}").render()


def test_every_class_that_the_style_sheet_knows_is_used() -> None:
    source = (FOLDER / TEMPLATE).read_text(encoding="utf-8")
    css = re.sub(r"/\*.*?\*/", "", (FOLDER / STYLE).read_text(encoding="utf-8"), flags=re.DOTALL)
    selectors = re.sub(r"\{[^{}]*\}", " ", css)
    kinds = {"good", "bad", "caution", "idle"}
    unused = {name for name in re.findall(r"\.([a-z][a-z-]*)", selectors) if not re.search(rf"\b{name}\b", source)}
    assert unused <= kinds
