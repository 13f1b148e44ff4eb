"""Where the golden answers are at fault, a diagnosis blames nobody else."""

from pathlib import Path

import numpy as np
import pytest
from models_text import LINEAR, parse
from onnx import numpy_helper

from edgekit.conformance.suite import Reply
from edgekit.diagnose import golden_answers, warned
from edgekit.diagnose.why import Failing
from edgekit.model.io import LoadedModel
from edgekit.records.cases import Reference, Tolerance
from edgekit.records.tensors import value_of
from edgekit.targets import load as targets

DESKTOP = Reference("desktop onnxruntime", "onnxruntime", "0.9", "disabled")


def reply(array: np.ndarray) -> Reply:
    return Reply("done", (value_of("y", array),))


def test_a_golden_answer_that_was_changed_is_told_with_its_place_and_what_everyone_gives() -> None:
    right = np.array([[1.5, 2], [3, 4.25]], np.float32)
    golden = right.copy()
    golden[1, 0] = 123.5
    bad = Failing("only", 0, (), (value_of("y", golden),), {"y": Tolerance(1e-3, 1e-6)})
    said = golden_answers.changed(DESKTOP, bad, reply(right), reply(right + np.float32(1e-6)))
    assert said[1] == (
        "Case 'only', output 'y', at [1, 0]: the golden answer is 123.5, the desktop gives 3, the browser 3."
    )
    assert "desktop onnxruntime 0.9 (here it is " in said[2] and "were changed since" in said[2]
    assert "Build the bundle again" in said[2]


@pytest.mark.parametrize("given", [Reply("refused", error="no"), reply(np.zeros(3, np.float32))])
def test_answers_that_cannot_be_set_side_by_side_are_told_too(given: Reply) -> None:
    bad = Failing("only", 0, (), (value_of("y", np.ones((2, 2), np.float32)),), {"y": Tolerance(1e-3, 1e-6)})
    said = golden_answers.where(bad, given, given)
    assert "the golden answer is float32[2, 2]" in said and ("nothing" in said or "float32[3]" in said)


def model(text: str, folder: Path) -> LoadedModel:
    return LoadedModel(folder / "model.onnx", parse(text), ())


def test_a_node_that_draws_random_numbers_is_named(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) { [r] n = RandomNormal <shape = [2]> () y = Add (x, n) }"""
    known = warned.warnings(model(text, tmp_path), targets.load("wasm"), "wasm")
    said = warned.random(known)
    assert said[0].startswith("Node 'r' (RandomNormal) draws random numbers: golden cases prove nothing after it")
    assert warned.random(warned.warnings(model(LINEAR, tmp_path), targets.load("wasm"), "wasm")) == []


def test_other_nodes_that_are_known_to_go_wrong_are_named_beside_the_one_that_was_found(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,6,9] x) => (float[1,8,9] y) {
        [one] a = Conv <pads = [1, 1]> (x, w) b = Conv <pads = [1, 1]> (a, v) c = Neg (b)
        [two] y = Concat <axis = 1> (b, c)
    }"""
    loaded = model(text, tmp_path)
    for name, shape in (("w", (6, 6, 3)), ("v", (4, 6, 3))):
        loaded.proto.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    known = warned.warnings(loaded, targets.load("webgpu"), "jspi")
    assert warned.others(known, (), ()) == "'b' (conv-channels-of-three)"
    assert warned.others(known, (), ("→ b",)) == ""
