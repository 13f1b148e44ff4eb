"""Every option that names what to write makes the folders that are missing on the way there."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import web_bundle
from models_text import LINEAR, write

from edgekit.cli.main import SUMMARIES, run

# How options are called that name a file or a folder to be written.
WRITTEN = {"--output", "--report", "--junit", "--sarif", "--plan", "--page", "--graph"}
CHEAP = {
    "inspect": [["model.onnx", "--graph"]],
    "check": [["model.onnx", "--target", "wasm", "--sarif"]],
    "trim": [["model.onnx", "--output"], ["model.onnx", "-o", "trimmed.onnx", "--plan"]],
    "build": [["model.onnx", "--target", "wasm", "--no-trim-runtime", "--output"]],
}
WITH_A_BROWSER = {
    "parity": [["bundle", "--output"], ["bundle", "--report"], ["bundle", "--junit"]],
    "report": [["run", "--output"], ["run", "-o", "r.html", "--junit"]],
    "conformance": [["--ops", "Relu", "--variant", "wasm", "--page"]],
    "fuzz": [["--ops", "Relu", "--variant", "wasm", "--cases", "3", "--output"]],
}
# Tried where what they write is: demo is build and report, repros are written by ``edgekit.repro``, profiles alike.
ELSEWHERE = {("demo", "--output"), ("diagnose", "--output"), ("runtime profile", "--output")}


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in SUMMARIES:
        command = importlib.import_module(f"edgekit.cli.{name}").command
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {each}", inner) for each, inner in command.commands.items())


def test_no_option_that_writes_is_left_out() -> None:
    known = {(name, words[-1]) for tried in (CHEAP, WITH_A_BROWSER) for name, each in tried.items() for words in each}
    found = {
        (name, option)
        for name, command in commands()
        for param in command.params
        for option in param.opts
        if option in WRITTEN and isinstance(param.type, click.Path)
    }
    assert found == known | ELSEWHERE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(LINEAR, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "not" / "there" / "yet"


def tried(name: str, words: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run([*name.split(), *words, str(place)])
    assert code == 0, capsys.readouterr().err
    assert place.exists()


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, each in CHEAP.items() for words in each])
def test_missing_folders_are_made(place: Path, name: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tried(name, words, place, capsys)


@pytest.mark.browser
@pytest.mark.parametrize("name", WITH_A_BROWSER)
def test_missing_folders_are_made_for_what_a_browser_gave(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    web_bundle.build(Path("model.onnx"), Path("bundle"))
    if name == "report":
        assert run(["parity", "bundle", "-o", "run"]) == 0
    for number, words in enumerate(WITH_A_BROWSER[name]):
        tried(name, words, place.with_name(f"yet{number}") / "more", capsys)
