"""Fold the statistics of batch normalizations into their scale and bias, without changing a bit.

Runtimes compute ``x * (scale / sqrt(var + epsilon)) + (bias - mean * scale / sqrt(var + epsilon))``. With those two
factors as the new scale and bias, mean 0, variance 1 and epsilon 0, the arithmetic on ``x`` is the same, and all
normalizations of one width share their mean and variance: half of their weights go. The runtime itself computes the
factors: it normalizes ones and zeros.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx.numpy_helper
import onnx_ir as ir

from edgekit.passes.fold_constants import Evaluate
from edgekit.passes.values import integer, is_standard, nodes, tensor_of
from edgekit.records.tensors import Array

NAME = "statistics of normalizations"

_SCALE, _BIAS, _MEAN, _VAR = 1, 2, 3, 4


def apply(model: ir.Model, evaluate: Evaluate) -> bool:
    """Fold the statistics of every batch normalization that shares its width with another. Names must be unique."""
    groups: dict[int, list[ir.Node]] = {}
    for node in nodes(model):
        width = _width(node)
        if width and node.graph is model.graph:
            groups.setdefault(width, []).append(node)
    chosen = [node for group in groups.values() if len(group) > 1 for node in group]
    if not chosen:
        return False
    factors = _factors(chosen, evaluate)
    changed = False
    for node in chosen:
        scale, bias = factors.get(f"{node.outputs[0].name}/scale"), factors.get(f"{node.outputs[0].name}/bias")
        if scale is not None and bias is not None and np.isfinite(scale).all() and np.isfinite(bias).all():
            _rewrite(model, node, scale.ravel(), bias.ravel())
            changed = True
    return changed


def _width(node: ir.Node) -> int:
    """Return the number of channels of a normalization that can be folded, 0 for any other node."""
    if not is_standard(node, "BatchNormalization") or len(node.inputs) != 5 or integer(node, "training_mode", 0) != 0:
        return 0
    if len([output for output in node.outputs if output.name]) != 1 or "is_test" in node.attributes:
        return 0
    if integer(node, "spatial", 1) != 1:
        return 0
    tensors = [tensor_of(value) for value in node.inputs[1:]]
    if any(tensor is None or tensor.dtype != ir.DataType.FLOAT or len(tensor.shape) != 1 for tensor in tensors):
        return 0
    sizes = {int(tensor.size) for tensor in tensors if tensor is not None}
    alone = all(value is not None and len(value.uses()) == 1 for value in node.inputs[1:])
    return sizes.pop() if alone and len(sizes) == 1 else 0


def _factors(chosen: Sequence[ir.Node], evaluate: Evaluate) -> Mapping[str, Array]:
    made: list[onnx.NodeProto] = []
    tensors: dict[str, onnx.TensorProto] = {}
    names: list[str] = []
    for node in chosen:
        width = _width(node)
        zeros, zero_input, one_input = f"zeros{width}", f"zeros{width}/x", f"ones{width}/x"
        for name, array in (
            (zeros, np.zeros(width, np.float32)),
            (zero_input, np.zeros((1, width, 1, 1), np.float32)),
            (one_input, np.ones((1, width, 1, 1), np.float32)),
        ):
            tensors.setdefault(name, onnx.numpy_helper.from_array(array, name))
        parts = []
        for value in node.inputs[1:]:
            tensor = tensor_of(value)
            if value is not None and tensor is not None and value.name:
                proto = ir.serde.serialize_tensor(tensor)
                proto.name = value.name
                tensors[value.name] = proto
                parts.append(value.name)
        scale, bias, mean, var = parts
        for what, inputs in (
            ("scale", [one_input, scale, zeros, zeros, var]),
            ("bias", [zero_input, scale, bias, mean, var]),
        ):
            copy = ir.serde.serialize_node(node)
            copy.name = ""
            copy.input[:] = inputs
            copy.output[:] = [f"{node.outputs[0].name}/{what}"]
            made.append(copy)
            names.append(copy.output[0])
    return evaluate(made, list(tensors.values()), names)


def _rewrite(model: ir.Model, node: ir.Node, scale: Array, bias: Array) -> None:
    width = len(scale)
    node.replace_input_with(_SCALE, _renewed(model, node.inputs[_SCALE], f"{node.outputs[0].name}__scale", scale))
    node.replace_input_with(_BIAS, _renewed(model, node.inputs[_BIAS], f"{node.outputs[0].name}__bias", bias))
    node.replace_input_with(_MEAN, _shared(model, f"zeros__{width}", np.zeros(width, np.float32)))
    node.replace_input_with(_VAR, _shared(model, f"ones__{width}", np.ones(width, np.float32)))
    node.attributes["epsilon"] = ir.AttrFloat32("epsilon", 0.0)


def _renewed(model: ir.Model, old: ir.Value | None, name: str, array: Array) -> ir.Value:
    """Make an initializer in the place of another, under its name: a name of the author's says more."""
    if old is not None and old.name and old.is_initializer():
        name = old.name
        model.graph.initializers.pop(name)
        old.name = f"{name}__folded"
    return _shared(model, name, array)


def _shared(model: ir.Model, name: str, array: Array) -> ir.Value:
    found = model.graph.initializers.get(name)
    if found is not None:
        return found
    value = ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), const_value=ir.tensor(array, name=name))
    value.shape = ir.Shape(list(array.shape))
    model.graph.register_initializer(value)
    return value
