"""Compute in int32 what int64 is not needed for: WebGPU has no 64-bit integers.

Places of nodes that must have one type, and the values between them, form islands. An island becomes int32 where every
number in it is proven to fit, and where more nodes leave int64 than casts come in at its shores. Inputs and outputs of
the model, and what ONNX takes or gives as int64 alone (the shape of a Reshape, a Shape), stay what they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.passes.int_ranges import Range, Ranges, hull
from edgekit.passes.values import Known, insert, integer, is_standard, operand, tensor_of

NAME = "int64 to int32"
_INT32 = (-(2**31), 2**31 - 1)
_NARROW = {ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16,
           ir.DataType.INT32}  # fmt: skip

# The places of one type: of inputs, of outputs. None: all of them.
_Places = tuple[tuple[int, ...] | None, tuple[int, ...] | None]

_MOVED: tuple[_Places, ...] = (((0,), (0,)),)
_GROUPS: dict[str, tuple[_Places, ...]] = {
    **dict.fromkeys(
        ("Identity", "Neg", "Abs", "Flatten", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Tile",
         "GatherND"),
        _MOVED,
    ),
    **dict.fromkeys(("Gather", "GatherElements"), (*_MOVED, ((1,), ()))),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod"), (((0, 1), (0,)),)),
    **dict.fromkeys(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"), (((0, 1), ()),)),
    **dict.fromkeys(("Concat", "Max", "Min"), ((None, (0,)),)),
    "Slice": (*_MOVED, ((1, 2, 3, 4), ())),
    "Split": (((0,), None),),
    "Where": (((1, 2), (0,)),),
    "Pad": (((0, 2), (0,)),),
    "Clip": (((0, 1, 2), (0,)),),
    "Range": (((0, 1, 2), (0,)),),
}  # fmt: skip


@dataclass(frozen=True)
class Narrowed:
    """``nodes`` that left int64, ``casts`` that came in, and the ``range`` of every number that was concerned."""

    nodes: int
    casts: int
    range: Range


@dataclass(frozen=True, eq=False)
class _Slot:
    """Places of a node that have one type, and can be int32."""

    node: ir.Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def read(self) -> list[ir.Value]:
        """What comes from other nodes; constants have a copy in int32."""
        return [value for value in map(self.node.inputs.__getitem__, self.inputs) if not _is_constant(value)]  # type: ignore[misc]

    def made(self) -> list[ir.Value]:
        return [self.node.outputs[place] for place in self.outputs]

    def values(self) -> list[ir.Value | None]:
        return [*(self.node.inputs[place] for place in self.inputs), *self.made()]


def apply(model: ir.Model, known: Known, most: Mapping[str, int]) -> Narrowed | None:
    """Rewrite every island that pays. ``most``: the largest size of a symbol of ``known``. Nodes must be sorted.

    Returns what was done, None for nothing. Local functions stay: what they are called with is not known.
    """
    ranges = Ranges(model.graph, known, most)
    slots = [slot for node in _nodes(model.graph) for slot in _slots(node, known, ranges)]
    done: list[Narrowed] = []
    copies: dict[ir.Value, ir.Value] = {}
    for island in _islands(slots):
        shore = _Shore(island)
        moved = len({slot.node for slot in island})
        if moved > shore.casts:
            spans = [ranges.of(value) for slot in island for value in slot.values() if value is not None]
            shore.rewrite(copies)
            done.append(Narrowed(moved, shore.casts, hull(*spans) or _INT32))
    if not done:
        return None
    return Narrowed(sum(d.nodes for d in done), sum(d.casts for d in done), hull(*(d.range for d in done)) or _INT32)


def _nodes(graph: ir.Graph) -> Iterable[ir.Node]:
    for node in list(graph):
        yield node
        for attribute in node.attributes.values():
            if not attribute.is_ref() and attribute.type == ir.AttributeType.GRAPH:
                yield from _nodes(attribute.as_graph())


def _is_constant(value: ir.Value | None) -> bool:
    return value is None or tensor_of(value) is not None


def _slots(node: ir.Node, known: Known, ranges: Ranges) -> Iterable[_Slot]:
    """The slots of a node whose every value is int64 and proven to fit."""
    for inputs, outputs in _places(node, known):
        taken = range(len(node.inputs)) if inputs is None else inputs
        slot = _Slot(
            node,
            tuple(place for place in taken if operand(node, place) is not None),
            tuple(range(len(node.outputs))) if outputs is None else outputs,
        )
        values = slot.values()
        if values and all(known.dtype(v) == ir.DataType.INT64 and _fits(ranges.of(v)) for v in values):
            yield slot


def _places(node: ir.Node, known: Known) -> tuple[_Places, ...]:
    if not is_standard(node):
        return ()
    if node.op_type == "Cast":
        if integer(node, "to", 0) != ir.DataType.INT64:
            return (((0,), ()),)
        return (((), (0,)),) if known.dtype(operand(node, 0)) in _NARROW else ()
    if node.op_type == "ConstantOfShape" and "value" in node.attributes:
        return (((), (0,)),)
    return _GROUPS.get(node.op_type, ())


def _fits(found: Range | None) -> bool:
    return found is not None and _INT32[0] <= found[0] and found[1] <= _INT32[1]


def _islands(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    """Group the slots that share a value."""
    parent = list(range(len(slots)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[ir.Value, int] = {}
    for number, slot in enumerate(slots):
        for value in (*slot.read(), *slot.made()):
            parent[root(number)] = root(first.setdefault(value, number))
    groups: dict[int, list[_Slot]] = {}
    for number, slot in enumerate(slots):
        groups.setdefault(root(number), []).append(slot)
    return list(groups.values())


class _Shore:
    """Where an island meets int64: what it reads from outside, and what outside needs of it."""

    def __init__(self, island: Sequence[_Slot]) -> None:
        self.island = island
        self.inside = {(slot.node, place) for slot in island for place in slot.inputs}
        made = {value for slot in island for value in slot.made()}
        self.read = list(dict.fromkeys(v for slot in island for v in slot.read() if v not in made))
        self.needed = [
            value
            for slot in island
            for value in slot.made()
            if value.is_graph_output() or any((use.node, use.idx) not in self.inside for use in value.uses())
        ]

    @property
    def casts(self) -> int:
        return len(self.read) + len(self.needed)

    def rewrite(self, copies: dict[ir.Value, ir.Value]) -> None:
        """Make the island int32."""
        for value in self.read:
            narrow = _cast(value, ir.DataType.INT32)
            for use in list(value.uses()):
                if (use.node, use.idx) in self.inside:
                    use.node.replace_input_with(use.idx, narrow)
        for value in self.needed:
            self._give_back(value)
        for slot in self.island:
            for place in slot.inputs:
                _narrow_constant(slot.node, place, copies)
            for value in slot.made():
                value.type = ir.TensorType(ir.DataType.INT32)
            if slot.outputs and slot.node.op_type == "Cast":
                slot.node.attributes["to"] = ir.AttrInt64("to", int(ir.DataType.INT32))
            elif slot.node.op_type == "ConstantOfShape":
                filled = slot.node.attributes["value"].as_tensor().numpy().astype(np.int32)
                slot.node.attributes["value"] = ir.AttrTensor("value", ir.tensor(filled))

    def _give_back(self, value: ir.Value) -> None:
        """Let what is outside read an int64 copy, which takes the name where it is an output."""
        wide = _cast(value, ir.DataType.INT64)
        for use in list(value.uses()):
            if (use.node, use.idx) not in self.inside and use.node is not wide.producer():
                use.node.replace_input_with(use.idx, wide)
        maker = value.producer()
        if value.is_graph_output() and maker is not None and maker.graph is not None:
            wide.shape = value.shape
            value.name, wide.name = f"{value.name}__int32", value.name
            wide.doc_string = value.doc_string
            outputs = maker.graph.outputs
            for place in [place for place, output in enumerate(outputs) if output is value]:
                outputs[place] = wide


def _cast(value: ir.Value, dtype: ir.DataType) -> ir.Value:
    """Put a Cast right after the node that makes a value."""
    maker = value.producer()
    assert maker is not None and maker.graph is not None  # noqa: S101  nothing is proven of what no node makes
    output = ir.Value(name=f"{value.name}__{dtype.name.lower()}", type=ir.TensorType(dtype))
    cast = ir.node("Cast", [value], {"to": int(dtype)}, outputs=[output])
    maker.graph.insert_after(maker, cast)
    cast.name = None
    return output


def _narrow_constant(node: ir.Node, place: int, copies: dict[ir.Value, ir.Value]) -> None:
    """Let a node read a copy of a constant in int32: one of each, where the constant itself is."""
    value = operand(node, place)
    tensor = tensor_of(value)
    if value is None or tensor is None or tensor.dtype != ir.DataType.INT64:
        return
    if value not in copies:
        copy = ir.node("Constant", [], {"value": ir.tensor(tensor.numpy().astype(np.int32))})
        copy.outputs[0].name = f"{value.name}__int32"
        maker = value.producer()
        graph = value.graph if maker is None else maker.graph
        insert(graph[0] if maker is None and graph is not None else maker or node, copy)
        copies[value] = copy.outputs[0]
    node.replace_input_with(place, copies[value])
