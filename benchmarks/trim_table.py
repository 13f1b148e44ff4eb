"""Trim real models with edgekit, onnxsim and onnxslim; compare sizes, and count right and wrong answers.

Run ``python benchmarks/trim_table.py [--output FILE] [MODEL.onnx | KEY ...]``. Without names it takes the models of
``tests/models/real_models.toml``. Needs the packages onnxsim and onnxslim, which edgekit itself never uses.

Every result is judged alike: the same golden cases, the runtime with optimization off, against the original model.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx

from edgekit.child.process import ChildLimits
from edgekit.errors import EdgekitError
from edgekit.files import json_bytes, write_atomic
from edgekit.golden.make import CaseOptions
from edgekit.model import io, walk
from edgekit.model.io import LoadedModel
from edgekit.pipeline import _strictest
from edgekit.trim import evidence, run
from edgekit.trim.native import Native
from edgekit.trim.request import Shape
from edgekit.trim.run import TrimOptions
from edgekit.trim.weights import Store

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SECONDS = 900
# Differences of up to this part of an output's scale are rounding; more is a wrong answer.
ROUNDING = 1e-3


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--output", type=Path, default=RESULTS / "trim.json")
    asked = parser.parse_args()
    rows = []
    for name, path in _models(asked.models):
        rows.append(measure(name, path))
        _show(rows[-1])
        document = {
            "tools": {tool: version(tool) for tool in ("onnxsim", "onnxslim", "onnxruntime", "onnx")},
            "rounding": ROUNDING,
            "models": rows,
        }
        asked.output.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(asked.output, json_bytes(document))


def _models(names: list[str]) -> list[tuple[str, Path]]:
    sys.path.insert(0, str(ROOT / "tests" / "models"))
    import real

    table = real.table()
    wanted = names or list(table)
    return [(n, real.obtain(table[n])) if n in table else (Path(n).stem, Path(n)) for n in wanted]


def measure(name: str, path: Path) -> dict[str, Any]:
    """Trim one model with every tool, and judge what each made."""
    model = io.load(path)
    row: dict[str, Any] = {"model": name, "bytes": _bytes(path), "nodes": _nodes(path)}
    with tempfile.TemporaryDirectory(prefix="edgekit-table-") as folder:
        made = Path(folder)
        row["edgekit"] = _edgekit(model, made / "edgekit.onnx", TrimOptions())
        row["edgekit_rounding"] = _edgekit(model, made / "rounding.onnx", TrimOptions(allow_rounding=True))
        row["onnxsim"] = _tool(["onnxsim", str(path), str(made / "onnxsim.onnx")])
        row["onnxslim"] = _tool(["onnxslim", str(path), str(made / "onnxslim.onnx")])
        _judge(model, made, row)
    sizes = [row[tool]["bytes"] for tool in ("onnxsim", "onnxslim") if row[tool].get("right")]
    for tool in ("edgekit", "edgekit_rounding"):
        if sizes and "bytes" in row[tool]:
            row[tool]["against_best"] = round(row[tool]["bytes"] / min(sizes), 4)
    return row


def _edgekit(model: LoadedModel, place: Path, options: TrimOptions) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        plan = run.trim(model, place, _strictest(), options)
    except EdgekitError as error:
        return {"error": error.message}
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "proof": plan.proof,
        "undone": [record.name for record in plan.passes if record.proof in ("undone", "failed")],
    }


def _tool(command: list[str]) -> dict[str, Any]:
    program = Path(sys.executable).parent / command[0]
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [str(program), *command[1:]], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {SECONDS} s"}
    if done.returncode != 0 or not Path(command[2]).exists():
        last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-1:]
        return {"error": f"exit code {done.returncode}: {''.join(last)[:200]}"}
    return {"seconds": round(time.perf_counter() - started, 1)}


def _judge(model: LoadedModel, made: Path, row: dict[str, Any]) -> None:
    files = {"edgekit": "edgekit", "edgekit_rounding": "rounding", "onnxsim": "onnxsim", "onnxslim": "onnxslim"}
    limits = ChildLimits()
    work = made / "work"
    work.mkdir()
    store = Store(work)
    found = evidence.gather(
        model, store.detach(model), store, Native(work, limits), _strictest(), CaseOptions(seed=7), Shape(),
        progress=lambda *_: None,
    )  # fmt: skip
    there = {tool: made / f"{file}.onnx" for tool, file in files.items() if (made / f"{file}.onnx").exists()}
    if found.prover is None:
        row["reason"] = found.reason
        return
    row["cases"] = len(found.cases)
    for (tool, path), verdict in zip(there.items(), found.prover.judge(list(there.values())), strict=True):
        row[tool] |= {
            "bytes": _bytes(path),
            "nodes": _nodes(path),
            "right": verdict.error is None and verdict.difference <= ROUNDING,
            "identical": verdict.identical,
            "difference": verdict.difference if verdict.difference < float("inf") else "inf",
            "error": verdict.error,
        }


def _bytes(path: Path) -> int:
    return path.stat().st_size


def _nodes(path: Path) -> int:
    return sum(1 for _ in walk.all_nodes(onnx.load(path, load_external_data=False)))


def _show(row: dict[str, Any]) -> None:
    print(json.dumps(row, indent=None))


if __name__ == "__main__":
    main()
