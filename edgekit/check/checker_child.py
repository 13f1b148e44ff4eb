"""The child process of ``edgekit.check.evidence``: onnx's checker, native code, on a user's model."""

import json
import sys
from pathlib import Path

import onnx.checker


def main(folder: Path) -> None:
    """Check the model that ``request.json`` names and write what the checker objects to, or null."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    problem: str | None = None
    try:
        onnx.checker.check_model(request["model"])
    except Exception as error:
        problem = str(error)[:4000] or type(error).__name__
    (folder / "answer.json").write_text(json.dumps(problem), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
