"""Real web bundles of tiny models: the real writer, page and pinned runtime, with golden cases made by hand.

python tests/web_bundle.py MODEL DESTINATION    # build, replacing a bundle; for tests that kill or starve a process
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from edgekit.bundle import web
from edgekit.facts import survey as facts
from edgekit.files import sha256_file
from edgekit.model import io as model
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.manifest import Manifest
from edgekit.records.tensors import value_of
from edgekit.runtime.locate import locate
from edgekit.targets import load as targets
from edgekit.targets.load import Target


def cases_for(path: Path) -> CaseSet:
    """One case, as for ``models_text.LINEAR``."""
    inputs = (value_of("x", np.array([[1, 2]], np.float32)),)
    outputs = (value_of("y", np.array([[2.5, 0, 0]], np.float32)),)
    return CaseSet(
        model_sha256=sha256_file(path),
        reference=Reference("by hand", "none", "0", "disabled"),
        tolerance={"float32": Tolerance(1e-4, 1e-6)},
        output_tolerance={},
        cases=(GoldenCase("only", "by hand", inputs, outputs),),
    )


def build(model_path: Path, destination: Path, target: str | Target = "wasm", **changes: Any) -> Manifest:
    """Build a bundle of the model; ``changes`` are arguments of ``edgekit.bundle.web.build``."""
    loaded = model.load(model_path)
    arguments = {
        "model": loaded,
        "facts": facts.survey(loaded),
        "target": targets.load(target) if isinstance(target, str) else target,
        "runtime": locate(None),
        "cases": cases_for(model_path),
        "title": "tiny",
        "force": False,
        **changes,
    }
    return web.build(destination, **arguments)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), force=True)
