"""Files beside a bundle's folder that an earlier build made of another bundle: archive, package, app."""

import gzip
import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from edgekit.bundle import android, archive, deb
from edgekit.bundle.linux import slug
from edgekit.bundle.open import open_bundle
from edgekit.records import manifest as manifests
from edgekit.targets.options import LINUX

# The manifest comes before what is large, and a bundle has some hundred files.
_MOST_ENTRIES = 1000
_MOST_BYTES = 16 << 20
_HEADER_BYTES = 60  # of an entry of an ar archive, which Debian packages are
_SIZE = slice(48, 58)


def outdated(folder: Path) -> tuple[Path, ...]:
    """Return what lies beside the bundle in ``folder``, under the names that builds give, and is of another bundle.

    A file that cannot be read as what its name says is nobody's, and not told. Raises BundleError for no bundle.
    """
    bundle = open_bundle(folder, verify=False)
    data = (folder / manifests.NAME).read_bytes()
    apks = android.beside(folder)
    found = [
        place
        for place, held in ((archive.place(folder), _in_archive), (apks.app, _in_app))
        if place.is_file() and held(place) not in (None, data)
    ]
    if apks.app in found and apks.test.is_file():
        found.append(apks.test)
    if bundle.manifest.kind == LINUX:
        found += _packages_of_none(folder, slug(bundle.manifest.title))
    return tuple(found)


def told(folder: Path) -> tuple[str, ...]:
    """Say of each of ``outdated`` that it is; see there."""
    return tuple(f"{place} is of another build: it does not hold the bundle {folder}." for place in outdated(folder))


def _packages_of_none(folder: Path, name: str) -> list[Path]:
    """Return the Debian packages beside ``folder`` that hold neither its bundle nor one of the folders next to it.

    Packages are named after the model alone, so those of several boards may lie together.
    """
    packages = {place: md5_in_package(place) for place in sorted(folder.parent.glob(f"edgekit-{name}_*.deb"))}
    if not any(packages.values()):
        return []
    sums = set()
    for manifest in folder.parent.glob(f"*/{manifests.NAME}"):
        with suppress(OSError):
            # What packages list, to find changes and not forgeries.
            sums.add(hashlib.md5(manifest.read_bytes(), usedforsecurity=False).hexdigest())
    return [place for place, md5 in packages.items() if md5 is not None and md5 not in sums]


def _in_archive(place: Path) -> bytes | None:
    with suppress(OSError, EOFError, tarfile.TarError, zlib.error), tarfile.open(place, "r:gz") as tar:
        for entry in islice(tar, _MOST_ENTRIES):
            if entry.isfile() and entry.name.count("/") == 1 and entry.name.endswith(f"/{manifests.NAME}"):
                stream = tar.extractfile(entry)
                return None if stream is None else stream.read(_MOST_BYTES)
    return None


def _in_app(place: Path) -> bytes | None:
    with suppress(OSError, zipfile.BadZipFile, zlib.error), zipfile.ZipFile(place) as apk:
        names = [f"assets/{manifests.NAME}", f"assets/bundle/{manifests.NAME}"]
        there = [entry for entry in apk.infolist() if entry.filename in names]
        if there and there[0].file_size <= _MOST_BYTES:
            return apk.read(there[0])
    return None


def md5_in_package(place: Path) -> str | None:
    """Return the MD5 that a Debian package's list of sums has for the manifest of its bundle; None: it has none."""
    if not deb.is_package(place):
        return None
    with suppress(OSError, EOFError, ValueError, KeyError, tarfile.TarError, zlib.error):
        control = next(data for name, data in _ar_entries(place) if name == "control.tar.gz")
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(control))) as tar:
            stream = tar.extractfile("./md5sums")
            lines = [] if stream is None else stream.read(_MOST_BYTES).decode().splitlines()
        sums = {path: md5 for md5, _, path in (line.partition("  ") for line in lines)}
        return next((md5 for path, md5 in sums.items() if path.endswith(f"/{manifests.NAME}")), None)
    return None


def _ar_entries(place: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the small entries at the start of an ar archive. Raises ValueError for a broken one."""
    with place.open("rb") as stream:
        stream.seek(len(deb.MAGIC))
        while len(header := stream.read(_HEADER_BYTES)) == _HEADER_BYTES:
            name, size = header[:16].decode("ascii").rstrip(" /"), int(header[_SIZE])
            if not 0 <= size <= _MOST_BYTES:
                return
            yield name, stream.read(size)
            stream.seek(size % 2, io.SEEK_CUR)
