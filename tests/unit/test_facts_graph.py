"""What the survey of a graph sees: dimensions, domains, chance, training, control flow, order."""

from pathlib import Path

import onnx
import pytest
from models_text import LINEAR, LOCAL_FUNCTION, NESTED_IF, PRIVATE_DOMAIN, loaded, parse
from onnx import TensorProto, helper

from edgekit.facts import graph as facts
from edgekit.facts.graph import Domain, GraphFacts, SymbolicDimension
from edgekit.facts.places import NodePlace
from edgekit.facts.study import study

HEAD = '<ir_version: 8, opset_import: ["" : OPSET]>'


def looked_at(text: str | onnx.ModelProto, **opsets: int) -> GraphFacts:
    proto = parse(text) if isinstance(text, str) else text
    imported = {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
    return facts.look(proto, imported)


def one_node(line: str, opset: int = 17, inputs: str = "float[N, 4] x", stored: str = "") -> GraphFacts:
    return looked_at(f"{HEAD.replace('OPSET', str(opset))} g ({inputs}) => (y) {stored} {{ {line} }}")


def names(places: tuple[NodePlace, ...]) -> list[str]:
    return [place.op_type for place in places]


def test_dimensions_say_where_they_stand(tmp_path: Path) -> None:
    found = looked_at(
        f"{HEAD.replace('OPSET', '17')} g (float[B, T] x, float[B, 2] z) => (float[B, T] y, float[M] m) "
        "{ y = Relu(x) m = NonZero(z) }"
    )
    assert found.dimensions == (
        SymbolicDimension("B", ("x[0]", "z[0]"), ("y[0]",)),
        SymbolicDimension("T", ("x[1]",), ("y[1]",)),
        SymbolicDimension("M", (), ("m[0]",), (NodePlace("NonZero", "→ m", ""),)),
    )


def test_a_dimension_without_a_name_is_named_by_its_place() -> None:
    proto = parse(LINEAR)
    proto.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    assert [dimension.name for dimension in looked_at(proto).dimensions] == ["x[0]", "N"]


@pytest.mark.parametrize(
    ("line", "stored", "sized"),
    [
        ("y = NonZero(x)", "", True),
        ("s = Shape(x) y = ConstantOfShape(s)", "", False),
        ("s = Cast<to = 7>(x) y = ConstantOfShape(s)", "", True),
        ("y = Reshape(x, s)", "<int64[1] s = {-1}>", False),
        ("c = NonZero(k) y = Relu(x)", "<float[1] k = {1}>", False),
        ("r = RandomUniform <shape = [2]> () i = Cast<to = 7>(r) y = Tile(x, i)", "", True),
    ],
)
def test_sizes_that_depend_on_data_are_told_from_those_that_do_not(line: str, stored: str, sized: bool) -> None:
    assert bool(one_node(line, stored=stored).data_sized) is sized


@pytest.mark.parametrize(
    ("inputs", "line", "stored", "on"),
    [
        ("bool c, float[N] x", "y = IF", "", "data"),
        ("float[N] x", "y = IF", "<bool c = {1}>", "constant"),
        ("float[N] x", "n = Size(x) l = Constant<value_int: int = 3>() c = Less(n, l) y = IF", "", "shapes"),
    ],
)
def test_control_flow_says_what_decides_it(inputs: str, line: str, stored: str, on: str) -> None:
    branches = "If (c) < then_branch = t () => (a) { a = Relu(x) }, else_branch = e () => (b) { b = Neg(x) } >"
    found = one_node(line.replace("IF", branches), inputs=inputs, stored=stored)
    assert [flow.on for flow in found.control_flow] == [on]


@pytest.mark.parametrize(
    ("condition", "on"),
    [
        ("k = Identity(c)", "constant"),
        ("t = ReduceMax(s) z = Constant<value_float: float = 9.0>() k = Less(t, z)", "data"),
    ],
)
def test_a_loop_that_may_stop_early_depends_on_data(condition: str, on: str) -> None:
    line = f"y = Loop (trips, go, x) < body = b (int64 i, bool c, float[4] s) => (k, n) {{ {condition} n = Neg(s) }} >"
    found = one_node(line, inputs="float[4] x", stored="<int64 trips = {3}, bool go = {1}>")
    assert [flow.on for flow in found.control_flow] == [on]


@pytest.mark.parametrize(
    ("line", "opset", "random", "training"),
    [
        ("y = RandomNormalLike(x)", 17, True, False),
        ("y = Relu(x)", 17, False, False),
        ("y = Dropout(x)", 17, False, False),
        ("y = Dropout(x, r, t)", 17, True, True),
        ("y = Dropout(x, r, f)", 17, False, False),
        ("y = Dropout(x)", 9, False, False),
        ("y = Dropout(x)", 6, True, True),
        ("y = Dropout <is_test = 1> (x)", 6, False, False),
        ("y = BatchNormalization(x, v, v, v, v)", 17, False, False),
        ("y, m, s = BatchNormalization <training_mode = 1> (x, v, v, v, v)", 17, False, True),
        ("y, m, s, a, b = BatchNormalization (x, v, v, v, v)", 9, False, True),
        ("y = BatchNormalization (x, v, v, v, v)", 9, False, False),
        ("y = BatchNormalization (x, v, v, v, v)", 6, False, True),
        ("y = SoftmaxCrossEntropyLoss(x, i)", 17, False, True),
    ],
)
def test_chance_and_training_are_noticed(line: str, opset: int, random: bool, training: bool) -> None:
    stored = "<float r = {0.5}, bool t = {1}, bool f = {0}, float[4] v = {1, 1, 1, 1}, int64[1] i = {0}>"
    found = one_node(line, opset, stored=stored)
    assert (bool(found.random), bool(found.training)) == (random, training)


def test_gradients_are_training() -> None:
    proto = parse(PRIVATE_DOMAIN)
    proto.graph.node[0].domain, proto.graph.node[0].op_type = "com.microsoft", "ConvGrad"
    assert names(looked_at(proto).training) == ["ConvGrad"]


def test_domains_are_told_apart_and_what_nobody_defines_is_listed() -> None:
    assert looked_at(PRIVATE_DOMAIN).domains == (
        Domain("ai.onnx", "standard", 17, 1),
        Domain("my.company", "custom", 1, 1),
    )
    assert looked_at(PRIVATE_DOMAIN).unknown == (NodePlace("Frobnicate", "→ a", ""),)
    assert looked_at(LOCAL_FUNCTION).domains[1] == Domain("mine", "local", 1, 2)
    assert looked_at(LOCAL_FUNCTION).unknown == ()
    assert facts.domain_kind("com.microsoft") == "contrib"
    assert facts.domain_kind("ai.onnx.preview.training") == "training"


def test_an_operator_that_is_newer_than_the_opset_is_unknown() -> None:
    assert names(one_node("y = Gelu(x)", 17).unknown) == ["Gelu"]
    assert one_node("y = Gelu(x)", 20).unknown == ()
    assert names(one_node("y = Upsample(x, s)", 13, stored="<float[2] s = {1, 1}>").unknown) == ["Upsample"]


@pytest.mark.parametrize(("opset", "since"), [(17, 14), (13, 13), (5, 1), (1 << 40, None), (-3, None), (None, None)])
def test_the_version_of_an_operator_is_that_of_the_opset(opset: int | None, since: int | None) -> None:
    assert facts.since_version("ai.onnx", "Relu", opset) == since


def test_order_is_checked_in_every_graph() -> None:
    assert looked_at(NESTED_IF).unsorted == ()
    proto = parse(NESTED_IF)
    inner = proto.graph.node[0].attribute[1].g
    nodes = list(inner.node)
    del inner.node[:]
    inner.node.extend(reversed(nodes))
    assert looked_at(proto).unsorted == ("y.else_branch",)


def test_what_a_branch_reads_must_be_there_before_it() -> None:
    proto = parse(LINEAR)
    branch = helper.make_graph(
        [helper.make_node("Neg", ["a"], ["t"])], "b", [], [helper.make_tensor_value_info("t", 1, None)]
    )
    node = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    proto.graph.initializer.append(helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    proto.graph.node.insert(0, node)
    assert looked_at(proto).unsorted == ("main graph",)


def test_nameless_nodes_are_counted_and_shared_names_listed() -> None:
    proto = parse(LINEAR)
    assert looked_at(proto).nameless == 2
    for node in proto.graph.node:
        node.name = "same"
    assert (looked_at(proto).nameless, looked_at(proto).shared_names) == (0, ("same",))


def test_operators_say_the_dtypes_that_they_run_on(tmp_path: Path) -> None:
    found = study(loaded(NESTED_IF, tmp_path)).facts.operators
    kinds = {o.op_type: [(d.inputs, d.outputs, d.nodes) for d in o.dtypes] for o in found}
    assert kinds["If"] == [(("bool",), ("float32",), 2)]
    assert kinds["Add"] == [(("float32",), ("float32",), 1)]
    assert kinds["Constant"] == [((), ("float32",), 2)]
