"""Nodes that are like a bad one: they may stand where the inputs of this case do not lead, in another branch, say."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from edgekit.conformance.cases import Case
from edgekit.diagnose.facts import called
from edgekit.diagnose.lab import arrays_of, case_of, worst
from edgekit.diagnose.scene import Scene
from edgekit.facts.places import label
from edgekit.isolate.cut import declared
from edgekit.isolate.names import defined
from edgekit.model import walk
from edgekit.records.tensors import Value

_MOST = 16

Scope = Mapping[str, TensorProto]


@dataclass(frozen=True)
class Twins:
    """Nodes that are like another. ``named``: by name; ``nameless``: those that have none, by what they give."""

    named: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()


def twins_of(scene: Scene, node: onnx.NodeProto, cut: onnx.ModelProto, inputs: tuple[Value, ...]) -> Twins:
    """Return the nodes elsewhere that fail like ``node`` does, or may do so where this case does not lead.

    They have its operator, its attributes, and weights of the same ranks. Each is tried: with its own weights in
    ``cut``, which is ``node`` alone, on the inputs of that, resized where its weights have other sizes. One that is
    right there is a twin too where it has the same place in a graph that the case does not reach, for it may fail at
    the sizes that it gets: a convolution of silero VAD fails with 129 channels; its twin's 65 are right with 4 columns.
    """
    weights = {tensor.name: tensor for tensor in cut.graph.initializer}
    wanted = _signature(node, weights)
    name = called(scene.line.origins[node.name])
    found: dict[str, Case] = {}
    places: dict[str, int] = {}
    nameless = set()
    for other, scope, place in _nodes(scene.whole_model.graph, {}):
        own = label(other)
        places.setdefault(own, place)
        if own not in (name, node.name) and _signature(other, scope) == wanted:
            model, given = _with_weights(cut, inputs, node, other, scope)
            found.setdefault(own, case_of(model, given, scene.settings))
            nameless |= set() if other.name else {own}
    if not found:
        return Twins()
    names = list(found)[:_MOST]
    cases = [found[each] for each in names]
    reached = {called(origin) for origin in scene.line.origins.values()}
    bad = []
    for each, reply, expected in zip(names, scene.lab.browser(cases), scene.lab.desktop(cases), strict=True):
        results = arrays_of(reply)
        errors = [scene.lab.error(results.get(key), array) for key, array in arrays_of(expected).items()]
        fails = expected.outcome == "done" and (reply.outcome != "done" or worst(errors).wrong)
        if fails or (each not in reached and places[each] == places.get(name)):
            bad.append(each)
    return Twins(*(tuple(each for each in bad if (each in nameless) is without) for without in (False, True)))


def _nodes(graph: onnx.GraphProto, scope: Scope) -> Iterator[tuple[onnx.NodeProto, Scope, int]]:
    """Yield every node of a graph and of the graphs in it, with the weights that it sees.

    Also its number among the nodes of its operator in its graph.
    """
    own = set(defined(graph))
    seen = {name: tensor for name, tensor in scope.items() if name not in own}
    seen |= {tensor.name: tensor for tensor in graph.initializer}
    count = Counter[str]()
    for node in graph.node:
        yield node, seen, count[node.op_type]
        count[node.op_type] += 1
        for inner in walk.subgraphs(node):
            yield from _nodes(inner, seen)


def _signature(node: onnx.NodeProto, weights: Scope) -> tuple[object, ...]:
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    inputs = [
        (weights[name].data_type, len(weights[name].dims)) if name in weights else bool(name) for name in node.input
    ]
    return node.op_type, node.domain, tuple(attributes), tuple(inputs)


def _with_weights(
    cut: onnx.ModelProto, inputs: tuple[Value, ...], node: onnx.NodeProto, other: onnx.NodeProto, scope: Scope
) -> tuple[onnx.ModelProto, tuple[Value, ...]]:
    """Return ``cut`` and its inputs with the weights of ``other`` in place of those of ``node``."""
    model = onnx.ModelProto()
    model.CopyFrom(cut)
    own = dict(zip(node.input, other.input, strict=True))
    sizes: dict[int, int] = {}
    for tensor in model.graph.initializer:
        name = tensor.name
        if own.get(name) in scope:
            sizes |= dict(zip(tensor.dims, scope[own[name]].dims, strict=True))
            tensor.CopyFrom(scope[own[name]])
            tensor.name = name
    if all(old == new for old, new in sizes.items()):
        return model, inputs
    given = tuple(_resized(value, sizes) for value in inputs)
    for info, value in zip(model.graph.input, given, strict=True):
        if value.array is not None:
            info.CopyFrom(declared(info.name, value.array))
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    return model, given


def _resized(value: Value, sizes: Mapping[int, int]) -> Value:
    """Return a value whose axes of one size have another, by repeating or leaving out what comes last."""
    if value.array is None:
        return value
    array = value.array
    for axis, size in enumerate(value.array.shape):
        array = np.take(array, np.arange(sizes.get(size, size)) % size, axis=axis) if size else array
    return Value(value.name, value.dtype, array)
