"""The library's front door: the stages strung together. The command line calls these functions and prints."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgekit import parity, resources
from edgekit.bundle import beside as beside_bundle
from edgekit.bundle import sizes
from edgekit.bundle.destination import check as check_destination
from edgekit.bundle.open import open_bundle
from edgekit.bundle.sizes import FileSizes
from edgekit.check import run as checking
from edgekit.check.finding import Finding
from edgekit.check.run import CheckReport
from edgekit.errors import ModelError, UsageError
from edgekit.facts import survey as facts
from edgekit.files import Beside, check_alone, full_disk, json_bytes, temporary_folder
from edgekit.golden import make as golden
from edgekit.golden.make import CaseOptions
from edgekit.kinds import android, linux, web
from edgekit.kinds.config import BuildConfig, Parts, SizeRow, Write
from edgekit.model import io as model
from edgekit.model.io import LoadedModel
from edgekit.parity import ParityOptions, ParityResult, check_runner
from edgekit.progress import Progress, silent
from edgekit.records import strength as strengths
from edgekit.records.cases import CaseSet, Grade
from edgekit.records.strength import Strength
from edgekit.repair import run as repairing
from edgekit.repair.result import Repair
from edgekit.repair.search import RepairOptions
from edgekit.runtime_trim import RuntimeSize
from edgekit.strength import choose, measure
from edgekit.strength.measure import Outcomes
from edgekit.targets import load as targets
from edgekit.targets.load import Target
from edgekit.targets.options import ANDROID, LINUX, WEB
from edgekit.trim import run as trimming
from edgekit.trim import ship
from edgekit.trim.plan import Plan
from edgekit.trim.run import TrimOptions
from edgekit.trim.ship import Shipped

SAMPLE_MODEL = "digits"


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
    ``runtimes``: what became of each variant's runtime; empty where it was not to be trimmed. ``strength``: how many
    faulty models the cases would catch; None where it was not to be measured. ``sizes``: model, runtime and code
    beside the official packages, of kinds that have such a table. ``beside``: files that lie beside the folder.
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
    strength: Strength | None = None
    kind: str = WEB
    sizes: tuple[SizeRow, ...] = ()
    beside: tuple[Path, ...] = ()


# What builds a kind of target: called before the golden cases are made, it fetches what it needs and refuses what
# cannot be; what it returns is called with the parts of the bundle, and writes it.
_KINDS: Mapping[str, Callable[[BuildConfig, Target, Progress], Write]] = {
    WEB: web.prepare,
    LINUX: linux.prepare,
    ANDROID: android.prepare,
}


def build(config: BuildConfig, *, progress: Progress = silent) -> BuildResult:
    """Make a bundle: check the model, fetch the runtime if need be, make golden cases, trim, write the folder.

    The golden cases are of the model as it came; what is shipped is its trimmed form (see ``edgekit.trim.ship``).

    Raises UsageError for a target, output or option that cannot be; ModelError for a model that is broken, newer than
    the runtime, or takes no input that was tried; MissingToolError without a runtime; LimitError over a limit.
    """
    target = android.page_target(config, targets.load(config.target, config.targets_dir))
    check_runner(target)
    loaded = _read(config, target, progress)
    findings = _checked(config, loaded, target, progress)
    surveyed = facts.survey(loaded)
    write = _KINDS[target.kind](config, target, progress)
    seen: list[Outcomes] = []
    improve = _improver(config, target, seen.append, progress)
    cases = golden.make(loaded, surveyed, target, config.cases, improve=improve, progress=progress)
    # Beside the bundle, on the same disk: a link stays a link, and weights need no copy.
    place = Path(os.path.realpath(config.output))
    with full_disk(config.output), temporary_folder(place, alone=True) as folder:
        shipped = Shipped(loaded, surveyed, findings, cases)
        if config.trim:
            shipped = ship.choose(shipped, target, folder, config.cases.limits, progress=progress)
        measured = _strength(config, shipped, seen if shipped.model is loaded else (), progress)
        parts = Parts(
            model=shipped.model,
            facts=shipped.facts,
            cases=shipped.cases,
            title=config.title or config.model.stem,
            plan=shipped.plan,
            documents={} if measured is None else {strengths.NAME: json_bytes(strengths.to_json(measured))},
        )
        done = write(parts, folder)
    return BuildResult(
        folder=config.output,
        target=target.id,
        manifest_sha256=open_bundle(config.output, verify=False).manifest_sha256,
        files=sizes.table(done.manifest),
        cases=tuple(CaseSummary(case.id, case.origin, case.grade) for case in cases.cases),
        left_out=cases.left_out,
        warnings=(
            *_check_warnings(shipped.findings),
            *_case_warnings(cases),
            *sizes.warnings(done.manifest, target),
            *done.warnings,
            *beside_bundle.told(config.output),
        ),
        trim=shipped.plan,
        untrimmed=shipped.reason,
        runtimes=done.runtimes,
        strength=measured,
        kind=target.kind,
        sizes=done.sizes,
        beside=done.beside,
    )


def _read(config: BuildConfig, target: Target, progress: Progress) -> LoadedModel:
    progress("Reading the model")
    loaded = model.load(config.model)
    # Before the minutes of work, not after them.
    check_destination(config.output, force=config.force, sources=[loaded.path])
    check_alone(config.output)
    model.check_limits(loaded, ir_version=target.limits.ir_version, opset=target.limits.opset)
    return loaded


def build_repaired(
    config: BuildConfig, options: RepairOptions, *, progress: Progress = silent
) -> tuple[BuildResult, Repair]:
    """Build a bundle and, where it fails parity, repair it. Raises what ``build`` and ``edgekit.repair.run`` raise.

    Where nothing cures it the bundle stays as it was built, and the status of the repair is "failed".
    """
    built = build(config, progress=progress)

    def beside(work: Path) -> Beside | None:
        return android.packer(config, work, progress)

    done = repairing.repair(built.folder, options, browser_path=config.browser, beside=beside, progress=progress)
    bundle = open_bundle(built.folder, verify=False)
    apps, rows = android.packed(config) if done.status == "repaired" else (built.beside, built.sizes)
    now = replace(
        built,
        beside=apps,
        sizes=rows,
        manifest_sha256=bundle.manifest_sha256,
        files=sizes.table(bundle.manifest),
        runtimes=done.runtimes if done.status == "repaired" else built.runtimes,
    )
    return now, done


def _checked(config: BuildConfig, loaded: LoadedModel, target: Target, progress: Progress) -> tuple[Finding, ...]:
    progress(f"Checking the model against {target.id}")
    findings = checking.check(loaded, target, progress=progress)
    _refuse(config.model, target.id, findings)
    return tuple(findings)


def _improver(
    config: BuildConfig, target: Target, seen: Callable[[Outcomes], None], progress: Progress
) -> golden.Improve | None:
    if not config.strength:
        return None
    options = config.cases
    return choose.improver(
        config.model,
        target.tolerance,
        options.output_tolerance,
        seed=options.seed,
        limits=options.limits,
        seen=seen,
        progress=progress,
    )


def _strength(config: BuildConfig, shipped: Shipped, seen: Sequence[Outcomes], progress: Progress) -> Strength | None:
    """Measure the cases on the model that is shipped: that is the one which a device runs. ``seen``: what was measured
    of it already, with these cases.
    """
    if not config.strength:
        return None
    seed, limits = config.cases.seed, config.cases.limits
    if seen and config.cases.reference is None:
        return measure.summarize(seen[0], shipped.cases.model_sha256, seed)
    return measure.measure(shipped.model.path, shipped.cases, seed=seed, limits=limits, progress=progress)


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
    """Build the bundled sample model into ``output`` for each target that says so, and verify each bundle.

    Bundles of an earlier demo are replaced. Raises UsageError for bundles of another model, what ``build`` and
    ``parity.verify`` raise.
    """
    sample = resources.root("examples") / SAMPLE_MODEL
    chosen = [target_id for target_id in targets.ids() if targets.load(target_id).demo]
    for place in (output / target_id for target_id in chosen):
        check_destination(place, force=True, sources=[])  # all of them before the minutes of work
        if place.exists() and open_bundle(place, verify=False).manifest.title != SAMPLE_MODEL:
            raise UsageError(f"{place} holds a bundle of another model.", hint="Choose another folder with -o.")
    found = []
    for target_id in chosen:
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
