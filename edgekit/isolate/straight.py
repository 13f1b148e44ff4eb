"""A model as the straight line of nodes that it takes for certain inputs: functions, branches and loops laid open.

Every value then is one of the main graph's, so that any can be looked at and any node cut out, with the values that it
had. Which branch is taken and how often a loop turns is asked of a reference, once for each level of nesting.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir
from onnx import helper
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass, TopologicalSortPass

from edgekit.isolate import names as naming
from edgekit.isolate.bodies import Body, laid_open_if, laid_open_loop, laid_open_scan
from edgekit.model import walk
from edgekit.records.tensors import Array

MOST_NODES = 20_000
MOST_TURNS = 256
_ORIGIN = "edgekit.origin"
_CONTROL = ("If", "Loop", "Scan")
_COUNTER = "edgekit_turn"

Ask = Callable[[onnx.ModelProto], Mapping[str, Array] | None]


@dataclass(frozen=True)
class Origin:
    """Which node of the model a node stands for. ``name``: "" where it has none; ``graph``: the path of its graph, ""
    for the main one; ``turn``: of the loop that it is in, from 0; None outside of loops. ``output``: the first value
    that it gives, as the model calls it; "" where it gives none."""

    op_type: str
    domain: str
    name: str
    graph: str
    turn: int | None = None
    output: str = ""


@dataclass(frozen=True, eq=False)
class Straight:
    """The straight line. ``origins``: by node name, which are unique. ``whole``: nodes that could not be laid open."""

    model: onnx.ModelProto
    origins: Mapping[str, Origin]
    whole: tuple[str, ...]


def straighten(
    proto: onnx.ModelProto, ask: Ask, *, most_nodes: int = MOST_NODES, most_turns: int = MOST_TURNS
) -> Straight:
    """Lay a model open for the inputs that ``ask`` runs a model on.

    ``ask`` is given models with the same inputs and other outputs, and returns these by name; None: it could not. A
    loop of more than ``most_turns``, or what would make the line longer than ``most_nodes``, stays whole.
    """
    work = _Work(inlined(proto), most_nodes, most_turns)
    while work.waiting():
        work.lay_open(ask(work.probe()))
    return work.result()


def inlined(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy with functions put in place of their calls, constants as initializers, nodes in order."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    if any(graph.sparse_initializer for graph in walk.all_graphs(copy)):
        return copy  # onnx-ir would drop them
    for function in copy.functions:
        for node in function.node:
            _mark(node, function.name)
    try:
        model = ir.from_proto(copy)
    except ir.serde.SerdeError:  # maps among the outputs
        return copy
    if copy.functions:
        InlinePass()(model)
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    TopologicalSortPass()(model)
    return ir.to_proto(model)


class _Work:
    def __init__(self, proto: onnx.ModelProto, most_nodes: int, most_turns: int) -> None:
        self.proto = proto
        self.most_nodes = most_nodes
        self.most_turns = most_turns
        self.values = naming.value_names(proto)
        self.nodes = naming.node_names(proto)
        self.opset = next((entry.version for entry in proto.opset_import if not entry.domain), 1)
        self.whole: set[str] = set()
        self.origins: dict[str, Origin] = {}
        seen: set[str] = set()
        for node in walk.all_nodes(proto):  # what is in them is renamed where it is laid open
            if all(entry.key != _ORIGIN for entry in node.metadata_props):
                _mark(node, None)
        for node in proto.graph.node:
            self._note(node, _origin(node, "", None), seen)

    def _note(self, node: onnx.NodeProto, origin: Origin, seen: set[str] | None = None) -> None:
        """Give a node a name of its own, and note what it stands for."""
        taken = self.origins if seen is None else seen
        if not node.name or node.name in taken:
            node.name = self.nodes.fresh(node.name or origin.op_type)
        if seen is not None:
            seen.add(node.name)
        self.origins[node.name] = origin

    def waiting(self) -> list[onnx.NodeProto]:
        """Return the nodes to lay open next."""
        if len(self.proto.graph.node) > self.most_nodes:
            return []
        return [node for node in self.proto.graph.node if _is_control(node) and node.name not in self.whole]

    def probe(self) -> onnx.ModelProto:
        """Return a model that gives what decides the way through the waiting nodes."""
        probe = onnx.ModelProto()
        probe.CopyFrom(self.proto)
        wanted: dict[str, None] = {}
        waiting = {node.name for node in self.waiting()}
        for node in probe.graph.node:
            if node.name not in waiting:
                continue
            if node.op_type == "Loop":
                wanted |= dict.fromkeys((_count_turns(node), *(name for name in node.output if name)))
            elif node.op_type == "Scan":
                wanted |= dict.fromkeys(name for name in node.input if name)
            else:
                wanted[node.input[0]] = None
        del probe.graph.output[:]
        given = {info.name for info in probe.graph.input} | {tensor.name for tensor in probe.graph.initializer}
        for name in wanted:
            if name in given:  # a runtime need not give its inputs back
                probe.graph.node.append(helper.make_node("Identity", [name], [name := f"{name}/edgekit"]))
            probe.graph.output.append(onnx.ValueInfoProto(name=name))
        return probe

    def lay_open(self, values: Mapping[str, Array] | None) -> None:
        """Replace the waiting nodes by what is in them, as ``values`` decide."""
        found = {name.removesuffix("/edgekit"): array for name, array in (values or {}).items()}
        left = self.waiting()
        waiting = {node.name for node in left}
        nodes: list[onnx.NodeProto] = []
        for node in self.proto.graph.node:
            body = None
            if node.name in waiting:
                body = self._body(node, found)
                if body is None or len(nodes) + len(body.nodes) > self.most_nodes:
                    self.whole.add(node.name)
                    body = None
            if body is None:
                nodes.append(node)
                continue
            self._take(node, body)
            nodes.extend(each for each, _, _ in body.nodes)
        kept = [_copy(node) for node in nodes]
        del self.proto.graph.node[:]
        self.proto.graph.node.extend(kept)

    def _body(self, node: onnx.NodeProto, found: Mapping[str, Array]) -> Body | None:
        if node.op_type == "If":
            condition = found.get(node.input[0])
            return None if condition is None else laid_open_if(node, bool(condition.ravel()[0]), self.values)
        if node.op_type == "Loop":
            turns = found.get(_counter_name(node))
            if turns is None or turns.size > self.most_turns:
                return None
            return laid_open_loop(node, int(turns.size), found, self.values, self.opset)
        return laid_open_scan(node, found, self.values, self.opset, self.most_turns)

    def _take(self, node: onnx.NodeProto, body: Body) -> None:
        around = self.origins[node.name]
        self.proto.graph.initializer.extend(body.initializers)
        for each, attribute, turn in body.nodes:
            if not attribute:  # what replaces the node itself: it passes values on
                each.name = self.nodes.fresh(node.name)
                self.origins[each.name] = replace(around, turn=around.turn if turn is None else turn)
                continue
            label = around.name or next(filter(None, node.output), "")
            path = f"{label}.{attribute}"
            path = f"{around.graph}/{path}" if around.graph else path
            self._note(each, _origin(each, path, around.turn if turn is None else turn))

    def result(self) -> Straight:
        del self.proto.graph.value_info[:]
        for node in walk.all_nodes(self.proto):
            del node.metadata_props[:]
        whole = tuple(node.name for node in self.proto.graph.node if _is_control(node))
        origins = {node.name: self.origins[node.name] for node in self.proto.graph.node}
        return Straight(self.proto, origins, whole)


def _is_control(node: onnx.NodeProto) -> bool:
    return node.op_type in _CONTROL and node.domain in ("", "ai.onnx")


def _mark(node: onnx.NodeProto, function: str | None) -> None:
    """Note in a node what the model calls it, and the function that holds it."""
    entry = node.metadata_props.add()
    entry.key = _ORIGIN
    entry.value = json.dumps((function, node.name, next(filter(None, node.output), "")))


def _origin(node: onnx.NodeProto, graph: str, turn: int | None) -> Origin:
    function, name, output = next(json.loads(each.value) for each in node.metadata_props if each.key == _ORIGIN)
    return Origin(node.op_type, node.domain, name, graph if function is None else function, turn, output)


def _counter_name(node: onnx.NodeProto) -> str:
    return f"{node.name}/{_COUNTER}"


def _count_turns(node: onnx.NodeProto) -> str:
    """Have a Loop also give the number of each of its turns; return the name of that output."""
    name = _counter_name(node)
    body = next(walk.subgraphs(node))
    body.node.append(helper.make_node("Identity", [body.input[0].name], [name + "/in"]))
    body.output.append(helper.make_tensor_value_info(name + "/in", onnx.TensorProto.INT64, []))
    missing = len(body.output) - 1 - 1 - len(node.output)  # outputs at the end may be left out
    node.output.extend([""] * missing)
    node.output.append(name)
    return name


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy
