"""A read-only survey of a model: what goes in and out, what it is made of, what it weighs, where it came from.

Everything is counted from the file alone, and nothing is run. ``edgekit.facts.study`` adds what needs shape inference.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from edgekit.facts.graph import GraphFacts, look
from edgekit.facts.operators import Operator, operators
from edgekit.facts.origin import Origin, trace
from edgekit.facts.types import value_type
from edgekit.facts.weights import ExternalData, WeightFacts, weigh
from edgekit.facts.work import Work
from edgekit.model import walk
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
class Facts:
    """What a model is.

    Nodes and operators are counted in the main graph, in nested graphs (branches and loop bodies) and in the bodies of
    local functions: each body once, however often it is called. Weights are initializers and the values of Constant
    nodes, small ones such as shapes too: some exporters keep every weight in a Constant node. ``shape_problem``: what
    shape inference objects to, or why there is none. ``work``: only after shape inference.
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
    graph: GraphFacts
    weights: WeightFacts
    external_files: tuple[ExternalData, ...]
    origin: Origin
    shape_problem: str | None = None
    work: Work | None = None


def survey(model: LoadedModel) -> Facts:
    """Survey a model without shape inference. Raises ModelError where a stored tensor has an impossible shape."""
    proto = model.proto
    weights = weigh(model)
    # Two locations may name one file ("w.bin" and "./w.bin").
    external_bytes = sum({file.path.resolve(): file.bytes for file in model.external_files}.values())
    file_bytes = model.path.stat().st_size
    opsets = _opsets(proto)
    found = operators(proto, opsets, None)
    graph = look(proto, opsets)
    return Facts(
        # A file name need not be text; what is not UTF-8 could not be written as JSON.
        file=os.fsencode(model.path.name).decode(errors="replace"),
        file_bytes=file_bytes,
        total_bytes=file_bytes + external_bytes,
        graph_name=proto.graph.name,
        ir_version=proto.ir_version,
        opsets=opsets,
        unused_opsets=tuple(sorted(set(opsets) - {operator.domain for operator in found})),
        producer_name=proto.producer_name,
        producer_version=proto.producer_version,
        metadata={entry.key: entry.value for entry in proto.metadata_props},
        inputs=_inputs(proto.graph),
        outputs=tuple(_argument(info) for info in proto.graph.output),
        nodes=sum(operator.count for operator in found),
        subgraphs=sum(1 for _ in walk.all_graphs(proto)) - 1,
        functions=len(proto.functions),
        operators=found,
        graph=graph,
        weights=weights,
        external_files=_external_files(model, weights),
        origin=trace(proto, graph, weights, opsets),
    )


def _external_files(model: LoadedModel, weights: WeightFacts) -> tuple[ExternalData, ...]:
    tensors = Counter(each.location for each in weights.external)
    present = {file.location: file.bytes for file in model.external_files}
    return tuple(
        ExternalData(location, present.get(location, 0), count, location in present)
        for location, count in tensors.items()
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
