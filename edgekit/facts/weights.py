"""What a model stores: tensors by dtype, the largest, those that are there twice or for nothing, and where they lie."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import onnx

from edgekit.errors import EdgekitError
from edgekit.facts.places import all_graphs, all_nodes
from edgekit.facts.types import dtype_name
from edgekit.model import external_data, walk
from edgekit.model.io import LoadedModel, raw_bytes
from edgekit.model.walk import domain_name

Kind = Literal["initializer", "sparse", "constant"]

_LARGEST = 10
# Below this a copy is not worth a word: shapes and axes are often alike.
_LEAST_DUPLICATE_BYTES = 64


@dataclass(frozen=True)
class Weights:
    """The tensors of one dtype that the model stores. ``bytes``: as stored, packed, external ones too."""

    dtype: str
    tensors: int
    parameters: int
    bytes: int


@dataclass(frozen=True)
class Stored:
    """One tensor that the model stores. ``graph``: "" for the main graph. ``kind`` "constant": by a Constant node."""

    name: str
    graph: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    parameters: int
    bytes: int
    external: str | None = None


@dataclass(frozen=True)
class Duplicate:
    """Tensors of the same dtype, shape and bytes. ``wasted_bytes``: all but one of them."""

    names: tuple[str, ...]
    bytes: int
    wasted_bytes: int


@dataclass(frozen=True)
class ExternalTensor:
    """Where a tensor's values lie in external data, as the model says it; ``length`` None: it does not say."""

    name: str
    location: str
    offset: int
    length: int | None
    bytes: int


@dataclass(frozen=True)
class ExternalData:
    """A file of weights: its location as the model records it. ``present`` False: it is not there."""

    location: str
    bytes: int
    tensors: int = 0
    present: bool = True


@dataclass(frozen=True)
class WeightFacts:
    """``unused``: stored, and read by nothing. ``also_inputs``: initializers that a caller may override.

    ``constant_nodes``, ``constant_bytes``: what Constant nodes hold. Lists of tensors are the largest first.
    """

    by_dtype: tuple[Weights, ...]
    parameters: int
    bytes: int
    largest: tuple[Stored, ...]
    duplicates: tuple[Duplicate, ...]
    unused: tuple[Stored, ...]
    also_inputs: tuple[str, ...]
    constant_nodes: int
    constant_bytes: int
    external: tuple[ExternalTensor, ...]


def weigh(model: LoadedModel) -> WeightFacts:
    """Look at every stored tensor. Values are read only to compare tensors that could be equal.

    Raises ModelError where a stored tensor has an impossible shape.
    """
    everything = list(_stored(model.proto))
    found = [stored for stored, _ in everything]
    constants = [stored for stored in found if stored.kind == "constant"]
    by_dtype = _by_dtype(found)
    return WeightFacts(
        by_dtype=by_dtype,
        parameters=sum(each.parameters for each in by_dtype),
        bytes=sum(each.bytes for each in by_dtype),
        largest=tuple(_largest_first(found)[:_LARGEST]),
        duplicates=_duplicates(model, everything),
        unused=tuple(_largest_first(_unused(model.proto, found))),
        also_inputs=_also_inputs(model.proto),
        constant_nodes=len(constants),
        constant_bytes=sum(each.bytes for each in constants),
        external=tuple(_external(model.proto)),
    )


def _largest_first(tensors: Iterable[Stored]) -> list[Stored]:
    return sorted(tensors, key=lambda each: (-each.bytes, each.graph, each.name))


def _by_dtype(found: Iterable[Stored]) -> tuple[Weights, ...]:
    totals: dict[str, Weights] = {}
    for each in found:
        total = totals.get(each.dtype, Weights(each.dtype, 0, 0, 0))
        totals[each.dtype] = replace(
            total,
            tensors=total.tensors + 1,
            parameters=total.parameters + each.parameters,
            bytes=total.bytes + each.bytes,
        )
    return tuple(sorted(totals.values(), key=lambda each: (-each.bytes, each.dtype)))


def _stored(proto: onnx.ModelProto) -> Iterator[tuple[Stored, onnx.TensorProto | None]]:
    """Yield every stored tensor, with its proto where it has one that can be compared."""
    for path, graph in all_graphs(proto):
        for tensor in graph.initializer:
            yield _tensor(tensor.name, path, "initializer", tensor), tensor
        for sparse in graph.sparse_initializer:
            yield _sparse(sparse.values.name, path, "sparse", sparse), None
    for path, node in all_nodes(proto):
        if node.op_type == "Constant" and domain_name(node.domain) == walk.DEFAULT_DOMAIN:
            name = node.output[0] if node.output else node.name
            for attribute in node.attribute:
                yield from _constant(name, path, attribute)


def _constant(name: str, path: str, attribute: onnx.AttributeProto) -> Iterator[tuple[Stored, onnx.TensorProto | None]]:
    """The value of a Constant node: a tensor, a sparse tensor, or plain numbers or strings."""
    if attribute.name == "value" and attribute.HasField("t"):
        yield _tensor(name, path, "constant", attribute.t), attribute.t
    elif attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
        yield _sparse(name, path, "constant", attribute.sparse_tensor), None
    elif attribute.name == "value_float":
        yield Stored(name, path, "constant", "float32", (), 1, 4), None
    elif attribute.name == "value_floats":
        count = len(attribute.floats)
        yield Stored(name, path, "constant", "float32", (count,), count, 4 * count), None
    elif attribute.name == "value_int":
        yield Stored(name, path, "constant", "int64", (), 1, 8), None
    elif attribute.name == "value_ints":
        count = len(attribute.ints)
        yield Stored(name, path, "constant", "int64", (count,), count, 8 * count), None
    elif attribute.name == "value_string":
        yield Stored(name, path, "constant", "string", (), 1, len(attribute.s)), None
    elif attribute.name == "value_strings":
        count = len(attribute.strings)
        yield Stored(name, path, "constant", "string", (count,), count, sum(map(len, attribute.strings))), None


def _tensor(name: str, path: str, kind: Kind, tensor: onnx.TensorProto) -> Stored:
    dtype = dtype_name(tensor.data_type)
    size = sum(map(len, tensor.string_data)) if dtype == "string" else external_data.tensor_bytes(tensor)
    location = None
    if external_data.is_external(tensor):
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), None)
    return Stored(name, path, kind, dtype, tuple(tensor.dims), external_data.elements(tensor), size, location)


def _sparse(name: str, path: str, kind: Kind, sparse: onnx.SparseTensorProto) -> Stored:
    values, indices = _tensor(name, path, kind, sparse.values), _tensor(name, path, kind, sparse.indices)
    return replace(values, shape=tuple(sparse.dims), bytes=values.bytes + indices.bytes)


def _duplicates(
    model: LoadedModel, everything: Iterable[tuple[Stored, onnx.TensorProto | None]]
) -> tuple[Duplicate, ...]:
    alike: dict[tuple[str, tuple[int, ...]], list[tuple[Stored, onnx.TensorProto]]] = defaultdict(list)
    for stored, tensor in everything:
        if tensor is not None and stored.bytes >= _LEAST_DUPLICATE_BYTES and stored.dtype != "string":
            alike[stored.dtype, stored.shape].append((stored, tensor))
    equal: dict[bytes, list[Stored]] = defaultdict(list)
    for group in alike.values():
        for begun in _grouped(model, group, whole=False).values():
            for digest, same in _grouped(model, begun, whole=True).items():
                equal[f"{same[0][0].dtype} {same[0][0].shape} ".encode() + digest] += [stored for stored, _ in same]
    found = [
        Duplicate(tuple(each.name for each in group), group[0].bytes, group[0].bytes * (len(group) - 1))
        for group in equal.values()
        if len(group) > 1
    ]
    return tuple(sorted(found, key=lambda each: (-each.wasted_bytes, each.names)))


def _grouped(
    model: LoadedModel, tensors: Sequence[tuple[Stored, onnx.TensorProto]], *, whole: bool
) -> dict[bytes, list[tuple[Stored, onnx.TensorProto]]]:
    """Group tensors by the hash of their values, or of the first piece of them; one alone is not read."""
    groups: dict[bytes, list[tuple[Stored, onnx.TensorProto]]] = defaultdict(list)
    for stored, tensor in tensors if len(tensors) > 1 else ():
        if (digest := _digest(model, tensor, whole=whole)) is not None:
            groups[digest].append((stored, tensor))
    return groups


def _digest(model: LoadedModel, tensor: onnx.TensorProto, *, whole: bool) -> bytes | None:
    """The hash of a tensor's values; None where they are not there, or do not fill its shape."""
    digest = hashlib.sha256()
    try:
        for chunk in raw_bytes(model, tensor):
            digest.update(chunk)
            if not whole:
                break
    except EdgekitError:
        return None
    return digest.digest()


def _unused(proto: onnx.ModelProto, found: Iterable[Stored]) -> Iterator[Stored]:
    """Stored tensors whose name is read nowhere. A name may be read in a graph inside the one that stores it."""
    read: set[str] = set()
    for _, graph in all_graphs(proto):
        read.update(info.name for info in graph.output)
    for function in proto.functions:
        read.update(function.output)
    for _, node in all_nodes(proto):
        read.update(node.input)
    for annotation in (each for _, graph in all_graphs(proto) for each in graph.quantization_annotation):
        read.update(entry.value for entry in annotation.quant_parameter_tensor_names)
    return (stored for stored in found if stored.name not in read)


def _also_inputs(proto: onnx.ModelProto) -> tuple[str, ...]:
    stored = {tensor.name for tensor in proto.graph.initializer}
    stored.update(sparse.values.name for sparse in proto.graph.sparse_initializer)
    return tuple(info.name for info in proto.graph.input if info.name in stored)


def _external(proto: onnx.ModelProto) -> Iterator[ExternalTensor]:
    for tensor in walk.all_tensors(proto):
        if external_data.is_external(tensor):
            part = external_data.span(tensor)
            size = external_data.tensor_bytes(tensor)
            yield ExternalTensor(tensor.name, part.location, part.offset, part.length, size)
