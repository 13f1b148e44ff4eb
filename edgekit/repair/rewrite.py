"""Local changes to a graph that leave its answers what they are, and give a runtime other kernels to compute them with.

Each returns a changed copy, or None where there is nothing to change. They are tried where a runtime answers wrongly,
and kept only with proof.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from edgekit.model import external_data, walk

_MULTIPLE = 4
_PADS_ARE_AN_INPUT = 11  # of Pad, since this opset
_NO_PADDING = "NOTSET"


@dataclass(frozen=True)
class Rewrite:
    """A change: ``name`` in words, and what makes it (None: there is nothing to change)."""

    name: str
    apply: Callable[[onnx.ModelProto], onnx.ModelProto | None]


def pad_channels(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """Pad the input channels of each ungrouped Conv to a multiple of 4, with zeros in its data and in its weights."""
    return _rewritten(proto, _padded_channels)


def separate_padding(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """Split each Conv that pads into a Pad and a Conv that does not."""
    return _rewritten(proto, _separate_padding)


def named(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """Name each node that has no name, in nested graphs too; a session's settings can only tell of nodes by name."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    nameless = [node for graph in walk.graphs(copy.graph) for node in graph.node if not node.name]
    names = _Names(copy)
    for node in nameless:
        node.name = names.fresh(node.op_type)
    return copy if nameless else None


REWRITES = (
    Rewrite(f"Conv channels padded to a multiple of {_MULTIPLE}", pad_channels),
    Rewrite("padding of each Conv in a Pad of its own", separate_padding),
)


class _Names:
    """Names that nothing in the model has."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._taken = set(_names(proto))

    def fresh(self, name: str) -> str:
        found, number = name, 0
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found


@dataclass(frozen=True, eq=False)
class _Place:
    """Where a node stands: its graph, the tensors that it sees, and what the graph is told of them."""

    graph: onnx.GraphProto
    tensors: Mapping[str, onnx.TensorProto]
    opset: int
    names: _Names

    def pad(self, node: onnx.NodeProto, begin: Iterable[int], end: Iterable[int]) -> onnx.NodeProto:
        """Return a Pad (with zeros) of the first input of ``node``, which then reads what it gives."""
        pads = [*begin, *end]
        output = self.names.fresh(f"{node.input[0]}_padded")
        name = self.names.fresh(f"{node.name or node.op_type}_pad")
        inputs = [node.input[0]]
        attributes: dict[str, Any] = {}
        if self.opset < _PADS_ARE_AN_INPUT:
            attributes["pads"] = pads
        else:
            inputs.append(self.names.fresh(f"{name}_pads"))
            self.graph.initializer.append(numpy_helper.from_array(np.array(pads, np.int64), inputs[1]))
        node.input[0] = output
        return helper.make_node("Pad", inputs, [output], name=name, **attributes)


_Change = Callable[[onnx.NodeProto, _Place], onnx.NodeProto | None]


def _rewritten(proto: onnx.ModelProto, change: _Change) -> onnx.ModelProto | None:
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    opset = next((entry.version for entry in copy.opset_import if walk.domain_name(entry.domain) == "ai.onnx"), 0)
    names = _Names(copy)
    count = 0
    for graph, tensors in _graphs(copy.graph, {}):
        place = _Place(graph, tensors, opset, names)
        nodes = []
        for node in graph.node:
            before = None
            if node.op_type == "Conv" and walk.domain_name(node.domain) == "ai.onnx":
                before = change(node, place)
            count += before is not None
            nodes += [node] if before is None else [before, node]
        kept = [_copied(node) for node in nodes]  # those of the graph go with it
        del graph.node[:]
        graph.node.extend(kept)
    return copy if count else None


def _copied(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _graphs(
    graph: onnx.GraphProto, outer: Mapping[str, onnx.TensorProto]
) -> Iterator[tuple[onnx.GraphProto, Mapping[str, onnx.TensorProto]]]:
    """Yield each graph, the innermost first, with the constants that its nodes see."""
    own = {tensor.name: tensor for tensor in graph.initializer}
    given = {info.name for info in graph.input}
    hidden = {name for node in graph.node for name in node.output} | given
    constants = {
        node.output[0]: attribute.t
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    }
    # An initializer that is an input too may be given another value.
    seen = {name: tensor for name, tensor in {**outer, **own}.items() if name not in hidden} | constants
    for node in graph.node:
        for inner in walk.subgraphs(node):
            yield from _graphs(inner, seen)
    yield graph, seen


def _names(proto: onnx.ModelProto) -> Iterator[str]:
    for graph in walk.all_graphs(proto):
        yield from (info.name for info in (*graph.input, *graph.output, *graph.value_info))
        yield from (tensor.name for tensor in graph.initializer)
        for node in graph.node:
            yield node.name
            yield from (*node.input, *node.output)


def _attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _padded_channels(node: onnx.NodeProto, place: _Place) -> onnx.NodeProto | None:
    group = _attribute(node, "group")
    weights = place.tensors.get(node.input[1]) if len(node.input) > 1 else None
    if weights is None or (group is not None and group.i != 1) or external_data.is_external(weights):
        return None
    if len(weights.dims) < 3 or not weights.dims[1] % _MULTIPLE:
        return None
    array = numpy_helper.to_array(weights)
    rank, missing = array.ndim, -array.shape[1] % _MULTIPLE
    wider = np.pad(array, [(0, missing if axis == 1 else 0) for axis in range(rank)])
    name = place.names.fresh(f"{node.input[1]}_padded")
    tensor = numpy_helper.from_array(wider, name)
    if tensor.data_type != weights.data_type:
        return None  # numpy has no such dtype of its own
    place.graph.initializer.append(tensor)
    node.input[1] = name
    return place.pad(node, [0] * rank, [missing if axis == 1 else 0 for axis in range(rank)])


def _separate_padding(node: onnx.NodeProto, place: _Place) -> onnx.NodeProto | None:
    automatic, pads = _attribute(node, "auto_pad"), _attribute(node, "pads")
    if (automatic is not None and automatic.s.decode(errors="replace") != _NO_PADDING) or pads is None:
        return None
    sizes = list(pads.ints)
    if not any(sizes) or min(sizes) < 0:
        return None
    half = len(sizes) // 2
    pads.ints[:] = [0] * len(sizes)
    return place.pad(node, [0, 0, *sizes[:half]], [0, 0, *sizes[half:]])
