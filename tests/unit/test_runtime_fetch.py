import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from edgekit.errors import MissingToolError, UsageError
from edgekit.runtime import cache, pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.fetch import fetch
from edgekit.runtime.locate import locate


@pytest.fixture(scope="session")
def shared_runtime() -> RuntimeDist:
    return fetch()


@pytest.fixture
def filled_cache(shared_runtime: RuntimeDist, own_cache: Path) -> Path:
    """A cache of this test's own that holds the pinned runtime; returns the runtime's folder."""
    folder = cache.look().folder
    shutil.copytree(shared_runtime.folder, folder)
    return folder


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is there no more: npm is offline, and its own cache empty."""
    monkeypatch.setenv("npm_config_offline", "true")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))


@pytest.fixture(scope="session")
def online(shared_runtime: RuntimeDist, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip when the network is not there: an npm that cannot fetch says nothing about edgekit."""
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setenv("EDGEKIT_CACHE", str(tmp_path_factory.mktemp("online")))
        try:
            fetch()
        except MissingToolError as error:
            pytest.skip(f"npm cannot fetch: {error.message.splitlines()[-1].strip()}")


def tree(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_an_empty_cache_is_filled_once_and_then_needs_no_network(
    online: None, own_cache: Path, request: pytest.FixtureRequest
) -> None:
    assert cache.look().empty
    said: list[str] = []
    dist = fetch(progress=lambda message, done=None: said.append(message))
    assert dist.pinned and dist.version == pins.load().version
    assert said == [f"Fetching onnxruntime-web {dist.version}"]
    assert tree(dist.folder) == sorted([*pins.load().files, "LICENSE.txt", "package.json"])
    assert [path.name for path in dist.folder.parent.iterdir()] == [dist.folder.name]
    request.getfixturevalue("offline")
    assert locate(None) == dist


def test_a_changed_file_is_noticed_and_fetched_again(online: None, filled_cache: Path) -> None:
    name = "ort-wasm-simd-threaded.wasm"
    with (filled_cache / name).open("r+b") as stream:
        stream.seek(1_000_000)
        stream.write(b"!")
    assert [file.name for file in cache.look().files if file.state == "changed"] == [name]
    assert not cache.look().verified
    fetch()
    assert cache.look().verified


def test_without_a_network_npms_last_words_and_the_way_out_are_given(offline: None, own_cache: Path) -> None:
    with pytest.raises(MissingToolError, match="npm could not fetch onnxruntime-web") as caught:
        fetch()
    assert "ENOTCACHED" in caught.value.message
    assert "debug-0.log" not in caught.value.message
    assert caught.value.hint is not None
    assert "edgekit runtime fetch" in caught.value.hint and "--runtime DIR" in caught.value.hint
    assert [p for p in tree(own_cache) if p != "runtime"] == []


def test_a_server_that_does_not_answer_is_given_up_in_reasonable_time(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
    with pytest.raises(MissingToolError, match="ECONNREFUSED"):
        fetch()


def test_without_a_network_what_is_cached_and_good_stays(offline: None, filled_cache: Path) -> None:
    (filled_cache / "ort.wasm.min.mjs").unlink()
    with pytest.raises(MissingToolError):
        fetch()
    states = {file.name: file.state for file in cache.look().files}
    assert states.pop("ort.wasm.min.mjs") == "missing"
    assert set(states.values()) == {"verified"}


def test_a_package_that_is_not_the_pinned_one_is_refused(
    online: None, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = pins.load()
    name = "ort.jspi.min.mjs"
    other = replace(pinned, files={**pinned.files, name: replace(pinned.files[name], sha256="0" * 64)})
    monkeypatch.setattr(pins, "load", lambda: other)
    with pytest.raises(MissingToolError, match=f"whose {name} is not the pinned one"):
        fetch()
    assert [p for p in tree(own_cache) if p != "runtime"] == []


@pytest.mark.sweep
def test_two_processes_at_once_both_have_it(online: None, own_cache: Path) -> None:
    command = [sys.executable, "-c", "from edgekit.runtime.fetch import fetch; print(fetch().version)"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert (out, err, process.returncode) == (f"{pins.load().version}\n", "", 0)
    assert cache.look().verified
    assert len(list(cache.look().folder.parent.iterdir())) == 1


def test_a_cache_that_cannot_be_written_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGEKIT_CACHE", str(tmp_path / "file"))
    assert cache.look().empty
    with pytest.raises(UsageError, match="a part of that path is a file") as caught:
        fetch()
    assert caught.value.hint is not None and "EDGEKIT_CACHE" in caught.value.hint


def test_the_cache_folder_is_the_users_unless_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGEKIT_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if os.name == "posix" and sys.platform == "linux":
        assert cache.folder() == tmp_path / "edgekit"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDGEKIT_CACHE", "here")
    assert cache.folder() == tmp_path / "here"


def test_the_state_of_every_file_is_told(filled_cache: Path) -> None:
    assert cache.look().verified and not cache.look().empty
    (filled_cache / "ort.jspi.min.mjs").write_bytes(b"short")
    (filled_cache / "ort.wasm.min.mjs").unlink()
    (filled_cache / "ort.webgpu.min.mjs").unlink()
    (filled_cache / "ort.webgpu.min.mjs").mkdir()
    states = {file.name: file.state for file in cache.look().files}
    assert states["ort.jspi.min.mjs"] == "changed"
    assert states["ort.wasm.min.mjs"] == "missing"
    assert states["ort.webgpu.min.mjs"] == "changed"
    assert states["ort-wasm-simd-threaded.wasm"] == "verified"
