"""Draw near the nodes of a model: the node itself with other numbers, and the same with one or two things changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from edgekit.conformance.cases import RANDOM, Case
from edgekit.errors import ModelError
from edgekit.facts import shapes
from edgekit.facts.shapes import Scope, ShapeTable
from edgekit.files import sha256_bytes
from edgekit.fuzz.author import Generator, finished
from edgekit.fuzz.draw import Draw
from edgekit.model import external_data, walk
from edgekit.model import io as model_io
from edgekit.model.io import LoadedModel
from edgekit.records.tensors import NUMPY_DTYPES, Array

# Sizes above 48 keep their rest by 12, and with it every rest by 2, 3, 4 and 6, which kernels ask for.
_LARGE, _CYCLE = 48, 12
_MOST_KINDS = 400
_MOST_KEPT = 64
_MOST_ELEMENTS = 1 << 17
_DELTAS = (0, 1, -1, 2, 3, -2, -3, 4)
_FREE_SIZES = (2, 1, 3, 4, 5, 7, 8)
_CHOICES = {
    b"NOTSET": (b"SAME_UPPER", b"SAME_LOWER", b"VALID"), b"nearest": (b"linear", b"cubic"),
    b"linear": (b"nearest", b"cubic"), b"constant": (b"reflect", b"edge"), b"reflect": (b"constant", b"edge"),
    b"asymmetric": (b"half_pixel", b"align_corners"), b"half_pixel": (b"asymmetric", b"align_corners"),
    b"DCR": (b"CRD",), b"CRD": (b"DCR",), b"floor": (b"ceil", b"round_prefer_floor"),
}  # fmt: skip
_DATA = ("float32", "float16", "int32", "int8", "uint8", "bool", "float64", "int64")


@dataclass(frozen=True, eq=False)
class _Input:
    """What a node is given. ``shape``: numbers, or names of symbolic sizes. ``kept``: values that are meaning."""

    dtype: str
    shape: tuple[int | str, ...]
    constant: bool
    kept: Array | None


@dataclass(frozen=True, eq=False)
class _Seed:
    """A node of the model, by itself."""

    node: NodeProto
    imports: Mapping[str, int]
    inputs: tuple[_Input | None, ...]
    count: int = field(default=1)

    @property
    def key(self) -> bytes:
        """Equal for nodes that are alike."""
        bare = NodeProto()
        bare.CopyFrom(self.node)
        bare.name = ""
        del bare.input[:], bare.output[:]
        given = [None if i is None else (i.dtype, i.shape, i.constant, None if i.kept is None else i.kept.tolist())
                 for i in self.inputs]  # fmt: skip
        data: bytes = bare.SerializeToString(deterministic=True)
        return data + repr(given).encode()


def around(path: Path, operators: Sequence[str] = ()) -> Mapping[str, Generator]:
    """Return a generator for each kind of node of the model in ``path``, of ``operators`` only where some are named.

    Nodes whose operators have random answers or subgraphs, or whose inputs have no known rank, have none. Raises
    ModelError when the model has no node to draw near to, and what loading it and inferring its shapes raise.
    """
    model = model_io.load(path)
    table = shapes.infer(model)
    found: dict[bytes, _Seed] = {}
    for seed in _seeds(model, table):
        if not operators or _operator(seed.node) in operators:
            found.setdefault(seed.key, seed)
    if not found:
        raise ModelError(f"{path} has no node that cases can be drawn near to.", hint="Leave --ops-from or --ops out.")
    made = {}
    for key, seed in list(found.items())[:_MOST_KINDS]:
        name = f"{_operator(seed.node)} near {seed.node.name or next(iter(seed.node.output), '')}"
        made[name] = Generator(name, _near(seed), 1, sha256_bytes(key)[:12])
    return made


def _operator(node: NodeProto) -> str:
    domain = walk.domain_name(node.domain)
    return node.op_type if domain == walk.DEFAULT_DOMAIN else f"{domain}::{node.op_type}"


def _seeds(model: LoadedModel, table: ShapeTable) -> Iterator[_Seed]:
    held = {tensor.name: tensor for graph in walk.all_graphs(model.proto) for tensor in graph.initializer}
    for node in walk.all_nodes(model.proto):
        if node.op_type == "Constant" and len(node.output) == 1 and node.attribute and node.attribute[0].HasField("t"):
            held[node.output[0]] = node.attribute[0].t
    imports = {entry.domain: entry.version for entry in table.inlined.opset_import}
    for node, scope in _nodes(table.inlined.graph, ()):
        subgraph = any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute)
        if subgraph or node.op_type in RANDOM or node.op_type == "Constant" or not node.input:
            continue
        try:
            inputs = tuple(_input(model, table, held, name, scope) if name else None for name in node.input)
        except LookupError:
            continue
        yield _Seed(node, imports, inputs)


def _nodes(graph: onnx.GraphProto, scope: Scope) -> Iterator[tuple[NodeProto, Scope]]:
    yield from ((node, scope) for node in graph.node)
    for _, inner, subgraph in shapes.nested(graph.node, scope):
        yield from _nodes(subgraph, inner)


def _input(model: LoadedModel, table: ShapeTable, held: Mapping[str, TensorProto], name: str, scope: Scope) -> _Input:
    """Return what is known of an input. Raises LookupError where that is not enough to draw one."""
    known, tensor = table.look(name, scope), held.get(name)
    if known is None or known.dtype not in _DATA or known.shape is None:
        raise LookupError(name)
    shape = tuple(f"{name}[{axis}]" if size is None else size for axis, size in enumerate(known.shape))
    kept = None
    if tensor is not None:
        count = int(np.prod(tensor.dims)) if tensor.dims else 1
        whole = known.dtype in ("int64", "int32", "bool")
        if (whole and count <= _MOST_KEPT) or count == 1:
            kept = _values(model, tensor)
    return _Input(known.dtype, shape, tensor is not None, kept)


def _values(model: LoadedModel, tensor: TensorProto) -> Array:
    try:
        return np.array(model_io.to_array(model, tensor)) if external_data.tensor_bytes(tensor) else np.zeros(0)
    except (ModelError, ValueError, TypeError) as error:
        raise LookupError(tensor.name) from error


def _near(seed: _Seed) -> Callable[[Draw], Case | None]:
    def make(draw: Draw) -> Case | None:
        sizes = _sizes(draw, seed)
        node = NodeProto()
        node.CopyFrom(seed.node)
        node.name = "n0"
        del node.input[:], node.output[:]
        node.output.extend(f"y{place}" if name else "" for place, name in enumerate(seed.node.output))
        _change_attributes(draw, node)
        given: dict[str, Array] = {}
        held: list[TensorProto] = []
        for place, one in enumerate(seed.inputs):
            name = f"x{place}" if one is not None else ""
            node.input.append(name)
            if one is None:
                continue
            array = _array(draw, name, one, sizes)
            if array.size > _MOST_ELEMENTS or not array.size:
                return None
            if one.constant and (one.kept is not None or not draw.flag(f"{name} given")):
                held.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
            else:
                given[name] = array
        return finished(_model(node, seed.imports, given, held), given) if given else None

    return make


def _model(
    node: NodeProto, imports: Mapping[str, int], given: Mapping[str, Array], held: Sequence[TensorProto]
) -> ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "g", infos, outputs, held)
    wanted = [helper.make_opsetid(*entry) for entry in imports.items()]
    model = helper.make_model(graph, opset_imports=wanted)
    model.ir_version = max(8, helper.find_min_ir_version_for(wanted, ignore_unknown=True))
    return model


def _sizes(draw: Draw, seed: _Seed) -> Callable[[int | str], int]:
    """Return how sizes of the node become sizes of the case: equal ones stay equal."""
    own = draw.flag("own sizes")
    distinct = sorted({size for one in seed.inputs if one is not None for size in one.shape if isinstance(size, int)})
    changed = draw.pick("size changed", (None, *distinct))
    delta = draw.pick("by", _DELTAS) if changed is not None else 0

    def size(value: int | str) -> int:
        if isinstance(value, str):
            return draw.pick(f"size {value}", _FREE_SIZES)
        small = value if own or value <= _LARGE else _LARGE - _CYCLE + value % _CYCLE
        return max(1, small + (delta if value == changed else 0))

    return size


def _array(draw: Draw, name: str, one: _Input, sizes: Callable[[int | str], int]) -> Array:
    if one.kept is not None:
        kept = one.kept.astype(NUMPY_DTYPES[one.dtype])
        if kept.dtype.kind == "i" and kept.size and draw.flag(f"{name} changed"):
            place = draw.pick(f"{name} place", range(kept.size))
            kept = kept.copy()
            kept.ravel()[place] += draw.pick(f"{name} by", _DELTAS)
        return kept
    shape = [sizes(size) for size in one.shape]
    if one.dtype == "int64":  # most often indices
        return draw.numbers(name, shape, one.dtype, 0, 1)
    return draw.numbers(name, shape, one.dtype, -2, 2)


def _change_attributes(draw: Draw, node: NodeProto) -> None:
    """Change at most one attribute: a number of a list, a flag, a word."""
    able = [a for a in node.attribute if a.type in (AttributeProto.INT, AttributeProto.INTS) or a.s in _CHOICES]
    place = draw.pick("attribute", (None, *range(len(able))))
    if place is None:
        return
    attribute = able[place]
    if attribute.type == AttributeProto.INTS and attribute.ints:
        at = draw.pick("attribute at", range(len(attribute.ints)))
        attribute.ints[at] = max(0, attribute.ints[at] + draw.pick("attribute by", _DELTAS[1:]))
    elif attribute.type == AttributeProto.INT:
        flag = attribute.i in (0, 1) and attribute.name not in ("axis", "group")
        attribute.i = 1 - attribute.i if flag else attribute.i + draw.pick("attribute by", _DELTAS[1:])
    elif attribute.s in _CHOICES:
        attribute.s = draw.pick("attribute word", _CHOICES[attribute.s])
