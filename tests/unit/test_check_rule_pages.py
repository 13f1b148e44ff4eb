"""Every rule has a page, the page's sample is found by the rule, and its mended twin is not."""

from pathlib import Path

import pytest
from check_samples import (
    PAGES,
    find,
    ids,
    in_this_process,
    measure,
    measured,
    page,
    without_sessions,
)
from models_text import parse

from edgekit.check.run import all_rules
from edgekit.conformance.table import OperatorSupport

RULES = {rule.id: rule for rule in all_rules()}
NEEDS_SESSIONS = {"runtime-refuses", "optimizer-refuses", "onnx-checker", "type-conflict"}

# Pages about what was measured: a table in which int8 and int16 fail, and the CPU runs int32.
_MAX = OperatorSupport(
    domain="", op_type="Max", since_version=13, variables=("T",),
    passes=frozenset({("int32",), ("float32",)}), wrong=frozenset({("int8",)}), refused=frozenset({("int16",)}),
    on_cpu=frozenset({("float32",)}),
)  # fmt: skip
_NEG = OperatorSupport("", "Neg", 13, ("T",), passes=frozenset({("float32",)}))
MEASURED = {"operator-refused", "operator-wrong", "operator-unmeasured", "cpu-fallback"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    rule_id = request.node.callspec.params.get("rule_id") if hasattr(request.node, "callspec") else None
    (tmp_path / "short.bin").write_bytes(b"\0" * 4)
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    if rule_id in NEEDS_SESSIONS:
        return
    in_this_process(monkeypatch)
    without_sessions(monkeypatch)
    if rule_id in MEASURED:
        measure(monkeypatch, measured(_MAX, _NEG))


@pytest.mark.parametrize("rule_id", RULES)
def test_a_page_says_what_its_rule_is(rule_id: str) -> None:
    rule, text = RULES[rule_id], page(rule_id).text
    assert text.startswith(f"# {rule_id}\n\n**{rule.title}.** Severity: {rule.severity}.\n")
    for heading in ("## Found", "## Not found", "## What to do"):
        assert heading in text


def test_no_page_is_left_of_a_rule_that_is_gone() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} - {"README"} == set(RULES)


def test_the_list_of_pages_names_every_rule_once() -> None:
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    for rule_id, rule in RULES.items():
        assert text.count(f"| [{rule_id}]({rule_id}.md) | {rule.severity} | {rule.title} |") == 1


@pytest.mark.parametrize("rule_id", RULES)
def test_the_sample_on_a_page_is_found(rule_id: str, tmp_path: Path) -> None:
    sample = page(rule_id)
    model = parse(sample.found)
    exec(sample.change, {"model": model})  # noqa: S102  edgekit's own documentation
    assert rule_id in ids(find(model, tmp_path, sample.target))


@pytest.mark.parametrize("rule_id", RULES)
def test_the_twin_on_a_page_is_not_found(rule_id: str, tmp_path: Path) -> None:
    sample = page(rule_id)
    twin_target = page("unsorted-graph").target if sample.found == sample.not_found else sample.target
    assert rule_id not in ids(find(sample.not_found, tmp_path, twin_target))
