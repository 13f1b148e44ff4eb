"""Bundles that fail on WebGPU are cured by one command, in real browsers; what nothing cures stays as it was."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import real
from wrong_bundle import bundle, tiny

from edgekit.bundle.open import open_bundle
from edgekit.cli.main import run

pytestmark = pytest.mark.browser


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = run([str(argument) for argument in arguments])
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, said


def test_every_kind_of_cure_is_found_and_what_keeps_most_nodes_on_the_gpu_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bundle(*_named(tmp_path, tiny(tmp_path)))
    before = (folder / "manifest.json").read_bytes()
    code, said = told(capsys, "repair", folder, "--variant", "jspi", "--rounds", "1", "--json")
    assert (code, said["status"]) == (0, "repaired")
    assert [proof["status"] for proof in said["before"]] == ["failed"]
    passed = {one["name"]: one for one in said["tried"] if one["passed"]}
    # A known cure stands in the place of one that is tried anyway.
    assert any(one["sessions"].get("jspi", {}).get("layout") == "NCHW" for one in passed.values())
    assert {one["family"] for one in passed.values()} >= {"rewrite", "cpu-nodes"}
    assert passed["on the CPU: convolution"]["sessions"]["jspi"]["cpu_nodes"] == ["convolution"]
    assert not any(one["passed"] for one in said["tried"] if one["family"] == "optimization")
    # The adapter is software: its times decide nothing, and a layout keeps every node on the GPU.
    chosen = passed[said["chosen"]]
    assert said["software"] and "keeps most nodes" in said["chosen_by"]
    assert chosen["sessions"]["jspi"]["layout"] == "NCHW" and chosen["elsewhere"] == 0
    assert passed["on the CPU: convolution"]["elsewhere"] == 1
    repaired = open_bundle(folder)
    assert (folder / "manifest.json").read_bytes() != before
    assert json.loads((folder / "repair.json").read_bytes()) == said
    sessions = {name: one.cpu_nodes or one.layout for name, one in repaired.manifest.sessions.items()}
    assert set(sessions) == set(chosen["sessions"])
    # It passes now, so there is nothing to repair, and nothing is touched.
    manifest = repaired.manifest_sha256
    code, said = told(capsys, "repair", folder, "--variant", "jspi", "--json")
    assert (code, said["status"]) == (0, "nothing")
    assert open_bundle(folder).manifest_sha256 == manifest


@pytest.mark.sweep
def test_a_node_without_a_name_is_named_to_be_left_to_the_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, inputs = tiny(tmp_path)
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = ""
    onnx.save(model, path)
    folder = bundle(path, tmp_path / "bundle", inputs)
    code, said = told(capsys, "repair", folder, "--variant", "jspi", "--rounds", "1", "--try", "cpu-nodes", "--json")
    assert (code, said["status"]) == (0, "repaired")
    assert said["chosen"] == "on the CPU: Conv (named so first)"
    repaired = open_bundle(folder)
    assert repaired.manifest.sessions["jspi"].cpu_nodes == ("Conv",)
    names = [node.name for node in onnx.load(folder / repaired.manifest.model.path).graph.node]
    assert names == ["Relu", "Conv", "Sigmoid"]
    assert [proof["status"] for proof in said["after"]] == ["passed"]


def test_what_nothing_cures_is_said_and_stays_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, inputs = tiny(tmp_path)
    folder = bundle(path, tmp_path / "bundle", inputs, shift=1.0)  # the answers that it must give are wrong themselves
    before = open_bundle(folder).manifest_sha256
    code, said = told(capsys, "repair", folder, "--variant", "wasm", "--try", "optimization,cpu-nodes", "--json")
    assert (code, said["status"], said["chosen"]) == (6, "failed", None)
    assert {one["family"] for one in said["tried"]} == {"optimization"}
    assert open_bundle(folder).manifest_sha256 == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "tiny.onnx"]


@pytest.mark.real_models
def test_silero_vad_is_repaired_by_one_command_and_passes_in_chromium_and_firefox(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = np.random.default_rng(0).standard_normal((1, 576)).astype(np.float32) / 10
    inputs = {"input": noise, "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000)}
    folder = bundle(real.path("silero_vad_op18_ifless"), tmp_path / "bundle", inputs)
    command = ("--browser", "chromium,firefox", "--variant", "jspi")
    code, said = told(capsys, "repair", folder, *command, "--try", "layout", "--json")
    assert (code, said["status"], said["chosen"]) == (0, "repaired", "layout NCHW")
    assert [proof["status"] for proof in said["before"]] == ["failed", "failed"]
    assert [(proof["browser"], proof["status"]) for proof in said["after"]] == [
        ("chromium", "passed"),
        ("firefox", "passed"),
    ]
    code, said = told(capsys, "parity", folder, "--browser", "firefox", "--variant", "jspi", "--json")
    assert (code, said["verdict"]["status"]) == (0, "passed")
    assert said["verdict"]["environment"]["session"]["layout"] == "NCHW"


def _named(tmp_path: Path, made: tuple[Path, dict[str, Any]]) -> tuple[Path, Path, dict[str, Any]]:
    path, inputs = made
    return path, tmp_path / "bundle", inputs
