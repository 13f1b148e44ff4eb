"""Merge two nodes that move elements into one: a Transpose of a Transpose, a Reshape of a Reshape."""

import onnx_ir as ir

from edgekit.passes.values import Known, integer, integers, integers_of, is_standard, nodes, operand

NAME = "chains of moves"

_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def apply(model: ir.Model, known: Known) -> bool:
    """Merge pairs; the first node stays while others use it. Returns whether anything changed."""
    changed = False
    for node in nodes(model):
        if is_standard(node, "Transpose"):
            changed |= _transposes(node)
        elif is_standard(node, "Reshape"):
            changed |= _reshapes(node, known)
    return changed


def _transposes(node: ir.Node) -> bool:
    inner = _maker(node, "Transpose")
    outer_order = integers(node, "perm")
    inner_order = None if inner is None else integers(inner, "perm")
    if inner is None or outer_order is None or inner_order is None or sorted(outer_order) != sorted(inner_order):
        return False
    node.replace_input_with(0, inner.inputs[0])
    node.attributes["perm"] = ir.AttrInt64s("perm", [inner_order[axis] for axis in outer_order])
    return True


def _reshapes(node: ir.Node, known: Known) -> bool:
    """The last shape alone counts, unless it copies sizes (0) from its input."""
    inner = _maker(node, *_RESHAPES)
    sizes = integers_of(operand(node, 1))
    if inner is None or sizes is None or not inner.inputs or inner.inputs[0] is None:
        return False
    if 0 in sizes and integer(node, "allowzero", 0) != 1:
        return False
    node.replace_input_with(0, inner.inputs[0])
    return True


def _maker(node: ir.Node, *op_types: str) -> ir.Node | None:
    value = operand(node, 0)
    inner = None if value is None else value.producer()
    # In a graph of its own the inner node may be far away, and run only once where the outer one runs often.
    if inner is None or not is_standard(inner, *op_types) or inner.graph is not node.graph:
        return None
    return inner
