"""Wheels for devices: the right ones, never those that crash, and never another file than the pinned one."""

import sys
from dataclasses import replace
from pathlib import Path

import linux_bundle
import pytest

from edgekit.bundle import wheels
from edgekit.bundle.wheels import Crash, Pinned, Wheel
from edgekit.errors import MissingToolError, UsageError
from edgekit.targets import load as targets
from edgekit.targets.options import LINUX

OLD = Wheel("onnxruntime", "1.21.0", "3.11", "aarch64", "onnxruntime-1.21.0-cp311-cp311-x_aarch64.whl", "0" * 64, 1)
NEW = replace(OLD, version="1.22.0", file="onnxruntime-1.22.0-cp311-cp311-x_aarch64.whl")
NUMPY = replace(OLD, package="numpy", version="2.0.0", file="numpy-2.0.0-cp311-cp311-x_aarch64.whl")
CRASH = Crash("onnxruntime", ("1.21.0",), ("cortex-a72",), "illegal instruction", "issue 23957")
PI = linux_bundle.target(machine="aarch64", pythons=("3.11",), cpu="cortex-a72")


def test_every_linux_target_has_wheels_and_none_that_crashes() -> None:
    linux = [target for name in targets.ids() if (target := targets.load(name)).kind == LINUX]
    assert linux
    for target in linux:
        found = wheels.chosen(target)
        assert {wheel.python for wheel in found} == set(target.linux.pythons)
        crashes = [crash for crash in wheels.pinned().crash if target.linux.cpu in crash.cpus]
        assert not [w for w in found for crash in crashes if w.version in crash.versions and w.package == crash.package]


def test_the_table_of_crashes_says_where_each_was_reported() -> None:
    table = wheels.pinned().crash
    assert table and all(crash.source and crash.what and crash.cpus and crash.versions for crash in table)


def test_a_wheel_that_crashes_on_the_target_s_processor_is_left_for_one_that_does_not() -> None:
    pins = Pinned((NEW, OLD, NUMPY), (CRASH,))
    assert NEW in wheels.chosen(PI, pins)
    elsewhere = replace(PI, linux=replace(PI.linux, cpu="cortex-a76"))
    assert OLD in wheels.chosen(elsewhere, pins)  # the last that fits


def test_where_all_crash_the_error_says_why_and_where_that_was_reported() -> None:
    with pytest.raises(UsageError, match=r"1\.21\.0 fails on cortex-a72 with illegal instruction \(issue 23957\)"):
        wheels.chosen(PI, Pinned((OLD, NUMPY), (CRASH,)))


def test_a_python_without_wheels_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no wheel of onnxruntime for Python 3\.7") as caught:
        wheels.chosen(replace(PI, linux=replace(PI.linux, pythons=("3.7",))))
    assert "Python 3.11 on aarch64" in (caught.value.hint or "")


def test_a_dtype_that_numpy_lacks_brings_its_package_and_only_then() -> None:
    for name in targets.ids():
        if (target := targets.load(name)).kind != LINUX:
            continue
        plain = wheels.chosen(target, dtypes={"float32", "float16", "string", "None"})
        assert plain == wheels.chosen(target)
        more = [wheel for wheel in wheels.chosen(target, dtypes={"bfloat16", "float32"}) if wheel not in plain]
        assert [(w.package, w.python) for w in more] == [("ml-dtypes", python) for python in target.linux.pythons]


def test_a_cached_wheel_is_taken_and_a_changed_one_is_not(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places, pinned = linux_bundle.wheels(_folder(own_cache), (linux_bundle.THIS,), "aarch64")
    assert wheels.fetch(pinned) == places
    (own_cache / "wheels" / pinned[0].file).write_bytes(b"another")
    monkeypatch.setattr(sys, "executable", _pip(own_cache, "echo 'ERROR: No network'; exit 1"))
    with pytest.raises(MissingToolError, match="ERROR: No network") as caught:
        wheels.fetch(pinned)
    assert "while online" in (caught.value.hint or "")


def test_what_pip_brings_is_kept_only_where_it_is_the_pinned_file(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    _, pinned = linux_bundle.wheels(source, (linux_bundle.THIS,), "aarch64")
    copy = 'while [ "$1" != --dest ]; do shift; done; ' + f'cp {source}/*.whl "$2"'
    monkeypatch.setattr(sys, "executable", _pip(tmp_path, copy))
    found = wheels.fetch(pinned)
    assert all(path.is_relative_to(own_cache) and path.is_file() for path in found.values())
    (own_cache / "wheels" / pinned[0].file).unlink()
    (source / pinned[0].file).write_bytes(b"another")
    with pytest.raises(MissingToolError, match="is not the pinned one"):
        wheels.fetch(pinned)


def test_without_pip_the_error_says_how_to_get_it(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_cache.mkdir()
    monkeypatch.setattr(sys, "executable", _pip(own_cache, "echo 'No module named pip' >&2; exit 1"))
    with pytest.raises(MissingToolError) as caught:
        wheels.fetch([NUMPY])
    assert "ensurepip" in (caught.value.hint or "")


def _folder(cache: Path) -> Path:
    folder = cache / "wheels"
    folder.mkdir(parents=True)
    return folder


def _pip(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)
