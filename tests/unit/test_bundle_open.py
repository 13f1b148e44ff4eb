import json
import os
from pathlib import Path
from typing import Any

import pytest
import tiny_bundle

from edgekit.bundle.open import CASES, TENSORS, foreign_files, is_safe_path, load_cases, open_bundle
from edgekit.errors import BundleError
from edgekit.files import sha256_bytes

HOSTILE = "a <script>\"'é\x1b[31m\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny_bundle.make(tmp_path / "bundle", {HOSTILE: b"hostile name"})
    return tmp_path / "bundle"


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def entries(folder: Path) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text())["files"]
    return files


def test_a_whole_bundle_opens_under_the_hash_of_its_manifest(folder: Path) -> None:
    bundle = open_bundle(folder)
    assert bundle.manifest_sha256 == sha256_bytes((folder / "manifest.json").read_bytes())
    assert bundle.manifest.title == "tiny"
    assert load_cases(bundle).cases[0].id == "only"
    assert foreign_files(bundle) == ()


def test_changed_missing_and_added_files_are_each_named(folder: Path) -> None:
    (folder / "page.js").write_bytes((folder / "page.js").read_bytes()[:-1] + b" ")  # of the same size
    (folder / "model/model.onnx").write_bytes(b"longer than it was before, or shorter")
    (folder / "index.html").unlink()
    (folder / "deep").mkdir()
    (folder / "deep/new.txt").touch()
    with pytest.raises(BundleError) as caught:
        open_bundle(folder)
    assert caught.value.exit_code == 2
    assert caught.value.message == (
        f"The files of {folder} are not those of its manifest. "
        "changed: model/model.onnx, page.js; missing: index.html; added: deep/new.txt."
    )
    open_bundle(folder, verify=False)


def test_many_problems_are_counted_after_the_first_ten(folder: Path) -> None:
    for k in range(13):
        (folder / f"new{k:02}").touch()
    with pytest.raises(BundleError, match=r"new09 and 3 more\.$"):
        open_bundle(folder)


def test_links_are_refused_even_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "page.js").write_bytes((folder / "page.js").read_bytes())
    (folder / "page.js").unlink()
    (folder / "page.js").symlink_to(tmp_path / "page.js")
    (folder / "to_folder").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(BundleError, match=r"a link or not a file: page\.js, to_folder") as caught:
        open_bundle(folder)
    assert "changed" not in caught.value.message


def test_a_folder_of_the_bundle_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "model").rename(tmp_path / "model")
    (folder / "model").symlink_to(tmp_path / "model")
    with pytest.raises(BundleError, match=r"missing: model/model\.onnx; added: model; a link or not a file: model"):
        open_bundle(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_and_not_read(folder: Path) -> None:
    (folder / "page.js").unlink()
    os.mkfifo(folder / "page.js")
    with pytest.raises(BundleError, match=r"a link or not a file: page\.js"):
        open_bundle(folder)


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "a/../../b", "a//b", "./a", "a/.", "", "a/", "..", "\0", "a\0/../b"]
)
@pytest.mark.parametrize("verify", [False, True])
def test_a_manifest_that_names_places_outside_is_refused(folder: Path, path: str, verify: bool) -> None:
    assert not is_safe_path(path)
    edit_manifest(folder, files=[*entries(folder), {"path": path, "sha256": "0" * 64, "bytes": 0}])
    with pytest.raises(BundleError, match="outside of the bundle"):
        open_bundle(folder, verify=verify)


@pytest.mark.parametrize("path", ["a", "a/b", "...", "a/..b", ".hidden/x", HOSTILE, "é/ü"])
def test_ordinary_and_odd_names_are_safe(path: str) -> None:
    assert is_safe_path(path)


def test_a_manifest_that_disagrees_with_itself_is_refused(folder: Path) -> None:
    good = entries(folder)
    edit_manifest(folder, files=[*good, good[0]])
    with pytest.raises(BundleError, match="lists a file twice"):
        open_bundle(folder)
    edit_manifest(folder, files=[*good, {"path": "manifest.json", "sha256": "0" * 64, "bytes": 0}])
    with pytest.raises(BundleError, match="or itself"):
        open_bundle(folder)
    edit_manifest(folder, files=good, model={"path": "model/model.onnx", "sha256": "0" * 64, "original_sha256": None})
    with pytest.raises(BundleError, match=r"does not list its model 'model/model\.onnx'"):
        open_bundle(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b'{"format": 2}', b"[" * 100_000, b"1" * 10_000, b'{"name": "other"}'],
)
def test_a_manifest_that_is_not_one_is_refused(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(BundleError, match=r"is not a bundle: its manifest.json is not one") as caught:
        open_bundle(folder)
    assert len(caught.value.message) < 1000


def test_a_manifest_without_end_is_not_read_to_its_end(folder: Path) -> None:
    with (folder / "manifest.json").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(BundleError, match="more than 16,777,216 bytes"):
        open_bundle(folder)


def test_what_is_no_folder_or_has_no_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="does not exist"):
        open_bundle(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match="is a file, not a folder"):
        open_bundle(tmp_path / "file")
    with pytest.raises(BundleError, match=r"it has no manifest\.json"):
        open_bundle(tmp_path)
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(BundleError, match="cannot be read"):
        open_bundle(tmp_path)
    (tmp_path / "manifest.json").rmdir()
    (tmp_path / "manifest.json").symlink_to("/etc/hostname")
    with pytest.raises(BundleError, match="is a link"):
        open_bundle(tmp_path)


def test_damaged_cases_are_refused_by_name(folder: Path) -> None:
    bundle = open_bundle(folder)
    (folder / TENSORS).write_bytes(b"not safetensors")
    with pytest.raises(BundleError, match=r"golden cases of .* are damaged: cases\.safetensors is not"):
        load_cases(bundle)
    (folder / CASES).write_bytes(b"{")
    with pytest.raises(BundleError, match="cannot be read"):
        load_cases(bundle)
    (folder / CASES).unlink()
    with pytest.raises(BundleError, match="cannot be read"):
        load_cases(bundle)
