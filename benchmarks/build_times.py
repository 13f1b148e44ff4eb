"""Build bundles of real models, as they come and trimmed, and print how long each takes.

Run ``python benchmarks/build_times.py [TARGET [KEY ...]]``; a line of JSON for each model of
``tests/models/real_models.toml``. The first build on a machine compresses the runtime, which takes minutes: run twice.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from edgekit import pipeline
from edgekit.pipeline import BuildConfig

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "models"))
import real


def measure(key: str, target: str) -> dict[str, Any]:
    """Build one model in both ways. Times are in seconds, of one build each."""
    model = real.obtain(real.table()[key])
    row: dict[str, Any] = {"model": key}
    with tempfile.TemporaryDirectory(prefix="edgekit-times-") as folder:
        for name, trim in (("as_it_came_seconds", False), ("trimmed_seconds", True)):
            started = time.perf_counter()
            built = pipeline.build(BuildConfig(model, target, Path(folder) / name, trim=trim))
            row[name] = round(time.perf_counter() - started, 1)
    plan = built.trim
    if plan is None:
        return row | {"untrimmed": built.untrimmed}
    return row | {"nodes": [plan.nodes_before, plan.nodes_after], "bytes": [plan.bytes_before, plan.bytes_after]}


def main() -> None:
    """Measure and print."""
    target, *keys = sys.argv[1:] or ["webgpu"]
    for key in keys or real.table():
        print(json.dumps(measure(key, target)), flush=True)


if __name__ == "__main__":
    main()
