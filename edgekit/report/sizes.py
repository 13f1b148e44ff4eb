"""What a bundle weighs: its files by what they are for, as they lie on disk and as they travel."""

from collections.abc import Sequence

from edgekit.records.manifest import FileEntry, Manifest
from edgekit.report import words
from edgekit.report.page import SizeRow

_COPIES = (".br", ".gz")
_MOST_FILES = 200
_OTHER = "Other"


def size_rows(manifest: Manifest | None) -> tuple[SizeRow, ...]:
    """Return a row for each kind of file, and one for all of them; empty where nothing is known of the bundle."""
    if manifest is None:
        return ()
    sizes = {entry.path: entry.bytes for entry in manifest.files}
    groups: dict[str, list[FileEntry]] = {}
    for entry in _originals(manifest):
        groups.setdefault(_kind(entry.path, manifest), []).append(entry)
    rows = [_row(name, members, sizes) for name, members in groups.items()]
    return (*rows, _row("All", [entry for members in groups.values() for entry in members], sizes))


def file_rows(manifest: Manifest | None) -> tuple[SizeRow, ...]:
    """Return a row for each file, the largest first and no more than a page can show."""
    if manifest is None:
        return ()
    sizes = {entry.path: entry.bytes for entry in manifest.files}
    ordered = sorted(_originals(manifest), key=lambda entry: (-entry.bytes, entry.path))
    return tuple(_row(entry.path, [entry], sizes) for entry in ordered[:_MOST_FILES])


def _originals(manifest: Manifest) -> list[FileEntry]:
    """Leave out the compressed copies of files that are there themselves."""
    paths = {entry.path for entry in manifest.files}
    return [entry for entry in manifest.files if entry.path[-3:] not in _COPIES or entry.path[:-3] not in paths]


def _kind(path: str, manifest: Manifest) -> str:
    if path == manifest.model.path or path.startswith("model/"):
        return "Model"
    if path.startswith("runtime/stock/"):
        return "Whole runtime, for what the trimmed one lacks"
    if path.startswith("runtime/"):
        return f"Runtime: {', '.join(manifest.runtime.variants)}"
    if path.startswith("cases/"):
        return "Golden cases"
    return "Page" if path.startswith("app/") or path == "index.html" else _OTHER


def _row(name: str, members: Sequence[FileEntry], sizes: dict[str, int]) -> SizeRow:
    """Add up. What has no compressed copy travels as it is."""
    whole = sum(entry.bytes for entry in members)
    brotli, gzip = (sum(sizes.get(entry.path + suffix, entry.bytes) for entry in members) for suffix in _COPIES)
    return SizeRow(name, str(len(members)), words.size(whole), words.size(brotli), words.size(gzip))
