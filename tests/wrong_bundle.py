"""A small model that onnxruntime-web 1.30.0 answers wrongly on WebGPU, and bundles with the desktop's answers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import web_bundle
from models_text import parse
from onnx import numpy_helper

from edgekit.desktop import run as desktop
from edgekit.desktop.run import Feed
from edgekit.files import sha256_file
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Reference, Tolerance
from edgekit.records.tensors import Value, value_of
from edgekit.targets import load as targets

# Six channels to four: onnxruntime-web 1.30.0 computes this wrongly on WebGPU (docs/rules/conv-channels-of-three.md).
WRONG = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,6,9] x) => (float[1,4,9] y)
{
    [before] a = Relu (x)
    [convolution] b = Conv <pads = [1, 1]> (a, w)
    [after] y = Sigmoid (b)
}
"""
# Of the target, the variants that are tried here.
WEBGPU = replace(targets.load("webgpu"), runtime=replace(targets.load("webgpu").runtime, variants=("jspi", "wasm")))


def bundle(
    model: Path,
    folder: Path,
    inputs: Mapping[str, Any],
    feed_back: FeedBack | None = None,
    shift: float = 0.0,
    *,
    force: bool = False,
) -> Path:
    """Build a bundle with one case, whose right answers are the desktop's, plus ``shift``."""
    given = tuple(value_of(name, np.asarray(array)) for name, array in inputs.items())
    (result,) = desktop.run(model, [Feed(given, feed_back)]).results
    outputs = tuple(
        Value(value.name, value.dtype, None if value.array is None else (value.array + shift).astype(value.array.dtype))
        for value in result.outputs
    )
    cases = CaseSet(
        model_sha256=sha256_file(model),
        reference=Reference("desktop", "onnxruntime", "0", "disabled"),
        tolerance={"float32": Tolerance(1e-3, 1e-6)},
        output_tolerance={},
        cases=(GoldenCase("only", "by hand", given, outputs, feed_back=feed_back),),
    )
    web_bundle.build(model, folder, WEBGPU, cases=cases, force=force)
    return folder


def tiny(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write the small model that fails, and return inputs for it."""
    rng = np.random.default_rng(0)
    proto = parse(WRONG)
    proto.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((4, 6, 3)).astype(np.float32), "w"))
    path = folder / "tiny.onnx"
    onnx.save(proto, path)
    return path, {"x": rng.standard_normal((1, 6, 9)).astype(np.float32)}
