"""Write a web bundle: model, runtime, page, golden cases and manifest in one folder of static files."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from edgekit import render, resources
from edgekit.bundle import page, runtime_files
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.runtime_files import CutRuntimes
from edgekit.bundle.writer import FolderWriter, add_documents, add_manifest, add_model, set_modes
from edgekit.facts.survey import Facts
from edgekit.files import Beside, json_bytes, replace_folder
from edgekit.golden.images import ImageOptions
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import Manifest, RuntimeEntry
from edgekit.records.settings import DEFAULT, SessionSettings
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.targets.load import Target
from edgekit.trim.plan import Plan

RUNTIME_PLAN = "runtime-trim.json"
# Scripts of pages that edgekit opens for itself, which no bundle has.
_OWN_PAGES = ("conformance", "recording")


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
    sessions: Mapping[str, SessionSettings] = MappingProxyType({}),
    documents: Mapping[str, bytes] = MappingProxyType({}),
    copies: bool = True,
    beside: Beside | None = None,
    progress: Progress = silent,
) -> Manifest:
    """Write the bundle to ``destination``, whole or not at all; the same inputs give the same bytes.

    ``image``: how pictures became inputs of the golden cases; the page makes a visitor's picture an input in that way.
    ``plan``: how ``model`` was trimmed, if it was; it stays in the bundle. ``cut``: what of the runtime was; None: it
    is shipped as published. ``sessions``: by variant, how its session is created where that is not left to onnxruntime.
    ``documents``: more files to lay down, by path. ``copies``: add precompressed copies of what is large.
    ``beside``: makes what lies beside the bundle; see ``edgekit.files.replace_folder``.

    Raises UsageError when ``destination`` is no bundle, or is one and ``force`` is false, and when the runtime lacks a
    variant; ModelError for external files that cannot be laid out; LimitError for a full disk. What was there stays.
    """
    variants = pins.load().chosen(target.runtime.variants, f"Target '{target.id}'")
    runtime.require(variants)
    sources = [model.path, runtime.folder, *(file.path for file in model.external_files)]
    check_destination(destination, force=force, sources=sources)
    chosen = {variant.id: sessions[variant.id] for variant in variants if sessions.get(variant.id, DEFAULT) != DEFAULT}
    told = partial(page.config, title=title, target=target, facts=facts, runtime=runtime, variants=variants)
    told = partial(told, image=image, sessions=chosen)
    made: list[Manifest] = []

    def fill(temporary: Path) -> None:
        progress("Writing the bundle")
        writer = FolderWriter(temporary)
        runtimes = runtime_files.add(writer, runtime, variants, cut or CutRuntimes())
        model_path, external_data = add_model(writer, model, cases)
        add_documents(writer, cases, plan, {**_told_of_runtime(cut), **documents})
        _add_page(writer)
        config = told(
            writer.entries, model_path=model_path, external_data=external_data, trimmed=runtimes.trimmed,
            nets=runtimes.nets,
        )  # fmt: skip
        _add_index(writer, config)
        if copies:
            writer.add_copies(progress)
        used = RuntimeEntry(runtime.package, runtime.version, tuple(variant.id for variant in variants))
        made.append(add_manifest(writer, target, config["title"], model_path, cases, used, chosen))
        set_modes(temporary)

    replace_folder(destination, fill, beside)
    return made[0]


def _told_of_runtime(cut: CutRuntimes | None) -> dict[str, bytes]:
    return {} if cut is None else {RUNTIME_PLAN: json_bytes(cut.plan)}


def _add_page(writer: FolderWriter) -> None:
    scripts = resources.root("web") / "src"
    for source in sorted(scripts.rglob("*.js")):
        if source.parent.name in _OWN_PAGES:
            continue
        writer.add_file(f"app/{source.relative_to(scripts).as_posix()}", source)
    writer.add_file("app/style.css", resources.root("templates") / "web" / "style.css")


def _add_index(writer: FolderWriter, config: Mapping[str, Any]) -> None:
    html = render.render(resources.root("templates") / "web", "index.html.j2", {"config": config})
    writer.add_bytes("index.html", html.encode())
