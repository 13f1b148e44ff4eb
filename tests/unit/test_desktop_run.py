from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

from edgekit.child.process import ChildLimits
from edgekit.desktop import run as desktop
from edgekit.desktop.run import DesktopRun, Feed
from edgekit.errors import LimitError, ModelError
from edgekit.records.cases import FeedBack
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
RELU = HEAD + "g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }"
# On x86 the smallest integer divided by -1 ends the process with SIGFPE: a real crash of a real runtime.
DIVIDE = HEAD + "g (int32[N] a, int32[N] b) => (int32[N] y) { y = Div(a, b) }"
SMALLEST = -(2**31)
LOOP = (
    HEAD
    + """g (int64 trips, float x) => (float y) {
    go = Constant <value = bool {1}> ()
    y = Loop (trips, go, x)
        <body = b (int64 i, bool ci, float a) => (bool co, float ao) { co = Identity(ci) ao = Neg(a) }>
}"""
)


def save(folder: Path, text: str, name: str = "model <b> 'é.onnx") -> Path:
    path = folder / name
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


def feed(**arrays: Any) -> Feed:
    return Feed(tuple(value_of(name, np.asarray(array)) for name, array in arrays.items()))


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


def arrays(run: DesktopRun, index: int = 0) -> Mapping[str, Any]:
    result = run.results[index]
    assert result.error is None
    return {value.name: value.array for value in result.outputs or ()}


def test_feeds_run_in_order_in_one_session(tmp_path: Path) -> None:
    x = np.array([[-1, 2, np.nan, -np.inf]], np.float32)

    run = desktop.run(save(tmp_path, RELU), [feed(x=x), feed(x=np.repeat(x, 3, axis=0))])

    np.testing.assert_array_equal(arrays(run)["y"], np.array([[0, 2, np.nan, 0]], np.float32))
    assert arrays(run, 1)["y"].shape == (3, 4)
    assert run.runtime_version.count(".") == 2
    assert run.create_ms > 0
    assert run.threads == 1


def test_no_feeds_only_tell_whether_the_model_loads(tmp_path: Path) -> None:
    assert desktop.run(save(tmp_path, RELU), []).results == ()


def test_first_feed_without_a_loop_is_repeated_for_timing(tmp_path: Path) -> None:
    x = np.zeros((1, 4), np.float32)
    loop = Feed(feed(x=x).inputs, FeedBack(2, {"x": "y"}))

    run = desktop.run(save(tmp_path, RELU), [loop, feed(x=x), feed(x=x)], repeats=4)

    assert [len(result.run_ms) for result in run.results] == [2, 4, 1]


def test_threads_are_counted_where_the_runtime_chooses(tmp_path: Path) -> None:
    model = save(tmp_path, RELU)

    assert desktop.run(model, [], threads=None).threads >= 1
    assert desktop.run(model, [], threads=3).threads == 3


def test_every_dtype_and_shape_goes_in_and_out_bit_for_bit(tmp_path: Path) -> None:
    inputs, given, taken, nodes = {}, [], [], []
    for name, dtype in NUMPY_DTYPES.items():
        spelled = {"float32": "float", "float64": "double"}.get(name, name)
        for dims, shape in (("", ()), ("[A, B]", (0, 2)), ("[C]", (3,))):
            key = f"{name}_{len(shape)}"
            inputs[f"x_{key}"] = np.full(shape, -0.0 if "float" in name else 1).astype(dtype)
            given.append(f"{spelled}{dims} x_{key}")
            taken.append(f"{spelled}{dims} y_{key}")
            nodes.append(f"y_{key} = Identity(x_{key})")
    model = save(tmp_path, HEAD + f"g ({', '.join(given)}) => ({', '.join(taken)}) {{ {' '.join(nodes)} }}")

    outputs = arrays(desktop.run(model, [feed(**inputs)]))

    assert len(outputs) == 39
    for name, x in inputs.items():
        y = outputs["y" + name[1:]]
        assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, x.shape, x.tobytes())


def test_strings_go_in_and_out(tmp_path: Path) -> None:
    text = HEAD + "g (string[N] s, bfloat16[M] b) => (string[N] t, bfloat16[M] c) { t = Identity(s) c = Identity(b) }"
    words = np.array(["é", "", "<script>\n"])

    run = desktop.run(save(tmp_path, text), [feed(s=words, b=np.ones(2, ml_dtypes.bfloat16))])

    assert list(arrays(run)["t"]) == list(words)
    assert [value.note is not None for value in run.results[0].outputs or ()] == [False, True]


def test_outputs_that_are_not_tensors_are_entries_with_a_note(tmp_path: Path) -> None:
    text = (
        HEAD
        + """g (float[N] x) => (float[N] y, seq(float[N]) q, optional(float[N]) o) {
        y = Neg(x) q = SequenceConstruct(x) o = Optional(x)
    }"""
    )

    values = desktop.run(save(tmp_path, text), [feed(x=np.ones(2, np.float32))]).results[0].outputs or ()

    assert [(v.name, v.dtype, v.array is None) for v in values] == [
        ("y", "float32", False),
        ("q", "seq(tensor(float))", True),
        ("o", "optional(tensor(float))", True),
    ]
    assert [v.note and "not compared" in v.note for v in values] == [None, True, True]


def test_optional_inputs_may_be_left_out(tmp_path: Path) -> None:
    text = HEAD + "g (optional(float[N]) x, float z) => (bool y) { y = OptionalHasElement(x) }"
    z = value_of("z", np.array(1, np.float32))
    nothing = Value("x", "optional(tensor(float))", None)

    run = desktop.run(save(tmp_path, text), [Feed((z,)), Feed((nothing, z))])

    assert [bool(arrays(run, i)["y"]) for i in range(2)] == [False, False]


def test_outputs_fed_back_step_by_step(tmp_path: Path) -> None:
    text = HEAD + "g (float[N] x, float[N] s) => (float[N] y, float[N] t) { t = Add(s, x) y = Neg(t) }"
    inputs = feed(x=np.array([1], np.float32), s=np.array([10], np.float32)).inputs

    run = desktop.run(save(tmp_path, text), [Feed(inputs, FeedBack(3, {"s": "t"}))])

    assert (arrays(run)["t"], arrays(run)["y"]) == (13, -13)


def test_feeding_back_an_unknown_output_is_a_result_with_an_error(tmp_path: Path) -> None:
    x = np.zeros((1, 4), np.float32)

    run = desktop.run(save(tmp_path, RELU), [Feed(feed(x=x).inputs, FeedBack(3, {"x": "<y>"}))])

    assert "no tensor output '<y>'" in str(run.results[0].error)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x": np.zeros((2, 3), np.float32)}, "invalid dimensions for input: x"),
        ({"x": np.zeros((2, 4))}, "input 'x' is float64 but the model wants tensor(float)"),
        ({}, "no value is given for 'x'"),
        ({"x": np.zeros((2, 4), np.float32), "z": np.zeros(1)}, "the model has no input 'z'; it has 'x'"),
    ],
)
def test_refused_feed_says_why_and_the_others_go_on(tmp_path: Path, wrong: dict[str, Array], words: str) -> None:
    right = feed(x=np.ones((2, 4), np.float32))

    run = desktop.run(save(tmp_path, RELU), [feed(**wrong), right])

    assert run.results[0].outputs is None
    assert words in str(run.results[0].error)
    assert arrays(run, 1)["y"].sum() == 8


def test_error_in_a_node_is_readable(tmp_path: Path) -> None:
    run = desktop.run(save(tmp_path, DIVIDE), [feed(a=ints(1), b=ints(0)), feed(a=ints(6), b=ints(2))])

    assert run.results[0].error == "Div node without a name: Integer division by zero"
    assert arrays(run, 1)["y"] == 3


def test_crash_on_a_feed_is_its_error_and_the_others_go_on(tmp_path: Path) -> None:
    feeds = [feed(a=ints(4), b=ints(2)), feed(a=ints(SMALLEST), b=ints(-1)), feed(a=ints(9), b=ints(3))]

    run = desktop.run(save(tmp_path, DIVIDE), feeds)

    assert run.results[1].error == "onnxruntime crashed (SIGFPE) on these inputs"
    assert (arrays(run, 0)["y"], arrays(run, 2)["y"]) == (2, 3)


def test_crash_on_every_feed_ends_with_the_model_and_the_level(tmp_path: Path) -> None:
    model = save(tmp_path, DIVIDE)

    with pytest.raises(ModelError) as caught:
        desktop.run(model, [feed(a=ints(SMALLEST), b=ints(-1))] * 5, optimization="basic")

    assert str(model) in caught.value.message
    assert "crashed (SIGFPE) on each of 3 sets of inputs, with graph optimization basic" in caught.value.message
    assert "optimization disabled" in str(caught.value.hint)


def test_crash_while_loading_names_model_and_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No model is known that reliably crashes this version at load, so the process is ended where it would be.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, os\n"
        "class Crash:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'onnxruntime': os.abort()\n"
        "sys.meta_path.insert(0, Crash())\n"
    )
    package = str(Path(desktop.__file__).parent.parent)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{package}")
    model = save(tmp_path, RELU)

    with pytest.raises(ModelError) as caught:
        desktop.run(model, [feed(x=np.zeros((1, 4), np.float32))], optimization="all")

    assert f"{model}: the desktop onnxruntime crashed (SIGABRT) while it loaded the model" in caught.value.message
    assert "graph optimization all" in caught.value.message


def test_unknown_operator_is_named(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17, "my.co" : 1]> g (float[N] x) => (float[N] y) { y = my.co.Frob(x) }'
    model = save(tmp_path, text)

    with pytest.raises(
        ModelError, match=r"uses the operator 'my\.co::Frob', which onnxruntime does not have"
    ) as caught:
        desktop.run(model, [])

    assert str(model) in caught.value.message
    assert caught.value.hint


def test_node_without_a_kernel_is_named(tmp_path: Path) -> None:
    text = HEAD + "g (bfloat16[N] x) => (bfloat16 y) { [sum_it] y = ReduceSum <keepdims = 0> (x) }"

    with pytest.raises(ModelError, match="ReduceSum node 'sum_it'"):
        desktop.run(save(tmp_path, text), [])


def test_optimization_that_breaks_a_valid_model_is_told_with_its_level(tmp_path: Path) -> None:
    text = (
        HEAD
        + """g (float[N, 4] x, float[1] temp) => (float[N, 4] y) <float one = {1}> {
        pre = Neg(x) feat = Dropout(pre) inv = Div(one, temp) z = Mul(inv, feat) y = Softmax <axis = -1> (z)
    }"""
    )
    model = save(tmp_path, text)
    inputs = feed(x=np.ones((1, 4), np.float32), temp=np.ones(1, np.float32))

    assert arrays(desktop.run(model, [inputs]))["y"].sum() == pytest.approx(1)
    with pytest.raises(ModelError, match=r"\(graph optimization all\)") as caught:
        desktop.run(model, [inputs], optimization="all")
    assert "optimization disabled" in str(caught.value.hint)


def test_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"hello")

    with pytest.raises(ModelError, match="cannot be loaded"):
        desktop.run(path, [])


def test_endless_feed_ends_by_the_time_limit(tmp_path: Path) -> None:
    x = np.array(1, np.float32)

    with pytest.raises(LimitError, match=r"Stopped after 1 s: running endless\.onnx"):
        desktop.run(
            save(tmp_path, LOOP, "endless.onnx"), [feed(trips=np.array(2**62), x=x)], limits=ChildLimits(seconds=1)
        )


def test_slow_feed_is_stopped_alone_where_feeds_are_limited(tmp_path: Path) -> None:
    x = np.array(1, np.float32)

    run = desktop.run(
        save(tmp_path, LOOP), [feed(trips=np.array(2**62), x=x), feed(trips=np.array(3), x=x)], feed_seconds=0.5
    )

    assert run.results[0].error == "the run did not end within 0.5 s"
    assert arrays(run, 1)["y"] == -1


def test_memory_hog_ends_by_the_memory_limit(tmp_path: Path) -> None:
    text = HEAD + """g (int64[1] n) => (float[N] y) { one = Constant <value = float[1] {1.5}> () y = Expand(one, n) }"""
    model = save(tmp_path, text)
    limits = ChildLimits(memory_bytes=1 << 28)

    with pytest.raises(LimitError, match="more memory than its limit"):
        desktop.run(model, [feed(n=np.array([1 << 27]))], limits=limits)
    refused = desktop.run(model, [feed(n=np.array([1 << 40])), feed(n=np.array([2]))], limits=limits)
    assert "Failed to allocate memory" in str(refused.results[0].error)
    assert arrays(refused, 1)["y"].shape == (2,)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []

    desktop.run(save(tmp_path, RELU, "m.onnx"), [feed(x=np.zeros((1, 4), np.float32))],
                progress=lambda message, done=None: told.append((message, done)))  # fmt: skip

    assert told[0] == ("Running m.onnx on the desktop (graph optimization disabled)", 0.0)


def test_an_output_that_is_an_input_as_well_is_kept_when_the_input_is_gone(tmp_path: Path) -> None:
    model = save(tmp_path, HEAD + "g (float[N, 4] x) => (float[N, 4] y, float[N, 4] x) { y = Identity(x) }")
    given = [np.arange(4, dtype=np.float32).reshape(1, 4) + number for number in range(3)]

    run = desktop.run(model, [feed(x=x) for x in given])

    for index, x in enumerate(given):
        np.testing.assert_array_equal(arrays(run, index)["x"], x)
        np.testing.assert_array_equal(arrays(run, index)["y"], x)


def test_a_model_without_an_output_that_can_be_read_is_refused_by_name(tmp_path: Path) -> None:
    model = save(tmp_path, HEAD + "g (float[2] x) => (seq(float[N]) s) { s = SplitToSequence(x) }")

    (result,) = desktop.run(model, [feed(x=np.zeros(2, np.float32))]).results

    assert result.outputs is None
    assert result.error == "none of its outputs can be read: 's'"
