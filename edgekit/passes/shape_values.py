"""Compute what a graph says about sizes, as far as they are known: Shape, Size and the arithmetic after them.

Each integer vector is followed element by element: a number, a symbol, or unknown. One whose elements are all numbers
becomes a constant. A Reshape needs the arithmetic no more when its target lacks one element (-1 says it), or when every
element that it lacks is the size that the data have at that place (0 copies it).
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from edgekit.passes.values import (
    MOST_ELEMENTS,
    Dim,
    Dims,
    Known,
    insert,
    integer,
    integers,
    integers_of,
    is_standard,
    nodes,
    operand,
    put_constant,
    tensor_of,
)

NAME = "shape arithmetic"


class Elements:
    """An integer tensor of rank 0 or 1: its elements; a text is a symbol of ``Known``, None is unknown."""

    def __init__(self, items: Sequence[Dim], *, scalar: bool = False) -> None:
        self.items = list(items)
        self.scalar = scalar

    @property
    def complete(self) -> bool:
        return all(isinstance(size, int) for size in self.items)


_Found = dict[ir.Value, Elements]


def apply(model: ir.Model, known: Known) -> bool:
    """Replace what is known by constants. Nodes must be sorted. Returns whether anything changed."""
    found: _Found = {}
    changed = False
    for node in nodes(model):
        rule = _RULES.get(node.op_type)
        if not is_standard(node) or not node.outputs:
            continue
        if rule is not None:
            elements = rule(node, known, found)
            if elements is not None and len(elements.items) <= MOST_ELEMENTS:
                found[node.outputs[0]] = elements
                changed |= elements.complete and _settle(node.outputs[0], elements, known)
        elif node.op_type == "Reshape":
            changed |= _reshape(node, known, found)
    return changed


def _settle(value: ir.Value, elements: Elements, known: Known) -> bool:
    """Put a constant in the value's place. What nothing uses will go with the unused nodes."""
    if not value.uses() and not value.is_graph_output():
        return False
    dtype = known.dtype(value) or ir.DataType.INT64
    if dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return False
    array = np.array(elements.items, dtype=dtype.numpy())
    return put_constant(value, array.reshape(()) if elements.scalar else array)


def _reshape(node: ir.Node, known: Known, found: _Found) -> bool:
    """Give a constant target to a Reshape whose target is known but for sizes that -1 or 0 can say."""
    target, place = operand(node, 1), node.graph
    elements = None if target is None else found.get(target)
    if elements is None or elements.scalar or elements.complete or place is None:
        return False
    sizes = _target(elements.items, known.shape(operand(node, 0)) or (), copies=integer(node, "allowzero", 0) == 0)
    if sizes is None:
        return False
    array = np.array(sizes, dtype=np.int64)
    constant = ir.node("Constant", [], {"value": ir.tensor(array)})
    constant.outputs[0].name = f"{node.outputs[0].name}__shape"
    insert(node, constant)
    node.replace_input_with(1, constant.outputs[0])
    return True


def _target(items: Sequence[Dim], data: Dims, *, copies: bool) -> list[int] | None:
    """Return the target with -1 or 0 for what is not known, None where these cannot say it.

    Never both: with an empty input, -1 beside a copied 0 has no meaning, and runtimes refuse it.
    """
    if any(isinstance(size, int) and size <= 0 for size in items):
        return None
    if copies and all(
        isinstance(size, int) or (size is not None and place < len(data) and data[place] == size)
        for place, size in enumerate(items)
    ):
        return [size if isinstance(size, int) else 0 for size in items]
    if sum(not isinstance(size, int) for size in items) == 1:
        return [size if isinstance(size, int) else -1 for size in items]
    return None


def _read(value: ir.Value | None, found: _Found) -> Elements | None:
    if value is None:
        return None
    if value in found:
        return found[value]
    numbers = integers_of(value)
    tensor = tensor_of(value)
    if numbers is None or tensor is None or len(tensor.shape) > 1:
        return None
    return Elements(numbers, scalar=len(tensor.shape) == 0)


def _shape(node: ir.Node, known: Known, _found: _Found) -> Elements | None:
    dims = known.shape(operand(node, 0))
    start, end = integer(node, "start", 0), node.attributes.get("end")
    if dims is None or start is None or (end is not None and end.is_ref()):
        return None
    part = dims[start : end.as_int() if end is not None else None]
    return Elements(part)


def _size(node: ir.Node, known: Known, _found: _Found) -> Elements | None:
    sizes = known.sizes(operand(node, 0))
    return None if sizes is None else Elements([int(np.prod(sizes, dtype=object))], scalar=True)


def _gather(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    data, indices = _read(operand(node, 0), found), _read(operand(node, 1), found)
    if data is None or indices is None or data.scalar or not indices.complete:
        return None
    places = [index for index in indices.items if isinstance(index, int)]
    if any(not -len(data.items) <= index < len(data.items) for index in places):
        return None
    return Elements([data.items[index] for index in places], scalar=indices.scalar)


def _slice(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    data = _read(operand(node, 0), found)
    if data is None or data.scalar:
        return None
    if len(node.inputs) < 2:
        starts, ends, steps = integers(node, "starts"), integers(node, "ends"), [1]
    else:
        starts, ends = integers_of(operand(node, 1)), integers_of(operand(node, 2))
        steps = [1] if operand(node, 4) is None else (integers_of(operand(node, 4)) or [])
    if starts is None or ends is None or not len(starts) == len(ends) == len(steps) == 1 or steps[0] == 0:
        return None
    start, end, step = starts[0], ends[0], steps[0]
    if step < 0:
        return None
    return Elements(data.items[slice(start, end, step)])


def _concat(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    parts = [_read(value, found) for value in node.inputs]
    items: list[Dim] = []
    for part in parts:
        if part is None or part.scalar:
            return None
        items += part.items
    return Elements(items)


def _same(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    return _read(operand(node, 0), found)


def _cast(node: ir.Node, known: Known, found: _Found) -> Elements | None:
    kinds = (ir.DataType.INT32, ir.DataType.INT64)
    data = _read(operand(node, 0), found)
    if data is None or integer(node, "to", 0) not in kinds or known.dtype(operand(node, 0)) not in kinds:
        return None
    fits = all(not isinstance(size, int) or -(2**31) <= size < 2**31 for size in data.items)
    return data if fits else None


def _unsqueeze(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    data = _read(operand(node, 0), found)
    axes = integers(node, "axes") if len(node.inputs) < 2 else integers_of(operand(node, 1))
    return Elements(data.items) if data is not None and data.scalar and axes in ([0], [-1]) else None


def _squeeze(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    data = _read(operand(node, 0), found)
    if data is None or data.scalar or len(data.items) != 1:
        return None
    return Elements(data.items, scalar=True)


def _as_vector(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
    """Reshape of a size to one element, or to a scalar."""
    data, target = _read(operand(node, 0), found), operand(node, 1)
    sizes, tensor = integers_of(target), tensor_of(target)
    if data is None or sizes is None or tensor is None or len(data.items) != 1 or sizes not in ([], [1], [-1]):
        return None
    return Elements(data.items, scalar=not sizes)


def _arithmetic(combine: Callable[[int, int], int | None]) -> Callable[[ir.Node, Known, _Found], Elements | None]:
    def rule(node: ir.Node, _known: Known, found: _Found) -> Elements | None:
        a, b = _read(operand(node, 0), found), _read(operand(node, 1), found)
        if a is None or b is None or not (len(a.items) == len(b.items) or 1 in (len(a.items), len(b.items))):
            return None
        if 0 in (len(a.items), len(b.items)):
            return None
        length = max(len(a.items), len(b.items))
        pairs = zip(a.items * (length // len(a.items)), b.items * (length // len(b.items)), strict=True)
        items = [combine(x, y) if isinstance(x, int) and isinstance(y, int) else None for x, y in pairs]
        if any(size is not None and not -(2**31) <= size < 2**31 for size in items):
            return None  # int32 would wrap around
        return Elements(items, scalar=a.scalar and b.scalar)

    return rule


def _divide(a: int, b: int) -> int | None:
    return a // b if a >= 0 and b > 0 else None


_RULES: dict[str, Callable[[ir.Node, Known, _Found], Elements | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Identity": _same,
    "Cast": _cast,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Add": _arithmetic(lambda a, b: a + b),
    "Sub": _arithmetic(lambda a, b: a - b),
    "Mul": _arithmetic(lambda a, b: a * b),
    "Div": _arithmetic(_divide),
}
