"""The child process of ``edgekit.facts.shapes``: onnx's own code on a user's model.

It reads ``model.onnx`` (without weights) from its folder, and writes ``inferred.onnx``, with a type for every value
whose type can be inferred, and ``problem.txt`` when strict inference objects to something.
"""

import sys
from pathlib import Path

import onnx
import onnx.inliner
import onnx.shape_inference


def main(folder: Path) -> None:
    """Inline local functions, then infer. What one node does not tell, another may: errors of nodes stop nothing."""
    proto = onnx.load_model(folder / "model.onnx")
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    except Exception as error:
        (folder / "problem.txt").write_text(str(error)[:4000], encoding="utf-8")
        inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=False, data_prop=True)
    (folder / "inferred.onnx").write_bytes(inferred.SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
