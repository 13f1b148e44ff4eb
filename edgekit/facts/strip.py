"""A model without its weights: what shape inference needs of it, and small enough to hand to another process.

A large tensor becomes a declaration of its type (a value info). A Constant node that holds one becomes a node of a
domain that nobody knows. Long lists in attributes are left out, and nodes that are out of order are sorted. Small
tensors stay, those of external data too: shapes and axes are computed from them.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import onnx

from edgekit.errors import ModelError
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel, to_array

STRIPPED_DOMAIN = "edgekit.stripped"

# Shapes, axes, pads, slices: a rank has at most a few dozen entries; tables of indices are a little longer.
_MOST_ELEMENTS = 256
# Decision trees keep their tables in attributes, which no shape depends on.
_MOST_LISTED = 4096


def without_weights(model: LoadedModel) -> onnx.ModelProto:
    """Return a copy without large tensors. Raises ModelError where a tensor has an impossible shape."""
    proto = model.proto
    copy = onnx.ModelProto(ir_version=proto.ir_version)
    copy.opset_import.extend(proto.opset_import)
    copy.opset_import.add(domain=STRIPPED_DOMAIN, version=1)
    copy.graph.CopyFrom(_graph(model, proto.graph))
    for function in proto.functions:
        copy.functions.append(_function(model, function))
    return copy


def _graph(model: LoadedModel, graph: onnx.GraphProto) -> onnx.GraphProto:
    copy = onnx.GraphProto(name=graph.name)
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    copy.value_info.extend(graph.value_info)
    for info in (*copy.input, *copy.output, *copy.value_info):
        for dimension in info.type.tensor_type.shape.dim:
            if dimension.HasField("dim_value") and dimension.dim_value < 0:
                dimension.ClearField("dim_value")  # how some exporters say that it is unknown
    declared = {info.name for info in graph.input}
    stripped: dict[str, onnx.TypeProto] = {}
    for tensor in graph.initializer:
        if (kept := _small(model, tensor)) is not None:
            copy.initializer.append(kept)
        elif tensor.name not in declared:
            stripped[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    for sparse in graph.sparse_initializer:
        if sparse.values.name not in declared:
            kind = onnx.helper.make_tensor_type_proto(sparse.values.data_type, list(sparse.dims))
            stripped[sparse.values.name] = kind
    copy.node.extend(_nodes(model, in_order(graph.node), stripped))
    declared_too = [info for info in copy.value_info if info.name not in stripped]
    del copy.value_info[:]
    copy.value_info.extend(declared_too)
    copy.value_info.extend(onnx.ValueInfoProto(name=name, type=kind) for name, kind in stripped.items())
    return copy


def _function(model: LoadedModel, function: onnx.FunctionProto) -> onnx.FunctionProto:
    copy = onnx.FunctionProto(name=function.name, domain=function.domain, overload=function.overload)
    for name in ("input", "output", "attribute", "attribute_proto", "opset_import"):
        getattr(copy, name).extend(getattr(function, name))
    copy.opset_import.add(domain=STRIPPED_DOMAIN, version=1)
    stripped: dict[str, onnx.TypeProto] = {}
    copy.node.extend(_nodes(model, in_order(function.node), stripped))
    copy.value_info.extend(info for info in function.value_info if info.name not in stripped)
    copy.value_info.extend(onnx.ValueInfoProto(name=name, type=kind) for name, kind in stripped.items())
    return copy


def in_order(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Sort nodes so that each stands after those whose outputs it reads; sorted ones, and circles, stay as they are."""
    made_by = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{made_by[name] for name in reads(node) if name in made_by} - {index} for index, node in enumerate(nodes)]
    if all(max(each, default=-1) < index for index, each in enumerate(needs)):
        return list(nodes)
    after: dict[int, list[int]] = defaultdict(list)
    for index, each in enumerate(needs):
        for other in each:
            after[other].append(index)
    waiting = [len(each) for each in needs]
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for follower in after[index]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, follower)
    done = set(order)
    return [nodes[index] for index in (*order, *(i for i in range(len(nodes)) if i not in done))]


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield every name that a node reads, and every one that is read in the graphs in it."""
    yield from node.input
    for graph in walk.subgraphs(node):
        yield from (info.name for info in graph.output)
        for inner in graph.node:
            yield from reads(inner)


def _nodes(
    model: LoadedModel, nodes: Iterable[onnx.NodeProto], stripped: dict[str, onnx.TypeProto]
) -> Iterable[onnx.NodeProto]:
    """Yield copies of the nodes; what large Constant nodes held is noted in ``stripped`` by the name of its value."""
    for node in nodes:
        copy = onnx.NodeProto(name=node.name, op_type=node.op_type, domain=node.domain, overload=node.overload)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        yield copy if _strip_constant(model, node, copy, stripped) else _with_attributes(model, node, copy)


def _strip_constant(
    model: LoadedModel, node: onnx.NodeProto, copy: onnx.NodeProto, stripped: dict[str, onnx.TypeProto]
) -> bool:
    if node.op_type != "Constant" or walk.domain_name(node.domain) != walk.DEFAULT_DOMAIN or len(node.output) != 1:
        return False
    for attribute in node.attribute:
        kind: onnx.TypeProto | None = None
        if attribute.name == "value" and attribute.HasField("t") and _small(model, attribute.t) is None:
            kind = onnx.helper.make_tensor_type_proto(attribute.t.data_type, list(attribute.t.dims))
        elif attribute.name == "sparse_value":
            sparse = attribute.sparse_tensor
            kind = onnx.helper.make_tensor_type_proto(sparse.values.data_type, list(sparse.dims))
        elif attribute.name == "value_floats" and len(attribute.floats) > _MOST_ELEMENTS:
            kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [len(attribute.floats)])
        elif attribute.name == "value_ints" and len(attribute.ints) > _MOST_ELEMENTS:
            kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT64, [len(attribute.ints)])
        if kind is not None:
            copy.domain = STRIPPED_DOMAIN
            stripped[node.output[0]] = kind
            return True
    return False


def _with_attributes(model: LoadedModel, node: onnx.NodeProto, copy: onnx.NodeProto) -> onnx.NodeProto:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = copy.attribute.add(name=attribute.name, type=attribute.type)
            inner.g.CopyFrom(_graph(model, attribute.g))
        elif attribute.graphs:
            inner = copy.attribute.add(name=attribute.name, type=attribute.type)
            inner.graphs.extend(_graph(model, graph) for graph in attribute.graphs)
        elif attribute.HasField("t"):
            inner = copy.attribute.add(name=attribute.name, type=attribute.type)
            inner.t.CopyFrom(_small(model, attribute.t) or _bare(attribute.t))
        elif max(len(attribute.ints), len(attribute.floats), len(attribute.strings)) <= _MOST_LISTED:
            copy.attribute.append(attribute)
    return copy


def _small(model: LoadedModel, tensor: onnx.TensorProto) -> onnx.TensorProto | None:
    """The tensor with its values in it; None when it is large, or its values are not there or do not fit."""
    if external_data.elements(tensor) > _MOST_ELEMENTS:
        return None
    if tensor.data_type == onnx.TensorProto.STRING:
        return tensor if sum(map(len, tensor.string_data)) <= 1 << 16 else None
    try:
        array = to_array(model, tensor)
    except ModelError:
        return None
    return onnx.numpy_helper.from_array(array, tensor.name) if external_data.is_external(tensor) else tensor


def _bare(tensor: onnx.TensorProto) -> onnx.TensorProto:
    return onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
