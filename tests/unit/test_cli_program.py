"""What a person is told to type really starts edgekit."""

import os
from pathlib import Path

import pytest

from edgekit.cli import program


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "edgekit"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_plain_name_where_the_path_finds_this_program(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setattr("sys.argv", [str(script), "demo"])
    assert program.name() == "edgekit"


def test_the_path_that_was_typed_where_the_name_would_not_be_found(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", [str(script), "demo"])
    assert program.name() == str(script)


def test_the_plain_name_where_edgekit_is_used_as_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["-c"])
    assert program.name() == "edgekit"
