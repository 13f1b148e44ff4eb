"""An engine with a fault in it: the desktop's onnxruntime, given models that were spoiled first.

What a browser would be asked is asked of it, so that a diagnosis can be tried on faults that no runtime of today has,
and without a browser. Nodes that a session's settings put on the CPU are not spoiled. All runs in this process: tests
own their models, and a child process for each question would take half a second.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from edgekit.conformance import suite
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.diagnose import exact_child
from edgekit.diagnose.lab import Lab, Place, arrays_of, case_of
from edgekit.diagnose.scene import Scene
from edgekit.isolate import straight
from edgekit.model import walk
from edgekit.records import tensors
from edgekit.records.cases import Tolerance
from edgekit.records.tensors import Array, value_of
from edgekit.runners.browsers import CHROMIUM
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist

# Given a graph and one of its nodes, it may change the graph after that node: the fault.
Spoil = Callable[[onnx.GraphProto, onnx.NodeProto], None]


@dataclass(frozen=True, eq=False)
class PlantedLab(Lab):
    """A lab whose browser is the desktop with a fault. ``asked``: how often it was started."""

    spoil: Spoil = lambda graph, node: None
    asks: list[int] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return sum(self.asks)

    def browser(self, cases: Sequence[Case], place: Place | None = None) -> tuple[Reply, ...]:
        self.asks.append(int(bool(cases)))
        return tuple(_run(self._spoilt(case)) for case in cases)

    def desktop(self, cases: Sequence[Case]) -> tuple[Reply, ...]:
        return tuple(_run(case) for case in cases)

    def exact(self, cases: Sequence[Case]) -> tuple[Reply, ...]:
        return tuple(_evaluated(case) for case in cases)

    def _spoilt(self, case: Case) -> Case:
        model = onnx.load_from_string(case.model)
        for graph in walk.all_graphs(model):
            for node in list(graph.node):
                if node.name not in case.settings.cpu_nodes and case.settings.layout != "NCHW":
                    self.spoil(graph, node)
        return replace(case, model=model.SerializeToString())


def _run(case: Case) -> Reply:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return Reply("refused", error=str(error))
    names = [info.name for info in session.get_outputs()]
    wanted = {info.name for info in session.get_inputs()}
    try:
        given = session.run(names, {value.name: value.array for value in case.inputs if value.name in wanted})
    except Exception as error:
        return Reply("failed", error=str(error))
    return Reply("done", tuple(value_of(name, np.asarray(each)) for name, each in zip(names, given, strict=True)))


def _evaluated(case: Case) -> Reply:
    entries, data = suite.encode([case], [0])
    error, values = exact_child.evaluate(entries[0], tensors.decode(data, "the case"))
    return Reply("failed" if error else "done", tuple(values), error or None)


def add_after(graph: onnx.GraphProto, node: onnx.NodeProto, op_type: str, constant: float) -> None:
    """Put an operator with a constant between a node's first output and whoever reads it."""
    output = node.output[0]
    node.output[0] = f"{output}/right"
    tensor = onnx.numpy_helper.from_array(np.array(constant, np.float32), f"{output}/fault")
    position = list(graph.node).index(node) + 1
    graph.node.insert(position, helper.make_node("Constant", [], [tensor.name], value=tensor))
    graph.node.insert(position + 1, helper.make_node(op_type, [f"{output}/right", tensor.name], [output]))


def lab(spoil: Spoil = lambda graph, node: None) -> PlantedLab:
    """Return a lab with a fault, in a place that is called Chromium's first GPU variant."""
    variant = pins.load().variants[0]
    dist = RuntimeDist(Path("nowhere"), "onnxruntime-web", "0", {}, pinned=False)
    place = Place(CHROMIUM, variant, dist, 1)
    return PlantedLab(place, {"float32": Tolerance(1e-3, 1e-6), "float16": Tolerance(1e-2, 1e-4)}, spoil=spoil)


def scene(proto: onnx.ModelProto, feeds: dict[str, Array], planted: PlantedLab) -> Scene:
    """Lay a model open for some inputs."""
    inputs = tuple(value_of(name, array) for name, array in feeds.items())

    def ask(probe: onnx.ModelProto) -> dict[str, Array] | None:
        (reply,) = planted.desktop([case_of(probe, inputs)])
        return arrays_of(reply) if reply.outcome == "done" else None

    return Scene(straight.straighten(proto, ask), inputs, planted, straight.inlined(proto))
