"""Between which numbers the elements of integer values lie, by interval arithmetic over the graph.

Nothing is assumed of an input of the model. A size that is not known is at most what the caller says of that dimension,
else 2**31 - 1: no tensor of a browser or of a WebGPU buffer is longer. A range that int64 itself could not hold is
unknown, because int64 would have wrapped around.
"""

from collections.abc import Callable, Mapping

import onnx_ir as ir

from edgekit.passes.values import Known, integer, is_standard, operand, tensor_of

SIZE_MOST = 2**31 - 1
_INT64 = (-(2**63), 2**63 - 1)
_MOST_ELEMENTS = 1 << 16

# From the least to the largest, both included.
Range = tuple[int, int]

_WIDTHS: dict[ir.DataType, Range] = {
    ir.DataType.BOOL: (0, 1),
    ir.DataType.INT8: (-(2**7), 2**7 - 1),
    ir.DataType.UINT8: (0, 2**8 - 1),
    ir.DataType.INT16: (-(2**15), 2**15 - 1),
    ir.DataType.UINT16: (0, 2**16 - 1),
    ir.DataType.INT32: (-(2**31), 2**31 - 1),
}


class Ranges:
    """What is proven of each value of the main graph and of the graphs nested in it."""

    def __init__(self, graph: ir.Graph, known: Known, most: Mapping[str, int]) -> None:
        """``most``: the largest size of a symbol of ``known``. Nodes must be sorted."""
        self.known, self.most = known, most
        self._found: dict[ir.Value, Range | None] = {}
        self._graph(graph)

    def of(self, value: ir.Value | None) -> Range | None:
        """Return the range of a value; None where none is proven."""
        if value is None:
            return None
        if value not in self._found:
            self._found[value] = self._constant(value)
        return self._found[value]

    def size(self, dim: int | str | None) -> Range:
        """Return the range of a dimension."""
        if isinstance(dim, int):
            return dim, dim
        return 0, min(SIZE_MOST, self.most.get(dim, SIZE_MOST) if dim is not None else SIZE_MOST)

    def _constant(self, value: ir.Value) -> Range | None:
        tensor = tensor_of(value)
        if tensor is None or tensor.size > _MOST_ELEMENTS or not tensor.dtype.is_integer():
            return _WIDTHS.get(self.known.dtype(value) or ir.DataType.UNDEFINED)
        try:
            array = tensor.numpy()
        except (ValueError, TypeError, OSError):  # a damaged tensor: whoever runs the model says so
            return None
        return (int(array.min()), int(array.max())) if array.size else (0, 0)

    def _graph(self, graph: ir.Graph) -> None:
        for node in graph:
            for attribute in node.attributes.values():
                if not attribute.is_ref() and attribute.type == ir.AttributeType.GRAPH:
                    self._graph(attribute.as_graph())
            rule = _RULES.get(node.op_type)
            if rule is None or not is_standard(node):
                continue
            found = rule(node, self)
            for output in node.outputs:
                self._found[output] = self._held(output, found)

    def _held(self, value: ir.Value, found: Range | None) -> Range | None:
        """Hold a range to the value's type: what does not fit there has wrapped around, and may be anything."""
        dtype = self.known.dtype(value) or ir.DataType.UNDEFINED
        width = _INT64 if dtype == ir.DataType.INT64 else _WIDTHS.get(dtype)
        if width is None:
            return None
        if found is not None and width[0] <= found[0] and found[1] <= width[1]:
            return found
        return None if width is _INT64 else width


def hull(*parts: Range | None) -> Range | None:
    """Return the range that holds all of these; None where one is unknown."""
    sure = [part for part in parts if part is not None]
    if not sure or len(sure) < len(parts):
        return None
    return min(low for low, _ in sure), max(high for _, high in sure)


def _first(node: ir.Node, ranges: Ranges) -> Range | None:
    return ranges.of(operand(node, 0))


def _all(node: ir.Node, ranges: Ranges) -> Range | None:
    return hull(*(ranges.of(value) for value in node.inputs))


def _where(node: ir.Node, ranges: Ranges) -> Range | None:
    return hull(ranges.of(operand(node, 1)), ranges.of(operand(node, 2)))


def _pad(node: ir.Node, ranges: Ranges) -> Range | None:
    """What is added is the third input, 0 where there is none."""
    fill = operand(node, 2)
    return hull(ranges.of(operand(node, 0)), (0, 0) if fill is None else ranges.of(fill))


def _if(node: ir.Node, ranges: Ranges) -> Range | None:
    """Of a single output, for the result is said of every output."""
    if len(node.outputs) != 1:
        return None
    branches = [node.attributes.get(name) for name in ("then_branch", "else_branch")]
    ends = [b.as_graph().outputs for b in branches if b is not None and b.type == ir.AttributeType.GRAPH]
    return hull(*(ranges.of(end[0]) for end in ends)) if len(ends) == 2 and all(ends) else None


def _shape(node: ir.Node, ranges: Ranges) -> Range | None:
    dims = ranges.known.shape(operand(node, 0))
    start, end = integer(node, "start", 0), node.attributes.get("end")
    if dims is None or start is None or (end is not None and end.is_ref()):
        return 0, SIZE_MOST
    part = dims[start : end.as_int() if end is not None else None]
    return hull(*(ranges.size(dim) for dim in part)) if part else (0, 0)


def _count(_node: ir.Node, _ranges: Ranges) -> Range:
    return 0, SIZE_MOST


def _place(axis: int | None) -> Callable[[ir.Node, Ranges], Range | None]:
    """The place of an element on one axis (the default of the operator), or on any (None)."""

    def rule(node: ir.Node, ranges: Ranges) -> Range | None:
        dims = ranges.known.shape(operand(node, 0))
        chosen = None if axis is None else integer(node, "axis", axis)
        if dims and chosen is not None and -len(dims) <= chosen < len(dims):
            dims = (dims[chosen],)
        most = max((ranges.size(dim)[1] for dim in dims), default=1) if dims else SIZE_MOST
        return 0, max(most - 1, 0)

    return rule


def _cast(node: ir.Node, ranges: Ranges) -> Range | None:
    """Of whole numbers; those that a narrower type cannot hold become anything of that type."""
    source = ranges.known.dtype(operand(node, 0))
    if source is None or not (source.is_integer() or source == ir.DataType.BOOL):
        return None
    return ranges.of(operand(node, 0))


def _arithmetic(combine: Callable[[Range, Range], Range | None]) -> Callable[[ir.Node, Ranges], Range | None]:
    def rule(node: ir.Node, ranges: Ranges) -> Range | None:
        a, b = ranges.of(operand(node, 0)), ranges.of(operand(node, 1))
        return None if a is None or b is None else combine(a, b)

    return rule


def _multiply(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _divide(a: Range, b: Range) -> Range | None:
    """Integers are divided towards zero. Nothing is said where the divisor may be zero."""
    if b[0] <= 0 <= b[1]:
        return None
    corners = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    return min(corners), max(corners)


def _modulo(node: ir.Node, ranges: Ranges) -> Range | None:
    b = ranges.of(operand(node, 1))
    if b is None or b[0] <= 0:
        return None
    return (1 - b[1] if integer(node, "fmod", 0) != 0 else 0), b[1] - 1


def _negate(node: ir.Node, ranges: Ranges) -> Range | None:
    found = _first(node, ranges)
    return None if found is None else (-found[1], -found[0])


def _absolute(node: ir.Node, ranges: Ranges) -> Range | None:
    found = _first(node, ranges)
    if found is None:
        return None
    least = 0 if found[0] <= 0 <= found[1] else min(map(abs, found))
    return least, max(map(abs, found))


def _extreme(pick: Callable[..., int]) -> Callable[[ir.Node, Ranges], Range | None]:
    def rule(node: ir.Node, ranges: Ranges) -> Range | None:
        parts = [ranges.of(value) for value in node.inputs]
        sure = [part for part in parts if part is not None]
        return (pick(p[0] for p in sure), pick(p[1] for p in sure)) if sure and len(sure) == len(parts) else None

    return rule


def _clip(node: ir.Node, ranges: Ranges) -> Range | None:
    """min(max(x, low), high), each end of which may be left out."""
    x = ranges.of(operand(node, 0)) or _INT64
    low, high = operand(node, 1), operand(node, 2)
    least = _INT64 if low is None else ranges.of(low)
    most = _INT64 if high is None else ranges.of(high)
    if least is None or most is None:
        return None
    bottom = x[0] if low is None else max(x[0], least[0])
    top = x[1] if low is None else max(x[1], least[1])
    return (bottom, top) if high is None else (min(bottom, most[0]), min(top, most[1]))


def _range(node: ir.Node, ranges: Ranges) -> Range | None:
    return hull(ranges.of(operand(node, 0)), ranges.of(operand(node, 1)))


def _filled(node: ir.Node, _ranges: Ranges) -> Range | None:
    value = node.attributes.get("value")
    if value is None or value.is_ref() or value.type != ir.AttributeType.TENSOR:
        return None
    tensor = value.as_tensor()
    return (int(tensor.numpy().min()), int(tensor.numpy().max())) if tensor.dtype.is_integer() and tensor.size else None


_RULES: dict[str, Callable[[ir.Node, Ranges], Range | None]] = {
    **dict.fromkeys(
        (
            "Identity", "Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Flatten",
            "Transpose", "Expand", "Tile", "Split",
        ),
        _first,
    ),
    **dict.fromkeys(("ArgMax", "ArgMin"), _place(0)),
    "TopK": _place(-1),
    "NonZero": _place(None),
    "Size": _count,
    "Concat": _all,
    "Where": _where,
    "Pad": _pad,
    "If": _if,
    "Shape": _shape,
    "Cast": _cast,
    "Add": _arithmetic(lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "Sub": _arithmetic(lambda a, b: (a[0] - b[1], a[1] - b[0])),
    "Mul": _arithmetic(_multiply),
    "Div": _arithmetic(_divide),
    "Mod": _modulo,
    "Neg": _negate,
    "Abs": _absolute,
    "Max": _extreme(max),
    "Min": _extreme(min),
    "Clip": _clip,
    "Range": _range,
    "ConstantOfShape": _filled,
}  # fmt: skip
