"""What is inside of If, Loop and Scan, put into the graph around it for a known way through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from edgekit.isolate import names as naming
from edgekit.isolate.names import Namer
from edgekit.records.tensors import Array

_AXES_ARE_INPUTS = 13  # of Unsqueeze, since this opset


@dataclass(frozen=True, eq=False)
class Body:
    """Nodes in place of one node, and constants that they read.

    ``nodes``: each with the attribute that held it ("": it was put there to pass values on) and the turn of the loop.
    """

    nodes: list[tuple[onnx.NodeProto, str, int | None]] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, op_type: str, inputs: Sequence[str], output: str, turn: int | None = None, **attributes: Any) -> None:
        """Add a node that passes values on."""
        self.nodes.append((helper.make_node(op_type, list(inputs), [output], **attributes), "", turn))

    def constant(self, array: Array, names: Namer) -> str:
        """Add a constant and return its name."""
        name = names.fresh("edgekit_constant")
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name


def _graph(node: onnx.NodeProto, attribute: str) -> onnx.GraphProto | None:
    return next((each.g for each in node.attribute if each.name == attribute), None)


def _take(
    body: Body, graph: onnx.GraphProto, inputs: Mapping[str, str], names: Namer, attribute: str, turn: int | None
) -> list[str]:
    """Put one turn of ``graph`` into ``body``; return the names that its outputs have there."""
    own = dict(inputs)
    for tensor in graph.initializer:
        if tensor.name not in own:
            own[tensor.name] = names.moved(tensor.name)
            copy = onnx.TensorProto()
            copy.CopyFrom(tensor)
            copy.name = own[tensor.name]
            body.initializers.append(copy)
    for node in graph.node:
        own |= {name: names.moved(name) for name in node.output if name}
        body.nodes.append((naming.renamed(node, own), attribute, turn))
    return [own.get(info.name, info.name) for info in graph.output]


def laid_open_if(node: onnx.NodeProto, condition: bool, names: Namer) -> Body | None:
    """Return the branch that is taken."""
    attribute = "then_branch" if condition else "else_branch"
    graph = _graph(node, attribute)
    if graph is None or graph.sparse_initializer:
        return None
    body = Body()
    results = _take(body, graph, {}, names, attribute, None)
    _hand_on(body, results, node.output)
    return body


def _hand_on(body: Body, results: Sequence[str], outputs: Sequence[str]) -> None:
    """Let the body's results have the names of the node's outputs."""
    for result, output in zip(results, outputs, strict=False):
        if output:
            body.add("Identity", [result], output)


def laid_open_loop(
    node: onnx.NodeProto, turns: int, values: Mapping[str, Array], names: Namer, opset: int
) -> Body | None:
    """Return the turns of a Loop one after another. ``values``: its outputs, for a loop that does not turn at all."""
    graph = _graph(node, "body")
    if graph is None or graph.sparse_initializer:
        return None
    body = Body()
    carried = list(node.input[2:])
    if turns == 0:
        return body if _of_no_turns(body, node, carried, values, names) else None
    collected: list[list[str]] = [[] for _ in graph.output[1 + len(carried) :]]
    condition = body.constant(np.array(True), names)
    for turn in range(turns):
        number = body.constant(np.array(turn, np.int64), names)
        given = dict(zip((info.name for info in graph.input), (number, condition, *carried), strict=True))
        condition, *results = _take(body, graph, given, names, "body", turn)
        carried = results[: len(carried)]
        for found, result in zip(collected, results[len(carried) :], strict=True):
            found.append(result)
    _hand_on(body, carried, node.output)
    for found, output in zip(collected, node.output[len(carried) :], strict=False):
        if output:
            _stack(body, found, output, 0, names, opset)
    return body


def _of_no_turns(
    body: Body, node: onnx.NodeProto, carried: Sequence[str], values: Mapping[str, Array], names: Namer
) -> bool:
    _hand_on(body, carried, node.output)
    for output in node.output[len(carried) :]:
        if output and output not in values:
            return False
        if output:
            body.add("Identity", [body.constant(values[output], names)], output)
    return True


def laid_open_scan(
    node: onnx.NodeProto, values: Mapping[str, Array], names: Namer, opset: int, most_turns: int
) -> Body | None:
    """Return the turns of a Scan one after another. ``values``: what it reads."""
    graph = _graph(node, "body")
    plain = {each.name: helper.get_attribute_value(each) for each in node.attribute if each.name != "body"}
    if graph is None or graph.sparse_initializer or opset < 9:  # before 9 there is an axis of batches
        return None
    count = plain["num_scan_inputs"]
    carried, scanned = list(node.input[:-count]), list(node.input[-count:])
    outputs = len(graph.output) - len(carried)
    axes, backwards = _of_scan(plain, "scan_input", count)
    first = values.get(scanned[0])
    if first is None or first.ndim == 0 or not 0 < first.shape[axes[0]] <= most_turns:
        return None
    turns = first.shape[axes[0]]
    body = Body()
    collected: list[list[str]] = [[] for _ in range(outputs)]
    for turn in range(turns):
        slices = []
        for name, axis, back in zip(scanned, axes, backwards, strict=True):
            index = body.constant(np.array(turns - 1 - turn if back else turn, np.int64), names)
            slices.append(names.fresh(f"{name}/turn"))
            body.add("Gather", [name, index], slices[-1], turn, axis=axis)
        given = dict(zip((info.name for info in graph.input), (*carried, *slices), strict=True))
        results = _take(body, graph, given, names, "body", turn)
        carried = results[: len(carried)]
        for found, result in zip(collected, results[len(carried) :], strict=True):
            found.append(result)
    _hand_on(body, carried, node.output)
    out_axes, prepends = _of_scan(plain, "scan_output", outputs)
    for found, output, axis, back in zip(collected, node.output[len(carried) :], out_axes, prepends, strict=False):
        if output:
            _stack(body, found[::-1] if back else found, output, axis, names, opset)
    return body


def _of_scan(plain: Mapping[str, Any], which: str, count: int) -> tuple[list[int], list[int]]:
    """Return the axis and the direction of each scanned input or output."""
    zeros = [0] * count
    return list(plain.get(f"{which}_axes", zeros)), list(plain.get(f"{which}_directions", zeros))


def _stack(body: Body, parts: Sequence[str], output: str, axis: int, names: Namer, opset: int) -> None:
    """Put the values of all turns side by side along a new axis."""
    wide = []
    for part in parts:
        wide.append(names.fresh(f"{part}/stacked"))
        if opset >= _AXES_ARE_INPUTS:
            body.add("Unsqueeze", [part, body.constant(np.array([axis], np.int64), names)], wide[-1])
        else:
            body.add("Unsqueeze", [part], wide[-1], axes=[axis])
    body.add("Concat", wide, output, axis=axis)
