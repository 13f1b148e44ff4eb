"""The library's front door: the stages strung together. The command line calls these functions and prints."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from edgekit import parity, resources, runtime_trim
from edgekit.bundle import sizes, web
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.open import open_bundle
from edgekit.bundle.runtime_files import CutRuntimes, NetChoice
from edgekit.bundle.sizes import FileSizes
from edgekit.check import run as checking
from edgekit.check.finding import Finding
from edgekit.check.run import CheckReport
from edgekit.errors import ModelError, UsageError
from edgekit.facts import survey as facts
from edgekit.files import temporary_folder
from edgekit.golden import make as golden
from edgekit.golden.make import CaseOptions
from edgekit.model import io as model
from edgekit.parity import ParityOptions, ParityResult
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet, Grade
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.locate import locate
from edgekit.runtime.pins import Variant
from edgekit.runtime_trim import Missed, Misses, RuntimeSize, TrimmedVariant, missed
from edgekit.targets import load as targets
from edgekit.targets.load import Target
from edgekit.trim import run as trimming
from edgekit.trim import ship
from edgekit.trim.plan import Plan
from edgekit.trim.run import TrimOptions
from edgekit.trim.ship import Shipped

SAMPLE_MODEL = "digits"
_WEB = "web"


@dataclass(frozen=True)
class BuildConfig:
    """What ``build`` needs to know.

    ``runtime``: an onnxruntime-web dist folder instead of the pinned one. ``title``: what the page shows; default: the
    model file's name without its ending. ``force``: replace a bundle that is there. ``trim``: ship a trimmed model
    where that is proven. ``trim_runtime``: ship a runtime cut to what the model needs, where that is proven; ``net``:
    which stock runtime then serves a miss. ``profiles``: run records of devices that missed functions, which are kept.
    ``browser``: the Chromium in which the model is recorded; default: one that is found.
    """

    model: Path
    target: str
    output: Path
    cases: CaseOptions = field(default_factory=CaseOptions)
    runtime: Path | None = None
    title: str | None = None
    force: bool = False
    targets_dir: Path | None = None
    trim: bool = True
    trim_runtime: bool = True
    net: NetChoice = "cpu"
    profiles: tuple[Path, ...] = ()
    browser: Path | None = None


@dataclass(frozen=True)
class CaseSummary:
    """One golden case of a build, without its tensors."""

    id: str
    origin: str
    grade: Grade


@dataclass(frozen=True)
class BuildResult:
    """What ``build`` made. ``left_out``: golden cases that were tried and are not in it, and why, in words.

    ``trim``: how the model that it ships was trimmed; None where it ships the model as it came, for ``untrimmed``.
    ``runtimes``: what became of each variant's runtime; empty where it was not to be trimmed.
    """

    folder: Path
    target: str
    manifest_sha256: str
    files: tuple[FileSizes, ...]
    cases: tuple[CaseSummary, ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    trim: Plan | None = None
    untrimmed: str = ""
    runtimes: tuple[RuntimeSize, ...] = ()


def build(config: BuildConfig, *, progress: Progress = silent) -> BuildResult:
    """Make a bundle: check the model, fetch the runtime if need be, make golden cases, trim, write the folder.

    The golden cases are of the model as it came; what is shipped is its trimmed form (see ``edgekit.trim.ship``).

    Raises UsageError for a target, output or option that cannot be; ModelError for a model that is broken, newer than
    the runtime, or takes no input that was tried; MissingToolError without a runtime; LimitError over a limit.
    """
    target = targets.load(config.target, config.targets_dir)
    if target.kind != _WEB:
        raise UsageError(f"Target '{target.id}' is of kind '{target.kind}', which edgekit does not build yet.")
    progress("Reading the model")
    loaded = model.load(config.model)
    # Before the minutes of work, not after them.
    check_destination(config.output, force=config.force, sources=[loaded.path])
    model.check_limits(loaded, ir_version=target.limits.ir_version, opset=target.limits.opset)
    progress(f"Checking the model against {target.id}")
    findings = checking.check(loaded, target, progress=progress)
    _refuse(config.model, target.id, findings)
    surveyed = facts.survey(loaded)
    runtime = locate(config.runtime, progress=progress)
    variants = pins.load().chosen(target.runtime.variants, f"Target '{target.id}'")
    reported = [_missed(path, target, variants) for path in config.profiles]
    cases = golden.make(loaded, surveyed, target, config.cases, progress=progress)
    # Beside the bundle, on the same disk: a link stays a link, and weights need no copy.
    with temporary_folder(Path(os.path.realpath(config.output))) as folder:
        shipped = Shipped(loaded, surveyed, findings, cases)
        if config.trim:
            shipped = ship.choose(shipped, target, folder, config.cases.limits, progress=progress)
        write = partial(
            web.build,
            model=shipped.model,
            facts=shipped.facts,
            target=target,
            runtime=runtime,
            cases=shipped.cases,
            title=config.title or config.model.stem,
            image=config.cases.image,
            plan=shipped.plan,
            progress=progress,
        )
        runtimes: tuple[TrimmedVariant, ...] = ()
        if config.trim_runtime:
            draft = folder / "draft"
            write(draft, force=False, copies=False)
            runtimes = _trimmed(config, draft, shipped, runtime, variants, reported, folder, progress)
        manifest = write(config.output, force=config.force, cut=_cut(runtimes, config.net) if runtimes else None)
    return BuildResult(
        folder=config.output,
        target=target.id,
        manifest_sha256=open_bundle(config.output, verify=False).manifest_sha256,
        files=sizes.table(manifest),
        cases=tuple(CaseSummary(case.id, case.origin, case.grade) for case in cases.cases),
        left_out=cases.left_out,
        warnings=(*_check_warnings(shipped.findings), *_case_warnings(cases), *sizes.warnings(manifest, target)),
        trim=shipped.plan,
        untrimmed=shipped.reason,
        runtimes=runtime_trim.sizes(manifest, runtime, variants, runtimes) if runtimes else (),
    )


def _trimmed(
    config: BuildConfig,
    draft: Path,
    shipped: Shipped,
    runtime: RuntimeDist,
    variants: Sequence[Variant],
    reported: Sequence[Misses],
    folder: Path,
    progress: Progress,
) -> tuple[TrimmedVariant, ...]:
    work = folder / "runtimes"
    work.mkdir()
    together: dict[str, Missed] = {}
    for misses in reported:
        for variant, one in misses.items():
            together[variant] = together.get(variant, Missed()) | one
    return runtime_trim.trim(
        draft,
        shipped.model,
        runtime,
        variants,
        work,
        reported=together,
        browser_path=config.browser,
        progress=progress,
    )


def _missed(path: Path, target: Target, variants: Sequence[Variant]) -> Misses:
    """Return what a run record tells of misses. Raises UsageError where none is of a variant of the target."""
    found = missed(path)
    if not found.keys() & {variant.id for variant in variants}:
        raise UsageError(
            f"{path} tells of misses of variant {', '.join(found)}, which target '{target.id}' does not use.",
            hint=f"Its variants are {', '.join(variant.id for variant in variants)}.",
        )
    return found


def _cut(runtimes: Sequence[TrimmedVariant], net: NetChoice) -> CutRuntimes:
    wasm = {one.variant: one.wasm for one in runtimes if one.wasm is not None}
    refused = frozenset(one.variant for one in runtimes if one.refused)
    return CutRuntimes(wasm, net, runtime_trim.plan(runtimes, net), refused)


def check(
    model_path: Path, target_ids: Sequence[str], *, targets_dir: Path | None = None, progress: Progress = silent
) -> CheckReport:
    """Check the model in a file against some targets.

    Raises UsageError for a target or file that is not there, ModelError when the file holds no model.
    """
    chosen = [targets.load(target_id, targets_dir) for target_id in dict.fromkeys(target_ids)]
    return checking.check_file(model_path, chosen, progress=progress)


def _refuse(path: Path, target_id: str, findings: Sequence[Finding]) -> None:
    """Raise ModelError with what a check found that the target cannot run."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        listed = "; ".join(_told(finding) for finding in errors[:3])
        raise ModelError(
            f"{path} cannot run on target '{target_id}': {listed}",
            hint=errors[0].fix or f"'edgekit check MODEL --target {target_id}' shows all that was found.",
        )


def _check_warnings(findings: Sequence[Finding]) -> list[str]:
    # What is too large is said once, of the bundle's files.
    return [_told(f) for f in findings if f.severity == "warning" and f.rule != "file-bytes"]


def _told(finding: Finding) -> str:
    where = next(
        (f"{kind} '{name}': " for kind, name in (("node", finding.node), ("tensor", finding.tensor)) if name), ""
    )
    return f"{where}{finding.message} [{finding.rule}]"


def trim(model_path: Path, output: Path, options: TrimOptions, *, progress: Progress = silent) -> Plan:
    """Write a smaller model with the same answers, and the plan beside it: see ``edgekit.trim.run.trim``.

    The strictest tolerances of the targets that come with edgekit bound what ``--allow-rounding`` admits.
    """
    return trimming.trim(model.load(model_path), output, _strictest(), options, progress=progress)


def _strictest() -> Target:
    """Return the target that forgives least."""
    loaded = [targets.load(target_id) for target_id in targets.ids()]
    return min(loaded, key=lambda target: sum(tolerance.relative for tolerance in target.tolerance.values()))


def _case_warnings(cases: CaseSet) -> list[str]:
    if any(case.grade.strong for case in cases.cases):
        return []
    return ["Every golden case is weak: parity will prove little. Give real inputs with --sample."]


@dataclass(frozen=True, eq=False)
class DemoResult:
    """The sample model on one target: the bundle, and what parity found."""

    build: BuildResult
    parity: ParityResult


def demo(output: Path, *, parity_options: ParityOptions, progress: Progress = silent) -> tuple[DemoResult, ...]:
    """Build the bundled sample model into ``output`` for every web target, and verify each bundle.

    Bundles of an earlier demo are replaced. Raises what ``build`` and ``parity.verify`` raise.
    """
    sample = resources.root("examples") / SAMPLE_MODEL
    found = []
    for target_id in targets.ids():
        if targets.load(target_id).kind != _WEB:
            continue
        config = BuildConfig(
            model=sample / f"{SAMPLE_MODEL}.onnx",
            target=target_id,
            output=output / target_id,
            cases=CaseOptions(samples=(sample / "samples.npz",)),
            force=True,
        )
        built = build(config, progress=progress)
        found.append(DemoResult(built, parity.verify(built.folder, parity_options, progress=progress)))
    return tuple(found)
