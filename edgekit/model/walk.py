"""Walk everything that a model holds: nested graphs, function bodies, nodes, tensors.

A graph can stand inside a node (the branches of If, the bodies of Loop and Scan), and a model can define functions of
its own. What looks only at ``model.graph.node`` misses them: silero VAD keeps its whole net in a branch, four deep.
The nesting is bounded by the parser, which refuses messages more than 100 deep.
"""

from collections.abc import Iterable, Iterator

import onnx

from edgekit.errors import LimitError, ModelError

DEFAULT_DOMAIN = "ai.onnx"

# 60,000 nodes in one graph take inspect about 5 s; the largest real models have about as many.
MOST_NODES = 100_000
_NODES_PER_FUNCTION, _NODES_PER_OPSET = 10, 100
_NODES_PER_GRAPH = 4  # 200,000 empty graphs in one node took inspect 18 s
# numpy holds 64 axes; whoever multiplies, prints or compares a million huge sizes is busy for hours.
_MOST_AXES = 4096


def domain_name(domain: str) -> str:
    """Return the one spelling of a domain: the default domain may be written "" or "ai.onnx"."""
    return domain or DEFAULT_DOMAIN


def opset(proto: onnx.ModelProto) -> int:
    """Return the newest version of ai.onnx that a model imports; 0 where it imports none."""
    return max((i.version for i in proto.opset_import if domain_name(i.domain) == DEFAULT_DOMAIN), default=0)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs that a node's attributes hold, not those nested deeper."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield ``graph`` and every graph nested in it."""
    yield graph
    yield from _nested(graph)


def _nested(body: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.GraphProto]:
    for node in body.node:
        if node.attribute:  # a test that spares most nodes of large models a generator
            for inner in subgraphs(node):
                yield from graphs(inner)


def all_graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the main graph and every nested one, those inside function bodies too."""
    yield from graphs(proto.graph)
    for function in proto.functions:
        yield from _nested(function)


def all_nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node: main graph, nested graphs, and each function's body once, however often it is called."""
    for graph in all_graphs(proto):
        yield from graph.node
    for function in proto.functions:
        yield from function.node


def all_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor: initializers, the parts of sparse ones, and those in attributes."""
    for graph in all_graphs(proto):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for attribute in _attributes(proto):
        yield from attribute_tensors(attribute)


def _attributes(proto: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    for node in all_nodes(proto):
        yield from node.attribute
    for function in proto.functions:
        yield from function.attribute_proto


def attribute_tensors(attribute: onnx.AttributeProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors of one attribute, those of its sparse tensors too."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    sparse_tensors = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
    for sparse in (*sparse_tensors, *attribute.sparse_tensors):
        yield from (sparse.values, sparse.indices)


def check_size(proto: onnx.ModelProto) -> None:
    """Raise LimitError for a model that would take minutes, ModelError for a shape of thousands of axes.

    A node of a graph in a graph counts four times, one level deeper nine times: at each level, what is around it is
    looked at again. Functions and imported opsets count as some nodes too.
    """
    left = MOST_NODES - _NODES_PER_OPSET * len(proto.opset_import)
    left -= sum(_NODES_PER_FUNCTION * (1 + len(function.opset_import)) for function in proto.functions)

    def graph(nodes: Iterable[onnx.NodeProto], depth: int) -> None:
        nonlocal left
        for node in nodes:
            left -= depth * depth
            if left < 0:
                raise LimitError(
                    f"The model has too many nodes, or too many graphs in graphs: more than {MOST_NODES:,}, where one "
                    "in a nested graph counts four times or more.",
                    hint="Export it with fewer nested branches, or cut it into parts.",
                )
            if node.attribute:
                for inner in subgraphs(node):
                    left -= _NODES_PER_GRAPH
                    graph(inner.node, depth + 1)

    graph(proto.graph.node, 1)
    for function in proto.functions:
        graph(function.node, 1)
    if left < 0:
        raise LimitError(
            f"The model has {len(proto.functions):,} functions and imports {len(proto.opset_import):,} opsets: "
            "too many.",
            hint="Export it with fewer of them.",
        )
    for name, axes in _ranks(proto):
        if axes > _MOST_AXES:
            raise ModelError(
                f"'{name[:200]}' has a shape of {axes:,} axes, which no tensor has.",
                hint="The file is damaged, or its exporter is broken. Copy or export it again.",
            )


def _ranks(proto: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    """Yield how many axes everything has that has a shape."""
    for graph in all_graphs(proto):
        for info in (*graph.input, *graph.output, *graph.value_info):
            for kind in _leaf_types(info.type):
                yield str(info.name), len(_shape(kind).dim)
        for sparse in graph.sparse_initializer:
            yield str(sparse.values.name), len(sparse.dims)
    for tensor in all_tensors(proto):
        yield str(tensor.name), len(tensor.dims)


def _leaf_types(kind: onnx.TypeProto) -> Iterator[onnx.TypeProto]:
    """Yield what a type is, or its elements are, or theirs: a tensor, or opaque."""
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        yield from _leaf_types(kind.sequence_type.elem_type)
    elif which == "optional_type":
        yield from _leaf_types(kind.optional_type.elem_type)
    elif which == "map_type":
        yield from _leaf_types(kind.map_type.value_type)
    elif which is not None:
        yield kind


def _shape(kind: onnx.TypeProto) -> onnx.TensorShapeProto:
    return kind.sparse_tensor_type.shape if kind.HasField("sparse_tensor_type") else kind.tensor_type.shape


def check_text(proto: onnx.ModelProto) -> None:
    """Raise ModelError when a name is not UTF-8: protobuf then hands out bytes where text is expected.

    Texts that nobody reads here (doc strings) are left alone.
    """
    for text in (text for some in _texts(proto) if bytes in map(type, some) for text in some):
        if isinstance(text, bytes):
            raise ModelError(
                f"The model holds a name that is not UTF-8 text: {text[:60]!r}.",
                hint="The file is damaged, or its exporter is broken. Copy or export it again.",
            )


def _texts(proto: onnx.ModelProto) -> Iterator[tuple[object, ...]]:
    """Yield all texts, some at a time: large models have a million of them."""
    yield (proto.producer_name, proto.producer_version, proto.domain)
    yield tuple(opset.domain for opset in proto.opset_import)
    for entry in proto.metadata_props:
        yield (entry.key, entry.value)
    for function in proto.functions:
        yield (function.name, function.domain, function.overload, *function.input, *function.output)
    for graph in all_graphs(proto):
        yield (graph.name,)
        for info in (*graph.input, *graph.output, *graph.value_info):
            yield (info.name, *_type_texts(info.type))
    for tensor in all_tensors(proto):
        yield (tensor.name,)
        for entry in tensor.external_data:
            yield (entry.key, entry.value)
    for node in all_nodes(proto):
        yield (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            yield (attribute.name, attribute.ref_attr_name)


def _type_texts(kind: onnx.TypeProto) -> Iterator[object]:
    for leaf in _leaf_types(kind):
        yield from (dimension.dim_param for dimension in _shape(leaf).dim)
        yield from (leaf.opaque_type.domain, leaf.opaque_type.name)
