"""Unpack the wheels of a bundle into a virtual environment: the installer's part that a shell cannot do.

Standard library alone, and no package: numpy is not there yet. ``python3 unpack.py BUNDLE SITE_PACKAGES``.
"""

import hashlib
import json
import shutil
import sys
import zipfile
from pathlib import Path

_INSTALLED = ("model/", "cases/", "lib/edgekit/")
_INSTALLER = "lib/install/"  # which a Debian package leaves out
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def main(bundle: Path, site_packages: Path, version: str = THIS) -> int:
    """Verify the bundle by its hashes, and unpack its wheels for a version of Python. Return the exit code."""
    tag = f"-cp{version.replace('.', '')}-"
    entries = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))["files"]
    wheels = [entry for entry in entries if entry["path"].startswith("wheels/") and tag in entry["path"]]
    if not wheels:
        there = sorted({entry["path"].split("-cp")[1][:3] for entry in entries if "-cp" in entry["path"]})
        sys.stderr.write(f"This bundle has no wheels for Python {version}; it has them for {', '.join(there)}.\n")
        return 4
    # What is installed must be what was built: a damaged model would put a service that fails in the place of one that
    # works. The configuration is the user's.
    parts = (*_INSTALLED, *([_INSTALLER] if (bundle / _INSTALLER).is_dir() else []))
    installed = [entry for entry in entries if entry["path"].startswith(parts)]
    for entry in (*wheels, *installed):
        path = bundle / entry["path"]
        if not path.is_file() or _sha256(path) != entry["sha256"]:
            sys.stderr.write(f"{path} is missing or damaged. Copy the bundle again.\n")
            return 2
    shutil.rmtree(site_packages, ignore_errors=True)
    for entry in wheels:
        unpack(bundle / entry["path"], site_packages)
    return 0


def unpack(wheel: Path, site_packages: Path) -> None:
    """Unpack one wheel. Raises ValueError for a member that would lie elsewhere."""
    root = site_packages.resolve()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            place = (site_packages / member.filename).resolve()
            if not place.is_relative_to(root) or ".data/" in member.filename:
                raise ValueError(f"{wheel.name} holds {member.filename!r}, which belongs elsewhere")
        archive.extractall(site_packages)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
