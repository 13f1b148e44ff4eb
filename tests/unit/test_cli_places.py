"""What stands at the place that a command is to write to stays as it is, unless the command wrote it itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_bundle
from models_text import LINEAR, write

from edgekit.cli.main import run

PLACES = ("bundle", "folder", "file")
FOLDERS = {
    "diagnose": (["diagnose", "bundle", "-o"], PLACES),
    "parity": (["parity", "bundle", "-o"], PLACES),
    "parity, several": (["parity", "bundle", "--browser", "chromium,firefox", "-o"], ("bundle", "file")),
    "fuzz": (["fuzz", "--minutes", "0.05", "-o"], PLACES),
    "runtime profile": (["runtime", "profile", "-o"], ("bundle", "file")),
    "demo": (["demo", "-o"], ("bundle", "file")),
    "build": (["build", "model.onnx", "--target", "wasm", "--force", "-o"], ("folder", "file")),
}
FILES = {
    "trim": ["trim", "model.onnx", "-o"],
    "trim --plan": ["trim", "model.onnx", "-o", "small.onnx", "--plan"],
    "inspect": ["inspect", "model.onnx", "--graph"],
    "check": ["check", "model.onnx", "--target", "wasm", "--sarif"],
    "conformance": ["conformance", "--page"],
    "report": ["report", "run", "-o"],
}


@pytest.fixture(autouse=True)
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(LINEAR, tmp_path)
    tiny_bundle.make(tmp_path / "bundle")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")


def tree() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    before = tree()
    code = run(words)
    err = capsys.readouterr().err
    assert code == 2, err
    assert tree() == before
    return err


@pytest.mark.parametrize(("name", "place"), [(name, place) for name, (_, each) in FOLDERS.items() for place in each])
def test_a_folder_to_write_is_not_one_of_something_else(
    name: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused([*FOLDERS[name][0], place], capsys)
    assert place in said


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", ["bundle/new.txt", "bundle/model/model.onnx"])
def test_no_file_is_written_into_a_bundle(name: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "inside the bundle" in refused([*FILES[name], place], capsys)


def test_the_demo_keeps_a_bundle_of_another_model(capsys: pytest.CaptureFixture[str]) -> None:
    tiny_bundle.make(Path("shown/wasm"))
    assert "another model" in refused(["demo", "-o", "shown"], capsys)


def test_a_run_beside_which_something_else_lies_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/conditions.json").write_text("{}")
    Path("run/thesis.txt").write_text("mine")
    assert "thesis.txt" in refused(["parity", "bundle", "-o", "run"], capsys)


@pytest.mark.parametrize("spoil", [
    lambda folder: (folder / "thesis.txt").write_text("mine"),
    lambda folder: (folder / "runtime" / "thesis.txt").write_text("mine"),
    lambda folder: (folder / "report.md").unlink(),
])  # fmt: skip
def test_what_is_almost_a_repro_is_kept(spoil: Callable[[Path], object], capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("bundle.repro")
    (folder / "runtime").mkdir(parents=True)
    values = ("inputs.npz", "expected.npz", "got.npz")
    for name in ("model.onnx", *values, "index.html", "repro.js", "repro.css", "report.md", "runtime/LICENSE"):
        (folder / name).write_text(name)
    spoil(folder)
    assert "bundle.repro holds something else than a repro" in refused(["diagnose", "bundle"], capsys)
