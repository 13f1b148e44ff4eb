"""The only printing. Data goes to stdout, talk to stderr."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from edgekit.errors import EdgekitError
from edgekit.progress import Progress, silent

# A file or a pipe has no width; a table there is as wide as its longest cells.
_NO_WIDTH = 100_000


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and whether it holds numbers (right-aligned)."""

    title: str
    number: bool = False


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
    sys.stderr.write(visible(text) + "\n")


def error(problem: EdgekitError) -> None:
    """Say what was wrong and, after an empty line, what to do."""
    talk(f"error: {visible(problem.message)}")
    if problem.hint:
        talk(f"\nhint: {visible(problem.hint)}")


def table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Write a table to stdout. Cells are plain text of one line: nothing in them is read as markup.

    Control characters and line ends (a model's names may hold them) are shown as their escapes.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def cell(value: str) -> Text:
        return Text(visible_line(value))

    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        view.add_column(Text(column.title), justify="right" if column.number else "left", overflow="fold")
    for row in rows:
        view.add_row(*(cell(value) for value in row))
    console = Console(file=sys.stdout, highlight=False)
    if not sys.stdout.isatty():
        console.width = _NO_WIDTH  # do not fold what a person may grep
    console.print(Text(visible_line(title), style="bold"), soft_wrap=True)
    console.print(view)


def visible(text: str) -> str:
    """Replace control characters by their escapes, so that a name from a model cannot drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def visible_line(text: str) -> str:
    """Do as ``visible`` does, and keep the text on one line."""
    return visible(text).replace("\n", "\\n")


@contextmanager
def progress() -> Iterator[Progress]:
    """Show one line of progress on stderr while the block runs; silent when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield silent
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
            total = None if done is None else 1.0
            bar.update(task, description=visible_line(message), total=total, completed=done or 0.0)

        yield show
