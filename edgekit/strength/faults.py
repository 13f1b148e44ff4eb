"""The ways in which a model can be faulty at one node, and how to make it so. Pure surgery on a graph."""

import math
from collections.abc import Iterator, Mapping, MutableSequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import onnx
import onnx.numpy_helper

from edgekit.facts.places import label
from edgekit.facts.shapes import Scope, ShapeTable
from edgekit.golden.disturb import FLOAT_TYPES, INT8_TYPES, ML_WEIGHTS, NOT_WEIGHTS, disturbed
from edgekit.model import external_data
from edgekit.model import io as models
from edgekit.model.io import LoadedModel
from edgekit.records.strength import FaultKind
from edgekit.records.tensors import NUMPY_DTYPES

_STANDARD = ("", "ai.onnx")
# Where an operator takes its bias. An Add of one constant is one too.
_BIAS = {
    "Conv": 2, "ConvTranspose": 2, "Gemm": 2, "LayerNormalization": 2, "BatchNormalization": 2,
    "InstanceNormalization": 2, "GroupNormalization": 2, "LSTM": 3, "GRU": 3, "RNN": 3, "QLinearConv": 8,
}  # fmt: skip
# Where an operator takes axes as a constant.
_AXES = {"Squeeze": 1, "Unsqueeze": 1, "Slice": 3, "CumSum": 1}
_FLAGS = (
    "keepdims", "transA", "transB", "ceil_mode", "count_include_pad", "align_corners", "largest", "exclusive",
    "reverse", "select_last_index", "linear_before_reset", "exclude_outside", "detect_negative",
)  # fmt: skip
_SCALES = ("alpha", "beta", "gamma", "lambd", "bias", "clip", "cubic_coeff_a")
_OTHER_WORD = {
    "mode": {"nearest": "linear", "linear": "nearest", "constant": "edge", "reflect": "edge", "edge": "reflect",
             "bilinear": "nearest", "cubic": "linear", "DCR": "CRD", "CRD": "DCR"},
    "coordinate_transformation_mode": {"half_pixel": "asymmetric", "asymmetric": "half_pixel",
                                       "align_corners": "half_pixel", "pytorch_half_pixel": "asymmetric"},
    "nearest_mode": {"floor": "ceil", "ceil": "floor", "round_prefer_floor": "ceil", "round_prefer_ceil": "floor"},
    "padding_mode": {"zeros": "border", "border": "zeros", "reflection": "zeros"},
    "approximate": {"none": "tanh", "tanh": "none"},
    "direction": {"forward": "reverse", "reverse": "forward", "LEFT": "RIGHT", "RIGHT": "LEFT"},
    "reduction": {"add": "max", "mul": "add", "max": "min", "min": "max", "none": "add"},
    "post_transform": {"NONE": "LOGISTIC", "SOFTMAX": "LOGISTIC", "LOGISTIC": "NONE"},
}  # fmt: skip

Tensors = Mapping[str, onnx.TensorProto]


@dataclass(frozen=True)
class Fault:
    """One fault of one node: ``site`` is the node's place in the walk, ``place`` the input, output or attribute.

    ``step``: of two ways to make it wrong there, which one. ``what`` says it for a person.
    """

    site: int
    kind: FaultKind
    node: str
    op_type: str
    place: str
    step: int
    what: str


@dataclass(frozen=True)
class _Site:
    """A node, the list that it stands in, the constants that it sees, and the graph's scope; None in a function."""

    index: int
    nodes: MutableSequence[onnx.NodeProto]
    node: onnx.NodeProto
    constants: Tensors
    scope: Scope | None


@dataclass
class _Walk:
    count: int = 0
    sites: list[_Site] = field(default_factory=list)


def sites(proto: onnx.ModelProto) -> list[_Site]:
    """Return every node that is no constant, in an order that depends on the model alone."""
    walk = _Walk()
    _visit(walk, proto.graph.node, proto.graph.initializer, {}, ())
    for function in proto.functions:
        _visit(walk, function.node, (), {}, None)
    return walk.sites


def _visit(
    walk: _Walk,
    nodes: MutableSequence[onnx.NodeProto],
    initializers: "MutableSequence[onnx.TensorProto] | tuple[()]",
    outer: Tensors,
    scope: Scope | None,
) -> None:
    constants = dict(outer) | {tensor.name: tensor for tensor in initializers}
    for node in nodes:
        if node.op_type == "Constant" and node.output:
            constants.update((node.output[0], a.t) for a in node.attribute if a.HasField("t"))
            continue
        walk.sites.append(_Site(walk.count, nodes, node, constants, scope))
        walk.count += 1
        first = next(iter(node.output), "")
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                inner = None if scope is None else (*scope, first, attribute.name)
                _visit(walk, graph.node, graph.initializer, constants, inner)


def all_faults(proto: onnx.ModelProto, table: ShapeTable | None) -> list[Fault]:
    """Return every fault that a model can be given. ``table``: the types of its values; without it none is zeroed."""
    version = max((opset.version for opset in proto.opset_import if opset.domain in _STANDARD), default=0)
    return [fault for site in sites(proto) for fault in _of_site(site, table if version >= 9 else None)]


class _Make(Protocol):
    """Makes a fault of the node at hand."""

    def __call__(self, kind: FaultKind, place: str, what: str, step: int = 0, /) -> Fault: ...


def _of_site(site: _Site, table: ShapeTable | None) -> Iterator[Fault]:
    def fault(kind: FaultKind, place: str, what: str, step: int = 0) -> Fault:
        return Fault(site.index, kind, label(site.node), site.node.op_type, place, step, what)

    node = site.node
    bias = _bias_input(site)
    for position, name in enumerate(node.input):
        tensor = site.constants.get(name)
        if tensor is None:
            continue
        shown = name or f"input {position}"
        if position == bias:
            yield fault("bias", f"input {position}", f"bias '{shown}' dropped")
        if node.op_type not in NOT_WEIGHTS and _is_weight(node, tensor):
            yield fault("weight", f"input {position}", f"weights '{shown}' disturbed by 1 %")
        if _axes_input(node) == position and _holds_axes(tensor):
            for step in _steps(int(onnx.numpy_helper.to_array(tensor).ravel()[0])):
                yield fault("axis", f"input {position}", f"axes '{shown}' off by {step:+d}", step)
    for attribute in node.attribute:
        yield from _of_attribute(node, attribute, fault)
    if table is not None and site.scope is not None and _zero_type(site, table) is not None:
        yield fault("zeroed", "output 0", f"output '{node.output[0]}' zeroed")


def _bias_input(site: _Site) -> int | None:
    node = site.node
    if node.op_type == "Add" and node.domain in _STANDARD:
        constant = [k for k, name in enumerate(node.input) if _is_float(site.constants.get(name))]
        return constant[0] if len(constant) == 1 else None
    return _BIAS.get(node.op_type)


def _axes_input(node: onnx.NodeProto) -> int | None:
    return 1 if node.op_type.startswith("Reduce") else _AXES.get(node.op_type)


def _holds_axes(tensor: onnx.TensorProto) -> bool:
    whole = tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
    return whole and math.prod(tensor.dims) > 0 and not external_data.is_external(tensor)


def _steps(axis: int) -> tuple[int, ...]:
    """Return the steps from an axis that stay on its side of zero: from 0 to -1 is often no step at all."""
    return tuple(step for step in (1, -1) if (axis >= 0) == (axis + step >= 0))


def _is_float(tensor: onnx.TensorProto | None) -> bool:
    return tensor is not None and tensor.data_type in FLOAT_TYPES


def _is_weight(node: onnx.NodeProto, tensor: onnx.TensorProto) -> bool:
    if math.prod(tensor.dims) == 0:
        return False
    # A zero point of one byte is no weight, and one step in it is far more than a per cent.
    return tensor.data_type in FLOAT_TYPES or (tensor.data_type in INT8_TYPES and len(tensor.dims) >= 2)


def _of_attribute(node: onnx.NodeProto, attribute: onnx.AttributeProto, fault: _Make) -> Iterator[Fault]:
    name = attribute.name
    if name in ("axis", "axes"):
        for step in _steps(attribute.ints[0] if attribute.ints else attribute.i):
            yield fault("axis", name, f"{name} off by {step:+d}", step)
    elif name == "perm" and len(attribute.ints) > 1:
        yield fault("axis", name, "the last two axes of perm swapped")
    elif name == "pads" and any(attribute.ints):
        yield fault("attribute", name, "a pad moved to the other side")
    elif name in _FLAGS and attribute.type == onnx.AttributeProto.INT:
        yield fault("attribute", name, f"{name} {attribute.i} for {1 - attribute.i}")
    elif name in _SCALES and attribute.type == onnx.AttributeProto.FLOAT:
        yield fault("attribute", name, f"{name} 10 % larger")
    elif (other := _other_word(attribute)) is not None:
        yield fault("attribute", name, f"{name} {other} for {attribute.s.decode(errors='replace')}")
    elif node.domain == "ai.onnx.ml" and attribute.floats and ML_WEIGHTS.search(name):
        yield fault("weight", name, f"{name} disturbed by 1 %")


def _other_word(attribute: onnx.AttributeProto) -> str | None:
    words = _OTHER_WORD.get(attribute.name, {})
    return words.get(attribute.s.decode(errors="replace")) if attribute.HasField("s") else None


def _zero_type(site: _Site, table: ShapeTable) -> int | None:
    """Return the ONNX element type of a node's first output; None where it is not known, or no number."""
    name = next(iter(site.node.output), "")
    kind = table.look(name, site.scope or ()) if name else None
    if kind is None or kind.dtype not in NUMPY_DTYPES:
        return None
    return int(onnx.helper.np_dtype_to_tensor_dtype(NUMPY_DTYPES[kind.dtype]))


def with_fault(model: LoadedModel, proto: onnx.ModelProto, fault: Fault, table: ShapeTable | None, seed: int) -> None:
    """Make ``proto``, a copy of the model's graph, faulty. ``model`` gives the values of its weights."""
    site = sites(proto)[fault.site]
    where, _, number = fault.place.partition(" ")
    if where == "input" and number:
        _spoil_input(model, site, int(number), fault, seed)
    elif where == "output" and number:
        _zero(site, table)
    else:
        attribute = next(attribute for attribute in site.node.attribute if attribute.name == fault.place)
        _spoil_attribute(attribute, fault, seed)


def _spoil_input(model: LoadedModel, site: _Site, position: int, fault: Fault, seed: int) -> None:
    """Let the node, and no other, read another tensor."""
    name = site.node.input[position]
    array = models.to_array(model, site.constants[name])
    if fault.kind == "bias":
        spoilt = np.zeros_like(array)
    elif fault.kind == "axis":
        spoilt = array.copy()
        spoilt[(0,) * array.ndim] += fault.step
    else:
        spoilt = disturbed(array, "percent", np.random.default_rng([seed, fault.site, position]))
    tensor = onnx.numpy_helper.from_array(np.asarray(spoilt, dtype=array.dtype), f"{name}.faulty")
    constant = onnx.helper.make_node("Constant", [], [_fresh(site, tensor.name)], value=tensor)
    site.node.input[position] = constant.output[0]
    _insert(site, constant, before=True)


def _fresh(site: _Site, name: str) -> str:
    return f"{name}.{site.index}.edgekit"


def _insert(site: _Site, *new: onnx.NodeProto, before: bool) -> None:
    at = next(k for k, node in enumerate(site.nodes) if node is site.node or node == site.node)
    for offset, node in enumerate(new):
        site.nodes.insert(at + offset + (0 if before else 1), node)


def _zero(site: _Site, table: ShapeTable | None) -> None:
    """Put zeros of the same shape in the place of the node's first output."""
    assert table is not None  # noqa: S101  only then is there such a fault
    element = _zero_type(site, table)
    name = site.node.output[0]
    hidden, shape = _fresh(site, f"{name}.hidden"), _fresh(site, f"{name}.shape")
    zero = onnx.helper.make_tensor("zero", element or onnx.TensorProto.FLOAT, [1], [0])
    new = (
        onnx.helper.make_node("Shape", [hidden], [shape]),
        onnx.helper.make_node("ConstantOfShape", [shape], [name], value=zero),
    )
    site.node.output[0] = hidden
    _insert(site, *new, before=False)


def _spoil_attribute(attribute: onnx.AttributeProto, fault: Fault, seed: int) -> None:
    name = attribute.name
    if name == "axis":
        attribute.i += fault.step
    elif name == "axes":
        attribute.ints[0] += fault.step
    elif name == "perm":
        attribute.ints[-1], attribute.ints[-2] = attribute.ints[-2], attribute.ints[-1]
    elif name == "pads":
        _move_pad(attribute)
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = 1 - attribute.i
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f *= 1.1
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = (_other_word(attribute) or "").encode()
    else:
        moved = disturbed(
            np.array(attribute.floats, dtype=np.float32), "percent", np.random.default_rng([seed, fault.site])
        )
        del attribute.floats[:]
        attribute.floats.extend(moved.tolist())


def _move_pad(attribute: onnx.AttributeProto) -> None:
    """Take one from a pad at one end of the last axis that has any, and give it to the other: the shape stays."""
    half = len(attribute.ints) // 2
    axis = max(k % half for k, pad in enumerate(attribute.ints) if pad) if half else 0
    source, other = (axis, axis + half) if attribute.ints[axis] > 0 else (axis + half, axis)
    attribute.ints[source] -= 1
    attribute.ints[other] += 1
