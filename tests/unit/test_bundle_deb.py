"""Debian packages of Linux bundles, made with Debian's tools and shown to its critic."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import linux_bundle
import pytest

from edgekit.bundle import deb
from edgekit.errors import LimitError, MissingToolError, UsageError
from edgekit.files import sha256_file

TARGET = linux_bundle.target(machine="aarch64", pythons=("3.11", "3.13"))
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not here")


def write(folder: Path, **options: object) -> Path:
    bundle = linux_bundle.make(folder, machine="aarch64", pythons=("3.11", "3.13"))
    (folder / "work").mkdir()
    return deb.write(bundle.folder, TARGET, "tiny", folder / "work", version="1.2")


def said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@needs_dpkg
def test_a_package_holds_the_bundle_a_service_and_its_configuration(tmp_path: Path) -> None:
    package = write(tmp_path)
    assert package.name == "edgekit-tiny_1.2_arm64.deb"
    listed = said("dpkg-deb", "--contents", str(package))
    for path in (
        "usr/bin/edgekit-tiny",
        "etc/edgekit-tiny.toml",
        "usr/lib/systemd/system/edgekit-tiny.service",
        "usr/lib/edgekit-tiny/model/model.onnx",
        "usr/lib/edgekit-tiny/lib/edgekit/device/main.py",
    ):
        assert f"./{path}\n" in listed
    assert "root/root" in listed and "install.sh" not in listed
    told = said("dpkg-deb", "--field", str(package), "Version", "Architecture", "Depends")
    assert " Model: Tiny model\n" in said("dpkg-deb", "--field", str(package), "Description")
    assert "Version: 1.2" in told and "Architecture: arm64" in told


@needs_dpkg
@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not here")
def test_lintian_has_nothing_to_say_and_would_of_a_worse_package(tmp_path: Path) -> None:
    package = write(tmp_path)
    assert said("lintian", "--allow-root", "--fail-on", "error,warning", str(package)) == ""
    said("dpkg-deb", "--raw-extract", str(package), str(tmp_path / "raw"))
    shutil.rmtree(tmp_path / "raw" / "usr/lib/edgekit-tiny")
    (tmp_path / "raw" / "usr/share/man/man1/edgekit-tiny.1.gz").unlink()
    said("dpkg-deb", "--build", str(tmp_path / "raw"), str(tmp_path / "worse.deb"))
    assert "edgekit-tiny" in said("lintian", "--allow-root", str(tmp_path / "worse.deb"))


@needs_dpkg
def test_the_same_bundle_gives_the_same_package(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    assert sha256_file(first) == sha256_file(second)


def test_a_disk_that_is_full_for_dpkg_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dpkg-deb"
    program.write_text("#!/bin/sh\necho 'dpkg-deb: error: failed to write: No space left on device'; exit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(LimitError, match=r"The disk is full: cannot write .*edgekit-tiny_1\.2_arm64\.deb"):
        write(tmp_path / "here")


def test_each_gap_between_versions_of_python_is_ruled_out() -> None:
    assert deb.depends(["3.13", "3.11"]).endswith(
        "python3 (>= 3.11), python3 (<< 3.12) | python3 (>= 3.13), python3 (<< 3.14)"
    )
    assert deb.depends(["3.11", "3.12"]).endswith("python3 (>= 3.11), python3 (<< 3.13)")
    assert deb.depends(["3.11"]).endswith("python3 (>= 3.11), python3 (<< 3.12)")


@pytest.mark.parametrize("version", ["", "a", "1 2", "1-2", "1\n", "1:2", "../1"])
def test_a_version_that_debian_does_not_take_is_refused(version: str) -> None:
    deb.check_version("1.2~rc1+b")
    with pytest.raises(UsageError, match="no version of a Debian package"):
        deb.check_version(version)


def test_a_machine_that_debian_does_not_know_is_refused(tmp_path: Path) -> None:
    odd = replace(TARGET, linux=replace(TARGET.linux, machine="pdp11"))
    with pytest.raises(UsageError, match="no architecture for 'pdp11'"):
        deb.place(tmp_path, "tiny", odd, "1")


def test_without_dpkg_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="no dpkg-deb") as caught:
        deb.require_tools()
    assert "--deb" in (caught.value.hint or "")


@needs_dpkg
def test_a_hostile_maintainer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBFULLNAME", "x\nDepends: evil")
    with pytest.raises(UsageError, match="DEBFULLNAME"):
        write(tmp_path)
