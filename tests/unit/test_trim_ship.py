import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from models_text import INITIALIZER_AS_INPUT
from trimming import parse, run

from edgekit import files, pipeline
from edgekit.bundle.open import load_cases, open_bundle
from edgekit.bundle.writer import PLAN
from edgekit.check import run as checking
from edgekit.check.finding import Finding
from edgekit.child.process import DEFAULT_LIMITS
from edgekit.cli.main import run as edgekit
from edgekit.facts import survey
from edgekit.golden import make as golden
from edgekit.golden.make import CaseOptions
from edgekit.kinds.config import BuildConfig
from edgekit.model import io
from edgekit.passes import no_ops
from edgekit.pipeline import BuildResult
from edgekit.records.tensors import same_bits, value_of
from edgekit.targets import load as targets
from edgekit.trim import ship
from edgekit.trim.ship import Shipped

NET = """g (float[N, 4] x) => (float[N, 3] y) <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}> {
    h = Abs(x) a = Identity(h) m = MatMul(a, w) i = Identity(m) y = Relu(i)
}"""
POSITIVE = "g (float[N, 4] x) => (float[N, 4] y) { a = Abs(x) y = Relu(a) }"
BARE = """g (float[N, 4] x) => (float[N, 3] y) <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}> {
    y = MatMul(x, w)
}"""


def write(model: str, folder: Path, *, remark: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    proto = parse(model)
    for node in proto.graph.node:
        node.doc_string = remark
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    return folder / "net.onnx"


def built(model: Path, bundle: Path, **settings: Any) -> BuildResult:
    return pipeline.build(BuildConfig(model, "wasm", bundle, trim_runtime=False, **settings))


def came(path: Path, target: str = "wasm") -> Shipped:
    """What a build knows of a model before it trims."""
    loaded, device = io.load(path), targets.load(target)
    facts = survey.survey(loaded)
    cases = golden.make(loaded, facts, device, CaseOptions())
    return Shipped(loaded, facts, checking.check(loaded, device), cases)


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_bundle_ships_the_trimmed_model_with_the_answers_of_the_original(tmp_path: Path) -> None:
    path = write(NET, tmp_path / "in")
    result = built(path, tmp_path / "bundle")

    bundle = open_bundle(tmp_path / "bundle")
    shipped = onnx.load(tmp_path / "bundle" / bundle.manifest.model.path)
    assert [node.op_type for node in shipped.graph.node] == ["Abs", "MatMul", "Relu"]
    assert result.trim is not None and result.trim.proof == "identical"
    cases, entry = load_cases(bundle), bundle.manifest.model
    assert cases.model_sha256 == entry.sha256 == files.sha256_file(tmp_path / "bundle" / entry.path)
    assert cases.original_sha256 == entry.original_sha256 == files.sha256_file(path) != entry.sha256
    for case in cases.cases:
        assert case.inputs[0].array is not None
        (right,) = run(parse(NET), {"x": case.inputs[0].array})
        assert same_bits(case.outputs[0], value_of("y", right))
    plan = json.loads((tmp_path / "bundle" / PLAN).read_text())
    assert (plan["model"], plan["nodes_before"], plan["nodes_after"]) == ("net.onnx", 5, 3)
    assert [file["sha256"] for file in plan["files"]] == [entry.sha256]


def test_no_trim_ships_the_file_as_it_came(tmp_path: Path) -> None:
    path = write(NET, tmp_path / "in")
    result = built(path, tmp_path / "bundle", trim=False)

    manifest = open_bundle(tmp_path / "bundle").manifest
    assert (tmp_path / "bundle" / manifest.model.path).read_bytes() == path.read_bytes()
    assert (manifest.model.original_sha256, load_cases(open_bundle(tmp_path / "bundle")).original_sha256) == (
        None,
        None,
    )
    assert (result.trim, result.untrimmed) == (None, "it was not asked for")
    assert not (tmp_path / "bundle" / PLAN).exists()


@pytest.mark.sweep
def test_the_same_model_gives_the_same_bundle_wherever_it_lies(tmp_path: Path) -> None:
    for name in ("a", "b/deeper"):
        built(write(NET, tmp_path / "in" / name), tmp_path / name / "bundle")
    first, second = tree(tmp_path / "a/bundle"), tree(tmp_path / "b/deeper/bundle")
    assert PLAN in first
    assert first == second
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["bundle"], "nothing is left beside the bundle"


def test_a_model_with_nothing_to_remove_is_shipped_as_it_came(tmp_path: Path) -> None:
    once = came(write(BARE, tmp_path))
    lean = ship.choose(once, targets.load("wasm"), tmp_path / "work", DEFAULT_LIMITS)
    assert lean.model is once.model
    assert (lean.plan, lean.reason) == (None, "there is nothing to remove")


def test_what_cannot_be_proven_is_shipped_as_it_came(tmp_path: Path) -> None:
    known = came(write(NET, tmp_path))
    misfit = replace(known.cases.cases[0], inputs=(value_of("x", np.zeros((1, 3), np.float32)),))
    unproven = replace(known, cases=replace(known.cases, cases=(misfit,)))

    found = ship.choose(unproven, targets.load("wasm"), tmp_path / "work", DEFAULT_LIMITS)

    assert found.plan is None and found.model is known.model
    assert "nothing can be proven" in found.reason
    twin = ship.choose(known, targets.load("wasm"), tmp_path / "twin", DEFAULT_LIMITS)
    assert twin.plan is not None


@pytest.mark.sweep
def test_a_trimmed_model_that_is_worse_on_the_target_is_not_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def widen(model: ir.Model, _known: Any, **_: Any) -> bool:
        """The same bits on the desktop; the WebGPU builds have no Cast to float64."""
        relu = next((node for node in model.graph if node.op_type == "Relu"), None)
        if relu is None:
            return False
        wide = ir.node("Cast", [relu.inputs[0]], {"to": 11})
        back = ir.node("Cast", [wide.outputs[0]], {"to": 1})
        for number, node in enumerate((wide, back)):
            node.outputs[0].name = f"added{number}"
            model.graph.insert_before(relu, node)
        relu.replace_input_with(0, back.outputs[0])
        relu.op_type = "Abs"
        return True

    known = came(write(POSITIVE, tmp_path, remark="a long remark of an exporter " * 99), "webgpu")
    monkeypatch.setattr(no_ops, "apply", widen)

    found = ship.choose(known, targets.load("webgpu"), tmp_path / "work", DEFAULT_LIMITS)

    assert found.plan is None and found.model is known.model
    assert "trimmed, it would be worse on webgpu" in found.reason and "refuses Cast" in found.reason
    elsewhere = ship.choose(replace(known, findings=()), targets.load("wasm"), tmp_path / "twin", DEFAULT_LIMITS)
    assert elsewhere.plan is not None


def test_only_what_was_not_found_before_counts_as_worse() -> None:
    slow, wrong = Finding("slow", "warning", "Slow."), Finding("wrong", "error", "Wrong.")
    assert ship._worse([slow], [slow, slow, Finding("note", "note", "Well.")]) == ""
    assert ship._worse([wrong], [replace(wrong, severity="warning")]) == ""
    assert ship._worse([slow], [slow, wrong]) == "Wrong. [wrong]"
    assert ship._worse([replace(wrong, severity="warning")], [wrong]) == "Wrong. [wrong]"
    assert ship._worse([slow], [replace(slow, message="Slow in 3 of 5 nodes.")]) == ""
    other = replace(slow, message="This is slow as well.")
    assert ship._worse([slow], [slow, other]) == "This is slow as well. [slow]"


def test_weights_in_files_stay_in_files_under_the_hosts_limit(tmp_path: Path) -> None:
    proto = parse(
        "g (float[2, 64] x) => (float[2, 64] y) { a = MatMul(x, v) b = Identity(a) c = MatMul(b, w) y = Relu(c) }"
    )
    rng = np.random.default_rng(0)
    for name in ("v", "w"):
        (tmp_path / f"{name}.bin").write_bytes(rng.standard_normal((64, 64), np.float32).tobytes())
        tensor = proto.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, dims=[64, 64])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{name}.bin")
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    device = targets.load("wasm")
    tight = replace(device, limits=replace(device.limits, file_bytes=20000))

    found = ship.choose(came(tmp_path / "net.onnx"), tight, tmp_path / "work", DEFAULT_LIMITS)

    assert found.plan is not None
    assert [file.bytes for file in found.model.external_files] == [16384, 16384]
    x = {"x": rng.standard_normal((2, 64)).astype(np.float32)}
    before, after = onnx.load(tmp_path / "net.onnx"), onnx.load(found.model.path)
    np.testing.assert_array_equal(run(before, x)[0], run(after, x)[0])


@pytest.mark.sweep
def test_constants_that_were_inputs_change_no_input_of_the_page(tmp_path: Path) -> None:
    known = came(write(INITIALIZER_AS_INPUT, tmp_path))
    found = ship.choose(known, targets.load("wasm"), tmp_path / "work", DEFAULT_LIMITS)
    assert found.plan is not None
    assert [argument.name for argument in found.facts.inputs] == ["x"]
    assert "w" not in [info.name for info in found.model.proto.graph.input]


def test_the_command_says_what_was_trimmed_or_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(NET, tmp_path / "in")
    command = ["build", str(path), "-t", "wasm", "--no-trim-runtime", "-o"]
    assert edgekit([*command, str(tmp_path / "b")]) == 0
    assert "model: 5 → 3 nodes" in capsys.readouterr().err
    assert edgekit([*command, str(tmp_path / "c"), "--no-trim", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["trim"], document["untrimmed"]) == (None, "it was not asked for")
