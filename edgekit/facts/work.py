"""How much a run computes and how much memory its values take: an estimate from shapes, nothing is run.

Multiply-accumulates are counted as the operators define them. The peak of memory is that of the values alive at one
node, in the order in which the nodes stand, without weights: a runtime may need less (it computes in place) or more
(it keeps blocks for later, and some kernels need room to work).
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import onnx

from edgekit.facts import macs
from edgekit.facts.places import NodePlace, place
from edgekit.facts.shapes import Scope, ShapeTable, nested
from edgekit.facts.strip import STRIPPED_DOMAIN, reads
from edgekit.facts.types import ValueType, dtype_name
from edgekit.model import external_data
from edgekit.model.walk import DEFAULT_DOMAIN, domain_name

_MOST_AXES = 64  # numpy's limit, and more than any runtime's
_LARGEST = 10
_BITS = {dtype_name(data_type): bits for data_type, bits in external_data.BITS.items()}


@dataclass(frozen=True)
class OperatorWork:
    """What all nodes of one operator do. ``unknown``: nodes whose work cannot be told, for want of a shape."""

    domain: str
    op_type: str
    nodes: int
    macs: int
    output_bytes: int
    unknown: int


@dataclass(frozen=True)
class Activation:
    """A value that a node gives. ``graph``: "" for the main one."""

    name: str
    graph: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class Work:
    """An estimate for ``dims``; of these, ``assumed`` were not given.

    Of the branches of an If the one that does more counts. The body of a Scan, and of a Loop whose trip count is a
    constant, counts as often as it runs; that of another Loop once. Where shapes are unknown (``unknown_values`` of
    them), the figures are what is known at least. ``notes`` say what else the figures leave out.
    """

    dims: Mapping[str, int]
    assumed: tuple[str, ...]
    missing_dims: tuple[str, ...]
    macs: int
    peak_bytes: int
    peak_at: NodePlace | None
    operators: tuple[OperatorWork, ...]
    largest: tuple[Activation, ...]
    values: int
    unknown_values: int
    notes: tuple[str, ...]


@dataclass
class _Sum:
    """What one graph comes to."""

    macs: int = 0
    peak_bytes: int = 0
    peak_at: NodePlace | None = None
    rows: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(
        self, key: tuple[str, str], *, nodes: int = 0, macs: int = 0, output_bytes: int = 0, unknown: int = 0
    ) -> None:
        row = self.rows.setdefault(key, [0, 0, 0, 0])
        for index, number in enumerate((nodes, macs, output_bytes, unknown)):
            row[index] += number
        self.macs += macs

    def take(self, other: "_Sum", times: int) -> None:
        for key, (nodes, count, output_bytes, unknown) in other.rows.items():
            self.add(key, nodes=nodes, macs=count * times, output_bytes=output_bytes * times, unknown=unknown)


def estimate(table: ShapeTable, *, assumed: Sequence[str] = (), missing: Sequence[str] = ()) -> Work:
    """Estimate the work of one run from inferred shapes. ``assumed``, ``missing``: dimensions, for the record."""
    counter = _Counter(table)
    total = counter.graph(table.inlined.graph, (), "")
    order = sorted(total.rows.items(), key=lambda row: (-row[1][1], -row[1][2], row[0]))
    largest = sorted(counter.activations, key=lambda each: (-each.bytes, each.graph, each.name))
    return Work(
        dims=dict(table.dims),
        assumed=tuple(assumed),
        missing_dims=tuple(missing),
        macs=total.macs,
        peak_bytes=total.peak_bytes,
        peak_at=total.peak_at,
        operators=tuple(OperatorWork(domain, op_type, *row) for (domain, op_type), row in order),
        largest=tuple(largest[:_LARGEST]),
        values=counter.values,
        unknown_values=counter.unknown_values,
        notes=tuple(dict.fromkeys(counter.notes)),
    )


class _Counter:
    def __init__(self, table: ShapeTable) -> None:
        self.table = table
        self.activations: list[Activation] = []
        self.values = 0
        self.unknown_values = 0
        self.notes: list[str] = []
        self.sizes: dict[Scope, dict[str, tuple[tuple[int, ...] | None, int | None]]] = {}
        self.constants = _whole_numbers(table.inlined.graph)

    def graph(self, graph: onnx.GraphProto, scope: Scope, path: str) -> _Sum:
        """Sum up one graph; its peak does not count what lives around it."""
        total = _Sum()
        stored = {tensor.name for tensor in graph.initializer}
        last = _last_reads(graph)
        alive: dict[str, int] = {}
        for info in graph.input if not scope else ():
            if info.name not in stored:
                alive[info.name] = self.bytes(info.name, scope) or 0
        held = sum(alive.values())
        for index, node in enumerate(graph.node):
            if _is_constant(node):
                total.add((DEFAULT_DOMAIN, "Constant"), nodes=1)
                continue
            inner_peak = self.node(node, scope, path, total)
            for name in filter(None, node.output):
                held -= alive.get(name, 0)
                alive[name] = self.learn(name, scope, path)
                held += alive[name]
            now = held + inner_peak
            if now > total.peak_bytes:
                total.peak_bytes, total.peak_at = now, place(node, path)
            for name in last.get(index, ()):
                held -= alive.pop(name, 0)
        return total

    def node(self, node: onnx.NodeProto, scope: Scope, path: str, total: _Sum) -> int:
        """Add one node and what is in it to ``total``; return the peak of the graphs in it."""
        key = (domain_name(node.domain), node.op_type)
        inner = [
            self.graph(graph, inner_scope, f"{path}/{'.'.join(inner_scope[-2:])}".removeprefix("/"))
            for _, inner_scope, graph in nested([node], scope)
        ]
        if inner and node.op_type == "If":
            total.take(max(inner, key=lambda each: (each.macs, each.peak_bytes)), 1)
            self.notes.append("Of the branches of an If the one that computes more is counted.")
        elif inner:
            times = self.trips(node, scope)
            for each in inner:
                total.take(each, times)
        shapes_in = [self.shape(name, scope) for name in node.input]
        shapes_out = [self.shape(name, scope) for name in node.output]
        try:
            total.add(
                key, nodes=1, macs=macs.count(node, shapes_in, shapes_out), output_bytes=self.outputs(node, scope)
            )
        except macs.UnknownShapeError:
            total.add(key, nodes=1, unknown=1, output_bytes=self.outputs(node, scope))
        if key in macs.UNCOUNTED:
            self.notes.append(f"What {node.op_type} computes is not counted.")
        elif key[0] not in (DEFAULT_DOMAIN, "ai.onnx.ml") and not macs.is_known(*key):
            self.notes.append(f"What {node.op_type} of {key[0]} computes is not known.")
        return max((each.peak_bytes for each in inner), default=0)

    def trips(self, node: onnx.NodeProto, scope: Scope) -> int:
        """How often the body of a Loop or Scan runs; 1 where that is unknown, which is noted."""
        if node.op_type == "Scan":
            bodies = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
            axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [])
            shape = self.shape(node.input[-bodies], scope) if 0 < bodies <= len(node.input) else None
            axis = axes[0] if axes else 0
            if shape is not None and -len(shape) <= axis < len(shape):
                return shape[axis]
        elif node.op_type == "Loop" and node.input and (count := self.constants.get(node.input[0])) is not None:
            return count
        self.notes.append(f"The body of {node.op_type} {place(node, '').node} is counted once: it runs as data decide.")
        return 1

    def learn(self, name: str, scope: Scope, path: str) -> int:
        """Note a value that a node gives; return its bytes, 0 where they are unknown."""
        self.values += 1
        (shape, size), kind = self.size(name, scope), self.table.look(name, scope)
        if size is None:
            self.unknown_values += 1
            return 0
        if kind is not None and kind.dtype is not None and shape is not None:
            self.activations.append(Activation(name, path, kind.dtype, shape, size))
        return size

    def outputs(self, node: onnx.NodeProto, scope: Scope) -> int:
        return sum(self.bytes(name, scope) or 0 for name in node.output if name)

    def shape(self, name: str, scope: Scope) -> tuple[int, ...] | None:
        return self.size(name, scope)[0] if name else None

    def bytes(self, name: str, scope: Scope) -> int | None:
        """Bytes of a value, packed; None where its type or shape is unknown. A string counts as a pointer."""
        return self.size(name, scope)[1]

    def size(self, name: str, scope: Scope) -> tuple[tuple[int, ...] | None, int | None]:
        """The shape and the bytes of a value, looked up once in each scope."""
        known = self.sizes.setdefault(scope, {})
        if name not in known:
            kind = self.table.look(name, scope)
            shape = None if kind is None else _known(kind)
            packed = None
            if kind is not None and shape is not None:
                packed = (math.prod(shape) * _BITS.get(kind.dtype or "", 64) + 7) // 8
            known[name] = shape, packed
        return known[name]


def _whole_numbers(graph: onnx.GraphProto) -> dict[str, int]:
    """Single whole numbers that a graph stores, by name."""
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    for node in graph.node:
        if node.op_type == "Constant":
            tensors += [(node.output[0], each.t) for each in node.attribute if each.name == "value"]
    single = [(name, t) for name, t in tensors if t.data_type == onnx.TensorProto.INT64 and list(t.dims) in ([], [1])]
    found: dict[str, int] = {}
    for name, tensor in single:
        with suppress(ValueError):  # its bytes do not fill its shape
            found[name] = max(0, int(onnx.numpy_helper.to_array(tensor).item()))
    return found


def _known(kind: ValueType) -> tuple[int, ...] | None:
    """The shape where every size is known; of a rank that no tensor has, the product alone would take hours."""
    if len(kind.shape or ()) > _MOST_AXES:
        return None
    sizes = [size for size in kind.shape or () if isinstance(size, int)]
    return None if kind.shape is None or len(sizes) < len(kind.shape) else tuple(sizes)


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and domain_name(node.domain) in (DEFAULT_DOMAIN, STRIPPED_DOMAIN)


def _last_reads(graph: onnx.GraphProto) -> dict[int, list[str]]:
    """Map the place of a node to the values that are read there for the last time. Outputs live to the end."""
    last = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    for index, node in enumerate(graph.node):
        last.update(dict.fromkeys(reads(node), index))
    kept = {info.name for info in graph.output} | {info.name for info in graph.input}
    found: dict[int, list[str]] = {}
    for name, index in last.items():
        if name not in kept:
            found.setdefault(index, []).append(name)
    return found
