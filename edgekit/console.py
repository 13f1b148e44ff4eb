"""The only printing. Data goes to stdout, talk to stderr."""

import json
import os
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from edgekit.errors import EdgekitError
from edgekit.progress import Progress

# A file or a pipe has no width, unless COLUMNS gives it one; a table there is as wide as its longest cells.
_NO_WIDTH = 100_000
_GAP = 2  # between two columns
_EDGE = 1  # rich counts padding behind the last column, even where it is not to draw it
# Progress in a file or a pipe, in seconds: nothing of what is done so soon; from one line to the next that says
# something new; and to one that says only that the work goes on.
_QUIET_SECONDS, _PACE_SECONDS, _STILL_SECONDS = 5.0, 10.0, 60.0
_LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and whether it holds numbers (right-aligned, never broken over lines).

    ``spare``: where the table is wider than the terminal, the columns with the highest are left out first; 0: never.
    ``optional``: left out, without a word, where it is empty in every row.
    """

    title: str
    number: bool = False
    spare: int = 0
    optional: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a spare column without a heading: it could not be named when it is left out."""
        if self.spare and not self.title:
            raise ValueError("a spare column needs a heading")


def data(text: str) -> None:
    """Write ``text`` to stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def data_json(value: Any) -> None:
    """Write ``value`` as JSON to stdout. NaN and infinities must have been replaced before.

    Text stays readable, but what could drive a terminal or cannot be encoded is written as a JSON escape.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    data("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def talk(text: str) -> None:
    """Say something to the person at the terminal, on stderr. Control characters are shown as their escapes."""
    sys.stdout.flush()  # where both go to one pipe or file, what was said first stands first
    sys.stderr.write(_folded(visible(text)) + "\n")


def _folded(text: str) -> str:
    """Break the lines that are too long for a terminal between words; elsewhere they stay whole, for other tools."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    fold = partial(textwrap.wrap, width=max(width, 1), break_long_words=False, break_on_hyphens=False)
    return "\n".join("\n".join(fold(line)) if len(line) > width else line for line in text.split("\n"))


def error(problem: EdgekitError) -> None:
    """Say what was wrong and, after an empty line, what to do."""
    talk(f"error: {visible(problem.message)}")
    if problem.hint:
        talk(f"\nhint: {visible(problem.hint)}")


def table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Write a table to stdout. Cells are plain text of one line: nothing in them is read as markup.

    Control characters and line ends (a model's names may hold them) are shown as their escapes. Where the terminal is
    too narrow, spare columns are left out, then sentences are wrapped between words, and when words or numbers would
    still break, each row becomes a block of lines.
    """
    width = _width()
    told = [i for i, column in enumerate(columns) if not column.optional or any(row[i] for row in rows)]
    columns = [columns[i] for i in told]
    cells = [[visible_line(row[i]) for i in told] for row in rows]
    shown = _fitting(columns, cells, width)
    kept = [[row[i] for i in shown] for row in cells]
    heads = [columns[i] for i in shown]
    if _needed(heads, kept, unbroken=False) <= width:
        _grid(title, heads, kept, width)
    else:
        shown = list(range(len(columns)))  # a block has room for every column
        _blocks(title, columns, cells)
    if left_out := [column.title for i, column in enumerate(columns) if i not in shown]:
        data(f"Left out, for this terminal is too narrow: {', '.join(left_out)}.\n\n")


def _width() -> int:
    """Return how many characters a line of stdout may have: COLUMNS, else the terminal's, else no limit."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdecimal() and int(said) else _NO_WIDTH


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the columns that are left when spare ones are left out until the others fit without a break."""
    shown = list(range(len(columns)))
    for spare in sorted({column.spare for column in columns} - {0}, reverse=True):
        if _needed([columns[i] for i in shown], [[row[i] for i in shown] for row in cells], unbroken=True) <= width:
            break
        shown = [i for i in shown if columns[i].spare < spare]
    return shown


def _needed(columns: Sequence[Column], cells: Sequence[Sequence[str]], *, unbroken: bool) -> int:
    widths = [
        _longest(column, [row[i] for row in cells], unbroken=unbroken or column.number)
        for i, column in enumerate(columns)
    ]
    return sum(widths) + _GAP * (len(widths) - 1) + _EDGE


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the columns' widths: where they are too wide together, the widest give way, down to their longest word."""
    parts = [(column, [row[i] for row in cells]) for i, column in enumerate(columns)]
    least = [_longest(column, texts, unbroken=column.number) for column, texts in parts]
    widths = [min(_longest(column, texts, unbroken=True), width) for column, texts in parts]
    room = width - _GAP * (len(columns) - 1) - _EDGE
    while sum(widths) > room and widths != least:
        widest = max((i for i in range(len(widths)) if widths[i] > least[i]), key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def _longest(column: Column, cells: Sequence[str], *, unbroken: bool) -> int:
    """Return the width of a column's longest cell, or of its longest word."""
    from rich.cells import cell_len

    texts = [column.title, *cells]
    return max(cell_len(part) for text in texts for part in ([text] if unbroken else text.split() or [""]))


def _grid(title: str, columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    # rich itself would shrink the widest column below its longest word, and then cut off what does not fit.
    for column, room in zip(columns, _widths(columns, cells, width), strict=True):
        justify: Literal["left", "right"] = "right" if column.number else "left"
        view.add_column(Text(column.title), justify=justify, overflow="fold", no_wrap=column.number, width=room)
    for row in cells:
        view.add_row(*(Text(cell) for cell in row))
    console = Console(file=sys.stdout, highlight=False, width=width)
    console.print(Text(visible_line(title), style="bold"), soft_wrap=True)
    console.print()
    console.print(view)
    console.print()


def _blocks(title: str, columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    """Write each row as lines of heading and cell; the terminal may break the longest, but nothing else."""
    room = max(len(column.title) for column in columns)
    data(f"{visible_line(title)}\n\n")
    for row in cells:
        lines = [f"  {column.title:<{room}}  {cell}" for column, cell in zip(columns, row, strict=True) if cell]
        data("\n".join(lines) + "\n")
        data("\n")


def visible(text: str) -> str:
    """Replace control characters by their escapes, so that a name from a model cannot drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def visible_line(text: str) -> str:
    """Do as ``visible`` does, and keep the text on one line."""
    return visible(text).replace("\n", "\\n")


@contextmanager
def progress(*, steps: bool = False) -> Iterator[Progress]:
    """Show one line of progress on stderr while the block runs.

    Where stderr is not a terminal it writes plain lines: what is done now, every ten seconds at most, and nothing of
    what is done within five; or, with ``steps``, a line for each new step at once.
    """
    if not sys.stderr.isatty():
        if steps:
            yield _step_lines()
        else:
            with _paced_lines() as show_line:
                yield show_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    bar = RichProgress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None)

        def show(message: str, done: float | None = None) -> None:
            # rich takes a task that reached its total as finished for good, and stops its spinner and its clock.
            bar.update(task, description=visible_line(message), completed=min(done or 0.0, 0.999))
            bar.tasks[0].total = None if done is None else 1.0  # update() takes None for "as it was"

        yield show


def _step_lines() -> Progress:
    last = ""

    def show(message: str, done: float | None = None) -> None:
        nonlocal last
        if message != last:
            last = message
            talk(visible_line(message))

    return show


@contextmanager
def _paced_lines() -> Iterator[Progress]:
    """Write what is said last, at a pace; a thread does so, for a step that takes minutes says nothing meanwhile."""
    begun = time.monotonic()
    latest, ended = "", threading.Event()

    def show(message: str, done: float | None = None) -> None:
        nonlocal latest
        latest = visible_line(message) + ("" if done is None else f" ({min(max(done, 0.0), 1.0):.0%})")

    def write() -> None:
        said, at, pace = "", begun, _QUIET_SECONDS
        while not ended.wait(min(_LOOK_SECONDS, pace / 4 + 0.001)):
            now, words = time.monotonic(), latest
            if not words or now - at < (pace if words != said else _STILL_SECONDS):
                continue
            talk(words if words != said else f"{words}: still at it after {_lasted(now - begun)}")
            said, at, pace = words, now, _PACE_SECONDS

    thread = threading.Thread(target=write, daemon=True, name="progress")
    thread.start()
    try:
        yield show
    finally:
        ended.set()
        thread.join()


def _lasted(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
