"""Tiny models, written as ONNX text, and how to put them on disk. Shared by the tests."""

from pathlib import Path

import onnx
import onnx.parser

from edgekit.model.io import LoadedModel, load

# y = relu(x @ w): one initializer, a symbolic batch.
LINEAR = """
<ir_version: 8, opset_import: ["" : 17], producer_name: "by hand", producer_version: "1">
linear (float[N, 2] x) => (float[N, 3] y)
<float[2, 3] w = {0.5, -1, 2, 1, 0.25, -3}>
{
    a = MatMul(x, w)
    y = Relu(a)
}
"""

# Branches in branches: the outer If holds another If in each branch; four nested graphs, two Constant nodes.
NESTED_IF = """
<ir_version: 8, opset_import: ["" : 17]>
nested (bool flag, bool inner, float[2] x) => (float[2] y)
{
    y = If (flag) <
        then_branch = outer_then () => (float[2] t) {
            t = If (inner) <
                then_branch = inner_then () => (float[2] tt) { tt = Relu(x) },
                else_branch = inner_else () => (float[2] te) {
                    c = Constant <value = float[2] {1, 2}> ()
                    te = Add(x, c)
                }
            >
        },
        else_branch = outer_else () => (float[2] e) { d = Constant <value_float: float = 3.0> () e = Mul(x, d) }
    >
}
"""

# A function of the model's own, called twice; its body has two nodes.
LOCAL_FUNCTION = """
<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
calls (float[N] x) => (float[N] y)
{
    a = mine.Twice(x)
    y = mine.Twice(a)
}
<opset_import: ["" : 17], domain: "mine">
Twice (v) => (w)
{
    u = Add(v, v)
    w = Identity(u)
}
"""

# Before IR version 4 initializers are inputs too.
INITIALIZER_AS_INPUT = """
<ir_version: 3, opset_import: ["" : 9]>
old (float[2] x, float[2] w) => (float[2] y)
<float[2] w = {1, 2}>
{
    y = Add(x, w)
}
"""

# An operator that no runtime knows.
PRIVATE_DOMAIN = """
<ir_version: 8, opset_import: ["" : 17, "my.company" : 1]>
private (float[N, 4] x) => (float[N, 4] y)
{
    a = my.company.Frobnicate <strength = 3> (x)
    y = Relu(a)
}
"""

# An embedding of ten rows: ids, cast and reshaped, must stay below 10.
EMBEDDING = """
<ir_version: 8, opset_import: ["" : 17]>
embedding (int32[N] ids) => (float[N, 1, 2] y)
<float[10, 2] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, int64[1] axis = {1}>
{
    wide = Cast <to = 7> (ids)
    column = Unsqueeze(wide, axis)
    y = Gather(table, column)
}
"""


def parse(text: str) -> onnx.ModelProto:
    """Read a model from ONNX text."""
    return onnx.parser.parse_model(text)


def write(text: str, folder: Path, name: str = "model.onnx") -> Path:
    """Write a model given as ONNX text into ``folder`` and return its path."""
    path = folder / name
    path.write_bytes(parse(text).SerializeToString())
    return path


def loaded(text: str, folder: Path) -> LoadedModel:
    """Write a model given as ONNX text into ``folder`` and load it."""
    return load(write(text, folder))
