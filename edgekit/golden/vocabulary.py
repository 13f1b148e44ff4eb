"""The words that a graph knows: what it compares its string inputs with.

A word that an encoder has never met is all zeros to it, whichever word it is, or an error. So generated cases take
their texts from the graph's own tables.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import onnx

from edgekit.errors import ModelError
from edgekit.facts.survey import Argument
from edgekit.model import walk
from edgekit.model.io import LoadedModel, to_array

# Operators whose outputs hold the texts of their inputs, moved about, or with another case.
_CARRIERS = {
    "ArrayFeatureExtractor", "Cast", "Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "Identity", "Reshape", "Slice", "Split", "Squeeze", "StringNormalizer", "Tile", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip
_TABLES = {
    "OneHotEncoder": ("cats_strings",),
    "LabelEncoder": ("keys_strings", "keys_tensor", "classes_strings"),
    "CategoryMapper": ("cats_strings",),
    "StringNormalizer": ("stopwords",),
    "TfIdfVectorizer": ("pool_strings",),
}
_MOST_WORDS = 4096

Origin = Mapping[str, frozenset[str]]


def words(model: LoadedModel, inputs: Sequence[Argument]) -> dict[str, tuple[str, ...]]:
    """Return, for each string input that the graph looks up in a table of its own, the words of these tables."""
    found: dict[str, dict[str, None]] = {argument.name: {} for argument in inputs if argument.dtype == "string"}
    if found:
        _walk(model, model.proto.graph, {name: frozenset([name]) for name in found}, {}, found)
    return {name: tuple(known)[:_MOST_WORDS] for name, known in found.items() if known}


def _walk(
    model: LoadedModel,
    graph: onnx.GraphProto,
    outer_origin: Origin,
    outer_constants: Mapping[str, Sequence[str]],
    found: dict[str, dict[str, None]],
) -> None:
    origin = dict(outer_origin)
    constants = dict(outer_constants)
    constants.update((tensor.name, list(_tensor_texts(model, tensor))) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            constants.update((node.output[0], list(_texts(model, a))) for a in node.attribute)
        sources = frozenset[str]().union(*(origin.get(name, frozenset()) for name in node.input))
        if sources and node.op_type in _CARRIERS:
            origin.update((name, sources) for name in node.output)
        for source in sources:
            found[source].update(dict.fromkeys(_known(model, node, constants)))
        for subgraph in walk.subgraphs(node):
            _walk(model, subgraph, origin, constants, found)


def _known(model: LoadedModel, node: onnx.NodeProto, constants: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the words that a node compares its input with."""
    if node.op_type == "Equal":
        for name in node.input:
            yield from constants.get(name, ())
    for attribute in node.attribute:
        if attribute.name in _TABLES.get(node.op_type, ()):
            yield from _texts(model, attribute)


def _texts(model: LoadedModel, attribute: onnx.AttributeProto) -> Iterator[str]:
    yield from map(_text, (*attribute.strings, *((attribute.s,) if attribute.HasField("s") else ())))
    if attribute.HasField("t"):
        yield from _tensor_texts(model, attribute.t)


def _tensor_texts(model: LoadedModel, tensor: onnx.TensorProto) -> Iterator[str]:
    """Yield the texts of a tensor; none where it holds something else, or is broken, which the runtime will say."""
    if tensor.data_type == onnx.TensorProto.STRING:
        with contextlib.suppress(ModelError):
            yield from map(_text, to_array(model, tensor).ravel().tolist())


def _text(raw: str | bytes) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
