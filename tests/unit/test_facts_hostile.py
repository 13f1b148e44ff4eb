"""Models made to break a survey: each is surveyed, or refused with an error of edgekit's own, in seconds."""

import json
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import onnx
import pytest
from models_text import LINEAR, NESTED_IF, parse
from onnx import TensorProto, helper

from edgekit.errors import EdgekitError, LimitError, ModelError
from edgekit.facts.index_ranges import index_limit
from edgekit.facts.study import study
from edgekit.facts.survey import Facts, survey
from edgekit.model import io as model
from edgekit.records.jsonable import jsonable

node = helper.make_node


def info(
    name: str, shape: Sequence[int | str] | None = ("N", 4), dtype: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def made(
    nodes: Iterable[onnx.NodeProto],
    *stored: onnx.TensorProto,
    x: Sequence[int | str] | None = ("N", 4),
    output: str = "y",
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes), "g", [info("x", x), info("c", [], TensorProto.BOOL)], [info(output, None)], stored
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def numbers(name: str, values: Sequence[int], dims: Sequence[int] | None = None) -> onnx.TensorProto:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)] if dims is None else dims, values)


def nested(depth: int) -> onnx.NodeProto:
    inner = node("Relu", ["x"], ["y0"])
    for level in range(depth):
        branch = helper.make_graph([inner], "b", [], [info(f"y{level}")])
        other = helper.make_graph([node("Relu", ["x"], ["e"])], "e", [], [info("e")])
        inner = node("If", ["c"], [f"y{level + 1}"], then_branch=branch, else_branch=other)
    return inner


def calls(name: str, called: str) -> onnx.FunctionProto:
    body = [node(called, ["v"], ["w"], domain="f")]
    return helper.make_function("f", name, ["v"], ["w"], body, [helper.make_opsetid("f", 1)])


def long_attribute() -> onnx.NodeProto:
    hostile = node("Foo", ["x"], ["y"], domain="f")
    hostile.attribute.append(helper.make_attribute("axes", [1] * 1_000_000))
    return hostile


CALL = node("A", ["x"], ["y"], domain="f")

MODELS = {
    "a circle": made([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
    "a node that reads itself": made([node("Add", ["y", "x"], ["y"])]),
    "huge declared shapes": made([node("Relu", ["x"], ["y"])], x=[1 << 62, 1 << 62, 1 << 62]),
    "a huge product": made([node("MatMul", ["x", "x"], ["y"])], x=[1 << 40, 1 << 40]),
    "four thousand axes": made([node("Add", ["x", "x"], ["y"])], x=[1] * 4000),
    "four thousand huge axes": made([node("Add", ["x", "x"], ["y"])], x=[1 << 62] * 4000),
    "a huge constant of a shape": made([node("ConstantOfShape", ["s"], ["y"])], numbers("s", [1 << 31, 1 << 31])),
    "a huge range": made([node("Range", ["a", "b", "a"], ["y"])], numbers("a", [1], []), numbers("b", [1 << 62], [])),
    "a range of no step": made([node("Range", ["a", "b", "a"], ["y"])], numbers("a", [0], []), numbers("b", [9], [])),
    "a huge tile": made([node("Tile", ["s", "r"], ["y"])], numbers("s", [1] * 64), numbers("r", [1 << 50])),
    "huge pads": made([node("Pad", ["s", "p"], ["y"])], numbers("s", [1]), numbers("p", [1 << 60, 1 << 60])),
    "a negative shape": made([node("Reshape", ["x", "s"], ["y"])], numbers("s", [-5, -7])),
    "a division by zero": made([node("Div", ["a", "b"], ["y"])], numbers("a", [1]), numbers("b", [0])),
    "strides of zero": made([node("Conv", ["x", "x"], ["y"], strides=[0, 0])], x=[1, 1, 8, 8]),
    "an equation without sense": made([node("Einsum", ["x", "x"], ["y"], equation="...,->" * 1000)]),
    "no inputs, no outputs": made([node("Relu", [], []), node("If", [], []), node("Loop", [], [])]),
    "no operator": made([node("", ["x"], ["y"])]),
    "a name given three times": made([node("Relu", [name], ["y"]) for name in "xyy"]),
    "nested thirty deep": made([nested(30)], output="y30"),
    "functions that call each other": made([CALL], functions=[calls("A", "B"), calls("B", "A")]),
    "a function defined twice": made([CALL], functions=[calls("A", "B"), calls("A", "C")]),
    "a million numbers in an attribute": made([long_attribute()]),
    "two thousand inputs": made([node("Sum", ["x"] * 2000, ["y"])]),
}  # fmt: skip


def surveyed(proto: onnx.ModelProto, folder: Path) -> Facts:
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return study(model.load(folder / "m.onnx", complete=False)).facts


@pytest.mark.parametrize("name", MODELS)
def test_a_hostile_model_is_surveyed_in_seconds(tmp_path: Path, name: str) -> None:
    started = time.monotonic()
    facts = surveyed(MODELS[name], tmp_path)
    json.dumps(jsonable(asdict(facts)), allow_nan=False)
    assert time.monotonic() - started < 30  # 2 s on an idle machine


def test_versions_beyond_reason_are_surveyed(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.ir_version = 1 << 62
    for version in (1 << 62, -5):
        proto.opset_import[0].version = version
        assert surveyed(proto, tmp_path).operators[0].since is None


@pytest.mark.parametrize("size", [1, 1 << 62])
def test_a_shape_of_thousands_of_axes_is_an_error(tmp_path: Path, size: int) -> None:
    """The product of a hundred thousand sizes of 62 bits takes hours."""
    many = [size] * 5000
    for proto in (
        made([node("Add", ["x", "x"], ["y"])], x=many),
        made([node("Add", ["x", "w"], ["y"])], TensorProto(name="w", data_type=1, dims=many)),
    ):
        with pytest.raises(ModelError, match="a shape of 5,000 axes, which no tensor has"):
            surveyed(proto, tmp_path)


def test_values_that_all_live_to_the_end_are_summed_in_seconds(tmp_path: Path) -> None:
    """Adding up twenty thousand values anew at each of twenty thousand nodes took minutes."""
    names = [f"v{i}" for i in range(20_000)]
    started = time.process_time()
    facts = surveyed(made([*(node("Relu", ["x"], [n]) for n in names), node("Sum", names, ["y"])], x=[4]), tmp_path)
    assert time.process_time() - started < 20  # 2 s on an idle machine
    assert facts.work is not None
    assert facts.work.peak_bytes >= 20_000 * 16


def test_a_thousand_functions_in_a_line_are_refused_not_followed(tmp_path: Path) -> None:
    functions = [calls(f"F{i}", f"F{i + 1}") for i in range(1000)]
    facts = surveyed(made([node("F0", ["x"], ["y"], domain="f")], functions=functions), tmp_path)
    assert facts.shape_problem is not None
    loaded = model.load(tmp_path / "m.onnx")
    assert index_limit(loaded, "x") is None


def test_a_weight_of_an_impossible_shape_is_an_error(tmp_path: Path) -> None:
    proto = made([node("Add", ["x", "w"], ["y"])], TensorProto(name="w", data_type=1, dims=[1 << 40, 1 << 40]))
    with pytest.raises(ModelError, match="impossible shape"):
        surveyed(proto, tmp_path)


def test_branches_that_double_at_every_level_are_an_error(tmp_path: Path) -> None:
    inner = node("Relu", ["x"], ["r0"])
    for level in range(15):
        branch = helper.make_graph([inner], "b", [], [info(f"r{level}")])
        inner = node("If", ["c"], [f"r{level + 1}"], then_branch=branch, else_branch=branch)
    with pytest.raises(LimitError, match="too many"):
        surveyed(made([inner], output="r15"), tmp_path)


@pytest.mark.parametrize("text", [LINEAR, NESTED_IF])
def test_damaged_files_are_surveyed_or_refused_and_never_break_it(tmp_path: Path, text: str) -> None:
    data = parse(text).SerializeToString()
    chance = random.Random(7)  # noqa: S311
    damaged = [data[:end] for end in range(1, len(data), 7)]
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 2, 8))):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(changed))
    outcomes = set()
    for each in damaged:
        (tmp_path / "m.onnx").write_bytes(each)
        try:
            survey(model.load(tmp_path / "m.onnx", complete=False))
            outcomes.add("surveyed")
        except EdgekitError as error:
            assert error.exit_code != EdgekitError.exit_code
            outcomes.add("refused")
    assert outcomes == {"surveyed", "refused"}
