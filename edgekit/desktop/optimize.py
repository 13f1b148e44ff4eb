"""Have onnxruntime optimize a graph ahead of time, so that a device need not, and list what the result needs of it.

The level "extended" fuses nodes into onnxruntime's own operators, which every CPU build of it has. "all" also lays
tensors out for the processor that it runs on, so a graph written with it would be for this machine alone.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.desktop.messages import readable
from edgekit.errors import ModelError
from edgekit.model import io
from edgekit.model.io import LoadedModel

LEVEL = "extended"
# The name of the list of operators in bundles: the one that onnxruntime's own tools use.
OPERATORS = "required_operators_and_types.config"
# Weights of more than this lie beside the graph: onnxruntime maps such a file into memory and needs no copy of it.
_EXTERNAL_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class Optimized:
    """The model as onnxruntime rewrote it. ``operators``: what a build of onnxruntime that runs just this model needs,
    in the form of the file that it calls ``OPERATORS``; None where that could not be told, for ``problem``.
    """

    model: LoadedModel
    operators: str | None
    problem: str | None


def optimize(model: LoadedModel, folder: Path, limits: ChildLimits) -> Optimized:
    """Write the optimized model into ``folder``, in a child process.

    Raises ModelError when onnxruntime refuses the model or crashes on it, LimitError when time or memory runs out.
    """
    stored = model.path.stat().st_size + sum(file.bytes for file in model.external_files)
    folder.mkdir()
    request = {"model": str(model.path.absolute()), "level": LEVEL, "external": stored > _EXTERNAL_BYTES}
    exchange.write_json(folder / "request.json", request)
    try:
        child.run_module(
            "edgekit.desktop.optimize_child", folder, limits=limits.for_model(2 * stored), what="optimizing the model"
        )
    except ChildFailedError as error:
        raise ModelError(f"onnxruntime could not optimize the model: {readable(error.reason)}") from error
    problem = exchange.read_json(folder / "done.json")["operators"]
    operators = None if problem else _without_paths((folder / "operators.config").read_text(encoding="utf-8"))
    shutil.rmtree(folder / "ort", ignore_errors=True)
    return Optimized(io.load(folder / "optimized" / "model.onnx"), operators, problem)


def _without_paths(text: str) -> str:
    """Leave out the comments, which name a file of this machine."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return "".join(f"{line}\n" for line in lines)
