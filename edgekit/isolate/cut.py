"""Models made of a part of a straight line: other outputs, or some of its nodes alone."""

from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import helper, numpy_helper

from edgekit.isolate import names as naming
from edgekit.records.tensors import Array, Value, value_of


def exposed(proto: onnx.ModelProto, outputs: Sequence[str], *, only: bool = False) -> onnx.ModelProto:
    """Return a copy that also gives the values called ``outputs``; ``only``: nothing else, and no node for nothing.

    Inputs and initializers cannot be exposed. Types are left to the runtime to infer.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    if only:
        del copy.graph.output[:]
    there = {info.name for info in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs if name not in there)
    if only:
        _drop_unused(copy.graph)
    return copy


def _drop_unused(graph: onnx.GraphProto) -> None:
    """Remove nodes and initializers that no output needs."""
    wanted = {info.name for info in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(naming.reads(node))
    kept.reverse()
    _replace(graph, kept, wanted)


def _replace(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto], wanted: set[str]) -> None:
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    tensors = [tensor for tensor in graph.initializer if tensor.name in wanted]
    sparse = [each for each in graph.sparse_initializer if each.values.name in wanted]
    kept = ([*map(_tensor, tensors)], [onnx.SparseTensorProto.FromString(each.SerializeToString()) for each in sparse])
    del graph.node[:], graph.initializer[:], graph.sparse_initializer[:]
    graph.node.extend(copies)
    graph.initializer.extend(kept[0])
    graph.sparse_initializer.extend(kept[1])


def _tensor(tensor: onnx.TensorProto) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    return copy


def part(
    proto: onnx.ModelProto, nodes: Iterable[str], values: Mapping[str, Array], outputs: Sequence[str] | None = None
) -> tuple[onnx.ModelProto, tuple[Value, ...]] | None:
    """Return the nodes called ``nodes`` of a straight line as a model of their own, and its inputs.

    Constants come along; what other nodes give becomes an input, with its value out of ``values``. ``outputs``:
    default is what the rest of the line reads of them, and what nothing reads. Types and shapes are declared as in
    ``values``. None where ``values`` lacks one: a value that is no tensor.
    """
    graph = proto.graph
    chosen = set(nodes)
    constant = {tensor.name for tensor in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
    constant |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    kept = [node for node in graph.node if node.name in chosen]
    made = {name for node in kept for name in node.output if name}
    read = {name: None for node in kept for name in naming.reads(node) if name not in made}
    kept = [n for n in graph.node if n.name in chosen or (n.op_type == "Constant" and set(n.output) & set(read))]
    inputs = [name for name in read if name not in constant]
    if outputs is None:
        outside = {name for node in graph.node if node.name not in chosen for name in naming.reads(node)}
        outside |= {info.name for info in graph.output}
        inside = {name for node in graph.node if node.name in chosen for name in naming.reads(node)}
        outputs = [
            name for node in kept for name in node.output if name in made and (name in outside or name not in inside)
        ]
    if any(name not in values for name in (*inputs, *outputs)):
        return None
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.input[:], copy.graph.output[:], copy.graph.value_info[:]
    _replace(copy.graph, kept, set(read))
    copy.graph.input.extend(declared(name, values[name]) for name in inputs)
    copy.graph.output.extend(declared(name, values[name]) for name in outputs)
    del copy.metadata_props[:]
    return copy, tuple(value_of(name, values[name]) for name in inputs)


def declared(name: str, array: Array) -> onnx.ValueInfoProto:
    """Declare a value with the dtype and shape of ``array``."""
    if array.dtype.kind in "OUST":
        return helper.make_tensor_value_info(name, onnx.TensorProto.STRING, array.shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def constants(proto: onnx.ModelProto) -> dict[str, Array]:
    """Return the initializers of the main graph by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
