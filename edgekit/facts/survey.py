"""A read-only survey of a model: what goes in and out, what it is made of, what it weighs.

Everything is counted from the file alone; nothing is run, inferred or loaded from external data.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import onnx

from edgekit.facts.types import dtype_name, value_type
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel
from edgekit.model.walk import domain_name


@dataclass(frozen=True)
class Argument:
    """An input or output of the model.

    ``type``: as ONNX spells it, for example "tensor(float)" or "seq(map(int64,tensor(float)))"; "unknown" where the
    model does not say. ``dtype``: edgekit's name ("float32", "string"), None for what is not a tensor. ``shape``: per
    axis a number, the name of a symbolic dimension, or None where it is unknown; None when even the rank is unknown,
    and for what is not a tensor.
    """

    name: str
    type: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True)
class Operator:
    """How many nodes of one operator the model has. ``local``: the model itself defines it, as a function."""

    domain: str
    op_type: str
    count: int
    local: bool = False


@dataclass(frozen=True)
class Weights:
    """The tensors of one dtype that the model stores. ``bytes``: as stored, packed, external ones too."""

    dtype: str
    tensors: int
    parameters: int
    bytes: int


@dataclass(frozen=True)
class ExternalData:
    """A file of weights: its location as the model records it."""

    location: str
    bytes: int


@dataclass(frozen=True)
class Facts:
    """What a model is.

    Nodes and operators are counted in the main graph, in nested graphs (branches and loop bodies) and in the bodies of
    local functions: each body once, however often it is called. Weights are initializers and the values of Constant
    nodes, small ones such as shapes too: some exporters keep every weight in a Constant node. ``parameters`` is the
    number of their elements; of a sparse one, those stored.
    """

    file: str
    file_bytes: int
    total_bytes: int
    graph_name: str
    ir_version: int
    opsets: Mapping[str, int]
    unused_opsets: tuple[str, ...]
    producer_name: str
    producer_version: str
    metadata: Mapping[str, str]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    nodes: int
    subgraphs: int
    functions: int
    operators: tuple[Operator, ...]
    parameters: int
    weight_bytes: int
    weights: tuple[Weights, ...]
    external_files: tuple[ExternalData, ...]


def survey(model: LoadedModel) -> Facts:
    """Survey a model. Raises ModelError where a stored tensor has an impossible shape."""
    proto = model.proto
    weights = _weights(proto)
    external = tuple(ExternalData(file.location, file.bytes) for file in model.external_files)
    # Two locations may name one file ("w.bin" and "./w.bin").
    external_bytes = sum({file.path.resolve(): file.bytes for file in model.external_files}.values())
    file_bytes = model.path.stat().st_size
    opsets = _opsets(proto)
    operators = _operators(proto)
    return Facts(
        # A file name need not be text; what is not UTF-8 could not be written as JSON.
        file=os.fsencode(model.path.name).decode(errors="replace"),
        file_bytes=file_bytes,
        total_bytes=file_bytes + external_bytes,
        graph_name=proto.graph.name,
        ir_version=proto.ir_version,
        opsets=opsets,
        unused_opsets=tuple(sorted(set(opsets) - {operator.domain for operator in operators})),
        producer_name=proto.producer_name,
        producer_version=proto.producer_version,
        metadata={entry.key: entry.value for entry in proto.metadata_props},
        inputs=_inputs(proto.graph),
        outputs=tuple(_argument(info) for info in proto.graph.output),
        nodes=sum(operator.count for operator in operators),
        subgraphs=sum(1 for _ in walk.all_graphs(proto)) - 1,
        functions=len(proto.functions),
        operators=operators,
        parameters=sum(each.parameters for each in weights),
        weight_bytes=sum(each.bytes for each in weights),
        weights=weights,
        external_files=external,
    )


def _opsets(proto: onnx.ModelProto) -> dict[str, int]:
    """Opset by domain. A domain that is imported twice (skl2onnx does it) counts with its newest."""
    opsets: dict[str, int] = {}
    for entry in proto.opset_import:
        domain = domain_name(entry.domain)
        opsets[domain] = max(entry.version, opsets.get(domain, entry.version))
    return dict(sorted(opsets.items()))


def _inputs(graph: onnx.GraphProto) -> tuple[Argument, ...]:
    """Inputs that a caller must give: before IR version 4 every initializer had to be listed as an input too."""
    stored = {tensor.name for tensor in graph.initializer} | {sparse.values.name for sparse in graph.sparse_initializer}
    return tuple(_argument(info) for info in graph.input if info.name not in stored)


def _argument(info: onnx.ValueInfoProto) -> Argument:
    kind = value_type(info.type)
    return Argument(info.name, kind.type, kind.dtype, kind.shape)


def _operators(proto: onnx.ModelProto) -> tuple[Operator, ...]:
    """Operators, the most frequent first."""
    counts = Counter((domain_name(node.domain), node.op_type) for node in walk.all_nodes(proto))
    local = {(domain_name(function.domain), function.name) for function in proto.functions}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Operator(domain, op_type, count, (domain, op_type) in local) for (domain, op_type), count in ordered)


def _weights(proto: onnx.ModelProto) -> tuple[Weights, ...]:
    """Weights by dtype, the heaviest first."""
    found: dict[str, Weights] = {}
    for part in _stored(proto):
        total = found.get(part.dtype, Weights(part.dtype, 0, 0, 0))
        found[part.dtype] = replace(
            total,
            tensors=total.tensors + part.tensors,
            parameters=total.parameters + part.parameters,
            bytes=total.bytes + part.bytes,
        )
    return tuple(sorted(found.values(), key=lambda each: (-each.bytes, each.dtype)))


def _stored(proto: onnx.ModelProto) -> Iterable[Weights]:
    for graph in walk.all_graphs(proto):
        yield from (_tensor(tensor) for tensor in graph.initializer)
        yield from (_sparse(sparse) for sparse in graph.sparse_initializer)
    for node in walk.all_nodes(proto):
        if node.op_type == "Constant" and domain_name(node.domain) == walk.DEFAULT_DOMAIN:
            for attribute in node.attribute:
                yield from _constant(attribute)


def _constant(attribute: onnx.AttributeProto) -> Iterable[Weights]:
    """The value of a Constant node: a tensor, a sparse tensor, or plain numbers or strings."""
    if attribute.name == "value" and attribute.HasField("t"):
        yield _tensor(attribute.t)
    elif attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
        yield _sparse(attribute.sparse_tensor)
    elif attribute.name == "value_float":
        yield Weights("float32", 1, 1, 4)
    elif attribute.name == "value_floats":
        yield Weights("float32", 1, len(attribute.floats), 4 * len(attribute.floats))
    elif attribute.name == "value_int":
        yield Weights("int64", 1, 1, 8)
    elif attribute.name == "value_ints":
        yield Weights("int64", 1, len(attribute.ints), 8 * len(attribute.ints))
    elif attribute.name == "value_string":
        yield Weights("string", 1, 1, len(attribute.s))
    elif attribute.name == "value_strings":
        yield Weights("string", 1, len(attribute.strings), sum(len(text) for text in attribute.strings))


def _tensor(tensor: onnx.TensorProto) -> Weights:
    dtype = dtype_name(tensor.data_type)
    stored = sum(len(text) for text in tensor.string_data) if dtype == "string" else external_data.tensor_bytes(tensor)
    return Weights(dtype, 1, external_data.elements(tensor), stored)


def _sparse(sparse: onnx.SparseTensorProto) -> Weights:
    values, indices = _tensor(sparse.values), _tensor(sparse.indices)
    return replace(values, bytes=values.bytes + indices.bytes)
