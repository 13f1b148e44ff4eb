"""Build for Linux devices: see ``edgekit.bundle.linux``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgekit import compare
from edgekit.bundle import archive, deb, linux, wheels
from edgekit.bundle.linux import Content
from edgekit.bundle.wheels import Wheel
from edgekit.child.process import ChildLimits
from edgekit.desktop import optimize
from edgekit.errors import EdgekitError, UsageError, did_you_mean
from edgekit.files import sha256_file
from edgekit.kinds.config import BuildConfig, Built, Parts, SizeRow, Write
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import Manifest
from edgekit.runners import arm64_cpus, local
from edgekit.targets.load import Target


def prepare(config: BuildConfig, target: Target, progress: Progress) -> Write:
    """Fetch the wheels if need be, and return what writes the bundle and its archive beside it.

    Raises UsageError for a target without wheels, or with variants that onnxruntime's wheels do not have;
    MissingToolError when wheels cannot be fetched, or Debian's tools are missing that a package needs.
    """
    if target.runtime.variants != ("cpu",):
        raise UsageError(
            f"Target '{target.id}': the wheels of {target.runtime.package} have the execution provider 'cpu' alone.",
            hint='Write variants = ["cpu"].',
        )
    pinned = wheels.chosen(target)
    archive.check(archive.place(config.output), force=config.force)
    if config.linux.deb:
        deb.require_tools()
        deb.check_version(config.linux.deb_version)
        title = config.title or config.model.stem
        deb.check(deb.place(config.output, linux.slug(title), target, config.linux.deb_version), force=config.force)
    # Hashed here, once: what a model needs beyond these is fetched below, and copying hashes each again.
    there = wheels.fetch(pinned, progress=progress)

    def write(parts: Parts, folder: Path) -> Built:
        shipped, warnings = _best(parts, config.cases.limits, folder, progress)
        warnings += _unknown_cpu(target)
        wanted = wheels.chosen(target, dtypes=_dtypes(parts))
        more = wheels.fetch([wheel for wheel in wanted if wheel.file not in there], progress=progress)
        content = Content(
            model=shipped.model,
            cases=shipped.cases,
            title=parts.title,
            wheels={**there, **more},
            pinned=wanted,
            plan=parts.plan,
            operators=shipped.operators,
            optimized=shipped.told,
            documents=parts.documents,
        )
        name, version = linux.slug(parts.title), config.linux.deb_version
        package = deb.place(config.output, name, target, version) if config.linux.deb else None
        packed = archive.place(config.output)

        def beside(bundle: Path) -> dict[Path, Path]:
            made = {packed: folder / packed.name}
            archive.write(bundle, made[packed], name=f"{name}-{target.id}")
            if package is not None:
                progress("Writing the Debian package")
                made[package] = deb.write(bundle, target, name, folder, version=version)
                deb.check(package, force=config.force)  # another board's may have come meanwhile
            return made

        progress("Writing the bundle")
        manifest = linux.write(config.output, content, target, force=config.force, beside=beside)
        places = (packed,) if package is None else (packed, package)
        return Built(manifest, sizes=_sizes(content, manifest), beside=places, warnings=tuple(warnings))

    return write


def _unknown_cpu(target: Target) -> list[str]:
    cpu = target.linux.cpu
    if not cpu or cpu in arm64_cpus.KNOWN:
        return []
    unknown = f"Nothing is known of the processor '{cpu}' of target '{target.id}'."
    then = "No wheel is kept from it for a crash, and an emulated device plays the least processor that there is."
    return [f"{unknown}{did_you_mean(cpu, arm64_cpus.KNOWN)} {then}"]


def _dtypes(parts: Parts) -> set[str]:
    """Return the dtypes of what goes in and comes out, as the model declares them and as the golden cases hold them."""
    declared = {str(one.dtype) for one in (*parts.facts.inputs, *parts.facts.outputs)}
    return declared | {value.dtype for case in parts.cases.cases for value in (*case.inputs, *case.outputs)}


@dataclass(frozen=True, eq=False)
class _Shipped:
    """The model in the form that is shipped. ``told``: what was done to it, for the bundle."""

    model: LoadedModel
    cases: CaseSet
    operators: str | None
    told: dict[str, Any]


def _best(parts: Parts, limits: ChildLimits, folder: Path, progress: Progress) -> tuple[_Shipped, list[str]]:
    """Optimize the graph ahead of time, and ship that where it gives the golden answers on the desktop."""
    progress("Optimizing the graph for onnxruntime")
    try:
        made = optimize.optimize(parts.model, folder / "optimize", limits)
        warning = _proven(made.model, parts.model, parts.cases, limits, progress)
    except EdgekitError as error:
        said = error.message.replace(f"{folder}/", "")
        told: dict[str, Any] = {"level": None, "reason": said}
        return _Shipped(parts.model, parts.cases, None, told), [
            f"The graph is shipped as it is, and optimized on the device each time it starts: {said}"
        ]
    sha256 = sha256_file(made.model.path)
    cases = replace(
        parts.cases, model_sha256=sha256, original_sha256=parts.cases.original_sha256 or parts.cases.model_sha256
    )
    told = {
        "level": optimize.LEVEL,
        "nodes_before": len(parts.model.proto.graph.node),
        "nodes_after": len(made.model.proto.graph.node),
        "proven_with": [case.id for case in cases.cases],
    }
    warnings = [] if warning is None else [warning]
    if made.problem is not None:
        warnings.append(f"{optimize.OPERATORS} could not be made: {made.problem}")
    return _Shipped(made.model, cases, made.operators, told), warnings


def _proven(
    made: LoadedModel, given: LoadedModel, cases: CaseSet, limits: ChildLimits, progress: Progress
) -> str | None:
    """Prove an optimized model on this machine: with the golden cases or, where the model as it was given misses those
    (a quantized one, beside a reference that is not), with what that model itself answers.

    Returns what to be warned of, if anything. Raises UsageError for one that may not be shipped.
    """
    asked = replace(cases, model_sha256=sha256_file(made.path))
    record = local.replay(made.path, asked, repeats=0, limits=limits, progress=progress)
    verdict = compare.judge(asked, record, title="optimized", target=None)
    if verdict.passed:
        return None
    before = local.replay(given.path, cases, repeats=0, limits=limits, progress=progress)
    missed = compare.judge(cases, before, title="as it is", target=None)
    if missed.passed or any(run.status != "done" for run in before.cases):
        raise UsageError(f"optimized, it does not give the golden answers: {verdict.reasons[0]}")
    own = {run.id: run.outputs for run in before.cases}
    asked = replace(asked, cases=tuple(replace(case, outputs=own[case.id]) for case in cases.cases))
    same = compare.judge(asked, record, title="optimized", target=None)
    if not same.passed:
        raise UsageError(f"optimized, it does not give the answers that it gives as it is: {same.reasons[0]}")
    return f"The model does not give the reference's answers, optimized or not: {missed.reasons[0]}"


def _sizes(content: Content, manifest: Manifest) -> tuple[SizeRow, ...]:
    note = _note(content.pinned)
    return tuple(
        SizeRow(row.name, row.raw_bytes, row.packed_bytes, row.official_bytes, note if row.packed_bytes else "")
        for row in linux.sizes(manifest.files, content)
    )


def _note(pinned: Sequence[Wheel]) -> str:
    pythons = list(dict.fromkeys(wheel.python for wheel in pinned))
    return f"as published; one of {len(pythons)} (Python {', '.join(pythons)}) is installed"
