"""Golden cases, made end to end with the real desktop runtime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from models_text import EMBEDDING, LINEAR, loaded, parse, write

from edgekit.errors import ModelError, UsageError
from edgekit.facts import survey as facts
from edgekit.golden import make as make_module
from edgekit.golden.make import CaseOptions, make
from edgekit.model import io as models
from edgekit.model.io import LoadedModel
from edgekit.records import cases
from edgekit.records.cases import CaseSet, FeedBack, GoldenCase, Tolerance
from edgekit.targets.load import Limits, Parity, Runtime, Target

TARGET = Target(
    id="here",
    title="A target",
    kind="web",
    runtime=Runtime("onnxruntime-web", ("wasm",)),
    limits=Limits(1 << 20, 13, 26),
    parity=Parity("chromium"),
    tolerance={"float32": Tolerance(1e-4, 1e-6)},
)

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
LOOP = f"{_HEAD} g (float[N, 2] x, float[N, 2] state) => (float[N, 2] next, float[N, 2] y) {{\
    next = Add(x, state) y = Neg(next) }}"
STATELESS_LABELS = f"{_HEAD} g (float[N, 4] x) => (int64[N] label) <float[4, 5] w = {{\
    1, -2, 0.5, 0.3, -1, 0.2, 2, -0.7, 1, 0.9, -1, 0.1, 1.3, -0.2, 0.6, 0.8, -0.4, 0.3, 1.7, -1.1}}>\
    {{ scores = MatMul(x, w) label = ArgMax<axis = 1, keepdims = 0>(scores) }}"


def made(source: str | LoadedModel, folder: Path, **options: object) -> CaseSet:
    model = loaded(source, folder) if isinstance(source, str) else source
    return make(model, facts.survey(model), TARGET, CaseOptions(**options))  # type: ignore[arg-type]


def array(case: GoldenCase, name: str) -> np.ndarray:
    (found,) = (value.array for value in (*case.inputs, *case.outputs) if value.name == name)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> CaseSet:
    return made(LINEAR, tmp_path_factory.mktemp("linear"))


def test_a_plain_model_gives_strong_cases_of_two_batch_sizes(linear: CaseSet) -> None:
    assert 6 <= len(linear.cases) <= 12
    assert all(case.grade.strong for case in linear.cases)
    assert {array(case, "x").shape[0] for case in linear.cases} == {1, 3}
    assert linear.reference.optimization == "disabled"
    assert linear.tolerance == {"float32": Tolerance(1e-4, 1e-6)}


def test_the_reference_outputs_are_those_of_the_model(linear: CaseSet) -> None:
    weights = np.array([[0.5, -1, 2], [1, 0.25, -3]], np.float32)
    for case in linear.cases:
        np.testing.assert_allclose(array(case, "y"), np.maximum(array(case, "x") @ weights, 0), rtol=1e-5, atol=1e-5)


def test_what_proves_nothing_is_left_out_and_said(linear: CaseSet) -> None:
    assert not any("zeros" in case.id for case in linear.cases)
    assert any("zeros: degenerate: an output is zero everywhere" in words for words in linear.left_out)
    # Whoever shows them says that they were left out.
    assert not any("left out" in words.lower() for words in linear.left_out)


def test_cases_fit_the_contract_and_come_back_the_same(linear: CaseSet) -> None:
    document, data = cases.to_files(linear)
    again_document, again_data = cases.to_files(cases.from_files(document, data))
    assert (again_document, again_data) == (document, data)


def test_the_same_model_gives_the_same_bytes_and_another_seed_others(linear: CaseSet, tmp_path: Path) -> None:
    assert cases.to_files(made(LINEAR, tmp_path)) == cases.to_files(linear)
    assert cases.to_files(made(LINEAR, tmp_path, seed=7))[1] != cases.to_files(linear)[1]


def test_indexes_stay_inside_their_table(tmp_path: Path) -> None:
    found = made(EMBEDDING, tmp_path)
    assert max(array(case, "ids").max() for case in found.cases) == 9


def test_a_model_without_inputs_has_one_case(tmp_path: Path) -> None:
    text = f"{_HEAD} g () => (float[3] y) <float[3] w = {{1, 2, 3}}> {{ y = Neg(w) }}"
    (case,) = made(text, tmp_path).cases
    assert case.inputs == ()
    assert array(case, "y").tolist() == [-1, -2, -3]


def test_strings_are_made_too(tmp_path: Path) -> None:
    text = f"{_HEAD} g (string[N] words) => (string[N] y) {{ y = Identity(words) }}"
    assert any(len(set(array(case, "y").ravel())) > 1 for case in made(text, tmp_path).cases)


def test_an_input_that_no_case_can_see_is_said(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[2] x, float[2] dead) => (float[2] y) <float z = {{0}}> {{ a = Mul(dead, z) y = Add(x, a) }}"
    )
    said = [words for words in made(text, tmp_path).left_out if "changes no output" in words]
    assert said == ["input 'dead' changes no output in any case; give a --sample"]


def test_a_loop_runs_its_steps_and_is_recorded(tmp_path: Path) -> None:
    found = made(LOOP, tmp_path, feed_back={"next": "state"}, steps=3)
    for case in found.cases:
        assert case.feed_back == FeedBack(3, {"state": "next"})
        np.testing.assert_allclose(array(case, "next"), 3 * array(case, "x"), rtol=1e-5)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"nxet": "state"}, "no output 'nxet'; did you mean 'next'"),
        ({"next": "sate"}, "no input 'sate'; did you mean 'state'"),
        ({"next": "state", "y": "state"}, "given two outputs"),
    ],
)
def test_a_wrong_loop_is_refused_by_name(links: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        made(LOOP, tmp_path, feed_back=links)


def test_a_tolerance_for_an_output_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no output 'z'"):
        made(LINEAR, tmp_path, output_tolerance={"z": Tolerance(1, 0)})


@pytest.mark.sweep
def test_a_dead_output_leaves_a_weak_set_and_not_an_empty_one(tmp_path: Path) -> None:
    # No input in reach makes relu(x * 0 - 5) anything but zero: all cases are weak, and none may be called strong.
    text = (
        f"{_HEAD} g (float[N, 2] x) => (float[N, 2] y) <float[2] z = {{0, 0}}, float[2] b = {{-5, -5}}> "
        "{ a = Mul(x, z) c = Add(a, b) y = Relu(c) }"
    )
    found = made(text, tmp_path)
    assert found.cases
    assert not any(case.grade.strong for case in found.cases)
    assert {array(case, "x").shape[0] for case in found.cases} == {1, 3}


def test_an_output_that_no_input_changes_is_weak(tmp_path: Path) -> None:
    text = (
        f"{_HEAD} g (float[1, 2] x) => (float[1, 2] y) <float[2] z = {{0, 0}}, float[2] b = {{1, 2}}> "
        "{ a = Mul(x, z) y = Add(a, b) }"
    )
    found = made(text, tmp_path)
    assert all("blind" in " ".join(case.grade.weak) for case in found.cases)


@pytest.mark.sweep
def test_a_model_of_which_every_case_is_chaotic_keeps_a_few_that_are_said_to_be_weak(tmp_path: Path) -> None:
    # About 2**26 modulo less than 1: the next float gives something else altogether.
    text = (
        f"{_HEAD} g (float[N, 4] x) => (float[N, 4] y) <float[4] big = {{67108864, 68e6, 69e6, 71e6}}, "
        "float one = {0.7310586}> { a = Add(x, big) y = Mod<fmod = 1>(a, one) }"
    )
    found = made(text, tmp_path)
    assert 0 < len(found.cases) <= 4
    assert all("chaotic" in " ".join(case.grade.weak) for case in found.cases)
    assert any("chaotic" in words for words in found.left_out)


def test_labels_are_searched_for_near_ties(tmp_path: Path) -> None:
    found = made(STATELESS_LABELS, tmp_path)
    assert sum(case.grade.strong for case in found.cases) >= 4


def test_samples_come_first_and_stay_though_weak(tmp_path: Path) -> None:
    np.savez(tmp_path / "tief nachts.npz", x=np.zeros((1, 2), np.float32))
    np.save(tmp_path / "good.npy", np.array([[3, 1.5], [-2, 4]], np.float32))
    found = made(LINEAR, tmp_path, samples=(tmp_path / "tief nachts.npz", tmp_path / "good.npy"))
    first, second = found.cases[:2]
    assert (first.id, second.id) == ("tief-nachts.npz", "good.npy")
    assert not first.grade.strong
    assert second.grade.strong
    assert len(found.cases) > 2


def test_a_model_that_takes_samples_alone_has_these_alone(tmp_path: Path) -> None:
    text = f"{_HEAD} g (float[A, B] x) => (float[C, D] y) <int64[2] s = {{7, 13}}> {{ a = Reshape(x, s) y = Exp(a) }}"
    np.save(tmp_path / "x.npy", np.linspace(0, 1, 91, dtype=np.float32).reshape(91, 1))
    found = made(text, tmp_path, samples=(tmp_path / "x.npy",))
    assert [case.id for case in found.cases] == ["x.npy"]
    assert any("Generated cases" in words for words in found.left_out)


def test_another_reference_gives_the_outputs(tmp_path: Path) -> None:
    other = parse(LINEAR)
    other.graph.initializer[0].float_data[0] = 9.0
    onnx.save(other, tmp_path / "original.onnx")
    found = made(LINEAR, tmp_path, reference=str(tmp_path / "original.onnx"))
    assert found.reference.name.endswith("original.onnx")
    weights = np.array([[9, -1, 2], [1, 0.25, -3]], np.float32)
    for case in found.cases:
        np.testing.assert_allclose(array(case, "y"), np.maximum(array(case, "x") @ weights, 0), rtol=1e-5, atol=1e-5)


def test_recorded_outputs_are_for_the_samples_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[3, 1.5]], np.float32))
    np.savez(tmp_path / "recorded.npz", y=np.array([[1, 2, 3]], np.float32))
    found = made(LINEAR, tmp_path, samples=(tmp_path / "x.npy",), reference=str(tmp_path / "recorded.npz"))
    assert [array(case, "y").tolist() for case in found.cases] == [[[1, 2, 3]]]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no weights')", "ValueError: no weights"),
        ("return None", "TypeError: it returned NoneType, not a dict of output name to array"),
        ("return {}", "the reference gives no output 'y'; it gives none"),
        ("return {'z': 1}", "the reference gives no output 'y'; it gives 'z'"),
    ],
)
def test_a_callable_that_answers_nothing_is_refused_with_its_reason_once(
    body: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(make_module.__file__).parents[2]))
    (tmp_path / "mine.py").write_text(f"def f(inputs):\n    {body}")
    with pytest.raises(UsageError) as caught:
        made(LINEAR, tmp_path, reference="mine:f")
    assert caught.value.message.count(reason) == 1
    assert "--sample" not in caught.value.message
    assert caught.value.hint is not None
    assert "callable" in caught.value.hint


def test_a_reference_model_of_other_inputs_is_refused_with_its_reason_once(tmp_path: Path) -> None:
    write(f"{_HEAD} g (float[N, 2] other) => (float[N, 3] y) {{ y = Identity(other) }}", tmp_path, "original.onnx")
    with pytest.raises(UsageError) as caught:
        made(LINEAR, tmp_path, reference=str(tmp_path / "original.onnx"))
    assert caught.value.message.count("the model has no input 'x'; it has 'other'") == 1
    assert caught.value.hint is not None
    assert "reference model" in caught.value.hint


@pytest.mark.parametrize(
    ("output", "taken", "fits"),
    [
        ("float[1, 4]", "float[1, 3, 8, 8]", False),
        ("float[N, 4]", "float[N, 5]", False),
        ("float[N, 4]", "float[M, 4]", True),
        ("float[N, K]", "float[1, 4]", True),
    ],
)
def test_only_shapes_that_can_be_the_same_are_fed_back(output: str, taken: str, fits: bool, tmp_path: Path) -> None:
    model = loaded(f"{_HEAD} g ({taken} image, {output} x) => ({output} scores) {{ scores = Neg(x) }}", tmp_path)
    found = facts.survey(model)
    options = CaseOptions(feed_back={"scores": "image"})
    if fits:
        assert make_module._feed_back(options, found.inputs, found.outputs)
        return
    with pytest.raises(UsageError, match=r"'scores' float32 \[.*\] cannot be fed back as input 'image' float32 \[.*\]"):
        make(model, found, TARGET, options)


def test_a_model_that_no_session_takes_is_an_error_with_the_reason(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 17, "private" : 1]> g (float[N] x) => (float[N] y) { y = private.Odd(x) }'
    )
    with pytest.raises(ModelError, match="Odd"):
        made(text, tmp_path)


def test_a_sequence_as_input_is_an_error_with_its_name(tmp_path: Path) -> None:
    proto = parse(f"{_HEAD} g (float[2] x) => (float[2] y) {{ y = Identity(x) }}")
    proto.graph.input.append(onnx.helper.make_tensor_sequence_value_info("many", onnx.TensorProto.FLOAT, None))
    models.save(proto, tmp_path / "model.onnx")
    with pytest.raises(ModelError, match=r"'many' is seq\(tensor\(float\)\)"):
        made(models.load(tmp_path / "model.onnx"), tmp_path)


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    name = "<script>alert('x')</script>\n\"/../é"
    proto = parse(LINEAR)
    proto.graph.input[0].name = name
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = name
    proto.graph.output[0].name = f"out {name}"
    proto.graph.node[0].input[0] = name
    proto.graph.node[1].output[0] = f"out {name}"
    models.save(proto, tmp_path / "model.onnx")
    found = made(models.load(tmp_path / "model.onnx"), tmp_path)
    document, data = cases.to_files(found)
    assert cases.to_files(cases.from_files(document, data))[1] == data
    assert all(value.name == name for case in found.cases for value in case.inputs)


@pytest.mark.parametrize(
    ("output", "node", "kind"),
    [
        ("seq(float[K])", "SplitToSequence<axis = 0>(x)", "seq(tensor(float))"),
        ("float8e4m3fn[N]", "Cast<to = 17>(x)", "tensor(float8e4m3fn)"),
    ],
)
def test_a_model_without_an_output_that_can_be_compared_is_an_error_with_their_types(
    output: str, node: str, kind: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as caught:
        made(f'<ir_version: 9, opset_import: ["" : 19]> g (float[N] x) => ({output} y) {{ y = {node} }}', tmp_path)
    said = "none of its outputs is a tensor of a type that can be compared"
    assert caught.value.message.endswith(f"{said}: 'y' {kind}.")


def test_inputs_of_terabytes_are_an_error_and_never_made(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="too large for golden cases"):
        made(f"{_HEAD} g (float[1000000, 1000000] x) => (float[1000000, 1000000] y) {{ y = Neg(x) }}", tmp_path)
