"""The documentation is true: generated pages are current, links lead somewhere, every exit code is explained."""

import importlib.util
import inspect
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest

from edgekit import errors
from edgekit.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
}
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED: dict[Path, str] = generate().pages()


@pytest.mark.parametrize("name", [path.relative_to(ROOT).as_posix() for path in GENERATED])
def test_a_generated_page_is_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == GENERATED[ROOT / name], "run: python docs/generate.py"


def test_generating_twice_gives_the_same() -> None:
    assert generate().pages() == GENERATED


def anchors(text: str) -> set[str]:
    """Return the anchors that a page's headings get."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    """Return the links of a page to files or headings that are not there."""
    found = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    assert broken(PAGES[name]) == []


def test_the_twin_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](gone.md) [b](page.md#a-title) [c](#nothing) [d](https://example.org)\n")
    assert broken(page) == ["gone.md", "#nothing"]


ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.EdgekitError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_is_explained_with_its_exit_code(kind: type[errors.EdgekitError]) -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {kind.exit_code} \|.*`{kind.__name__}`", text, flags=re.M)


def test_the_architecture_names_every_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("| its one job |")[2]
    rows = [re.findall(r"`(\w+)/?`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]
    assert [sorted(row) for row in rows[: len(layers)]] == [
        sorted(part.strip().removeprefix("edgekit.") for part in layer.split("|")) for layer in layers
    ]


def commands(text: str) -> list[list[str]]:
    """Return the edgekit command lines in the code blocks of a page."""
    blocks = re.findall(r"```(?:sh|console|bash)?\n(.*?)```", text, flags=re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.strip().startswith("edgekit ")]


EXAMPLES = [
    (name, words)
    for name, path in PAGES.items()
    if path not in GENERATED
    for words in commands(path.read_text("utf-8"))
]


@pytest.mark.parametrize(("name", "words"), EXAMPLES, ids=[f"{n}: {' '.join(w)}" for n, w in EXAMPLES])
def test_every_command_in_the_documentation_exists(name: str, words: list[str]) -> None:
    with click.Context(cli, info_name="edgekit") as ctx:
        command: click.Command = cli
        rest = words
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            _, found, rest = command.resolve_command(ctx, rest)
            assert found is not None
            command = found
        command.make_context(command.name, list(rest), parent=ctx, resilient_parsing=False)


def test_the_documentation_has_commands_to_check() -> None:
    assert len(EXAMPLES) > 5
