"""Write an Android bundle: the model, its golden cases, and a Gradle project of an app around them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from edgekit import render, resources, tables
from edgekit.bundle import android_names as names
from edgekit.bundle import android_wrapper as wrappers
from edgekit.bundle.android import PROJECT, TEST_RUNNER
from edgekit.bundle.android_wrapper import Wrapper
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.writer import FolderWriter, add_documents, add_manifest, add_model, set_modes
from edgekit.desktop.optimize import OPERATORS
from edgekit.errors import ModelError
from edgekit.facts.survey import Facts
from edgekit.files import Beside, replace_folder
from edgekit.model.io import LoadedModel
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import Manifest, RuntimeEntry
from edgekit.targets.load import Target
from edgekit.targets.options import ANDROID
from edgekit.trim.plan import Plan

_TEMPLATE_ENDING = ".j2"
_VERSIONS = "versions.toml"
# What travels under another name: stock ignore files would leave it out of a package.
_RENAMED = {"gitignore": ".gitignore"}
_SKIPPED = frozenset({"cvs", "thumbs.db", "picasa.ini"})
_WRAPPER = "core/src/main/java/edgekit/model/Model.java"


@dataclass(frozen=True, eq=False)
class Content:
    """What a project is made of. ``application_id`` None: made from the title. ``operators``: see ``OPERATORS``."""

    model: LoadedModel
    facts: Facts
    cases: CaseSet
    title: str
    application_id: str | None = None
    plan: Plan | None = None
    operators: str | None = None
    documents: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class AbiSize:
    """Bytes of onnxruntime's native libraries of one ABI, as they are and deflated."""

    raw_bytes: int
    packed_bytes: int


@dataclass(frozen=True)
class Versions:
    """``versions.toml``: what a project is pinned to, and how large the runtime is that it fetches."""

    agp: str
    gradle: str
    compile_sdk: int
    onnxruntime: str
    androidx_test_ext_junit: str
    androidx_test_runner: str
    aar_bytes: int
    classes: AbiSize
    abis: Mapping[str, AbiSize]


def versions() -> Versions:
    """Read what projects are pinned to."""
    document = tables.read(_folder() / _VERSIONS)
    aar = document.pop("aar")
    abis = {abi: AbiSize(**sizes) for abi, sizes in aar["abis"].items()}
    return Versions(**document, aar_bytes=aar["bytes"], classes=AbiSize(**aar["classes"]), abis=abis)


def write(
    destination: Path, content: Content, target: Target, *, force: bool, beside: Beside | None = None
) -> Manifest:
    """Write the bundle to ``destination``, whole or not at all; the same inputs give the same bytes.

    ``beside``: makes what lies beside it; see ``edgekit.files.replace_folder``.

    Raises UsageError when ``destination`` is no bundle, or is one and ``force`` is false, and for an application id
    that Android refuses; ModelError for a model that no wrapper can be written for; LimitError for a full disk.
    """
    sources = [content.model.path, *(file.path for file in content.model.external_files)]
    check_destination(destination, force=force, sources=sources)
    wrapper = wrappers.describe(content.title, content.facts.inputs, content.facts.outputs)
    pinned = versions()
    made: list[Manifest] = []

    def fill(temporary: Path) -> None:
        writer = FolderWriter(temporary)
        model_path, external = add_model(writer, content.model, content.cases)
        _add_documents(writer, content)
        assets = [
            PurePosixPath(path).relative_to("model").as_posix() for path in (model_path, *(p for _, p in external))
        ]
        context = _context(content, target, wrapper, pinned, assets, writer.entries[model_path].sha256)
        for path, data in _project(context, wrapper):
            writer.add_bytes(f"{PROJECT}/{path}", data)
        runtime = RuntimeEntry(target.runtime.package, pinned.onnxruntime, target.runtime.variants)
        made.append(add_manifest(writer, target, content.title, model_path, content.cases, runtime))
        set_modes(temporary)

    replace_folder(destination, fill, beside)
    return made[0]


def _add_documents(writer: FolderWriter, content: Content) -> None:
    add_documents(writer, content.cases, content.plan, content.documents)
    if content.operators is not None:
        writer.add_bytes(OPERATORS, content.operators.encode())


def _context(
    content: Content, target: Target, wrapper: Wrapper, pinned: Versions, assets: list[str], model_sha256: str
) -> dict[str, Any]:
    given = content.application_id
    application_id = names.application_id(content.title) if given is None else names.checked_application_id(given)
    for asset in assets:
        if _is_left_out(PurePosixPath(asset)):
            raise ModelError(
                f"The model keeps weights in {asset!r}, a name that Android's build leaves out of apps, or changes.",
                hint="Save the model again with other names for its external data.",
            )
    return {
        **asdict(wrapper),
        "title": names.label(content.title),
        "label": names.label(content.title),
        "slug": application_id.rpartition(".")[2],
        "application_id": application_id,
        # Words of Kotlin may be parts of a package's name.
        "application_id_quoted": ".".join(f"`{part}`" for part in application_id.split(".")),
        "versions": pinned,
        "compile_sdk": pinned.compile_sdk,
        "device": target.android,
        "test_runner": TEST_RUNNER,
        "providers": target.runtime.variants,
        "threads": target.runtime.threads,
        "model_asset": assets[0],
        "model_sha256": model_sha256,
        "external_data": assets[1:],
    }


def _is_left_out(asset: PurePosixPath) -> bool:
    """Whether the Android plugin skips an asset by its name (aapt's default ignore pattern), or unpacks it (.gz)."""
    *folders, name = (part.lower() for part in asset.parts)
    hidden = any(part.startswith(".") or part in _SKIPPED for part in (*folders, name))
    return hidden or any(part.startswith("_") for part in folders) or name.endswith(("~", ".scc", ".gz"))


def _project(context: dict[str, Any], wrapper: Wrapper) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the project: copied, or rendered where their name says that they are templates."""
    folder = _folder()
    for place in sorted(folder.rglob("*")):
        path = place.relative_to(folder).as_posix()
        if place.is_dir() or path == _VERSIONS:
            continue
        if not path.endswith(_TEMPLATE_ENDING):
            yield _RENAMED.get(path, path), place.read_bytes()
            continue
        name = path.removesuffix(_TEMPLATE_ENDING)
        if name == _WRAPPER:
            name = str(PurePosixPath(name).with_name(f"{wrapper.class_name}.java"))
        yield name, render.render(folder, path, context).encode()


def _folder() -> Path:
    return resources.root("templates") / ANDROID
