"""What a bundle is written from, so that it can be written again with other settings or another model."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgekit import runtime_trim
from edgekit.bundle import web
from edgekit.bundle.open import Bundle
from edgekit.bundle.runtime_files import CutRuntimes, NetChoice
from edgekit.errors import BundleError, UsageError
from edgekit.facts import survey
from edgekit.facts.survey import Facts
from edgekit.files import Beside, sha256_file
from edgekit.golden.images import ImageOptions
from edgekit.model import io
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.records import strength
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import Manifest
from edgekit.records.validate import validated
from edgekit.repair.candidates import Candidate
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.locate import locate
from edgekit.runtime.pins import Variant
from edgekit.runtime_trim import TrimmedVariant
from edgekit.targets import load as targets
from edgekit.targets.load import Target

REPORT = "repair.json"
_CONFIG = re.compile(r'<script type="application/json" id="edgekit-config">(.*?)</script>', re.S)


@dataclass(frozen=True, eq=False)
class Parts:
    """What ``edgekit.bundle.web.build`` needs.

    ``target`` has the variants of the bundle, in its order. ``documents``: the bytes of what else it tells of itself,
    as how the model was trimmed, by path. ``net``: which stock runtimes stand behind cut ones; None: the runtimes are
    as published.
    """

    model: LoadedModel
    facts: Facts
    target: Target
    runtime: RuntimeDist
    cases: CaseSet
    title: str
    image: ImageOptions | None = None
    documents: Mapping[str, bytes] = field(default_factory=dict)
    net: NetChoice | None = None


def of_bundle(
    bundle: Bundle,
    cases: CaseSet,
    work: Path,
    *,
    targets_dir: Path | None = None,
    runtime_dir: Path | None = None,
    progress: Progress = silent,
) -> Parts:
    """Read from ``bundle`` what it was made of; its model is copied into ``work``, a folder that is empty.

    Raises UsageError where its target is not known, or its version of the runtime is not at hand, BundleError where
    its page holds no configuration, ModelError for a model that cannot be read.
    """
    manifest = bundle.manifest
    target = targets.load(manifest.target, targets_dir)
    target = replace(target, runtime=replace(target.runtime, variants=manifest.runtime.variants))
    runtime = locate(runtime_dir, progress=progress)
    if (runtime.package, runtime.version) != (manifest.runtime.package, manifest.runtime.version):
        raise UsageError(
            f"{bundle.folder} was made with {manifest.runtime.package} {manifest.runtime.version}, and at hand is "
            f"{runtime.package} {runtime.version}.",
            hint="Name the dist folder of its runtime with --runtime, or build it again.",
        )
    # Away from the bundle, which is replaced at the end.
    shutil.copytree(bundle.folder / "model", work / "model")
    loaded = io.load(work / manifest.model.path)
    told = [entry.path for entry in manifest.files if _is_document(entry.path)]
    return Parts(
        model=loaded,
        facts=survey.survey(loaded),
        target=target,
        runtime=runtime,
        cases=cases,
        title=manifest.title,
        image=_image(bundle),
        documents={path: (bundle.folder / path).read_bytes() for path in told},
        net=_net(bundle),
    )


def _is_document(path: str) -> bool:
    """Whether a file tells of the bundle: what of its runtimes and of repairs is told anew is not."""
    told_anew = (web.RUNTIME_PLAN, REPORT)
    return path == strength.NAME or (path.endswith(".json") and "/" not in path and path not in told_anew)


def _image(bundle: Bundle) -> ImageOptions | None:
    try:
        found = _CONFIG.search((bundle.folder / "index.html").read_text(encoding="utf-8"))
        config = validated(json.loads(found[1]), "page-config", "The page's configuration") if found else None
    except (OSError, ValueError, RecursionError, UsageError):
        config = None
    if config is None:
        raise BundleError(f"The page of {bundle.folder} holds no configuration.", hint="Build the bundle again.")
    image: dict[str, Any] | None = config["image"]
    if image is None:
        return None
    return ImageOptions(
        None if image["size"] is None else (image["size"][0], image["size"][1]),
        tuple(image["mean"]),
        tuple(image["std"]),
        image["scale"],
        image["layout"],
    )


def _net(bundle: Bundle) -> NetChoice | None:
    try:
        said = json.loads((bundle.folder / web.RUNTIME_PLAN).read_bytes())["net"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        said = None
    known: tuple[NetChoice, ...] = ("cpu", "same", "none")
    return next((choice for choice in known if choice == said), "cpu")


def with_model(parts: Parts, proto: Any, folder: Path) -> Parts:
    """Return the parts with another model, which is written to ``folder``; the answers that count stay."""
    path = folder / "model.onnx"
    io.save(proto, path)
    for file in parts.model.external_files:
        place = folder / file.location
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file.path.resolve())
    loaded = io.load(path)
    cases = parts.cases
    original = cases.original_sha256 or cases.model_sha256
    changed = replace(cases, model_sha256=sha256_file(path), original_sha256=original)
    # What the cases would catch was measured of the model as it was.
    documents = {path: content for path, content in parts.documents.items() if path != strength.NAME}
    return replace(parts, model=loaded, facts=survey.survey(loaded), cases=changed, documents=documents)


def write(
    parts: Parts,
    candidate: Candidate,
    destination: Path,
    *,
    cut: CutRuntimes | None = None,
    report: bytes | None = None,
    copies: bool = False,
    force: bool = False,
    beside: Beside | None = None,
    progress: Progress = silent,
) -> Manifest:
    """Write the bundle with what ``candidate`` changes of it, but its model, which ``parts`` has.

    ``cut``: the runtimes that were cut; None: all are as published. ``report``: what is told of the repair. Raises what
    ``edgekit.bundle.web.build`` raises.
    """
    documents = {**parts.documents, **({} if report is None else {REPORT: report})}
    variants = candidate.variants or parts.target.runtime.variants
    target = replace(parts.target, runtime=replace(parts.target.runtime, variants=variants))
    return web.build(
        destination,
        model=parts.model,
        facts=parts.facts,
        target=target,
        runtime=parts.runtime,
        cases=parts.cases,
        title=parts.title,
        force=force,
        image=parts.image,
        cut=cut,
        sessions=candidate.sessions,
        documents=documents,
        copies=copies,
        beside=beside,
        progress=progress,
    )


@dataclass(frozen=True, eq=False)
class Cut:
    """``runtimes``: each of ``variants`` cut to what the model needs with a candidate's settings."""

    variants: tuple[Variant, ...]
    runtimes: tuple[TrimmedVariant, ...]
    net: NetChoice

    @property
    def shipped(self) -> CutRuntimes:
        """What of it the bundle has."""
        wasm = {one.variant: one.wasm for one in self.runtimes if one.wasm is not None}
        refused = frozenset(one.variant for one in self.runtimes if one.refused)
        return CutRuntimes(wasm, self.net, runtime_trim.plan(self.runtimes, self.net), refused)


def cut_again(
    parts: Parts, candidate: Candidate, draft: Path, work: Path, *, browser_path: Path | None, progress: Progress
) -> Cut | None:
    """Cut the runtimes to what the model needs with the candidate's settings; None where they are as published."""
    if parts.net is None:
        return None
    variants = pins.load().chosen(candidate.variants or parts.target.runtime.variants, "The bundle")
    work.mkdir()
    done = runtime_trim.trim(
        draft, parts.model, parts.runtime, variants, work, browser_path=browser_path, progress=progress
    )
    return Cut(tuple(variants), done, parts.net)
