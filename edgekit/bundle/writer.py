"""What writers of bundles of every kind share: files that are remembered with their hashes, the model, the modes."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

import edgekit
from edgekit.bundle import compress
from edgekit.bundle.open import CASES, TENSORS, is_safe_path
from edgekit.errors import ModelError, UsageError
from edgekit.files import json_bytes, sha256_bytes
from edgekit.model.external_data import ExternalFile
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress
from edgekit.records import cases as case_files
from edgekit.records import manifest as manifests
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.records.settings import SessionSettings
from edgekit.targets.load import Target
from edgekit.trim import plan as plans
from edgekit.trim.plan import Plan

PLAN = "trim.json"
_CHUNK_BYTES = 1 << 20


class FolderWriter:
    """Writes files below a folder and remembers what they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, FileEntry] = {}

    def add_bytes(self, path: str, data: bytes) -> None:
        """Write a file at ``path``, relative and with "/"."""
        self._place(path).write_bytes(data)
        self.entries[path] = FileEntry(path, sha256_bytes(data), len(data))

    def add_file(self, path: str, source: Path, sha256: str | None = None) -> None:
        """Copy a file. Raises ValueError when it is not the one with this hash."""
        digest, count = hashlib.sha256(), 0
        with self._place(path).open("xb") as stream:
            for chunk in _chunks(source):
                stream.write(chunk)
                digest.update(chunk)
                count += len(chunk)
        if sha256 not in (None, digest.hexdigest()):
            raise ValueError(f"{source} has another hash")
        self.entries[path] = FileEntry(path, digest.hexdigest(), count)

    def add_copies(self, progress: Progress) -> None:
        """Add the precompressed copies of what is there."""
        paths = [self.folder / path for path in sorted(self.entries)]
        for copy in compress.write_copies(paths, progress=progress):
            path = copy.relative_to(self.folder).as_posix()
            data = copy.read_bytes()
            self.entries[path] = FileEntry(path, sha256_bytes(data), len(data))

    def _place(self, path: str) -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


def _chunks(source: Path) -> Iterator[bytes]:
    """Read a file in parts. What goes wrong here is not the destination's fault, and is said of the source."""
    try:
        with source.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise UsageError(
            f"{source} cannot be read: {error.strerror}.", hint="Is the file still there, and may you read it?"
        ) from error


def add_model(writer: FolderWriter, model: LoadedModel, cases: CaseSet) -> tuple[str, list[tuple[str, str]]]:
    """Copy the model and its external files; return the model's path, and (recorded location, path) of each file.

    The external files keep their places relative to the model, so the model's bytes are copied as they are.
    """
    locations = {file.location: _layout(file, model) for file in model.external_files}
    taken = {path.split("/")[1].casefold() for path in locations.values()}
    name = next(name for k in range(len(taken) + 1) if (name := f"model{f'-{k}' if k else ''}.onnx") not in taken)
    sources = {locations[file.location]: file.path for file in model.external_files}
    for path in sources:
        for suffix in compress.SUFFIXES:
            if path.endswith(suffix) and path.removesuffix(suffix) in {*sources, f"model/{name}"}:
                raise ModelError(
                    f"{model.path} keeps weights in {path} beside {path.removesuffix(suffix)}: "
                    "servers take the first for a compressed copy of the second.",
                    hint="Save the model again with other names for its external data.",
                )
    writer.add_file(f"model/{name}", model.path)
    _check_model(writer.entries[f"model/{name}"], cases, model)
    for path, source in sources.items():
        writer.add_file(path, source)
    return f"model/{name}", list(locations.items())


def _layout(file: ExternalFile, model: LoadedModel) -> str:
    path = f"model/{PurePosixPath(file.location)}"
    if not is_safe_path(path):
        raise ModelError(
            f"{model.path} keeps weights in {file.location!r}, which is not inside its folder.",
            hint="Save the model again with its external data beside it.",
        )
    return path


def _check_model(entry: FileEntry, cases: CaseSet, model: LoadedModel) -> None:
    if entry.sha256 != cases.model_sha256:
        raise UsageError(
            f"{model.path} is not the model that its golden cases were made with.",
            hint="The file changed while the bundle was built. Run the command again.",
        )


def add_documents(writer: FolderWriter, cases: CaseSet, plan: Plan | None, others: Mapping[str, bytes]) -> None:
    """Add the golden cases, how the model was trimmed if it was, and what else is given, by path."""
    document, tensors = case_files.to_files(cases)
    writer.add_bytes(CASES, json_bytes(document))
    writer.add_bytes(TENSORS, tensors)
    if plan is not None:
        writer.add_bytes(PLAN, json_bytes(plans.to_json(plan)))
    for path, data in others.items():
        writer.add_bytes(path, data)


def add_manifest(
    writer: FolderWriter,
    target: Target,
    title: str,
    model_path: str,
    cases: CaseSet,
    runtime: RuntimeEntry,
    sessions: Mapping[str, SessionSettings] | None = None,
) -> Manifest:
    """Say of every file that was written what it is."""
    manifest = Manifest(
        edgekit_version=edgekit.__version__,
        kind=target.kind,
        target=target.id,
        title=title,
        model=ModelEntry(model_path, writer.entries[model_path].sha256, cases.original_sha256),
        runtime=runtime,
        files=tuple(writer.entries[path] for path in sorted(writer.entries)),
        sessions=sessions or {},
    )
    writer.add_bytes(manifests.NAME, json_bytes(manifests.to_json(manifest)))
    return manifest


def set_modes(folder: Path, programs: Collection[str] = ()) -> None:
    """Give every file and folder the same mode, whatever the umask: a web server runs as another user.

    ``programs``: paths of the files that may be executed.
    """
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        runs = path.is_dir() or path.relative_to(folder).as_posix() in programs
        path.chmod(0o755 if runs else 0o644)
