"""Every command line that edgekit tells a user, in a fix, a hint or a page, is one that the command line takes."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from edgekit.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs" / "rules").glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
# What stands for a value of the user's, and a value that an option of that name takes.
PLACEHOLDERS = {"N": "17", "SIZE": "25MB"}


def in_code() -> Iterator[tuple[str, str]]:
    """Yield (file, command line) for each that stands between quotes in a text of the package."""
    for path in sorted((ROOT / "edgekit").rglob("*.py")):
        if "_data" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) in inside:
                continue
            for line in re.findall(r"'(edgekit [a-z][^']*)'", text_of(node)):
                yield path.relative_to(ROOT).as_posix(), line


def text_of(node: ast.AST) -> str:
    """The text of a string in the source; what an f-string fills in is a 17."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "17" for part in node.values)
    return ""


def in_pages() -> Iterator[tuple[str, str]]:
    """Yield (page, command line) for each in a span or a block of code."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"```(?:sh)?\n(.*?)```", text, re.DOTALL)
        found = [line for block in blocks for line in block.splitlines() if line.startswith("edgekit ")]
        rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        found += [" ".join(span.split()) for span in re.findall(r"`(edgekit\s[^`]+)`", rest)]
        for line in found:
            yield path.relative_to(ROOT).as_posix(), line


TOLD = sorted({(place, line) for place, line in (*in_code(), *in_pages())})


def parse(line: str) -> None:
    """Let click parse a command line; nothing is run. Raises click.UsageError for what it does not take."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line.split("#")[0].split(" | ")[0])[1:]]
    command: click.Command = cli
    ctx = click.Context(cli, info_name="edgekit")
    while isinstance(command, click.Group) and words:
        child = command.get_command(ctx, words[0])
        if child is None:
            raise click.UsageError(f"No such command '{words[0]}'.")
        command, words = child, words[1:]
    if all(word.startswith("-") for word in words):  # it speaks of the command, or of its options, as such
        known = {name for parameter in command.params for name in parameter.opts}
        if missing := [word for word in words if word not in known]:
            raise click.NoSuchOption(missing[0])
        return
    command.make_context(command.name, words, parent=ctx)


def test_command_lines_are_found_in_code_and_in_pages() -> None:
    places = {place for place, _ in TOLD}
    assert {"edgekit/check/rules/versions.py", "docs/rules/opset-version.md", "docs/guide.md", "README.md"} <= places
    assert len(TOLD) > 40


@pytest.mark.parametrize(("place", "line"), TOLD)
def test_a_command_line_that_is_told_can_be_given(place: str, line: str) -> None:
    parse(line)


@pytest.mark.parametrize(
    "line",
    [
        "edgekit trim MODEL -o OUT --split-weights",
        "edgekit trim MODEL -o OUT --no-such-option",
        "edgekit trim MODEL -o OUT --opset many",
        "edgekit prune MODEL",
        "edgekit build MODEL",
        "edgekit build --no-such-option",
    ],
)
def test_the_twin_a_command_line_that_is_wrong_is_refused(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(line)
