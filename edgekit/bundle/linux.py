"""Write a bundle for Linux devices: the model, pinned wheels, an installer, a runner, golden cases, the manifest."""

import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import edgekit
from edgekit import render, resources
from edgekit.bundle import examples, titles, travel
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.open import Bundle
from edgekit.bundle.wheels import Wheel
from edgekit.bundle.writer import FolderWriter, add_documents, add_manifest, add_model, set_modes
from edgekit.desktop.optimize import OPERATORS
from edgekit.errors import UsageError
from edgekit.files import Beside, json_bytes, replace_folder
from edgekit.model.io import LoadedModel
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import FileEntry, Manifest, RuntimeEntry
from edgekit.runtime import pins
from edgekit.targets.load import Target
from edgekit.trim.plan import Plan

OPTIMIZED = "optimize.json"
PROGRAMS = ("install.sh", "edgekit-run")
NAMES = "lib/install/names.sh"
_CPU = "CPU="
# As they are; the others are rendered.
_COPIED = {
    "install.sh": "install.sh",
    "edgekit-run": "edgekit-run",
    "edgekit-run.in": "lib/install/edgekit-run.in",
    "uninstall.sh.in": "lib/install/uninstall.sh.in",
}
_RENDERED = {
    "names.sh.j2": NAMES,
    "service.in.j2": "lib/install/service.in",
    "user-service.in.j2": "lib/install/user-service.in",
    "config.toml.j2": "config.toml",
}
_LEAST_REQUEST_BYTES = 1 << 20
# JSON takes up to 25 characters for a number of four bytes.
_JSON_SHARE = 8


@dataclass(frozen=True)
class Content:
    """What a Linux bundle is made of. ``wheels``: by file name, where each lies. ``operators``: see ``OPERATORS``."""

    model: LoadedModel
    cases: CaseSet
    title: str
    wheels: Mapping[str, Path]
    pinned: Sequence[Wheel]
    plan: Plan | None = None
    operators: str | None = None
    optimized: Mapping[str, Any] | None = None
    documents: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """A row of the README's table; see ``edgekit.kinds.config.SizeRow``."""

    name: str
    raw_bytes: int
    packed_bytes: int | None
    official_bytes: int | None


def slug(title: str) -> str:
    """Return a name for folders, units and packages: lower-case letters, digits and single hyphens, 40 at most."""
    return titles.slug(title, "-", 40) or "model"


def cpu(bundle: Bundle) -> str:
    """Return the processor that the bundle's target named when it was built; "" for none, or a bundle that is older."""
    try:
        lines = (bundle.folder / NAMES).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return next((line.removeprefix(_CPU) for line in lines if line.startswith(_CPU)), "")


def write(
    destination: Path, content: Content, target: Target, *, force: bool, beside: Beside | None = None
) -> Manifest:
    """Write the bundle to ``destination``, whole or not at all; the same inputs give the same bytes.

    ``beside``: makes what lies beside it; see ``edgekit.files.replace_folder``.

    Raises UsageError when ``destination`` is no bundle, or is one and ``force`` is false; ModelError for external files
    that cannot be laid out; LimitError for a full disk. What was there stays.
    """
    sources = [content.model.path, *(file.path for file in content.model.external_files)]
    check_destination(destination, force=force, sources=sources)
    made: list[Manifest] = []

    def fill(temporary: Path) -> None:
        writer = FolderWriter(temporary)
        model_path, _ = add_model(writer, content.model, content.cases)
        _add_documents(writer, content)
        for wheel in content.pinned:
            try:
                writer.add_file(f"wheels/{wheel.file}", content.wheels[wheel.file], wheel.sha256)
            except ValueError as error:
                raise UsageError(f"{wheel.file} changed while the bundle was built.", hint="Run it again.") from error
        _add_code(writer, content, target)
        runtime = RuntimeEntry(content.pinned[0].package, content.pinned[0].version, target.runtime.variants)
        made.append(add_manifest(writer, target, content.title, model_path, content.cases, runtime))
        set_modes(temporary, PROGRAMS)

    replace_folder(destination, fill, beside)
    return made[0]


def _add_documents(writer: FolderWriter, content: Content) -> None:
    add_documents(writer, content.cases, content.plan, content.documents)
    if content.optimized is not None:
        writer.add_bytes(OPTIMIZED, json_bytes(content.optimized))
    if content.operators is not None:
        writer.add_bytes(OPERATORS, content.operators.encode())


def _add_code(writer: FolderWriter, content: Content, target: Target) -> None:
    """Add the runner, which is edgekit's own modules, the installer, and what is for people to read."""
    folder = resources.root("templates") / "linux"
    for path, source in travel.modules().items():
        writer.add_file(f"lib/{path}", source)
    for name, path in _COPIED.items():
        writer.add_file(path, folder / name)
    writer.add_bytes("LICENSE.txt", pins.load().license_text.encode())
    context = _context(content, target)
    for name, path in _RENDERED.items():
        writer.add_bytes(path, render.render(folder, name, context).encode())
    for path, data in examples.files(content.model, content.cases).items():
        writer.add_bytes(path, data)
    context["sizes"] = sizes(writer.entries.values(), content)
    writer.add_bytes("README.md", render.render(folder, "README.md.j2", context).encode())


def _context(content: Content, target: Target) -> dict[str, Any]:
    return {
        "name": slug(content.title),
        "title": titles.one_line(content.title),
        "target_title": target.title,
        "version": edgekit.__version__,
        "machine": target.linux.machine,
        "pythons": target.linux.pythons,
        "systems": target.linux.systems,
        "cpu": target.linux.cpu,
        "threads": target.runtime.threads,
        "cores": list(target.linux.cores),
        "request_bytes": request_bytes(content.cases),
        "memory_max_bytes": target.linux.memory_max_bytes,
    }


def request_bytes(cases: CaseSet) -> int:
    """Return how large a request may be: ample for inputs like the largest golden case's, written as JSON."""
    largest = max(
        (sum(value.array.nbytes for value in case.inputs if value.array is not None) for case in cases.cases), default=0
    )
    return 1 << math.ceil(math.log2(max(_LEAST_REQUEST_BYTES, _JSON_SHARE * largest)))


def sizes(files: Iterable[FileEntry], content: Content) -> tuple[Size, ...]:
    """Return what the device gets: model, runtime, code. It installs the wheels of one version of Python."""
    entries = list(files)

    def total(prefix: str) -> int:
        return sum(entry.bytes for entry in entries if entry.path.startswith(prefix))

    python = content.pinned[0].python
    rows = [Size("model", total("model/"), None, None)]
    for package in dict.fromkeys(wheel.package for wheel in content.pinned):
        wheel = next(one for one in content.pinned if (one.package, one.python) == (package, python))
        rows.append(
            Size(f"{package} {wheel.version}", unpacked_bytes(content.wheels[wheel.file]), wheel.bytes, wheel.bytes)
        )
    rows.append(Size("code", total("lib/"), None, None))
    rows.append(Size("golden cases", total("cases/"), None, None))
    return tuple(rows)


def unpacked_bytes(wheel: Path) -> int:
    """Return what a wheel takes when it is installed."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(member.file_size for member in archive.infolist())
