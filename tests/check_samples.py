"""What the tests of check share: the sample on each rule's page, a target that tries a GPU first, evidence at hand."""

import importlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from models_text import parse

from edgekit.check import evidence, providers
from edgekit.check.finding import Finding
from edgekit.check.run import check_known
from edgekit.child import process as child
from edgekit.child.process import ChildFailedError
from edgekit.conformance.table import OperatorSupport, Table
from edgekit.conformance.table import Runtime as Measured
from edgekit.targets.load import Limits, Parity, Runtime, Target

PAGES = Path(__file__).resolve().parents[1] / "docs" / "rules"
BOTH = Target(
    id="both",
    title="A browser",
    kind="web",
    runtime=Runtime("onnxruntime-web", ("jspi", "wasm")),
    limits=Limits(file_bytes=1 << 20, ir_version=13, opset=26),
    parity=Parity("chromium"),
)
GPU_ALONE = replace(BOTH, id="gpu", runtime=Runtime("onnxruntime-web", ("jspi", "asyncify")))
CPU_ALONE = replace(BOTH, id="cpu", runtime=Runtime("onnxruntime-web", ("wasm",)))


@dataclass(frozen=True)
class Page:
    """A rule's page: its text, the sample in which the rule finds something, the one in which it does not."""

    text: str
    found: str
    not_found: str
    change: str
    target: Target


def page(rule_id: str) -> Page:
    """Read the page of a rule."""
    text = (PAGES / f"{rule_id}.md").read_text(encoding="utf-8")
    samples = re.findall(r"```onnx\n(.*?)```", text, flags=re.S)
    changes = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    tables = re.findall(r"```toml\n(.*?)```", text, flags=re.S)
    return Page(text, samples[0], samples[-1], "".join(changes), _with(tomllib.loads("".join(tables))))


def _with(document: Mapping[str, Any]) -> Target:
    changed = {name: replace(getattr(BOTH, name), **table) for name, table in document.items()}
    return replace(BOTH, **changed)


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run what a child process would, here: a test's models are trusted, and a process takes half a second."""

    def run_module(module: str, folder: Path, **_: object) -> None:
        try:
            importlib.import_module(module).main(folder)
        except Exception as error:
            raise ChildFailedError(f"Failed: {error}", reason=str(error), crashed=False, output="") from error

    monkeypatch.setattr(child, "run_module", run_module)


def without_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the desktop runtime out."""
    monkeypatch.setattr(evidence, "_refusals", lambda path, limits: {})


def find(proto: onnx.ModelProto | str, folder: Path, target: Target = BOTH) -> tuple[Finding, ...]:
    """Check a model, given whole or as ONNX text, for a target."""
    proto = parse(proto) if isinstance(proto, str) else proto
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    model, known = evidence.gather(path, proto)
    return check_known(model, target, known)


def ids(findings: tuple[Finding, ...]) -> set[str]:
    """The rules that found something."""
    return {finding.rule for finding in findings}


def measured(*operators: OperatorSupport) -> Table:
    """A table of what was measured, made by hand."""
    return Table(
        runtime=Measured("onnxruntime-web", "0", "jspi", "x"),
        onnx_version="0",
        ir_version=13,
        opsets={"": 26},
        operators={(o.domain, o.op_type, o.since_version): o for o in operators},
        cases={},
    )


def measure(monkeypatch: pytest.MonkeyPatch, table: Table | None) -> None:
    """Let every provider have been measured to do what ``table`` says."""
    monkeypatch.setattr(providers, "_measured", lambda package, version, variants: table)
