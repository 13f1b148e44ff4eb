import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
import safetensors.numpy

from edgekit.child.process import ChildLimits
from edgekit.desktop import reference
from edgekit.desktop.run import Feed
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.facts.survey import Argument
from edgekit.records.cases import FeedBack
from edgekit.records.tensors import value_of

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
Y = Argument("y", "tensor(float)", "float32", ("N",))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(tmp_path / "model.onnx", "y = Neg(x)")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's in the current folder: ``mine.py``, to be written by the test."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    # The checkout, under whatever relative path the tests were started with.
    monkeypatch.setenv("PYTHONPATH", str(Path(reference.__file__).parent.parent))
    return here / "mine.py"


def save(path: Path, body: str) -> Path:
    text = HEAD + f"g (float[N] x) => (float[N] y) {{ {body} }}"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


def feed(*numbers: float) -> Feed:
    return Feed((value_of("x", np.array(numbers, np.float32)),))


def first(run: Any, index: int = 0) -> list[float]:
    result = run.results[index]
    assert result.error is None, result.error
    values: list[float] = result.outputs[0].array.tolist()
    return values


def test_without_a_reference_the_model_itself_answers(model: Path) -> None:
    run = reference.outputs(None, model, [feed(1, 2)], declared=[Y])

    assert first(run) == [-1, -2]
    assert run.runtime == "onnxruntime"


def test_another_model_may_answer(tmp_path: Path, model: Path) -> None:
    other = save(tmp_path / "original.onnx", "y = Abs(x)")

    assert first(reference.outputs(str(other), model, [feed(-1, 2)], declared=[Y])) == [1, 2]


@pytest.mark.parametrize("spec", ["missing.onnx", "missing.npz", "what is this", "a:b:c", "mine.py", ":f", "mine:"])
def test_reference_that_is_nothing_is_refused(model: Path, spec: str) -> None:
    with pytest.raises(UsageError, match=spec):
        reference.outputs(spec, model, [feed(1)])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_recorded_outputs_by_case(tmp_path: Path, model: Path, suffix: str) -> None:
    arrays = {"b/output/y": np.array([2.0]), "a/output/y": np.array([1.0]), "a/input/x": np.array([9.0])}
    path = tmp_path / f"recorded{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        safetensors.numpy.save_file(arrays, path)

    run = reference.outputs(str(path), model, [feed(1)] * 3, case_ids=["a", "b", "c"], declared=[Y])

    assert reference.is_recorded(str(path))
    assert (first(run), first(run, 1)) == ([1], [2])
    assert run.results[0].outputs[0].dtype == "float32"
    assert run.results[2].error == f"recorded{suffix} holds no outputs of the case 'c'"


def test_recorded_outputs_by_name_are_enough_for_one_case(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "recorded.npz"
    np.savez(path, y=np.array([7.0], np.float32))

    assert first(reference.outputs(str(path), model, [feed(1)], declared=[Y])) == [7]
    with pytest.raises(UsageError, match="enough for one case, but there are 2"):
        reference.outputs(str(path), model, [feed(1)] * 2)


def test_recorded_file_that_is_broken_is_named(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "recorded.npz"
    path.write_bytes(b"no")

    with pytest.raises(UsageError, match=r"recorded\.npz is not a \.npz file"):
        reference.outputs(str(path), model, [feed(1)])


def test_callable_of_the_current_folder_answers_and_its_printing_is_unseen(model: Path, own: Path) -> None:
    own.write_text(
        "class A:\n    def f(inputs):\n        print(inputs)\n        return {'extra': 1, 'y': inputs['x'] * 3.0}"
    )

    run = reference.outputs("mine:A.f", model, [feed(1), feed(2, 3)], declared=[Y])

    assert (first(run), first(run, 1)) == ([3], [6, 9])
    assert [value.name for value in run.results[0].outputs or ()] == ["y"]
    assert run.runtime == "Python callable"


def test_callable_answers_step_by_step_where_outputs_are_fed_back(model: Path, own: Path) -> None:
    own.write_text("def f(inputs): return {'y': inputs['x'] * 2}")

    run = reference.callable_run("mine:f", [Feed(feed(1).inputs, FeedBack(5, {"x": "y"}))])

    assert first(run) == [32]
    assert len(run.results[0].run_ms) == 5


def test_double_precision_is_rounded_to_the_declared_dtype_and_other_changes_are_errors(model: Path, own: Path) -> None:
    own.write_text(
        "import numpy\ndef f(i): return {'y': i['x'].astype(float) / 3 if i['x'][0] else numpy.array(['a'])}"
    )

    run = reference.outputs("mine:f", model, [feed(1), feed(0)], declared=[Y])

    assert first(run) == [float(np.float32(1 / 3))]
    assert run.results[1].error == "the reference gives 'y' as string; the model gives float32"


def test_output_that_is_missing_is_an_error_of_the_feed(model: Path, own: Path) -> None:
    own.write_text("def f(inputs): return {'z': 1}")

    run = reference.outputs("mine:f", model, [feed(1)], declared=[Y])

    assert run.results[0].error == "the reference gives no output 'y'; it gives 'z'"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise ValueError('no <b>')", "ValueError: no <b>"),
        ("return [1]", "TypeError: it returned list, not a dict of output name to array"),
    ],
)
def test_what_a_call_raises_is_an_error_of_that_feed(own: Path, body: str, error: str) -> None:
    own.write_text(f"def f(inputs):\n    if inputs['x'][0] > 1: return {{'y': inputs['x']}}\n    {body}")

    run = reference.callable_run("mine:f", [feed(1), feed(2)])

    assert run.results[0].error == error
    assert first(run, 1) == [2]


@pytest.mark.parametrize(
    ("text", "spec", "words"),
    [
        ("", "not_there:f", "No module named 'not_there'"),
        ("", "mine:f", "has no attribute 'f'"),
        ("f = 3", "mine:f", "mine:f is not callable"),
        ("1 +", "mine:f", "SyntaxError"),
        ("raise RuntimeError('at import')", "mine:f", "RuntimeError: at import"),
        ("import os\ndef f(inputs): os.abort()", "mine:f", "SIGABRT"),
    ],
)
def test_callable_that_cannot_be_used_is_refused_without_a_traceback(
    own: Path, text: str, spec: str, words: str
) -> None:
    own.write_text(text)

    with pytest.raises(UsageError, match=words) as caught:
        reference.callable_run(spec, [feed(1)])

    assert "Traceback" not in caught.value.message
    assert caught.value.hint


def test_callable_that_never_ends_meets_the_time_limit(own: Path) -> None:
    own.write_text("def f(inputs):\n    while True: pass")

    with pytest.raises(LimitError, match="Stopped after 1 s: asking mine:f"):
        reference.callable_run("mine:f", [feed(1)], limits=ChildLimits(seconds=1))


def test_broken_reference_model_is_refused(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "original.onnx"
    path.write_bytes(b"no")

    with pytest.raises(ModelError, match=r"original\.onnx"):
        reference.outputs(os.fspath(path), model, [feed(1)])
