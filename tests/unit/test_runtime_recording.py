"""The recording build of a runtime, in the cache."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from wasm_modules import section

from edgekit.errors import UsageError
from edgekit.files import sha256_file
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.fetch import fetch
from edgekit.runtime.recording import entered_by_chance, recording_dist
from edgekit.wasm.code import bodies
from edgekit.wasm.module import MAGIC, parse

CPU = pins.load().chosen(["wasm"], "test")[0]


@pytest.fixture(scope="module")
def stock() -> RuntimeDist:
    return fetch()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGEKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_recording_build_is_made_once_and_is_whole(stock: RuntimeDist, cache: Path) -> None:
    dist, recording = recording_dist(stock, CPU)
    dist.require([CPU])
    assert dist.folder.is_relative_to(cache)
    assert {name: sha256_file(dist.folder / name) for name in CPU.files} == dist.files
    assert [dist.files[name] == stock.files[name] for name in CPU.files] == [True, True, False]
    module = parse((dist.folder / CPU.wasm).read_bytes())
    assert recording.functions == len(bodies(module)) > 10_000
    before = (dist.folder / CPU.wasm).stat()
    assert recording_dist(stock, CPU) == (dist, recording)
    assert (dist.folder / CPU.wasm).stat() == before


@pytest.mark.parametrize("name", ["recording.json", CPU.wasm, CPU.mjs])
def test_what_was_damaged_in_the_cache_is_made_anew(stock: RuntimeDist, cache: Path, name: str) -> None:
    made = recording_dist(stock, CPU)
    path = made[0].folder / name
    path.write_bytes(path.read_bytes()[:-7])
    assert recording_dist(stock, CPU) == made
    path.unlink()
    assert recording_dist(stock, CPU) == made


@pytest.mark.parametrize("stated", [[], {}, {"recording": {"flag_base": 1}, "wasm_sha256": "0"}])
def test_a_note_in_the_cache_that_says_something_else_is_made_anew(
    stock: RuntimeDist, cache: Path, stated: object
) -> None:
    made = recording_dist(stock, CPU)
    (made[0].folder / "recording.json").write_text(json.dumps(stated))
    assert recording_dist(stock, CPU) == made


def test_a_wasm_that_changed_or_is_none_is_an_error(stock: RuntimeDist, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in CPU.files:
        shutil.copyfile(stock.folder / name, folder / name)
    (folder / CPU.wasm).write_bytes(b"\0asm\1\0\0\0")
    changed = dataclasses.replace(stock, folder=folder)
    with pytest.raises(UsageError, match="has changed"):
        recording_dist(changed, CPU)
    other = dataclasses.replace(changed, files={name: sha256_file(folder / name) for name in CPU.files})
    with pytest.raises(UsageError, match="cannot be made to record: The module has no memory"):
        recording_dist(other, CPU)
    assert not list((cache / "recording").glob("*"))


def test_a_variant_that_is_not_there_is_an_error(stock: RuntimeDist, cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no whole variant 'wasm'"):
        recording_dist(dataclasses.replace(stock, folder=tmp_path, files={}), CPU)


def test_what_threads_may_enter_is_what_their_functions_and_the_exports_call() -> None:
    # Function 0 is imported, so a function's index is its code index + 1. The one with code index 1 is exported and
    # calls 2; 3 calls 4; 5 calls 0. The import is exported as well.
    calls = ((), (3, 0), (), (5,), (), (1,))
    bodies = [b"\0" + b"".join(b"\x10" + bytes([index]) for index in called) + b"\x0b" for called in calls]
    code = bytes([len(bodies)]) + b"".join(bytes([len(body)]) + body for body in bodies)
    head = section(1, "01 60 00 00") + section(2, "01 01 61 01 66 00 00") + section(3, b"\6" + bytes(6))
    module = parse(MAGIC + head + section(7, "02 01 78 00 02 01 69 00 00") + section(10, code))
    assert entered_by_chance(module, [0, 5], [0, 3]) == {1, 2, 3, 4}
    assert entered_by_chance(module, [0, 3, 5], [0, 3]) == {1, 2}
    assert entered_by_chance(module, [0, 1, 5], [0, 3]) == {3, 4}
