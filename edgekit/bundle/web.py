"""Write a web bundle: model, runtime, page, golden cases and manifest in one folder of static files."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import edgekit
from edgekit import render, resources
from edgekit.bundle import compress, page, runtime_files
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.open import CASES, TENSORS, is_safe_path
from edgekit.bundle.runtime_files import CutRuntimes
from edgekit.errors import ModelError, UsageError
from edgekit.facts.survey import Facts
from edgekit.files import json_bytes, replace_folder, sha256_bytes
from edgekit.golden.images import ImageOptions
from edgekit.model.external_data import ExternalFile
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.records import cases as case_files
from edgekit.records import manifest as manifests
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.targets.load import Target
from edgekit.trim import plan as plans
from edgekit.trim.plan import Plan

PLAN = "trim.json"
RUNTIME_PLAN = "runtime-trim.json"
# Scripts of pages that edgekit opens for itself, which no bundle has.
_OWN_PAGES = ("conformance", "recording")
_CHUNK_BYTES = 1 << 20


def build(
    destination: Path,
    *,
    model: LoadedModel,
    facts: Facts,
    target: Target,
    runtime: RuntimeDist,
    cases: CaseSet,
    title: str,
    force: bool,
    image: ImageOptions | None = None,
    plan: Plan | None = None,
    cut: CutRuntimes | None = None,
    copies: bool = True,
    progress: Progress = silent,
) -> Manifest:
    """Write the bundle to ``destination``, whole or not at all; the same inputs give the same bytes.

    ``image``: how pictures became inputs of the golden cases; the page makes a visitor's picture an input in that way.
    ``plan``: how ``model`` was trimmed, if it was; it stays in the bundle. ``cut``: what of the runtime was; None: it
    is shipped as published. ``copies``: add precompressed copies of what is large.

    Raises UsageError when ``destination`` is no bundle, or is one and ``force`` is false, and when the runtime lacks a
    variant; ModelError for external files that cannot be laid out; LimitError for a full disk. What was there stays.
    """
    variants = pins.load().chosen(target.runtime.variants, f"Target '{target.id}'")
    runtime.require(variants)
    sources = [model.path, runtime.folder, *(file.path for file in model.external_files)]
    check_destination(destination, force=force, sources=sources)
    made: list[Manifest] = []

    def fill(temporary: Path) -> None:
        progress("Writing the bundle")
        writer = _Writer(temporary)
        runtimes = runtime_files.add(writer, runtime, variants, cut or CutRuntimes())
        model_path, external_data = _add_model(writer, model, cases)
        _add_documents(writer, cases, plan, cut)
        _add_page(writer)
        config = page.config(
            writer.entries,
            title=title,
            target=target,
            facts=facts,
            runtime=runtime,
            variants=variants,
            model_path=model_path,
            external_data=external_data,
            image=image,
            trimmed=runtimes.trimmed,
            nets=runtimes.nets,
        )
        _add_index(writer, config)
        if copies:
            writer.add_copies(progress)
        entry = ModelEntry(model_path, writer.entries[model_path].sha256, cases.original_sha256)
        made.append(_add_manifest(writer, target, config["title"], entry, runtime, variants))
        _set_modes(temporary)

    replace_folder(destination, fill)
    return made[0]


class _Writer:
    """Writes files below a folder and remembers what they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, FileEntry] = {}

    def add_bytes(self, path: str, data: bytes) -> None:
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


def _add_model(writer: _Writer, model: LoadedModel, cases: CaseSet) -> tuple[str, list[tuple[str, str]]]:
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


def _add_documents(writer: _Writer, cases: CaseSet, plan: Plan | None, cut: CutRuntimes | None) -> None:
    """Add the golden cases, and how the model and the runtime were trimmed."""
    document, tensors = case_files.to_files(cases)
    writer.add_bytes(CASES, json_bytes(document))
    writer.add_bytes(TENSORS, tensors)
    if plan is not None:
        writer.add_bytes(PLAN, json_bytes(plans.to_json(plan)))
    if cut is not None:
        writer.add_bytes(RUNTIME_PLAN, json_bytes(cut.plan))


def _add_page(writer: _Writer) -> None:
    scripts = resources.root("web") / "src"
    for source in sorted(scripts.rglob("*.js")):
        if source.parent.name in _OWN_PAGES:
            continue
        writer.add_file(f"app/{source.relative_to(scripts).as_posix()}", source)
    writer.add_file("app/style.css", resources.root("templates") / "web" / "style.css")


def _add_index(writer: _Writer, config: Mapping[str, Any]) -> None:
    html = render.render(resources.root("templates") / "web", "index.html.j2", {"config": config})
    writer.add_bytes("index.html", html.encode())


def _add_manifest(
    writer: _Writer, target: Target, title: str, model: ModelEntry, runtime: RuntimeDist, variants: Iterable[Variant]
) -> Manifest:
    """Say of every file that was written what it is."""
    manifest = Manifest(
        edgekit_version=edgekit.__version__,
        kind=target.kind,
        target=target.id,
        title=title,
        model=model,
        runtime=RuntimeEntry(runtime.package, runtime.version, tuple(variant.id for variant in variants)),
        files=tuple(writer.entries[path] for path in sorted(writer.entries)),
    )
    writer.add_bytes(manifests.NAME, json_bytes(manifests.to_json(manifest)))
    return manifest


def _set_modes(folder: Path) -> None:
    """Give every file and folder the same mode, whatever the umask: a web server runs as another user."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
