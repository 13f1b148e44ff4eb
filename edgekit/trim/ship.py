"""Which model a bundle ships: the trimmed one where it is proven and no worse on the target, else the one that came."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgekit.check import run as checking
from edgekit.check.finding import SEVERITIES, Finding, Severity
from edgekit.child.process import ChildLimits
from edgekit.errors import EdgekitError
from edgekit.facts import survey
from edgekit.facts.survey import Argument, Facts
from edgekit.model import io
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.records.cases import CaseSet
from edgekit.targets.load import Target
from edgekit.trim import run
from edgekit.trim.output import Packing
from edgekit.trim.plan import Plan
from edgekit.trim.run import TrimOptions

_NAME = "model.onnx"


@dataclass(frozen=True, eq=False)
class Shipped:
    """The model of a bundle: what is known of it, its golden cases, and what a check of it found.

    ``plan``: how it was trimmed; None where it is the one that came, for ``reason``.
    """

    model: LoadedModel
    facts: Facts
    findings: tuple[Finding, ...]
    cases: CaseSet
    plan: Plan | None = None
    reason: str = "it was not asked for"


def choose(came: Shipped, target: Target, folder: Path, limits: ChildLimits, *, progress: Progress = silent) -> Shipped:
    """Trim the model that ``came`` into ``folder``, each pass proven with the golden cases of it.

    It is shipped as it came when nothing can be proven, when trimming removes nothing, and when a check finds of the
    trimmed model what it did not find before. The cases keep their outputs and name both models: the answers that
    count are those of the file that the user had.
    """
    model, cases = came.model, came.cases
    try:
        plan = run.trim(model, folder / _NAME, target, _options(model, cases, target, limits), progress=progress)
        trimmed = io.load(folder / _NAME)
    except EdgekitError as error:
        return replace(came, reason=error.message.replace(f"{folder}/", ""))
    if plan.model_sha256 != cases.model_sha256:  # whoever writes the bundle says so of the model that came
        return replace(came, reason="it changed meanwhile")
    if plan.nodes_after >= plan.nodes_before and plan.bytes_after >= plan.bytes_before:
        return replace(came, reason="there is nothing to remove")
    found = survey.survey(trimmed)
    if _interface(found) != _interface(came.facts):
        return replace(came, reason="trimmed, its inputs or outputs would be others")
    progress(f"Checking the trimmed model against {target.id}")
    findings = checking.check(trimmed, target, progress=progress)
    worse = _worse(came.findings, findings)
    if worse:
        return replace(came, reason=f"trimmed, it would be worse on {target.id}: {worse}")
    both = replace(cases, model_sha256=plan.files[0].sha256, original_sha256=cases.model_sha256)
    # The same model gives the same bundle wherever it lies, so the plan has its name alone.
    return Shipped(trimmed, found, findings, both, replace(plan, model=model.path.name), "")


def _options(model: LoadedModel, cases: CaseSet, target: Target, limits: ChildLimits) -> TrimOptions:
    """The usual passes. Weights that came in files under the host's limit stay in files under that limit."""
    largest = max((file.bytes for file in model.external_files), default=0)
    most = max(target.limits.file_bytes, largest) if model.external_files else None
    return TrimOptions(given=cases.cases, packing=Packing(file_bytes=most), limits=limits)


def _interface(facts: Facts) -> tuple[list[tuple[str, str]], ...]:
    def listed(arguments: Sequence[Argument]) -> list[tuple[str, str]]:
        return [(argument.name, argument.type) for argument in arguments]

    return listed(facts.inputs), listed(facts.outputs)


def _worse(before: Sequence[Finding], after: Sequence[Finding]) -> str:
    """Return what was found as bad in fewer ways, or not at all, before; notes do not count.

    Ways are counted and not compared: what is found says how many nodes it is about, and trimming changes that.
    """
    for severity in SEVERITIES[:-1]:
        for found in after:
            if found.severity != severity:
                continue
            known = _ways(before, found.rule, severity)
            if found.message not in known and len(_ways(after, found.rule, severity)) > len(known):
                return f"{found.message} [{found.rule}]"
    return ""


def _ways(findings: Sequence[Finding], rule: str, severity: Severity) -> set[str]:
    """The ways in which a rule found something as bad as ``severity``, or worse."""
    bad = SEVERITIES[: SEVERITIES.index(severity) + 1]
    return {finding.message for finding in findings if finding.rule == rule and finding.severity in bad}
