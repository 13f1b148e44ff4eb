"""The rules of the house that no tool checks."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekit.targets import load as targets

ROOT = Path(__file__).resolve().parents[2]
MODULES = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "edgekit").rglob("*.py"))}
MODULES = {name: path for name, path in MODULES.items() if "/_data/" not in name}
MODULE_LINES = 400
FUNCTION_LINES = 60

# Where the name of a target is also that of something else.
ALSO_SOMETHING_ELSE = {
    "edgekit/targets/options.py": "a kind",
    "edgekit/check/providers.py": "an execution provider",
    "edgekit/reasons.py": "an execution provider",
    "edgekit/report/words.py": "an execution provider",
}

# Addresses of registries and of what mirrors them. The files that follow are generated, or other people's words.
REGISTRIES = re.compile(
    r"(registry\.npmjs|registry\.yarnpkg|files\.pythonhosted|pypi\.org/simple|/simple/?\b.*https?:)", re.I
)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def tracked() -> list[Path]:
    """Return the files that git knows; in an exported tree, every file."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return [path for path in ROOT.rglob("*") if path.is_file() and not {".venv", "node_modules"} & set(path.parts)]
    done = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def strings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string that is not a docstring."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def named_targets(module: ast.Module) -> list[tuple[int, str]]:
    return [(line, text) for line, text in strings(module) if text in targets.ids()]


@pytest.mark.parametrize("name", MODULES)
def test_no_code_knows_a_target(name: str) -> None:
    found = named_targets(tree(MODULES[name]))
    if name in ALSO_SOMETHING_ELSE:
        assert found, f"{name} no longer needs its exception"
    else:
        assert not found


def test_the_twin_code_that_knows_a_target_is_noticed() -> None:
    name = targets.ids()[0]
    assert named_targets(ast.parse(f'"""Docstring."""\nif target.id == "{name}": pass')) == [(2, name)]
    assert not named_targets(ast.parse(f'def f():\n    """{name}"""'))


@pytest.mark.parametrize("target_id", targets.ids())
def test_every_target_loads_and_its_runner_is_a_module(target_id: str) -> None:
    target = targets.load(target_id)
    assert f"edgekit/runners/{target.parity.runner}.py" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_functions_stay_readable(name: str) -> None:
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= MODULE_LINES
    for node in ast.walk(tree(MODULES[name])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{node.name} has {lines} lines"


def undocumented(module: ast.Module) -> list[str]:
    """Return the public functions and classes at the top of a module that have no docstring."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    public = [node for node in module.body if isinstance(node, kinds) and not node.name.startswith("_")]
    return [node.name for node in public if ast.get_docstring(node) is None]


@pytest.mark.parametrize("name", MODULES)
def test_what_is_public_says_what_it_does(name: str) -> None:
    module = tree(MODULES[name])
    assert undocumented(module) == []
    assert not module.body or ast.get_docstring(module), "the module has no docstring"


def test_the_twin_an_undocumented_function_is_noticed() -> None:
    assert undocumented(ast.parse("def f(): pass\ndef _g(): pass\nclass C:\n    'doc'")) == ["f"]


@pytest.mark.parametrize("name", MODULES)
def test_no_module_is_a_drawer_for_everything(name: str) -> None:
    assert Path(name).stem not in {"utils", "util", "common", "helpers", "misc"}


@pytest.mark.parametrize("name", MODULES)
def test_public_dataclasses_are_frozen(name: str) -> None:
    for node in ast.walk(tree(MODULES[name])):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for decorator in node.decorator_list:
                text = ast.unparse(decorator)
                assert not text.startswith("dataclass") or "frozen=True" in text, f"{node.name} is not frozen"


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return "" if b"\0" in data else data.decode("utf-8", "replace")


def test_no_file_names_a_registry() -> None:
    found = [path.relative_to(ROOT).as_posix() for path in tracked() if REGISTRIES.search(text_of(path))]
    assert [name for name in found if name != "tests/contract/test_house.py"] == []


@pytest.mark.parametrize("address", ["https://registry.npmjs." + "org/x", "https://files.pythonhosted." + "org/x"])
def test_the_twin_a_registry_is_noticed(address: str) -> None:
    assert REGISTRIES.search(address)


def test_no_text_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    kinds = {".py", ".js", ".j2", ".css", ".toml", ".md", ".ts", ""}
    found = [path for path in tracked() if path.suffix in kinds and marks.search(text_of(path))]
    assert [path.relative_to(ROOT).as_posix() for path in found if path.name != "test_house.py"] == []
