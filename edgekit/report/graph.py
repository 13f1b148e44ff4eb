"""A model to one self-contained page that opens offline: every node, coloured by what it is or by what went wrong."""

import base64
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import onnx
from markupsafe import Markup

from edgekit import __version__, resources
from edgekit.errors import LimitError
from edgekit.facts.shapes import ShapeTable
from edgekit.render import render
from edgekit.report import layout
from edgekit.report.graph_panels import FAMILIES, Box, Marks, Panel, Status, panels
from edgekit.report.html import visible
from edgekit.report.layout import Outline, Placed, Point

TEMPLATE, STYLE, SCRIPT = "graph.html.j2", "graph.css", "graph.js"

# 20,000 nodes make a page of 25 MB, which a browser opens in some seconds.
_MOST_NODES = 20_000

_COLUMN, _LAYER = 196, 104
_WIDTH, _HEIGHT, _SMALL_HEIGHT = 172, 62, 42
_MARGIN = 24
_LETTERS, _SMALL_LETTERS = 19, 26

_STATUS_WORDS: dict[Status, str] = {
    "wrong": "gives a wrong output",
    "suspect": "leads to wrong outputs only",
    "right": "gives a right output",
    "idle": "the record says nothing",
}


@dataclass(frozen=True)
class Card:
    """A box with its place, in pixels of the drawing. ``look``: classes of the style sheet. ``key``: its number."""

    key: int
    x: float
    y: float
    height: int
    title: str
    name: str
    shape: str
    look: str
    tip: str


@dataclass(frozen=True)
class Wire:
    """An edge as an SVG path, between the cards of these numbers. ``far``: drawn past the others."""

    path: str
    source: int
    target: int
    far: bool


@dataclass(frozen=True)
class Sheet:
    """One panel, drawn. ``parent``: number and title of the panel that holds it."""

    number: int
    title: str
    nodes: int
    parent: tuple[int, str] | None
    width: int
    height: int
    cards: tuple[Card, ...]
    wires: tuple[Wire, ...]


@dataclass(frozen=True)
class LegendEntry:
    """A colour and what it stands for."""

    look: str
    words: str
    count: int


@dataclass(frozen=True)
class GraphPage:
    """Everything that the template reads. ``about``: per card, lines of "key<tab>value"; and the panels it opens."""

    title: str
    summary: str
    edgekit_version: str
    css: Markup
    css_sha256: str
    script: Markup
    script_sha256: str
    legend: tuple[LegendEntry, ...]
    sheets: tuple[Sheet, ...]
    about: dict[str, list[str]]


def graph_html(
    proto: onnx.ModelProto, title: str, summary: str, table: ShapeTable | None = None, marks: Marks | None = None
) -> str:
    """Return the page of a model. The same model gives the same text.

    ``marks``: what a record says of the outputs; nodes are then coloured by it, and by their kind otherwise. Raises
    MissingToolError without igraph, LimitError for a model of more than 20,000 nodes.
    """
    drawn = panels(proto, table, marks or Marks())
    total = sum(len(panel.boxes) for panel in drawn)
    if total > _MOST_NODES:
        raise LimitError(
            f"The model has {total:,} nodes, inputs and outputs to draw; a page holds at most {_MOST_NODES:,}.",
            hint="Cut the part out that you want to see.",
        )
    placed = layout.place_all([_outline(panel) for panel in drawn])
    page = _page(drawn, placed, title, summary, by_status=bool(marks))
    return render(
        resources.root("templates") / "graph", TEMPLATE, {f.name: getattr(page, f.name) for f in fields(page)}
    )


def _outline(panel: Panel) -> Outline:
    return Outline(len(panel.boxes), panel.edges, sum(box.kind == "input" for box in panel.boxes))


def _page(drawn: Sequence[Panel], placed: Sequence[Placed], title: str, summary: str, *, by_status: bool) -> GraphPage:
    folder = resources.root("templates") / "graph"
    css = (folder / STYLE).read_text(encoding="utf-8")
    script = (folder / SCRIPT).read_text(encoding="utf-8")
    titles = {panel.number: panel.title for panel in drawn}
    sheets: list[Sheet] = []
    about: dict[str, list[str]] = {}
    first = 0
    for panel, places in zip(drawn, placed, strict=True):
        sheets.append(visible(_sheet(panel, places, titles, first, by_status=by_status)))
        about |= {str(first + i): list(_lines(box, titles)) for i, box in enumerate(panel.boxes)}
        first += len(panel.boxes)
    return GraphPage(
        title=visible(title),
        summary=visible(summary),
        edgekit_version=__version__,
        css=Markup(css),  # noqa: S704  edgekit's own file
        css_sha256=_hash(css),
        script=Markup(script),  # noqa: S704  edgekit's own file
        script_sha256=_hash(script),
        legend=tuple(_legend([box for panel in drawn for box in panel.boxes], by_status=by_status)),
        sheets=tuple(sheets),
        about=about,
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _lines(box: Box, titles: dict[int, str]) -> Iterator[str]:
    rows = box.about if box.kind == "node" else ((box.kind, f"{box.title}  {box.shape}"),)
    for key, value in rows:
        yield f"{_one_line(key)}\t{_one_line(value)}"
    for number in box.opens:
        yield f"#{number}\t{_one_line(titles[number])}"


def _one_line(text: str) -> str:
    return visible(text).replace("\n", "\\n")


def _legend(boxes: Sequence[Box], *, by_status: bool) -> Iterator[LegendEntry]:
    nodes = [box for box in boxes if box.kind == "node"]
    if by_status:
        statuses = Counter(box.status for box in nodes)
        for status, words in _STATUS_WORDS.items():
            if statuses[status]:
                yield LegendEntry(status, words, statuses[status])
        return
    families = Counter(box.family for box in nodes)
    for index, family in enumerate(FAMILIES):
        if families[family]:
            yield LegendEntry(f"f{index}", family, families[family])


def _sheet(panel: Panel, places: Placed, titles: dict[int, str], first: int, *, by_status: bool) -> Sheet:
    cards = tuple(
        _card(first + index, box, point, by_status=by_status)
        for index, (box, point) in enumerate(zip(panel.boxes, places.points, strict=True))
    )
    wires = tuple(
        _wire(cards[source], cards[target], bends)
        for (source, target), bends in zip(panel.edges, places.bends, strict=True)
    )
    points = [*places.points, *(point for bends in places.bends for point in bends)]
    right = max((x for x, _ in points), default=0.0)
    below = max((y for _, y in points), default=0.0)
    return Sheet(
        number=panel.number,
        title=panel.title,
        nodes=sum(box.kind == "node" for box in panel.boxes),
        parent=None if panel.parent is None else (panel.parent, titles[panel.parent]),
        width=round(right * _COLUMN + _WIDTH + 2 * _MARGIN),
        height=round(below * _LAYER + _HEIGHT + 2 * _MARGIN),
        cards=cards,
        wires=wires,
    )


def _card(key: int, box: Box, point: Point, *, by_status: bool) -> Card:
    height = _HEIGHT if box.kind == "node" else _SMALL_HEIGHT
    look = box.kind if box.kind != "node" else box.status if by_status else f"f{FAMILIES.index(box.family)}"
    if box.opens:
        look += " opens"
    if box.kind == "output" and box.status != "idle":
        look += f" {box.status}"
    return Card(
        key=key,
        x=round(_MARGIN + point[0] * _COLUMN, 1),
        y=round(_MARGIN + point[1] * _LAYER + (_HEIGHT - height) / 2, 1),
        height=height,
        title=_cut(box.title, _LETTERS),
        name=_cut(box.name if box.kind == "node" else box.shape, _SMALL_LETTERS),
        shape=_cut(box.shape, _SMALL_LETTERS) if box.kind == "node" else "",
        look=look,
        tip="\n".join(filter(None, (box.title, box.name, box.shape))),
    )


def _cut(text: str, most: int) -> str:
    """Shorten in the middle: the ends of a node's name tell most."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-(most - 1 - half) :]}"


def _wire(source: Card, target: Card, bends: Sequence[Point]) -> Wire:
    """Draw an edge from the lower side of its source to the upper side of its target, through its bends."""
    middle = _WIDTH / 2
    points = [
        (source.x + middle, source.y + source.height),
        *((_MARGIN + x * _COLUMN + middle, _MARGIN + y * _LAYER + _HEIGHT / 2) for x, y in bends),
        (target.x + middle, target.y),
    ]
    path = f"M{_pixels(points[0][0])} {_pixels(points[0][1])}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        half = (y + to_y) / 2
        if x == to_x:
            path += f"V{_pixels(to_y)}"
        else:
            path += "C" + " ".join(_pixels(number) for number in (x, half, to_x, half, to_x, to_y))
    return Wire(path, source.key, target.key, not bends and target.y - source.y > 2 * _LAYER)


def _pixels(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
