"""A model to one self-contained page that opens offline: every node, coloured by what it is or by what a record says.

A record says which outputs are wrong, and where the nodes ran: two ways to colour, which the page switches between.
"""

import base64
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import onnx
from markupsafe import Markup

from edgekit import __version__, resources
from edgekit.errors import LimitError
from edgekit.facts.shapes import ShapeTable
from edgekit.render import render
from edgekit.report import layout
from edgekit.report.graph_panels import FAMILIES, Box, Marks, Panel, Status, match_placement, panels
from edgekit.report.html import visible
from edgekit.report.layout import Outline, Placed, Point
from edgekit.report.placement import UNKNOWN, Matched, provider_name

TEMPLATE, STYLE, SCRIPT = "graph.html.j2", "graph.css", "graph.js"

# 20,000 nodes make a page of 25 MB, which a browser opens in some seconds.
_MOST_NODES = 20_000

_COLUMN, _LAYER = 196, 104
_WIDTH, _HEIGHT, _SMALL_HEIGHT = 172, 62, 42
_MARGIN = 24
_LETTERS, _SMALL_LETTERS = 19, 26

# What nodes are coloured by, and the words of the button that asks for it.
Mode = Literal["kind", "result", "placement"]
_MODE_WORDS: dict[Mode, str] = {"kind": "operator", "result": "result", "placement": "placement"}

_STATUS_WORDS: dict[Status, str] = {
    "wrong": "gives a wrong output",
    "suspect": "leads to wrong outputs only",
    "right": "gives a right output",
    "idle": "the record says nothing",
}
_PROVIDER_LOOKS = {"WebGpuExecutionProvider": "gpu", "CPUExecutionProvider": "cpu"}
_ELSEWHERE, _NOWHERE = "elsewhere", "idle"
_NOWHERE_WORDS = "not in the runtime’s report: folded, fused or renamed"
_MOST_OTHERS = 300


@dataclass(frozen=True)
class Card:
    """A box with its place, in pixels of the drawing. ``key``: its number.

    ``looks``: classes of the style sheet, for each way to colour.
    """

    key: int
    x: float
    y: float
    height: int
    title: str
    name: str
    shape: str
    looks: tuple[str, ...]
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
class Legend:
    """One way to colour: its name, and what its colours stand for."""

    words: str
    entries: tuple[LegendEntry, ...]


@dataclass(frozen=True)
class Others:
    """Nodes that the runtime ran on one execution provider, and that the model does not have: "operator (name)"."""

    provider: str
    count: int
    nodes: tuple[str, ...]
    left_out: int


@dataclass(frozen=True)
class GraphPage:
    """Everything that the template reads. ``about``: per card, lines of "key<tab>value"; and the panels it opens.

    ``placement``: where the nodes ran, in words; None: no record was given. ``others``: what it ran beside the model's.
    """

    title: str
    summary: str
    edgekit_version: str
    css: Markup
    css_sha256: str
    script: Markup
    script_sha256: str
    placement: str | None
    others: tuple[Others, ...]
    legends: tuple[Legend, ...]
    sheets: tuple[Sheet, ...]
    about: dict[str, list[str]]


def graph_html(
    proto: onnx.ModelProto, title: str, summary: str, table: ShapeTable | None = None, marks: Marks | None = None
) -> str:
    """Return the page of a model. The same model gives the same text.

    ``marks``: what a record says; nodes are then coloured by it, and by their kind otherwise. Raises MissingToolError
    without igraph, LimitError for a model of more than 20,000 nodes.
    """
    marks = marks or Marks()
    drawn = panels(proto, table, marks)
    total = sum(len(panel.boxes) for panel in drawn)
    if total > _MOST_NODES:
        raise LimitError(
            f"The model has {total:,} nodes, inputs and outputs to draw; a page holds at most {_MOST_NODES:,}.",
            hint="Cut the part out that you want to see.",
        )
    placed = layout.place_all([_outline(panel) for panel in drawn])
    page = replace(
        _page(drawn, placed, _modes(marks), title, summary),
        placement=visible(marks.placement.words if marks.placement else UNKNOWN if marks else None),
        others=visible(tuple(_others(match_placement(proto, marks)))),
    )
    return render(
        resources.root("templates") / "graph", TEMPLATE, {f.name: getattr(page, f.name) for f in fields(page)}
    )


def _outline(panel: Panel) -> Outline:
    return Outline(len(panel.boxes), panel.edges, sum(box.kind == "input" for box in panel.boxes))


def _modes(marks: Marks) -> tuple[Mode, ...]:
    """Return the ways to colour, the one to begin with first: what is wrong matters more than where it ran."""
    result: tuple[Mode, ...] = ("result",) if marks else ()
    placement: tuple[Mode, ...] = ("placement",) if marks.placement else ()
    return ((*result, *placement) if marks.wrong else (*placement, *result)) or ("kind",)


def _others(matched: Matched) -> Iterator[Others]:
    by_provider: dict[str, list[str]] = {}
    for provider, node in matched.others:
        by_provider.setdefault(provider, []).append(f"{node.op_type} ({node.name})" if node.name else node.op_type)
    for provider, nodes in by_provider.items():
        shown = tuple(nodes[:_MOST_OTHERS])
        yield Others(provider_name(provider), len(nodes), shown, len(nodes) - len(shown))


def _page(
    drawn: Sequence[Panel], placed: Sequence[Placed], modes: tuple[Mode, ...], title: str, summary: str
) -> GraphPage:
    folder = resources.root("templates") / "graph"
    css = (folder / STYLE).read_text(encoding="utf-8")
    script = (folder / SCRIPT).read_text(encoding="utf-8")
    titles = {panel.number: panel.title for panel in drawn}
    sheets: list[Sheet] = []
    about: dict[str, list[str]] = {}
    first = 0
    for panel, places in zip(drawn, placed, strict=True):
        sheets.append(visible(_sheet(panel, places, titles, first, modes)))
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
        placement=None,
        others=(),
        legends=visible(tuple(_legend([box for panel in drawn for box in panel.boxes], mode) for mode in modes)),
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


def _legend(boxes: Sequence[Box], mode: Mode) -> Legend:
    looks = Counter((_look(box, mode), _look_words(box, mode)) for box in boxes if box.kind == "node")
    order: dict[Mode, list[str]] = {
        "result": [*_STATUS_WORDS],
        "placement": [*_PROVIDER_LOOKS.values(), _ELSEWHERE, _NOWHERE],
        "kind": [f"f{index}" for index in range(len(FAMILIES))],
    }
    entries = sorted(looks.items(), key=lambda item: (order[mode].index(item[0][0]), item[0][1]))
    return Legend(_MODE_WORDS[mode], tuple(LegendEntry(look, words, count) for (look, words), count in entries))


def _look(box: Box, mode: Mode) -> str:
    """Return the class of a node's colour."""
    if mode == "result":
        return box.status
    if mode == "placement":
        return _NOWHERE if box.provider is None else _PROVIDER_LOOKS.get(box.provider, _ELSEWHERE)
    return f"f{FAMILIES.index(box.family)}"


def _look_words(box: Box, mode: Mode) -> str:
    if mode == "result":
        return _STATUS_WORDS[box.status]
    if mode == "placement":
        return _NOWHERE_WORDS if box.provider is None else f"on {provider_name(box.provider)}"
    return box.family


def _sheet(panel: Panel, places: Placed, titles: dict[int, str], first: int, modes: tuple[Mode, ...]) -> Sheet:
    cards = tuple(
        _card(first + index, box, point, modes)
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


def _classes(box: Box, mode: Mode) -> str:
    if box.kind != "node":
        return f"{box.kind} {box.status}" if mode == "result" and box.status != "idle" else box.kind
    return f"{_look(box, mode)} opens" if box.opens else _look(box, mode)


def _card(key: int, box: Box, point: Point, modes: tuple[Mode, ...]) -> Card:
    height = _HEIGHT if box.kind == "node" else _SMALL_HEIGHT
    return Card(
        key=key,
        x=round(_MARGIN + point[0] * _COLUMN, 1),
        y=round(_MARGIN + point[1] * _LAYER + (_HEIGHT - height) / 2, 1),
        height=height,
        title=_cut(box.title, _LETTERS),
        name=_cut(box.name if box.kind == "node" else box.shape, _SMALL_LETTERS),
        shape=_cut(box.shape, _SMALL_LETTERS) if box.kind == "node" else "",
        looks=tuple(_classes(box, mode) for mode in modes),
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
