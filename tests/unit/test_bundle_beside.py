"""Files beside a bundle that an earlier build made are told where they do not hold it."""

import hashlib
import io
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pytest
import tiny_bundle

from edgekit.bundle import archive, beside
from edgekit.cli.main import run as main
from edgekit.repair import run
from edgekit.repair.result import Repair

Status = Literal["nothing", "repaired"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    tiny_bundle.make(tmp_path / "out")
    return tmp_path / "out"


def change(bundle: Path) -> None:
    """Another bundle takes the place."""
    manifest = bundle / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")


def app(place: Path, name: str, bundle: Path) -> Path:
    with zipfile.ZipFile(place, "w") as apk:
        apk.writestr("classes.dex", b"")
        apk.writestr(name, (bundle / "manifest.json").read_bytes())
    return place


def package(place: Path, bundle: Path) -> Path:
    """A Debian package, as far as it is read: an ar archive whose control part lists the sum of the manifest."""
    md5 = hashlib.md5((bundle / "manifest.json").read_bytes()).hexdigest()  # noqa: S324
    sums = f"{md5}  usr/lib/edgekit-x/manifest.json\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("./md5sums")
        entry.size = len(sums)
        tar.addfile(entry, io.BytesIO(sums.encode()))
    data = b"!<arch>\n"
    for name, content in (("debian-binary", b"2.0\n"), ("control.tar.gz", packed.getvalue())):
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        data += b"\n" * (len(content) % 2)
    place.write_bytes(data)
    return place


def test_an_archive_of_another_bundle_is_told(bundle: Path) -> None:
    assert beside.outdated(bundle) == ()
    place = archive.place(bundle)
    archive.write(bundle, place, name="tiny")
    assert beside.outdated(bundle) == ()
    change(bundle)
    assert beside.outdated(bundle) == (place,)
    (line,) = beside.told(bundle)
    assert line == f"{place} is of another build: it does not hold the bundle {bundle}."


@pytest.mark.parametrize("name", ["assets/manifest.json", "assets/bundle/manifest.json"])
def test_an_app_of_another_bundle_is_told_with_its_test(bundle: Path, name: str) -> None:
    place = app(bundle.with_name("out.apk"), name, bundle)
    test = bundle.with_name("out-test.apk")
    test.write_bytes(b"")
    assert beside.outdated(bundle) == ()
    change(bundle)
    assert beside.outdated(bundle) == (place, test)


@pytest.mark.parametrize("name", ["out.tar.gz", "out.apk"])
def test_what_is_no_file_of_a_build_is_nobodys(bundle: Path, name: str) -> None:
    bundle.with_name(name).write_bytes(b"\x1f\x8b something else")
    assert beside.outdated(bundle) == ()
    bundle.with_name(name).unlink()
    bundle.with_name(name).mkdir()
    assert beside.outdated(bundle) == ()


def test_a_package_is_told_where_it_holds_no_bundle_that_lies_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    manifest = out / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"kind": "web"', b'"kind": "linux"'))
    place = package(tmp_path / "edgekit-tiny_1_arm64.deb", out)
    assert beside.outdated(out) == ()
    shutil.copytree(out, tmp_path / "other-board")
    change(out)
    assert beside.outdated(out) == ()  # it is of the other
    shutil.rmtree(tmp_path / "other-board")
    assert beside.outdated(out) == (place,)
    place.write_bytes(place.read_bytes()[:150])
    assert beside.outdated(out) == ()


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not here")
def test_a_package_that_debians_tools_made_is_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    tiny_bundle.make(out)
    root = tmp_path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a\nDescription: a\n")
    (root / "DEBIAN/md5sums").write_text("0123  usr/lib/a/manifest.json\n")
    made = tmp_path / "a.deb"
    program = shutil.which("dpkg-deb") or ""
    subprocess.run([program, "-Zgzip", "--build", str(root), str(made)], check=True, capture_output=True)
    assert beside.md5_in_package(made) == "0123"


@pytest.mark.parametrize(("status", "told"), [("repaired", True), ("nothing", False)])
def test_repair_tells_of_an_app_that_shows_the_bundle_as_it_was(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: Status, told: bool
) -> None:
    app(bundle.with_name("out.apk"), "assets/bundle/manifest.json", bundle)

    def repaired(folder: Path, options: object, **_: object) -> Repair:
        change(folder)
        return Repair(status, "0", "", before=())

    monkeypatch.setattr(run, "repair", repaired)
    assert main(["repair", str(bundle)]) == 0
    assert ("out.apk is of another build" in " ".join(capsys.readouterr().err.split())) == told
