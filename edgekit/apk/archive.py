"""Write the archive that an APK is: the same files give the same bytes."""

import shutil
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgekit.errors import LimitError

# The first date that the format knows; the build's own would change every archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_LEVEL = 9
# Android reads the table of resources in place.
_STORED = ("resources.arsc",)
_CHUNK_BYTES = 1 << 20
# Android reads sizes of an archive as signed 32-bit numbers in places, so 2 GiB is the end.
_MAX_BYTES = (1 << 31) - 1


def write(path: Path, files: Mapping[str, Path | bytes]) -> None:
    """Write ``files`` (contents by name) to ``path``, sorted by name. Raises LimitError beyond 2 GiB.

    What does not shrink is stored as it is.
    """
    total = sum(len(data) if isinstance(data, bytes) else data.stat().st_size for data in files.values())
    if total > _MAX_BYTES:
        raise LimitError(
            f"The app's files have {total:,} bytes together; an APK may have {_MAX_BYTES:,}.",
            hint="Serve the bundle from a host instead, or make the model smaller.",
        )
    with zipfile.ZipFile(path, "w", allowZip64=False) as archive:
        for name in sorted(files):
            contents = files[name]
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            shrinks = name not in _STORED and _shrinks(contents)
            entry.compress_type = zipfile.ZIP_DEFLATED if shrinks else zipfile.ZIP_STORED
            entry._compresslevel = _LEVEL  # type: ignore[attr-defined]  # open() takes the level from nowhere else
            if isinstance(contents, bytes):
                archive.writestr(entry, contents, compresslevel=_LEVEL)
                continue
            entry.file_size = contents.stat().st_size
            with contents.open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)


def _shrinks(contents: Path | bytes) -> bool:
    """Whether deflate takes at least a fiftieth off."""
    before = after = 0
    packer = zlib.compressobj(1)
    for chunk in _chunks(contents):
        before += len(chunk)
        after += len(packer.compress(chunk))
    return after + len(packer.flush()) < 0.98 * before


def _chunks(contents: Path | bytes) -> Iterable[bytes]:
    if isinstance(contents, bytes):
        yield contents
        return
    with contents.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk
