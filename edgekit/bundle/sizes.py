"""What a bundle weighs, file by file, and which files are too large for where it goes."""

from dataclasses import dataclass

from edgekit.bundle.compress import SUFFIXES
from edgekit.records.manifest import Manifest
from edgekit.targets.load import Target


@dataclass(frozen=True)
class FileSizes:
    """A file of the bundle, and its precompressed copies. None: there is no such copy."""

    path: str
    raw_bytes: int
    gzip_bytes: int | None
    brotli_bytes: int | None


def table(manifest: Manifest) -> tuple[FileSizes, ...]:
    """Return one row for each file, sorted by path; precompressed copies are columns of the file they copy."""
    sizes = {entry.path: entry.bytes for entry in manifest.files}
    copies = {path + suffix for path in sizes for suffix in SUFFIXES}
    return tuple(
        FileSizes(path, size, sizes.get(f"{path}.gz"), sizes.get(f"{path}.br"))
        for path, size in sorted(sizes.items())
        if path not in copies
    )


def warnings(manifest: Manifest, target: Target) -> tuple[str, ...]:
    """Say which files are larger than the target's hosts serve (they refuse the raw file, however it compresses)."""
    limit = target.limits.file_bytes
    return tuple(
        f"{row.path} has {row.raw_bytes:,} bytes ({row.raw_bytes / 2**20:.2f} MiB). Target '{target.id}' counts with "
        f"hosts that take {limit:,} bytes ({limit / 2**20:g} MiB) a file; they refuse it. "
        f"{_remedy(row, manifest, target)}"
        for row in table(manifest)
        if row.raw_bytes > limit
    )


def _remedy(row: FileSizes, manifest: Manifest, target: Target) -> str:
    if row.path.startswith("runtime/") and len(manifest.runtime.variants) > 1:
        return (
            f'To leave it out: a target file of your own with extends = "{target.id}" and fewer [runtime] variants, '
            "given with --targets-dir."
        )
    return "Serve it from a host without that limit."
