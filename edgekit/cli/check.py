"""``edgekit check``: say what a target will refuse."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from edgekit import __version__, console, files, pipeline
from edgekit.bundle.destination import check_outside_bundles
from edgekit.check import run as checking
from edgekit.check.finding import SEVERITIES, Finding
from edgekit.check.run import CheckReport, TargetFindings
from edgekit.cli.options import json_option, list_option, targets_dir_option
from edgekit.errors import ModelError
from edgekit.records.jsonable import jsonable
from edgekit.report import sarif

_MARKS = {"error": "✗", "warning": "!", "note": "·"}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@list_option("--target", "-t", "targets", item=click.STRING, metavar="ID[,ID]", required=True,
             help="The device targets; 'edgekit targets' lists them. Repeatable.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Let warnings fail too.")
@click.option("--sarif", "sarif_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the findings as SARIF 2.1.0, for code scanning.")  # fmt: skip
@targets_dir_option
@json_option
def command(
    model: Path,
    targets: tuple[str, ...],
    strict: bool,
    sarif_path: Path | None,
    targets_dir: Path | None,
    as_json: bool,
) -> int:
    """Say what a target will refuse, run slowly or get wrong, node by node.

    The exit code is 3 when one of the targets cannot run the model, and 0 otherwise. Each rule has a page in
    docs/rules.

    \b
    Example:
      edgekit check model.onnx --target webgpu
      edgekit check model.onnx -t wasm -t webgpu --strict --sarif findings.sarif
    """
    if sarif_path is not None:
        check_outside_bundles(sarif_path)
        files.keep_sources(sarif_path, [model])
    with console.progress() as progress:
        report = pipeline.check(model, targets, targets_dir=targets_dir, progress=progress)
    if sarif_path is not None:
        text = json.dumps(sarif.document(report, checking.all_rules(), __version__), indent=2)
        files.write_atomic(sarif_path, text.encode())
    if as_json:
        console.data_json(jsonable(asdict(report)))
    else:
        _show(report)
    failed = any(not each.runs or (strict and each.count("warning")) for each in report.targets)
    return ModelError.exit_code if failed else 0


def _show(report: CheckReport) -> None:
    for each in report.targets:
        console.data(console.visible_line(f"{report.model} on {each.target}: {_summary(each)}"))
        for severity in SEVERITIES:
            _show_findings([finding for finding in each.findings if finding.severity == severity])
        console.data("")


def _summary(found: TargetFindings) -> str:
    counts = ", ".join(
        f"{count} {severity}{'' if count == 1 else 's'}" for severity in SEVERITIES if (count := found.count(severity))
    )
    return f"{'can run' if found.runs else 'cannot run'} ({counts or 'nothing found'})"


def _show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        where = [f"node {finding.node!r}"] if finding.node else []
        where += [f"tensor {finding.tensor!r}"] if finding.tensor else []
        head = f"  {_MARKS[finding.severity]} {finding.severity} {finding.rule}"
        console.data(console.visible_line(f"{head}: {', '.join(where)}" if where else head))
        console.data(console.visible_line(f"      {finding.message}"))
        if finding.fix:
            console.data(console.visible_line(f"      fix: {finding.fix}"))
