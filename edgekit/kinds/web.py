"""Build for browsers: the page, and onnxruntime-web cut to what the model needs."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from edgekit import runtime_trim
from edgekit.bundle import web
from edgekit.bundle.runtime_files import CutRuntimes, NetChoice
from edgekit.errors import UsageError, did_you_mean
from edgekit.kinds import android
from edgekit.kinds.config import BuildConfig, Built, Parts, Write
from edgekit.progress import Progress
from edgekit.records.settings import SessionSettings
from edgekit.repair import candidates, nodes
from edgekit.runners import browsers
from edgekit.runtime import pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.locate import locate
from edgekit.runtime.pins import Variant
from edgekit.runtime_trim import Missed, Reported, TrimmedVariant, reported
from edgekit.targets.load import Target


def prepare(config: BuildConfig, target: Target, progress: Progress) -> Write:
    """Fetch the runtime if need be, and return what writes the bundle.

    Raises UsageError for options that the target does not have, MissingToolError without a runtime.
    """
    android.check(config)
    variants = pins.load().chosen(target.runtime.variants, f"Target '{target.id}'")
    # A miss is served by the build for the CPU, unless told otherwise.
    wanted = {variant.id for variant in variants} | {one.id for one in pins.load().variants if not one.needs}
    runtime = locate(config.runtime, wanted, progress=progress)
    if config.browser is not None:
        browsers.find(config.browser, None)  # one that is named and not there is a mistake, not a machine without
    told = {path: _reported(path, target, variants, runtime) for path in config.profiles}

    def write(parts: Parts, folder: Path) -> Built:
        build = partial(
            web.build,
            model=parts.model,
            facts=parts.facts,
            target=target,
            runtime=runtime,
            cases=parts.cases,
            title=parts.title,
            image=config.cases.image,
            plan=parts.plan,
            sessions=_sessions(config, parts, variants),
            documents=parts.documents,
            progress=progress,
        )
        runtimes: tuple[TrimmedVariant, ...] = ()
        if config.trim_runtime:
            draft = folder / "draft"
            build(draft, force=False, copies=False)
            runtimes = _trimmed(config, draft, parts, runtime, variants, told.values(), folder, progress)
        cut = _cut(runtimes, config.net) if runtimes else None
        beside = android.packer(config, folder, progress)
        manifest = build(config.output, force=config.force, cut=cut, beside=beside)
        sizes = runtime_trim.sizes(manifest, runtime, variants, runtimes) if runtimes else ()
        warnings = tuple(
            f"{path} tells of another model; what was missed there is kept all the same."
            for path, one in told.items()
            if one.models and manifest.model.sha256 not in one.models
        )
        apps, rows = android.packed(config)
        return Built(manifest, sizes, rows, apps, warnings)

    return write


def _sessions(config: BuildConfig, parts: Parts, variants: Sequence[Variant]) -> Mapping[str, SessionSettings]:
    """Return the settings by variant. Raises UsageError for a node that the model that is shipped does not have."""
    known = {name for names in nodes.by_operator(parts.model.proto, None).values() for name in names}
    for name in config.session.cpu_nodes:
        if name not in known:
            raise UsageError(
                f"The model that is shipped has no node '{name}'.{did_you_mean(name, known)}",
                hint="Trimming may remove or rename it; --no-trim ships the model as it came.",
            )
    return candidates.with_settings("", "layout", config.session, variants).sessions


def _trimmed(
    config: BuildConfig,
    draft: Path,
    parts: Parts,
    runtime: RuntimeDist,
    variants: Sequence[Variant],
    told: Iterable[Reported],
    folder: Path,
    progress: Progress,
) -> tuple[TrimmedVariant, ...]:
    work = folder / "runtimes"
    work.mkdir()
    together: dict[str, Missed] = {}
    for each in told:
        for variant, one in each.misses.items():
            together[variant] = together.get(variant, Missed()) | one
    return runtime_trim.trim(
        draft,
        parts.model,
        runtime,
        variants,
        work,
        reported=together,
        browser_path=config.browser,
        progress=progress,
    )


def _reported(path: Path, target: Target, variants: Sequence[Variant], runtime: RuntimeDist) -> Reported:
    """Return what run records tell of misses.

    Raises UsageError where none is of a variant of the target, for one that is not of this runtime's functions, and
    for those of another version, whose numbers mean other functions.
    """
    found = reported(path)
    if not found.misses.keys() & {variant.id for variant in variants}:
        raise UsageError(
            f"{path} tells of misses of variant {', '.join(found.misses)}, which target '{target.id}' does not use.",
            hint=f"Its variants are {', '.join(variant.id for variant in variants)}.",
        )
    if other := {version for version in found.versions if version.split("-")[0] != runtime.version.split("-")[0]}:
        raise UsageError(
            f"{path} tells of misses of {runtime.package} {', '.join(sorted(other))}, not {runtime.version}.",
            hint="Replay a bundle with this runtime, and give the record of that.",
        )
    for variant in variants:
        groups = found.misses.get(variant.id, Missed()).groups
        profile = profiles.find(runtime.files[variant.wasm]) if groups else None
        if profile is not None:
            for number in groups:
                profiles.functions_of(number, profile.count)
    return found


def _cut(runtimes: Sequence[TrimmedVariant], net: NetChoice) -> CutRuntimes:
    wasm = {one.variant: one.wasm for one in runtimes if one.wasm is not None}
    refused = frozenset(one.variant for one in runtimes if one.refused)
    return CutRuntimes(wasm, net, runtime_trim.plan(runtimes, net), refused)
