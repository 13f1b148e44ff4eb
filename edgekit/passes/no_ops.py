"""Remove nodes whose result is their input, bit for bit: identities, and operators whose settings do nothing.

A constant counts as 0 or 1 only when it is exactly that. Some optimizers compare with a tolerance, and remove the
``+ 1e-8`` that keeps a logarithm or a division finite. Adding 0 is not among the rules: it turns -0 into 0.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from edgekit.passes.values import (
    Known,
    integer,
    integers,
    integers_of,
    is_standard,
    is_weight,
    nodes,
    numbers_of,
    operand,
    others_unused,
    remove,
    replace,
    tensor_of,
)

NAME = "no-op nodes"

_FAR = 1 << 31  # exporters write "to the end" as INT32_MAX, INT64_MAX, or a little less


def apply(model: ir.Model, known: Known, *, spare_weights: bool = False) -> bool:
    """Remove every node that a rule finds to do nothing. Returns whether any was.

    ``spare_weights``: not those between a weight and its kernel: see ``edgekit.passes.fold_constants``.
    """
    changed = False
    for node in nodes(model):
        rule = _RULES.get(node.op_type)
        if rule is None or not is_standard(node) or not node.outputs or not others_unused(node):
            continue
        source = rule(node, known)
        if source is None or (spare_weights and is_weight(tensor_of(source))):
            continue
        if replace(node.outputs[0], source):
            remove(node)
            changed = True
    return changed


def _first(node: ir.Node, _known: Known) -> ir.Value | None:
    return operand(node, 0)


def _only(node: ir.Node, _known: Known) -> ir.Value | None:
    """Concat, Sum, Max, Min and Mean of one."""
    return operand(node, 0) if len(node.inputs) == 1 else None


def _dropout(node: ir.Node, _known: Known) -> ir.Value | None:
    """Dropout passes its input on in inference: always from opset 7 to 11, else when it is not told to train."""
    flag = operand(node, 2)
    if flag is not None:
        training = numbers_of(flag)
        return operand(node, 0) if training is not None and not training.any() else None
    if "is_test" in node.attributes and integer(node, "is_test", 0) != 1:
        return None
    if "is_test" not in node.attributes and (node.version or _opset(node)) < 7:
        return None
    return operand(node, 0)


def _opset(node: ir.Node) -> int:
    graph = node.graph
    return graph.opset_imports.get("", 7) if graph is not None and graph.opset_imports else 7


def _cast(node: ir.Node, known: Known) -> ir.Value | None:
    source = operand(node, 0)
    to = integer(node, "to", -1)
    return source if to is not None and known.dtype(source) == to and to > 0 else None


def _cast_like(node: ir.Node, known: Known) -> ir.Value | None:
    source, to = operand(node, 0), known.dtype(operand(node, 1))
    return source if to is not None and known.dtype(source) == to else None


def _transpose(node: ir.Node, known: Known) -> ir.Value | None:
    source = operand(node, 0)
    order = integers(node, "perm")
    if order is None:
        rank = known.rank(source) if "perm" not in node.attributes else None
        return source if rank in (0, 1) else None
    return source if order == list(range(len(order))) else None


def _same_shape(node: ir.Node, known: Known) -> ir.Value | None:
    """Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile and the like that leave every size as it is."""
    source = operand(node, 0)
    before, after = known.shape(source), known.shape(node.outputs[0])
    if before is None or after is None or len(before) != len(after):
        return None
    same = [a is not None and a == b for a, b in zip(before, after, strict=True)]
    if all(same):
        return source
    # One unknown size among equal ones, none of them 0: as many elements as before, so it is equal too.
    others = [size for size, equal in zip(after, same, strict=True) if equal]
    keeps_count = node.op_type in ("Reshape", "Flatten")
    if keeps_count and same.count(False) == 1 and all(isinstance(size, int) and size > 0 for size in others):
        place = same.index(False)
        if not isinstance(before[place], int) and not isinstance(after[place], int):
            return source
    return None


def _reshape(node: ir.Node, known: Known) -> ir.Value | None:
    source, sizes = operand(node, 0), integers_of(operand(node, 1))
    if sizes is not None and integer(node, "allowzero", 0) == 0 and known.rank(source) == len(sizes):
        # 0 copies the size at that place; one -1 beside zeros can only be the size that is there.
        if all(size == 0 for size in sizes):
            return source
        if sizes.count(-1) == 1 and all(size in (0, -1) for size in sizes):
            return None if _may_be_empty(known, source) else source
    return _same_shape(node, known)


def _may_be_empty(known: Known, value: ir.Value | None) -> bool:
    """Whether some size may be 0: -1 is then ambiguous. A symbolic size may be; sizes that are numbers say."""
    sizes = known.sizes(value)
    return sizes is not None and 0 in sizes


def _expand(node: ir.Node, known: Known) -> ir.Value | None:
    source, sizes = operand(node, 0), integers_of(operand(node, 1))
    rank = known.rank(source)
    if sizes is not None and rank is not None and len(sizes) <= rank and all(size == 1 for size in sizes):
        return source
    return _same_shape(node, known)


def _tile(node: ir.Node, _known: Known) -> ir.Value | None:
    repeats = integers_of(operand(node, 1))
    return operand(node, 0) if repeats is not None and all(count == 1 for count in repeats) else None


def _pad(node: ir.Node, _known: Known) -> ir.Value | None:
    pads = integers(node, "pads") if len(node.inputs) < 2 else integers_of(operand(node, 1))
    return operand(node, 0) if pads is not None and not any(pads) else None


def _slice(node: ir.Node, _known: Known) -> ir.Value | None:
    if len(node.inputs) < 2:
        starts, ends, steps = integers(node, "starts"), integers(node, "ends"), None
    else:
        starts, ends = integers_of(operand(node, 1)), integers_of(operand(node, 2))
        steps = integers_of(operand(node, 4))
        if operand(node, 4) is not None and steps is None:
            return None
    if starts is None or ends is None or any(starts) or any(step != 1 for step in steps or ()):
        return None
    return operand(node, 0) if all(end >= _FAR - 1 for end in ends) else None


def _neutral(*places: int, number: int) -> Callable[[ir.Node, Known], ir.Value | None]:
    """A rule for ``x op c`` with a constant that is exactly ``number``, standing at one of ``places``."""

    def rule(node: ir.Node, known: Known) -> ir.Value | None:
        for place in places:
            constant, source = numbers_of(operand(node, place)), operand(node, 1 - place)
            if constant is None or source is None or len(node.inputs) != 2 or constant.dtype.kind == "b":
                continue
            if constant.size != 1 or not bool((constant == number).all()) or np.signbit(constant.astype(float)).any():
                continue
            rank = known.rank(source)
            if constant.ndim == 0 or (rank is not None and constant.ndim <= rank):
                return source  # the constant's shape adds nothing to the result's
        return None

    return rule


def _inverse_pair(op_type: str) -> Callable[[ir.Node, Known], ir.Value | None]:
    """A rule for ``op(op(x))``, where the operator undoes itself exactly."""

    def rule(node: ir.Node, _known: Known) -> ir.Value | None:
        inner = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
        return operand(inner, 0) if inner is not None and is_standard(inner, op_type) else None

    return rule


_RULES: dict[str, Callable[[ir.Node, Known], ir.Value | None]] = {
    "Identity": _first,
    "Concat": _only,
    "Sum": _only,
    "Max": _only,
    "Min": _only,
    "Mean": _only,
    "Dropout": _dropout,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _same_shape,
    "Squeeze": _same_shape,
    "Unsqueeze": _same_shape,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "Slice": _slice,
    "Mul": _neutral(0, 1, number=1),
    "Div": _neutral(1, number=1),
    "Sub": _neutral(1, number=0),
    "Pow": _neutral(1, number=1),
    "Neg": _inverse_pair("Neg"),
    "Not": _inverse_pair("Not"),
}
