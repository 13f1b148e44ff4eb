"""A bundle is read back to what it was written from, and written again with one thing changed."""

import json
from pathlib import Path

import onnx
import pytest
import web_bundle
from models_text import LINEAR, parse, write

from edgekit.bundle.open import load_cases, open_bundle
from edgekit.cli.main import run
from edgekit.errors import BundleError, UsageError
from edgekit.golden.images import ImageOptions
from edgekit.records.settings import SessionSettings
from edgekit.repair import parts as writing
from edgekit.repair.candidates import FAMILIES, Candidate, listed, with_settings
from edgekit.repair.parts import Parts
from edgekit.runtime import pins

JSPI, ASYNCIFY, WASM = pins.load().chosen(["jspi", "asyncify", "wasm"], "test")


def opened(tmp_path: Path, **changes: object) -> tuple[Path, Parts]:
    folder, work = tmp_path / "bundle", tmp_path / "work"
    work.mkdir()
    web_bundle.build(write(LINEAR, tmp_path), folder, **changes)
    bundle = open_bundle(folder)
    return folder, writing.of_bundle(bundle, load_cases(bundle), work)


def test_a_bundle_written_again_unchanged_is_the_same_byte_by_byte(tmp_path: Path) -> None:
    image = ImageOptions((4, 5), (0.5,), (0.25,), 1.0, "nchw")
    folder, parts = opened(tmp_path, image=image, documents={"strength.json": b"{}"})
    writing.write(parts, Candidate("nothing", "layout"), tmp_path / "again", copies=True)
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()
    assert parts.image == image
    assert (tmp_path / "again" / "strength.json").is_file()


def test_a_variant_that_the_bundle_lacks_is_a_mistake_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = opened(tmp_path)
    before = (folder / "manifest.json").read_bytes()
    assert run(["repair", str(folder), "--variant", "elsewhere"]) == 2
    assert "no variant 'elsewhere'" in capsys.readouterr().err
    assert (folder / "manifest.json").read_bytes() == before


def test_another_model_keeps_the_answers_and_names_the_one_that_came(tmp_path: Path) -> None:
    folder, parts = opened(tmp_path)
    proto = onnx.ModelProto()
    proto.CopyFrom(parts.model.proto)
    proto.doc_string = "changed"
    (tmp_path / "other").mkdir()
    changed = writing.with_model(parts, proto, tmp_path / "other")
    manifest = writing.write(changed, Candidate("changed", "rewrite", model=proto), tmp_path / "again", report=b"{}")
    before = open_bundle(folder).manifest.model.sha256
    assert manifest.model.original_sha256 == before != manifest.model.sha256
    assert load_cases(open_bundle(tmp_path / "again")).cases[0].outputs[0].name == "y"
    assert (tmp_path / "again" / "repair.json").read_bytes() == b"{}"


def test_a_bundle_of_another_runtime_is_refused(tmp_path: Path) -> None:
    folder, _ = opened(tmp_path)
    document = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    document["runtime"]["version"] = "1.0.0"
    (folder / "manifest.json").write_text(json.dumps(document), encoding="utf-8")
    bundle = open_bundle(folder)
    with pytest.raises(UsageError, match=r"1\.0\.0"):
        writing.of_bundle(bundle, load_cases(bundle), tmp_path / "work")


def test_a_page_without_its_configuration_is_no_bundle_that_can_be_repaired(tmp_path: Path) -> None:
    folder, _ = opened(tmp_path)
    (folder / "index.html").write_text("<p>nothing</p>", encoding="utf-8")
    bundle = open_bundle(folder, verify=False)
    (tmp_path / "work-2").mkdir()
    with pytest.raises(BundleError, match="configuration"):
        writing.of_bundle(bundle, load_cases(bundle), tmp_path / "work-2")


def test_only_webgpu_is_given_a_layout_and_nodes_for_the_cpu() -> None:
    sessions = with_settings("n", "layout", SessionSettings("basic", "NCHW", ("a",)), [JSPI, WASM]).sessions
    assert sessions == {"jspi": SessionSettings("basic", "NCHW", ("a",)), "wasm": SessionSettings("basic")}
    assert not with_settings("n", "layout", SessionSettings(layout="NCHW"), [WASM]).sessions


def test_what_changes_least_is_tried_first_and_only_what_was_asked_for() -> None:
    proto = parse(LINEAR)
    everything = listed(proto, [JSPI, ASYNCIFY], ["wasm"], FAMILIES)
    assert [one.name for one in everything] == [
        "layout NCHW",
        "optimization extended",
        "optimization basic",
        "optimization disabled",
        "wasm alone, without jspi, asyncify",
    ]
    assert everything[-1].variants == ("wasm",)
    assert [one.family for one in listed(proto, [JSPI], [], ("layout", "variants"))] == ["layout"]
    assert {one.family for one in listed(proto, [WASM], [], FAMILIES)} == {"optimization"}


def test_settings_of_a_build_stand_in_the_bundle_and_an_unknown_node_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(LINEAR, tmp_path)
    plain = ["build", str(model), "-t", "wasm", "--no-trim", "--no-trim-runtime", "--no-strength", "--json", "-o"]
    assert run([*plain, str(tmp_path / "set"), "--layout", "NCHW", "--optimization", "basic"]) == 0
    # The CPU has no layouts.
    assert open_bundle(tmp_path / "set").manifest.sessions == {"wasm": SessionSettings("basic")}
    capsys.readouterr()
    assert run([*plain, str(tmp_path / "unknown"), "--cpu-node", "line"]) == 2
    assert "no node 'line'" in capsys.readouterr().err
    assert not (tmp_path / "unknown").exists()
