from pathlib import Path

import pytest
import tiny_bundle
import web_bundle
from models_text import LINEAR, write

from edgekit.bundle.destination import check, check_takes_files
from edgekit.bundle.open import open_bundle
from edgekit.cli.main import run
from edgekit.errors import UsageError


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return write(LINEAR, tmp_path / "models")


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_place_where_nothing_is_may_be_written(tmp_path: Path) -> None:
    check(tmp_path / "new" / "deeper", force=False, sources=[])


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("content", [{}, {"precious": b"1"}, {"manifest.json": b"{}"}, {"manifest.json": b"\xff["}])
def test_a_folder_that_is_not_a_bundle_is_never_touched(tmp_path: Path, content: dict[str, bytes], force: bool) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name, data in content.items():
        (out / name).write_bytes(data)
    with pytest.raises(UsageError, match="exists and is not a bundle, so it is not replaced") as caught:
        check(out, force=force, sources=[])
    assert caught.value.exit_code == 2
    assert caught.value.hint is not None and "-o" in caught.value.hint
    assert tree(out) == content


def test_a_file_in_the_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"1")
    with pytest.raises(UsageError, match="exists and is not a folder"):
        check(tmp_path / "out", force=True, sources=[])


def test_a_bundle_is_replaced_only_by_force(linear: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    before = tree(out)
    with pytest.raises(UsageError, match="holds a bundle already") as caught:
        web_bundle.build(linear, out)
    assert caught.value.hint is not None and caught.value.hint.startswith("--force replaces it")
    assert tree(out) == before
    assert "was killed" not in caught.value.message
    (tmp_path / ".out.01234567.tmp").mkdir()  # as a killed build leaves it
    with pytest.raises(UsageError, match="A build of it was killed: what belongs beside it"):
        web_bundle.build(linear, out)
    manifest = web_bundle.build(linear, out, force=True)
    assert open_bundle(out).manifest == manifest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["models", "out"]


def test_the_models_own_folder_is_never_replaced_and_a_folder_in_it_may_be_made(linear: Path) -> None:
    for force in (False, True):
        with pytest.raises(UsageError, match="not a bundle"):
            web_bundle.build(linear, linear.parent, force=force)
    assert linear.is_file()
    web_bundle.build(linear, linear.parent / "out")
    web_bundle.build(linear, linear.parent / "out", force=True)
    assert linear.is_file()


def test_a_bundle_that_holds_the_model_is_not_replaced(linear: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    web_bundle.build(linear, out)
    (tmp_path / "link").symlink_to(out / "model")
    for inside in (out / "model" / "model.onnx", tmp_path / "link" / "model.onnx"):
        with pytest.raises(UsageError, match="lies inside the bundle that would be replaced"):
            web_bundle.build(inside, out, force=True)
    assert (out / "model" / "model.onnx").is_file()


def test_files_that_are_not_of_the_bundle_are_not_lost(linear: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    for name in ("notes.txt", "model/mine.onnx", "x1", "x2"):
        (out / name).write_bytes(b"precious")
    with pytest.raises(UsageError, match=r"would be lost: model/mine\.onnx, notes\.txt, x1 and 1 more"):
        web_bundle.build(linear, out, force=True)
    assert (out / "notes.txt").read_bytes() == b"precious"


def test_a_damaged_bundle_may_still_be_replaced(linear: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    (out / "index.html").write_bytes(b"changed")
    (out / "page.js").unlink()
    web_bundle.build(linear, out, force=True)
    open_bundle(out)


def test_the_current_folder_is_not_replaced_under_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    for folder, place in ((out, "."), (out, str(out)), (next(p for p in out.iterdir() if p.is_dir()), "..")):
        monkeypatch.chdir(folder)
        with pytest.raises(UsageError, match="the folder that you are in"):
            check(Path(place), force=True, sources=[])
    monkeypatch.chdir(tmp_path)
    check(out, force=True, sources=[])


def test_nothing_is_written_into_a_bundle_where_it_would_be_a_file_too_many(tmp_path: Path) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    (tmp_path / "link").symlink_to(out)
    for place in (out / "new", out / "deep" / "er", out / "model" / "new", tmp_path / "link" / "new"):
        with pytest.raises(UsageError, match="lies inside the bundle") as caught:
            check(place, force=True, sources=[])
        assert caught.value.hint == "Choose a place outside of it."
    check(tmp_path / "out.records" / "new", force=False, sources=[])
    with pytest.raises(UsageError, match=r"out is a bundle, which would no longer match"):
        check_takes_files(out)


@pytest.mark.parametrize(
    "command",
    [
        ["parity", "{}", "-o", "{}/run"],
        ["parity", "{}", "--report", "{}/report.html"],
        ["parity", "{}", "--junit", "{}/deep/junit.xml"],
        ["report", "nothing", "-o", "{}/report.html"],
        ["report", "nothing", "--junit", "{}/junit.xml"],
        ["serve", "{}", "--port", "0", "--records", "{}/records"],
    ],
)
def test_no_command_writes_into_a_bundle(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    before = tree(out)
    assert run([argument.format(out) for argument in command]) == 2
    assert "lies inside the bundle" in capsys.readouterr().err
    assert tree(out) == before
