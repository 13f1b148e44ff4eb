"""Open a bundle: read its manifest, and check that the files are the ones it lists. A bundle is untrusted."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import BundleError, UsageError
from edgekit.files import sha256_bytes, sha256_file
from edgekit.records import cases, strength
from edgekit.records import manifest as manifests
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import FileEntry, Manifest
from edgekit.records.strength import Strength
from edgekit.targets.options import ANDROID

CASES = "cases/cases.json"
TENSORS = "cases/cases.safetensors"
_MAX_MANIFEST_BYTES = 16 << 20
_MAX_NAMES = 10
# Of Gradle and Android Studio.
_WORK = frozenset({"build", ".gradle", ".idea", ".kotlin", "local.properties"})
_AGAIN = "Build the bundle again; --force replaces it."


@dataclass(frozen=True)
class Bundle:
    """A folder that ``build`` wrote. ``manifest_sha256``: of the bytes of ``manifest.json``, which names the bundle."""

    folder: Path
    manifest: Manifest
    manifest_sha256: str


def open_bundle(folder: Path, *, verify: bool = True) -> Bundle:
    """Open the bundle in ``folder``.

    Raises BundleError when it is not a bundle and, with ``verify``, when files of it were changed, are missing, were
    added or are links: each is named. Without ``verify`` only the manifest is read.
    """
    data = _manifest_bytes(folder)
    try:
        manifest = manifests.from_json(json.loads(data))
    except (ValueError, RecursionError, UsageError) as error:
        why = f": {error.message}" if isinstance(error, UsageError) else " of edgekit's."
        raise BundleError(f"{folder} is not a bundle: its manifest.json is not one{why}", hint=_AGAIN) from error
    _check_manifest(folder, manifest)
    if verify:
        _check_files(folder, manifest)
    # Absolute: Flask would look for a relative path beside its own code.
    return Bundle(folder.absolute(), manifest, sha256_bytes(data))


def require_kind(bundle: Bundle, kind: str, command: str) -> Bundle:
    """Return ``bundle``. Raises UsageError where it is of another kind than the one that ``command`` works on."""
    if bundle.manifest.kind != kind:
        raise UsageError(
            f"'edgekit {command}' works on bundles of kind '{kind}'; {bundle.folder} is of kind "
            f"'{bundle.manifest.kind}'.",
            hint="'edgekit parity' replays the golden cases of bundles of every kind.",
        )
    return bundle


def require_variant(bundle: Bundle, variant: str) -> None:
    """Raise UsageError where the bundle does not ship ``variant`` of the runtime."""
    shipped = bundle.manifest.runtime.variants
    if variant not in shipped:
        raise UsageError(f"The bundle has no variant '{variant}'.", hint=f"Its variants: {', '.join(shipped)}.")


def load_cases(bundle: Bundle) -> CaseSet:
    """Read the golden cases of a bundle. Raises BundleError when they are not there or do not fit the contract."""
    try:
        document = json.loads((bundle.folder / CASES).read_bytes())
        return cases.from_files(document, (bundle.folder / TENSORS).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"The golden cases of {bundle.folder} cannot be read: {error}.", hint=_AGAIN) from error
    except UsageError as error:
        raise BundleError(f"The golden cases of {bundle.folder} are damaged: {error.message}", hint=_AGAIN) from error


def load_strength(bundle: Bundle) -> Strength | None:
    """Read how strong the golden cases of a bundle are; None where its build did not measure it. Raises BundleError."""
    if all(entry.path != strength.NAME for entry in bundle.manifest.files):
        return None
    try:
        return strength.from_json(json.loads((bundle.folder / strength.NAME).read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{strength.NAME} of {bundle.folder} cannot be read: {error}.", hint=_AGAIN) from error
    except UsageError as error:
        raise BundleError(f"{strength.NAME} of {bundle.folder} is damaged: {error.message}", hint=_AGAIN) from error


def foreign_files(bundle: Bundle) -> tuple[str, ...]:
    """Return what lies in the bundle's folder and is not of the bundle, as sorted relative paths."""
    known = {entry.path for entry in bundle.manifest.files} | {manifests.NAME}
    return tuple(sorted(path for path, _ in _walk(bundle.folder) if path not in known))


def is_safe_path(path: str) -> bool:
    """Whether ``path`` (with "/") stays inside the folder that it is relative to, and has one spelling only."""
    parts = path.split("/")
    return "\0" not in path and all(part not in ("", ".", "..") for part in parts)


def _manifest_bytes(folder: Path) -> bytes:
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise BundleError(f"The bundle {folder} {what}.", hint="'edgekit build MODEL --target ID -o DIR' makes one.")
    path = folder / manifests.NAME
    try:
        if path.is_symlink():
            raise BundleError(f"{folder} is not a bundle: its manifest.json is a link.", hint=_AGAIN)
        with path.open("rb") as stream:
            data = stream.read(_MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError as error:
        raise BundleError(
            f"{folder} is not a bundle: it has no manifest.json.", hint="Name the folder that 'edgekit build' wrote."
        ) from error
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > _MAX_MANIFEST_BYTES:
        raise BundleError(f"{folder} is not a bundle: its manifest.json has more than {_MAX_MANIFEST_BYTES:,} bytes.")
    return data


def _check_manifest(folder: Path, manifest: Manifest) -> None:
    """Raise BundleError when the manifest names places outside of the bundle, or disagrees with itself."""
    unsafe = [entry.path for entry in manifest.files if not is_safe_path(entry.path)]
    if unsafe:
        raise BundleError(
            f"The manifest of {folder} names {_names(unsafe)}, which is outside of the bundle.",
            hint="Do not trust this bundle.",
        )
    by_path = {entry.path: entry for entry in manifest.files}
    if len(by_path) != len(manifest.files) or manifests.NAME in by_path:
        raise BundleError(f"The manifest of {folder} lists a file twice, or itself.", hint=_AGAIN)
    model = by_path.get(manifest.model.path)
    if model is None or model.sha256 != manifest.model.sha256:
        raise BundleError(f"The manifest of {folder} does not list its model {manifest.model.path!r}.", hint=_AGAIN)


def _check_files(folder: Path, manifest: Manifest) -> None:
    there = {path: regular for path, regular in _walk(folder) if not _is_work(manifest, path)}
    there.pop(manifests.NAME, None)
    problems = {
        "changed": [e.path for e in manifest.files if there.get(e.path) is True and not _is_same(folder / e.path, e)],
        "missing": [e.path for e in manifest.files if e.path not in there],
        "added": sorted(set(there) - {e.path for e in manifest.files}),
        "a link or not a file": sorted(path for path, regular in there.items() if not regular),
    }
    said = [f"{kind}: {_names(paths)}" for kind, paths in problems.items() if paths]
    if said:
        raise BundleError(f"The files of {folder} are not those of its manifest. {'; '.join(said)}.", hint=_AGAIN)


def _is_work(manifest: Manifest, path: str) -> bool:
    """Whether a file is what building a bundle's project leaves in it, which no device runs from there."""
    return manifest.kind == ANDROID and path.startswith("project/") and not _WORK.isdisjoint(path.split("/"))


def _is_same(path: Path, entry: FileEntry) -> bool:
    try:
        return path.stat().st_size == entry.bytes and sha256_file(path) == entry.sha256
    except OSError:
        return False


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield each file and link below ``folder`` (links are not followed), and whether it is an ordinary file."""
    waiting: list[tuple[str, Path]] = [("", folder)]
    while waiting:
        prefix, current = waiting.pop()
        try:
            entries: Iterable[os.DirEntry[str]] = list(os.scandir(current))
        except OSError as error:
            raise BundleError(f"The folder {current} cannot be read: {error.strerror}.") from error
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append((f"{prefix}{entry.name}/", Path(entry.path)))
            else:
                yield prefix + entry.name, entry.is_file(follow_symlinks=False)


def _names(paths: list[str]) -> str:
    shown = ", ".join(paths[:_MAX_NAMES])
    return shown if len(paths) <= _MAX_NAMES else f"{shown} and {len(paths) - _MAX_NAMES} more"
