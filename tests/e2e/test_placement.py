"""Where nodes run in a real Chromium, from the runtime's own report: in the record, the answer, and the drawing."""

import json
import re
from pathlib import Path
from typing import Any

import onnx
import pytest
from models_text import parse

from edgekit import resources
from edgekit.cli.main import run
from edgekit.records.run_record import PlacedNode
from edgekit.records.store import load_run
from edgekit.report.placement import placement_words

pytestmark = pytest.mark.browser

# onnxruntime-web 1.30.0 has Det for the CPU alone, so what it reads and gives is copied from and to the GPU.
FALLBACK = """
<ir_version: 8, opset_import: ["" : 17]>
fallback (float[N, 3, 3] x) => (float[N] y)
{
    [before] a = Relu(x)
    [away] d = Det(a)
    [after] y = Sigmoid(d)
}
"""
DIGITS = resources.root("examples") / "digits" / "digits.onnx"


def bundle(model: Path, folder: Path) -> Path:
    assert run(["build", str(model), "--target", "webgpu", "--no-trim-runtime", "-o", str(folder), "--json"]) == 0
    return folder


def combinations(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    asked = ["--browser", "chromium", "--variant", "jspi,asyncify,wasm", "--repeats", "1", "--json", *options]
    run(["parity", str(folder), *asked])
    out, err = capsys.readouterr()
    assert out, err
    return {row["variant"]: row for row in json.loads(out)["combinations"]}


def test_a_fallback_and_its_copies_are_told_on_webgpu_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "fallback.onnx"
    onnx.save(parse(FALLBACK), model)
    made = bundle(model, tmp_path / "bundle")
    rows = combinations(made, capsys, "-o", str(tmp_path / "runs"))
    for variant in ("jspi", "asyncify"):
        record = load_run(tmp_path / "runs" / f"chromium-{variant}").record
        assert record is not None and record.misses == ()
        assert placement_words(record) == "2 of 3 nodes of the optimized graph on WebGPU; on the CPU: Det ×1; 2 copies"
        parts = {part.execution_provider: part for part in record.placement or ()}
        assert parts["CPUExecutionProvider"].nodes == (PlacedNode("away", "Det"),)
        assert rows[variant]["placement"][0]["node_count"] + rows[variant]["placement"][1]["node_count"] == 3
    assert rows["wasm"]["placement"] == [
        {"execution_provider": "CPUExecutionProvider", "node_count": 3, "copies": 0, "nodes": []}
    ]
    page, kept = tmp_path / "graph.html", tmp_path / "runs" / "chromium-jspi"
    assert run(["inspect", str(made / "model" / "model.onnx"), "--graph", str(page), "--record", str(kept)]) == 0
    looks = re.findall(r'class="card (\w+)" data-looks', page.read_text(encoding="utf-8"))
    assert looks == ["input", "gpu", "cpu", "gpu", "output"]


def test_a_model_that_runs_on_webgpu_whole_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = combinations(bundle(DIGITS, tmp_path / "bundle"), capsys)
    for variant, provider in (("jspi", "WebGpu"), ("asyncify", "WebGpu"), ("wasm", "CPU")):
        assert rows[variant]["verdict"]["status"] == "passed"
        (part,) = rows[variant]["placement"]
        assert part["execution_provider"] == f"{provider}ExecutionProvider"
        assert part["node_count"] > 0 and part["copies"] == 0
