"""Findings as SARIF 2.1.0 (OASIS), which code-scanning services read."""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from edgekit.check.finding import Finding, Severity
from edgekit.check.rule import Rule
from edgekit.check.run import CheckReport

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "note"}


def document(report: CheckReport, rules: Sequence[Rule], version: str) -> dict[str, Any]:
    """Return a SARIF log with one run. ``version``: edgekit's own.

    A finding lies in the model's file, and its logical location names the node or tensor. What several targets share is
    one result; its property ``targets`` lists them.
    """
    shared: dict[Finding, list[str]] = {}
    for target in report.targets:
        for finding in target.findings:
            shared.setdefault(finding, []).append(target.target)
    place = {rule.id: index for index, rule in enumerate(rules)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "edgekit",
                        "semanticVersion": version,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "results": [_result(finding, names, report.model, place) for finding, names in shared.items()],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, targets: Iterable[str], model: str, place: dict[str, int]) -> dict[str, Any]:
    named = [("function", finding.node)] if finding.node else []
    named += [("variable", finding.tensor)] if finding.tensor else []
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(model)}}}
    if named:
        location["logicalLocations"] = [{"name": name, "kind": kind} for kind, name in named]
    return {
        "ruleId": finding.rule,
        **({"ruleIndex": place[finding.rule]} if finding.rule in place else {}),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message + (f" Fix: {finding.fix}" if finding.fix else "")},
        "locations": [location],
        "properties": {"targets": list(targets)},
    }


def _uri(path: str) -> str:
    """Return a path as a relative or file URI reference."""
    text = quote(path.replace("\\", "/").encode("utf-8", "surrogateescape"))
    return f"file://{text}" if text.startswith("/") else text
