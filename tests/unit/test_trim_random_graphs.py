"""Random graphs over common operators: trimmed, they give the same bits."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from trimming import assert_same_bits, passes, run

from edgekit.records.tensors import Array

_UNARY = ("Neg", "Abs", "Relu", "Sigmoid", "Tanh", "Identity", "Exp", "Sqrt", "Floor", "Dropout", "Erf", "Softplus")
_BINARY = ("Add", "Mul", "Sub", "Div", "Max", "Min", "Pow")


@dataclass
class Graph:
    """A graph that grows. ``values``: by name, what each is for the sample input, so that shapes are known."""

    draw: Callable[..., int]
    symbolic: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def pick(self, rank: int | None = None) -> str:
        names = [name for name, shape in self.shapes.items() if rank is None or len(shape) == rank]
        return names[self.draw(st.integers(0, len(names) - 1))] if names else "x"

    def constant(self, array: Array) -> str:
        name = f"c{len(self.initializers)}"
        if self.draw(st.booleans()):
            self.initializers.append(onnx.numpy_helper.from_array(array, name))
        else:
            self.initializers.append(onnx.TensorProto())  # keeps the numbering
            self.nodes.append(onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(array)))
        return name

    def add(self, op_type: str, inputs: list[str], shape: tuple[int, ...], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op_type, inputs, [name], **attributes))
        self.shapes[name] = shape
        return name


def _unary(graph: Graph) -> None:
    name = graph.pick()
    graph.add(_UNARY[graph.draw(st.integers(0, len(_UNARY) - 1))], [name], graph.shapes[name])


def _binary(graph: Graph) -> None:
    name = graph.pick()
    shape = graph.shapes[name]
    same = [other for other, known in graph.shapes.items() if known == shape]
    other = same[graph.draw(st.integers(0, len(same) - 1))]
    graph.add(_BINARY[graph.draw(st.integers(0, len(_BINARY) - 1))], [name, other], shape)


def _with_constant(graph: Graph) -> None:
    name = graph.pick()
    number = graph.draw(st.sampled_from([0.0, -0.0, 1.0, 1e-8, 0.5, -1.0, 1.000001]))
    constant = graph.constant(np.array(number, np.float32))
    pair = [name, constant] if graph.draw(st.booleans()) else [constant, name]
    graph.add(_BINARY[graph.draw(st.integers(0, 3))], pair, graph.shapes[name])


def _reshape(graph: Graph) -> None:
    name = graph.pick(2)
    rows, columns = graph.shapes[name]
    target = graph.draw(st.sampled_from(["flat", "same", "zero", "computed"]))
    if target == "flat":
        graph.add("Reshape", [name, graph.constant(np.array([-1], np.int64))], (rows * columns,))
    elif target == "same":
        sizes = [-1, columns] if graph.symbolic else [rows, columns]
        graph.add("Reshape", [name, graph.constant(np.array(sizes, np.int64))], (rows, columns))
    elif target == "zero":
        graph.add("Reshape", [name, graph.constant(np.array([0, 0], np.int64))], (rows, columns))
    else:
        _reshape_by_shape(graph, name)


def _reshape_by_shape(graph: Graph, name: str) -> None:
    """As exporters do: sizes gathered from a shape, one by one, and joined again."""
    number = len(graph.nodes)
    parts = []
    graph.nodes.append(onnx.helper.make_node("Shape", [name], [f"s{number}"]))
    for axis in (0, 1):
        place = graph.constant(np.array([axis], np.int64))
        graph.nodes.append(onnx.helper.make_node("Gather", [f"s{number}", place], [f"s{number}_{axis}"]))
        parts.append(f"s{number}_{axis}")
    if graph.draw(st.booleans()):
        parts.append(graph.constant(np.array([1], np.int64)))
    graph.nodes.append(onnx.helper.make_node("Concat", parts, [f"t{number}"], axis=0))
    graph.add("Reshape", [name, f"t{number}"], (*graph.shapes[name], 1)[: len(parts)])


def _transpose(graph: Graph) -> None:
    name = graph.pick(2)
    rows, columns = graph.shapes[name]
    order = graph.draw(st.sampled_from([[1, 0], [0, 1]]))
    graph.add("Transpose", [name], (columns, rows) if order == [1, 0] else (rows, columns), perm=order)


def _matmul(graph: Graph) -> None:
    name = graph.pick(2)
    rows, columns = graph.shapes[name]
    if graph.symbolic and columns == 3:
        return  # this may be the free axis, turned
    rng = np.random.default_rng(graph.draw(st.integers(0, 3)))
    weight = graph.constant(rng.standard_normal((columns, columns)).astype(np.float32))
    if graph.draw(st.booleans()):
        weight = graph.add("Transpose", [weight], (columns, columns), perm=[1, 0])
    graph.add("MatMul", [name, weight], (rows, columns))


def _constants(graph: Graph) -> None:
    """Arithmetic on constants alone."""
    name = graph.constant(np.arange(4, dtype=np.float32))
    done = graph.add("Sqrt", [name], (4,))
    graph.add("Add", [done, done], (4,))


def _twice(graph: Graph) -> None:
    name = graph.pick()
    for _ in range(2):
        graph.add("Sigmoid", [name], graph.shapes[name])


def _branch(graph: Graph) -> None:
    name = graph.pick()
    number = len(graph.nodes)
    info = onnx.ValueInfoProto(name="r")
    info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    sides = []
    for side, operator in (("t", "Exp"), ("e", "Neg")):
        inner = [
            onnx.helper.make_node("Identity", [name], ["i"]),
            onnx.helper.make_node(operator, ["i"], ["r"]),
        ]
        sides.append(onnx.helper.make_graph(inner, f"{side}{number}", [], [info]))
    condition = "flag" if graph.draw(st.booleans()) else graph.constant(np.array(graph.draw(st.booleans())))
    graph.add("If", [condition], graph.shapes[name], then_branch=sides[0], else_branch=sides[1])


_GROW = (_unary, _unary, _binary, _binary, _with_constant, _reshape, _transpose, _matmul, _constants, _twice, _branch)


@st.composite
def models(draw: Callable[..., int]) -> onnx.ModelProto:
    symbolic = bool(draw(st.booleans()))
    graph = Graph(draw, symbolic, shapes={"x": (3, 4)})
    for _ in range(draw(st.integers(3, 14))):
        _GROW[draw(st.integers(0, len(_GROW) - 1))](graph)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N" if symbolic else 3, 4])
    flag = onnx.helper.make_tensor_value_info("flag", onnx.TensorProto.BOOL, [])
    names = list(graph.shapes)[-3:]
    outputs = []
    for name in dict.fromkeys(names):
        info = onnx.ValueInfoProto(name=name)
        info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        outputs.append(info)
    kept = [tensor for tensor in graph.initializers if tensor.name]
    # An input cannot be an output, so each output passes through a node.
    ends = [onnx.helper.make_node("Identity", [info.name], [f"out{n}"]) for n, info in enumerate(outputs)]
    for number, info in enumerate(outputs):
        info.name = f"out{number}"
    made = onnx.helper.make_graph([*graph.nodes, *ends], "random", [x, flag], outputs, kept)
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(models(), st.booleans())
def test_a_random_graph_answers_alike_when_trimmed(model: onnx.ModelProto, flag: bool) -> None:
    rng = np.random.default_rng(0)
    symbolic = model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    feeds = [
        {"x": rng.standard_normal((rows, 4)).astype(np.float32) * 2, "flag": np.array(flag)}
        for rows in ((3, 1, 5) if symbolic else (3,))
    ]
    try:
        right = [run(model, feed) for feed in feeds]
    except Fail:  # a Reshape may fit one number of rows and not another: there is no answer to keep
        reject()

    # Weights that become constant may be packed, and then add up in another order: trim proves and undoes that.
    trimmed = passes(model, spare_weights=True)

    onnx.checker.check_model(trimmed.proto)
    for feed, answer in zip(feeds, right, strict=True):
        assert_same_bits(answer, run(trimmed.proto, feed))
