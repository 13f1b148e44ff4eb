"""The measured truth: silero VAD on WebGPU, from a failing bundle to the one node, its cures and a repro."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
import web_bundle
from models import real
from models_text import LINEAR, parse, write
from playwright.sync_api import sync_playwright

from edgekit.cli.main import run
from edgekit.desktop import run as desktop
from edgekit.desktop.run import Feed
from edgekit.files import sha256_file
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.tensors import value_of
from edgekit.runners import browsers, chromium
from edgekit.serve.app import create_static_app
from edgekit.serve.assets import of_files
from edgekit.serve.server import serving

pytestmark = pytest.mark.browser

Diagnosed = tuple[int, dict[str, Any]]


@pytest.fixture
def diagnose(capsys: pytest.CaptureFixture[str]) -> Callable[..., Diagnosed]:
    """Run the command with --json; return its exit code and what it wrote."""

    def command(*arguments: object) -> Diagnosed:
        capsys.readouterr()
        code = run(["diagnose", *map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert out, err
        return code, json.loads(out)

    return command


def speech_case(model: Path) -> CaseSet:
    """One chunk of a made-up sound, which the model answers alike everywhere but on a faulty engine."""
    samples = np.sin(np.arange(576) * 0.05) * np.linspace(0, 0.5, 576)
    inputs = (
        value_of("input", samples.astype(np.float32)[None]),
        value_of("sr", np.array(16000)),
        value_of("state", np.zeros((2, 1, 128), np.float32)),
    )
    outputs = desktop.run(model, [Feed(inputs)]).results[0].outputs
    assert outputs is not None
    return CaseSet(
        model_sha256=sha256_file(model),
        reference=Reference("the model itself", "onnxruntime", "1", "disabled"),
        tolerance={"float32": Tolerance(1e-3, 1e-6)},
        output_tolerance={},
        cases=(GoldenCase("speech", "made up", inputs, outputs),),
    )


# Kinds that were reported to go wrong on WebGPU, and that this version of the runtime answers rightly.
REPORTED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,6,5,6] x, float[2,3,2,3,4] d, uint8[7] q) => (float[A,B,C,D] y, float[E,F,G,H] z, float[7] r, float[I,J,K] u)
<float[6,1,3,3] w, int64[2,2] places = {1, 2, 0, 1}, float s = {0.5}, uint8 zero = {128}, int64 axis = {1},
 float[2,2] m = {1, 2, 3, 4}>
{
    [transposed] y = ConvTranspose <group = 6, strides = [2, 3], pads = [1, 0, 0, 1], output_padding = [1, 1]> (x, w)
    [gathered] z = GatherND (d, places)
    [dequantized] r = DequantizeLinear (q, s, zero)
    [unsqueezed] u = Unsqueeze (m, axis)
}
"""
# All engines round here as the desktop does, and not as the standard says.
RESIZE = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[1,1,1,14] x) => (float[1,1,1,2] y) <int64[4] sizes = {1, 1, 1, 2}>
{
    [resize] y = Resize <mode = "nearest", nearest_mode = "floor",
        coordinate_transformation_mode = "asymmetric"> (x, , , sizes)
}
"""


def bundle_of(text: str, folder: Path, inputs: dict[str, Any], initializers: dict[str, Any]) -> Path:
    """Build a bundle for WebGPU whose one case has the desktop's answers."""
    proto = parse(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in initializers.items())
    model = folder / "model.onnx"
    onnx.save(proto, model)
    given = tuple(value_of(name, array) for name, array in inputs.items())
    outputs = desktop.run(model, [Feed(given)]).results[0].outputs
    assert outputs is not None
    cases = CaseSet(
        model_sha256=sha256_file(model),
        reference=Reference("the model itself", "onnxruntime", "1", "disabled"),
        tolerance={"float32": Tolerance(1e-5, 1e-6)},
        output_tolerance={},
        cases=(GoldenCase("only", "made up", given, outputs),),
    )
    web_bundle.build(model, folder / "bundle", "webgpu", cases=cases)
    return folder / "bundle"


# A convolution that WebGPU computes wrongly (six channels to four), in each thing that holds nodes of its own.
NESTED = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[1,6,9] x, bool c, float[3,1,6,9] several) => (
    float[1,4,9] chosen, float[1,6,9] last, float[3,1,4,9] repeated, float[1,4,9] sum, float[3,1,4,9] swept,
    float[1,4,9] called)
<int64 n = {3}, bool yes = {1}>
{
    [choose] chosen = If (c) <
        then_branch = t () => (float[1,4,9] t1) {
            [conv_if] t0 = Conv <pads = [1, 1]> (x, w)
            [tanh_if] t1 = Tanh (t0) },
        else_branch = e () => (float[1,4,9] e0) { [conv_else] e0 = Conv <pads = [1, 1]> (x, w) }>
    [repeat] last, repeated = Loop (n, yes, x) <
        body = l (int64 i, bool go, float[1,6,9] state) => (bool on, float[1,6,9] next, float[1,4,9] l1) {
            [on] on = Identity (go)
            [next] next = Tanh (state)
            [conv_loop] l0 = Conv <pads = [1, 1]> (state, w)
            [tanh_loop] l1 = Tanh (l0) }>
    [sweep] sum, swept = Scan <
        num_scan_inputs = 1,
        body = s (float[1,4,9] before, float[1,6,9] slice) => (float[1,4,9] after, float[1,4,9] s1) {
            [conv_scan] s0 = Conv <pads = [1, 1]> (slice, w)
            [add_scan] after = Add (before, s0)
            [tanh_scan] s1 = Tanh (s0) }> (zeros, several)
    [call] called = local.block (x, w)
}
<domain: "local", opset_import: ["" : 17]>
block (v, k) => (o) {
    [conv_function] p = Conv <pads = [1, 1]> (v, k)
    [tanh_function] o = Tanh (p)
}
"""


def test_a_node_in_a_branch_a_loop_a_scan_and_a_function_is_named_with_its_path(
    tmp_path: Path, diagnose: Callable[..., Diagnosed]
) -> None:
    rng = np.random.default_rng(0)
    several = rng.standard_normal((3, 1, 6, 9)).astype(np.float32)
    inputs = {"x": several[0], "c": np.array(True), "several": several}
    weights = {"w": rng.standard_normal((4, 6, 3)).astype(np.float32), "zeros": np.zeros((1, 4, 9), np.float32)}
    folder = bundle_of(NESTED, tmp_path, inputs, weights)
    code, found = diagnose(folder, "--variant", "jspi", "--here", "--no-repro")
    assert (code, found["outcome"]) == (0, "found")
    places = {(one["nodes"][-1]["name"], one["nodes"][-1]["graph"]) for one in found["findings"]}
    assert places == {
        ("conv_if", "choose.then_branch"), ("conv_loop", "repeat.body"), ("conv_scan", "sweep.body"),
        ("conv_function", "block"),
    }  # fmt: skip
    turns = [one["nodes"][-1]["turn"] for one in found["findings"] if one["nodes"][-1]["name"] == "conv_loop"]
    assert turns == [0, 1, 2]
    assert {one["side"] for one in found["findings"]} == {"engine"}
    assert "layout NCHW" in found["cures"]
    said = " ".join(found["summary"])
    assert "Conv 'conv_loop' in repeat.body turn 0 is the first that is wrong" in said
    assert "It is wrong in 3 turns." in said and "turn 1" not in said


def test_what_was_reported_and_is_right_today_needs_no_diagnosis(
    tmp_path: Path, diagnose: Callable[..., Diagnosed]
) -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal((1, 6, 5, 6)).astype(np.float32),
        "d": rng.standard_normal((2, 3, 2, 3, 4)).astype(np.float32),
        "q": np.array([0, 1, 127, 128, 129, 254, 255], np.uint8),
    }
    weights = {"w": rng.standard_normal((6, 1, 3, 3)).astype(np.float32)}
    folder = bundle_of(REPORTED, tmp_path, inputs, weights)
    code, found = diagnose(folder, "--here", "--variant", "jspi", "--gpu", "software")
    assert (code, found["outcome"], found["findings"]) == (0, "passes", [])


def test_what_all_engines_get_wrong_alike_is_named_with_the_desktop(
    tmp_path: Path, diagnose: Callable[..., Diagnosed]
) -> None:
    folder = bundle_of(RESIZE, tmp_path, {"x": np.arange(14, dtype=np.float32).reshape(1, 1, 1, 14)}, {})
    code, found = diagnose(folder, "--here", "--variant", "jspi", "--gpu", "software", "--no-repro")
    (finding,) = found["findings"]
    assert code == 0
    assert ([node["name"] for node in finding["nodes"]], finding["side"]) == (["resize"], "both")
    assert finding["desktop_off"] > 0.1 and finding["engine_off"] > 0.1


@pytest.mark.real_models
def test_silero_on_webgpu_goes_wrong_at_its_padded_convolution_and_its_twin(
    tmp_path: Path, diagnose: Callable[..., Diagnosed]
) -> None:
    model = real.path("silero_vad_op18_ifless")
    web_bundle.build(model, tmp_path / "bundle", "webgpu", cases=speech_case(model))
    code, found = diagnose(tmp_path / "bundle", "--here", "--variant", "jspi", "-o", tmp_path / "repro")
    assert (code, found["outcome"]) == (0, "found")
    finding, *others = found["findings"]
    assert others == []
    assert [node["name"] for node in finding["nodes"]] == ["node_conv1d_1"]
    assert finding["twins"] == ["node_conv1d_1_2"]
    assert finding["side"] == "engine"
    assert finding["engine_off"] > 0.1 and finding["desktop_off"] < 1e-5
    assert set(found["cures"]) == {"layout NCHW", "on the CPU: node_conv1d_1, node_conv1d_1_2"}
    assert "> Conv node_conv1d_1" in finding["picture"]

    repro = tmp_path / "repro"
    assert found["repro"] == str(repro)
    small = onnx.load(repro / "model.onnx")
    onnx.checker.check_model(small, full_check=True)
    assert [node.op_type for node in small.graph.node] == ["Conv"]
    assert small.ByteSize() < 20_000
    assert "onnxruntime-web" in (repro / "report.md").read_text()
    assert shown_by(repro) == "wrong"
    # The twin that must not show it: what it should give is what the page finds right.
    (repro / "index.html").write_text((repro / "index.html").read_text().replace('"layout": null', '"layout": "NCHW"'))
    assert shown_by(repro) == "right"


def shown_by(folder: Path) -> str:
    """Open the page of a repro and return what it concludes."""
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files = of_files(folder, [(path, sha256_file(folder / path)) for path in paths])
    with serving(create_static_app(files)) as url, sync_playwright() as playwright:
        program = browsers.find(None, chromium.own_path(playwright))

        browser = playwright.chromium.launch(executable_path=program.path, args=browsers.flags("software"))
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("body[data-result]", timeout=60_000)
        result = page.get_attribute("body", "data-result")
        browser.close()
    assert result is not None
    return result


def test_a_golden_answer_that_was_changed_is_nobodys_fault(tmp_path: Path, diagnose: Callable[..., Diagnosed]) -> None:
    model = write(LINEAR, tmp_path)
    right = web_bundle.cases_for(model)
    (case,) = right.cases
    changed = replace(case, outputs=(value_of("y", np.array([[2.5, 123.5, 0]], np.float32)),))
    reference = Reference("desktop onnxruntime", "onnxruntime", "1", "disabled")
    web_bundle.build(model, tmp_path / "bundle", "wasm", cases=replace(right, reference=reference, cases=(changed,)))
    code, found = diagnose(tmp_path / "bundle", "--here")
    assert (code, found["outcome"], found["findings"]) == (0, "cases", [])
    assert (
        "output 'y', at [0, 1]: the golden answer is 123.5, the desktop gives 0, the browser 0" in found["summary"][1]
    )


def test_where_parity_passes_there_is_nothing_to_diagnose(tmp_path: Path, diagnose: Callable[..., Diagnosed]) -> None:
    model = write(LINEAR, tmp_path)
    web_bundle.build(model, tmp_path / "bundle", "wasm")
    code, found = diagnose(tmp_path / "bundle", "--here")
    assert (code, found["outcome"], found["findings"], found["repro"]) == (0, "passes", [], None)
    assert "nothing to diagnose" in found["summary"][0]
    assert not (tmp_path / "bundle.repro").exists()
