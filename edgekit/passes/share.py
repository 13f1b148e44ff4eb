"""Store equal initializers once, and equal computations once."""

import hashlib
from collections.abc import Callable

import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.passes.values import RANDOM, bodies, nodes

INITIALIZERS, EXPRESSIONS = "identical initializers", "common subexpressions"

_CHUNK = 1 << 20
_MARK = "edgekit_not_shared"

# The sha256 of a tensor's bytes, None where they cannot be told.
Digest = Callable[[ir.TensorProtocol], str | None]


def initializers(model: ir.Model, digest: Digest) -> bool:
    """Keep one of each group of equal initializers in a graph. Inputs and outputs stay. Returns whether any went."""
    changed = False
    for body in bodies(model):
        if not isinstance(body, ir.Graph):
            continue
        first: dict[tuple[int, tuple[int, ...], str], ir.Value] = {}
        for name, value in list(body.initializers.items()):
            tensor = value.const_value
            if tensor is None or value.is_graph_input() or value.is_graph_output():
                continue
            found = digest(tensor)
            if found is None:
                continue
            key = (int(tensor.dtype), tuple(int(size) for size in tensor.shape.numpy()), found)
            kept = first.setdefault(key, value)
            if kept is not value:
                value.replace_all_uses_with(kept)
                body.initializers.pop(name)
                changed = True
    return changed


def digest_in_memory(tensor: ir.TensorProtocol) -> str | None:
    """Hash a tensor that lies in memory."""
    if tensor.dtype == ir.DataType.STRING:
        texts: list[bytes] = list(getattr(tensor, "string_data", list)())
        return hashlib.sha256(b"".join(len(text).to_bytes(8, "little") + text for text in texts)).hexdigest()
    return hashlib.sha256(tensor.tobytes()).hexdigest()


def expressions(model: ir.Model) -> bool:
    """Merge nodes of the main graph that compute the same from the same. Returns whether any was.

    onnx-ir does it; nodes whose results are random are marked apart first, and operators that nobody here knows too.
    """
    marked = []
    for number, node in enumerate(nodes(model)):
        if node.domain not in ("", "ai.onnx.ml", "com.microsoft") or node.op_type in RANDOM or _trains(node):
            node.attributes[_MARK] = ir.AttrInt64(_MARK, number)
            marked.append(node)
    try:
        return bool(common.CommonSubexpressionEliminationPass()(model).modified)
    finally:
        for node in marked:
            node.attributes.pop(_MARK)


def _trains(node: ir.Node) -> bool:
    return node.op_type in ("Dropout", "BatchNormalization") and (len(node.inputs) > 2 or len(node.outputs) > 1)
