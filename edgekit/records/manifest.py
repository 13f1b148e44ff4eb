"""The manifest: every file of a bundle with its sha256 and bytes, and what the bundle was made from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from edgekit.records import settings
from edgekit.records.jsonable import jsonable
from edgekit.records.settings import SessionSettings
from edgekit.records.validate import validated

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True)
class ModelEntry:
    """Path of the model inside the bundle (with "/"), and the sha256 of that file.

    ``original_sha256``: of the file that it was trimmed from; None where it is shipped as it came.
    """

    path: str
    sha256: str
    original_sha256: str | None = None


@dataclass(frozen=True)
class RuntimeEntry:
    """The runtime's package and version, and the variants that the bundle ships, in order of preference."""

    package: str
    version: str
    variants: tuple[str, ...]


@dataclass(frozen=True)
class FileEntry:
    """A file of the bundle; ``path`` is relative, with "/". Precompressed copies (.br, .gz) are entries too."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """``manifest.json``. ``files`` is sorted by path and does not list the manifest itself.

    ``sessions``: how sessions are created, by variant; of a variant that is not there: as onnxruntime does by itself.
    """

    edgekit_version: str
    kind: str
    target: str
    title: str
    model: ModelEntry
    runtime: RuntimeEntry
    files: tuple[FileEntry, ...]
    sessions: Mapping[str, SessionSettings] = field(default_factory=dict)


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Return ``manifest.json`` as a JSON value."""
    said = asdict(manifest)
    if not manifest.sessions:
        del said["sessions"]  # the manifest of a bundle without settings is what it was before there were any
    document: dict[str, Any] = jsonable({"format": FORMAT, **said})
    return document


def from_json(document: Any) -> Manifest:
    """Undo ``to_json``. Raises UsageError when the document does not fit its schema."""
    document = validated(document, "manifest", NAME)
    return Manifest(
        edgekit_version=document["edgekit_version"],
        kind=document["kind"],
        target=document["target"],
        title=document["title"],
        model=ModelEntry(**document["model"]),
        runtime=RuntimeEntry(**{**document["runtime"], "variants": tuple(document["runtime"]["variants"])}),
        files=tuple(FileEntry(**entry) for entry in document["files"]),
        sessions={variant: settings.from_json(said) for variant, said in document.get("sessions", {}).items()},
    )
