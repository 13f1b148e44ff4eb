import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekit.errors import UsageError
from edgekit.runtime import pins
from edgekit.runtime.fetch import fetch
from edgekit.runtime.local import open_folder
from edgekit.runtime.locate import locate

CPU = pins.load().chosen(["wasm"], "test")[0]
ASYNCIFY = pins.load().chosen(["asyncify"], "test")[0]
CUSTOM_SECTION = b"\0\3\1x!"


@pytest.fixture
def pinned_dist(tmp_path: Path) -> Path:
    """A dist folder that holds the CPU variant of the pinned build."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in CPU.files:
        shutil.copyfile(fetch().folder / name, folder / name)
    return folder


@pytest.fixture
def own_dist(pinned_dist: Path) -> Path:
    """A build of one's own: every file differs from the pinned one, and all fit each other."""
    for name in (CPU.api, CPU.mjs):
        edit(pinned_dist / name, lambda data: data + b"\n// mine\n")
    edit(pinned_dist / CPU.wasm, lambda data: data + CUSTOM_SECTION)
    return pinned_dist


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    before = path.read_bytes()
    after = change(before)
    assert after != before
    path.write_bytes(after)


def test_the_pinned_build_is_known_by_hash_as_dist_and_as_package(pinned_dist: Path) -> None:
    for folder in (pinned_dist, pinned_dist.parent):
        found = open_folder(folder)
        assert found.pinned
        assert found.folder == pinned_dist
        assert found.version == pins.load().version
        assert found.files == {name: pins.load().files[name].sha256 for name in CPU.files}


def test_a_variant_that_is_not_whole_does_not_count_and_is_missed_when_it_is_needed(pinned_dist: Path) -> None:
    shutil.copyfile(fetch().folder / ASYNCIFY.mjs, pinned_dist / ASYNCIFY.mjs)
    found = open_folder(pinned_dist)
    found.require([CPU])
    with pytest.raises(UsageError, match=f"no whole variant 'asyncify': it lacks {ASYNCIFY.api}, {ASYNCIFY.wasm}"):
        found.require([CPU, ASYNCIFY])


def test_a_folder_without_a_runtime_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        open_folder(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file, not a folder"):
        open_folder(tmp_path / "file")
    with pytest.raises(UsageError, match="holds no whole variant of onnxruntime-web") as caught:
        open_folder(tmp_path)
    assert caught.value.hint is not None and CPU.wasm in caught.value.hint


@pytest.mark.parametrize("name", CPU.files)
def test_one_file_of_another_build_is_refused_by_hash_and_both_are_named(pinned_dist: Path, name: str) -> None:
    edit(pinned_dist / name, lambda data: data + (CUSTOM_SECTION if name == CPU.wasm else b" "))
    with pytest.raises(UsageError, match="mixes builds") as caught:
        open_folder(pinned_dist)
    others = [other for other in CPU.files if other != name]
    assert name in caught.value.message
    assert any(other in caught.value.message for other in others)


def test_a_build_of_ones_own_is_taken_when_its_parts_fit(own_dist: Path) -> None:
    found = locate(own_dist)
    assert not found.pinned
    assert found.version == pins.load().version
    assert set(found.files) == set(CPU.files)


def test_a_development_build_states_its_version_in_the_script_alone(own_dist: Path) -> None:
    edit(own_dist / CPU.api, lambda data: data.replace(b"Web v1.30.0", b"Web v1.30.0-dev.20261001-abcdef"))
    assert open_folder(own_dist).version == "1.30.0-dev.20261001-abcdef"


def test_a_package_of_another_version_is_refused(own_dist: Path) -> None:
    package = own_dist.parent / "package.json"
    package.write_text(json.dumps({"name": "onnxruntime-web", "version": "1.29.0"}))
    with pytest.raises(UsageError, match=f"package.json is of version 1.29.0, {CPU.api} of 1.30.0"):
        open_folder(own_dist)
    for other in ('{"name": "mine", "version": "1.29.0"}', "[]", "no json", "[" * 100_000):
        package.write_text(other)
        assert open_folder(own_dist).version == "1.30.0"


def test_a_wasm_of_another_version_is_refused(own_dist: Path) -> None:
    edit(own_dist / CPU.wasm, lambda data: data.replace(b"1.30.0\0", b"1.29.9\0"))
    with pytest.raises(UsageError, match=f"{CPU.mjs} and {CPU.wasm} do not fit: the wasm is not of version 1.30.0"):
        open_folder(own_dist)


def test_a_wasm_that_the_glue_does_not_fit_is_refused(own_dist: Path) -> None:
    shutil.copyfile(fetch().folder / ASYNCIFY.wasm, own_dist / CPU.wasm)  # also of the right version
    with pytest.raises(UsageError, match=r"do not fit: the glue reads the export '\w+' \(\w+\), which"):
        open_folder(own_dist)


def test_a_glue_that_reads_what_the_wasm_lacks_is_refused(own_dist: Path) -> None:
    edit(own_dist / CPU.mjs, lambda data: data.replace(b"h._OrtRun=c.sb;", b"h._OrtRun=c.zzz;"))
    with pytest.raises(UsageError, match=r"the glue reads the export 'zzz' \(_OrtRun\), which the wasm does not have"):
        open_folder(own_dist)


def test_a_wasm_that_wants_what_the_glue_does_not_give_is_refused(own_dist: Path) -> None:
    edit(own_dist / CPU.mjs, lambda data: data.replace(b"{Pa={T:Qa,", b"{Pa={"))
    with pytest.raises(UsageError, match=r"the wasm wants 'a\.T', which the glue does not give"):
        open_folder(own_dist)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (CPU.api, b"export {}", "does not say which version"),
        (CPU.mjs, b"export {}", "cannot read how .* and its wasm are linked"),
        (CPU.wasm, b"<html>", "is not a WebAssembly module: This is not WebAssembly"),
        (CPU.wasm, b"", "is not a WebAssembly module"),
    ],
)
def test_a_file_that_is_something_else_is_refused_by_name(
    own_dist: Path, name: str, content: bytes, message: str
) -> None:
    (own_dist / name).write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        open_folder(own_dist)
    assert name in caught.value.message
