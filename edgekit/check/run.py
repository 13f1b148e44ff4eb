"""Check models against targets: find the rules, ask each, and sort what they found."""

import importlib
import pkgutil
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edgekit.check import evidence, providers, rules
from edgekit.check.finding import SEVERITIES, Finding, Severity
from edgekit.check.rule import Rule
from edgekit.check.subject import Evidence, Subject
from edgekit.model import io as model_io
from edgekit.model.io import LoadedModel
from edgekit.progress import Progress, silent
from edgekit.targets.load import Target

# A rule that finds the same in every node says so at most this often.
MOST_OF_ONE_RULE = 20
# What onnx or a runtime says of the whole is left out when a rule has said what is wrong, in better words.
_SAME_AS_CHECKER = {"unsorted-graph", "shadowed-name", "scalar-axes", "runtime-refuses"}
_SECONDHAND = ("onnx-checker", "type-conflict", "runtime-refuses", "optimizer-refuses")


@dataclass(frozen=True)
class TargetFindings:
    """What was found for one target. ``runs``: nothing found says that it cannot run the model."""

    target: str
    runs: bool
    findings: tuple[Finding, ...]

    def count(self, severity: str) -> int:
        """How many findings are of ``severity``."""
        return sum(finding.severity == severity for finding in self.findings)


@dataclass(frozen=True)
class CheckReport:
    """What was found in a model, for each target, in the order asked for."""

    model: str
    targets: tuple[TargetFindings, ...]


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule of the modules in ``edgekit.check.rules``, sorted by id."""
    found = [
        value
        for info in pkgutil.iter_modules(rules.__path__)
        for value in vars(importlib.import_module(f"{rules.__name__}.{info.name}")).values()
        if isinstance(value, Rule)
    ]
    return tuple(sorted(found, key=lambda each: each.id))


def check_file(path: Path, targets: Sequence[Target], *, progress: Progress = silent) -> CheckReport:
    """Check the model in a file. Raises UsageError without a readable file, ModelError when it holds no model at all.

    External data that is missing, short or outside the folder is a finding here, not an error.
    """
    loaded, known = evidence.gather(path, model_io.read(path), progress)
    return CheckReport(str(path), tuple(_judged(target, check_known(loaded, target, known)) for target in targets))


def check(model: LoadedModel, target: Target, *, progress: Progress = silent) -> tuple[Finding, ...]:
    """Check a loaded model against one target: the worst findings first."""
    loaded, known = evidence.gather(model.path, model.proto, progress)
    return check_known(loaded, target, known)


def check_known(model: LoadedModel, target: Target, known: Evidence) -> tuple[Finding, ...]:
    """Ask every rule. Pure: the same model, target and evidence give the same findings."""
    subject = Subject(model, target, providers.of(target), known)
    found: list[Finding] = []
    for rule in all_rules():
        found += _of(rule, subject)
    left_out = _said_better({(finding.rule, finding.severity) for finding in found})
    kept = [finding for finding in found if finding.rule not in left_out]
    return tuple(sorted(kept, key=lambda each: SEVERITIES.index(each.severity)))


def _said_better(found: Set[tuple[str, Severity]]) -> set[str]:
    """Rules that only repeat, in a tool's words, what another found."""
    if any(severity == "error" and rule not in _SECONDHAND for rule, severity in found):
        return set(_SECONDHAND)
    return {"onnx-checker", "type-conflict"} if _SAME_AS_CHECKER & {rule for rule, _ in found} else set()


def _of(rule: Rule, subject: Subject) -> list[Finding]:
    hits = list(dict.fromkeys(rule.find(subject)))
    found = [
        Finding(rule.id, hit.severity or rule.severity, hit.message, hit.node, hit.tensor, hit.fix)
        for hit in hits[:MOST_OF_ONE_RULE]
    ]
    if rest := hits[MOST_OF_ONE_RULE:]:
        worst = min((hit.severity or rule.severity for hit in rest), key=SEVERITIES.index)
        found.append(Finding(rule.id, worst, f"{len(rest):,} more like these."))
    return found


def _judged(target: Target, findings: tuple[Finding, ...]) -> TargetFindings:
    return TargetFindings(target.id, not any(finding.severity == "error" for finding in findings), findings)
