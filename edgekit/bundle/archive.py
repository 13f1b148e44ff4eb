"""A bundle as one ``.tar.gz`` file beside its folder: the same bundle gives the same bytes."""

import gzip
import tarfile
import zlib
from contextlib import suppress
from itertools import islice
from pathlib import Path

from edgekit.bundle import destination
from edgekit.files import LOCK

# Wheels are compressed already, and weights hardly shrink: more effort only takes time.
_LEVEL = 3


def place(folder: Path) -> Path:
    """Return where the archive of the bundle in ``folder`` lies."""
    return folder.with_name(f"{folder.name}.tar.gz")


def check(path: Path, *, force: bool) -> None:
    """Raise UsageError when the archive may not be written at ``path``."""
    destination.check_beside(path, force=force, ours=_is_bundle)


def _is_bundle(path: Path) -> bool:
    """Whether a file is an archive of a bundle: its manifest comes before what is large."""
    with suppress(OSError, EOFError, tarfile.TarError, zlib.error), tarfile.open(path, "r:gz") as tar:
        return any(entry.name.endswith("/manifest.json") for entry in islice(tar, 1000))
    return False


def write(folder: Path, made: Path, *, name: str) -> None:
    """Write the archive of the bundle in ``folder``, whose files lie below ``name`` in it, to ``made``.

    Owners and times are left out. Raises OSError where it cannot be written.
    """
    with (
        made.open("wb") as stream,
        gzip.GzipFile("", "wb", _LEVEL, stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in (folder, *sorted(folder.rglob("*"))):
            inside = file.relative_to(folder).as_posix()
            if inside == LOCK:  # of a folder that is not in its place yet
                continue
            entry = tar.gettarinfo(file, name if inside == "." else f"{name}/{inside}")
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            if file.is_file():
                with file.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
