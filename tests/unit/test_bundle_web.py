import gzip
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import brotli
import numpy as np
import onnx
import pytest
import web_bundle
from models_text import LINEAR, parse, write

from edgekit.bundle.open import load_cases, open_bundle
from edgekit.errors import ModelError, UsageError
from edgekit.facts import survey as facts
from edgekit.golden.images import ImageOptions
from edgekit.model import external_data
from edgekit.model import io as model
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import same_bits
from edgekit.records.validate import validated
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.fetch import fetch
from edgekit.targets import load as targets

HOSTILE = '</script><script>alert("1")</script>\n\x1b[31m \'é/\u2028'


@pytest.fixture(scope="session", autouse=True)
def shared_runtime() -> RuntimeDist:
    return fetch()


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return write(LINEAR, tmp_path / "models")


def external(folder: Path, *locations: str) -> Path:
    """Write a model with weights in ``locations``, one 4 KiB file each."""
    proto = parse(LINEAR)
    for k, location in enumerate(locations):
        place = folder / location
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(np.full(1024, k, np.float32).tobytes())
        tensor = proto.graph.initializer.add(name=f"unused{k}", data_type=1, dims=[1024])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    path = folder / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def page_config(bundle: Path) -> dict[str, Any]:
    html = (bundle / "index.html").read_text()
    text = html.split('id="edgekit-config">')[1].split("</script>")[0]
    return validated(json.loads(text), "page-config", "the page")


def test_a_bundle_holds_what_its_manifest_lists_and_only_what_its_target_loads(linear: Path, tmp_path: Path) -> None:
    manifest = web_bundle.build(linear, tmp_path / "out")
    bundle = open_bundle(tmp_path / "out")
    assert bundle.manifest == manifest
    plain = [entry.path for entry in manifest.files if not entry.path.endswith((".br", ".gz"))]
    assert [path for path in plain if not path.startswith("app/")] == [
        "cases/cases.json", "cases/cases.safetensors", "index.html", "model/model.onnx", "runtime/LICENSE.txt",
        "runtime/ort-wasm-simd-threaded.mjs", "runtime/ort-wasm-simd-threaded.wasm", "runtime/ort.wasm.min.mjs",
    ]  # fmt: skip
    assert {"app/style.css", "app/index.js", "app/demo/main.js"} <= set(plain)
    assert not [path for path in plain if "conformance" in path]
    assert all(path.endswith((".js", ".css")) for path in plain if path.startswith("app/"))
    assert (tmp_path / "out/model/model.onnx").read_bytes() == linear.read_bytes()
    assert manifest.runtime.variants == ("wasm",)


def test_the_golden_cases_come_back_from_the_bundle(linear: Path, tmp_path: Path) -> None:
    web_bundle.build(linear, tmp_path / "out")
    loaded = load_cases(open_bundle(tmp_path / "out"))
    made = web_bundle.cases_for(linear)
    assert loaded.model_sha256 == made.model_sha256
    assert same_bits(loaded.cases[0].outputs[0], made.cases[0].outputs[0])


def test_the_chain_of_a_target_is_shipped_in_its_order(linear: Path, tmp_path: Path) -> None:
    manifest = web_bundle.build(linear, tmp_path / "out", target="webgpu")
    config = page_config(tmp_path / "out")
    variants = config["variants"]
    assert [variant["id"] for variant in variants] == list(targets.load("webgpu").runtime.variants)
    for variant in variants:
        entry = next(e for e in manifest.files if e.path == unquote(variant["wasm_url"].split("?")[0]))
        assert (variant["wasm_sha256"], variant["wasm_bytes"]) == (entry.sha256, entry.bytes)
        assert variant["wasm_url"].endswith(f"?v={entry.sha256[:16]}")


def test_precompressed_copies_unpack_to_their_files(linear: Path, tmp_path: Path) -> None:
    manifest = web_bundle.build(linear, tmp_path / "out")
    contents = tree(tmp_path / "out")
    copies = [entry.path for entry in manifest.files if entry.path.endswith((".br", ".gz"))]
    assert "runtime/ort-wasm-simd-threaded.wasm.br" in copies
    for path in copies:
        unpack = brotli.decompress if path.endswith(".br") else gzip.decompress
        original = contents[path[:-3]]
        assert unpack(contents[path]) == original
        assert len(original) >= 16384
        assert len(contents[path]) <= 0.95 * len(original)


def test_the_same_inputs_give_the_same_bytes_and_modes_whatever_the_umask(linear: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        web_bundle.build(linear, tmp_path / "a")
        os.umask(0o000)
        web_bundle.build(linear, tmp_path / "b")
    finally:
        os.umask(before)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
        modes = {stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()}
        assert modes == {0o644}


def test_another_title_gives_another_bundle(linear: Path, tmp_path: Path) -> None:
    web_bundle.build(linear, tmp_path / "a")
    web_bundle.build(linear, tmp_path / "b", title="other")
    assert open_bundle(tmp_path / "a").manifest_sha256 != open_bundle(tmp_path / "b").manifest_sha256


def test_the_page_is_told_how_pictures_became_inputs(linear: Path, tmp_path: Path) -> None:
    web_bundle.build(linear, tmp_path / "out", image=ImageOptions((4, 5), (0.5,), (1.0, 2.0, 3.0), 2.0, "nhwc"))
    assert page_config(tmp_path / "out")["image"] == {
        "size": [4, 5], "mean": [0.5], "std": [1.0, 2.0, 3.0], "scale": 2.0, "layout": "nhwc",
    }  # fmt: skip
    web_bundle.build(linear, tmp_path / "none")
    assert page_config(tmp_path / "none")["image"] is None


@pytest.mark.parametrize("title", [HOSTILE, "\udcff broken", ""])
def test_a_hostile_title_stays_text(linear: Path, tmp_path: Path, title: str) -> None:
    web_bundle.build(linear, tmp_path / "out", title=title)
    said = page_config(tmp_path / "out")["title"]
    assert said == title.encode(errors="replace").decode()
    assert open_bundle(tmp_path / "out").manifest.title == said
    assert "<script>alert" not in (tmp_path / "out/index.html").read_text()


def test_hostile_names_of_inputs_stay_text(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    proto.graph.input[0].name = proto.graph.node[0].input[0] = HOSTILE
    path = tmp_path / "<script>.onnx"
    path.write_bytes(proto.SerializeToString())
    web_bundle.build(path, tmp_path / "out")
    shown = page_config(tmp_path / "out")["model"]
    assert shown["inputs"][0]["name"] == HOSTILE
    assert "<script>alert" not in (tmp_path / "out/index.html").read_text()


def test_external_data_keeps_its_place_and_its_urls_are_encoded(tmp_path: Path) -> None:
    locations = ("sub dir/wéights #1?.bin", "./plain.bin", "<script>&\"'%41.bin", "line\nbreak")
    path = external(tmp_path, *locations)
    manifest = web_bundle.build(path, tmp_path / "out")
    shown = page_config(tmp_path / "out")["model"]
    assert {entry["path"] for entry in shown["external_data"]} == set(locations)
    for entry in shown["external_data"]:
        place, _, version = entry["url"].partition("?v=")
        assert all(c.isascii() and c.isprintable() and c not in " #<>\"'&" for c in entry["url"])
        file = tmp_path / "out" / unquote(place)
        assert file.read_bytes() == (tmp_path / entry["path"]).read_bytes()
        assert next(e for e in manifest.files if e.path == unquote(place)).sha256.startswith(version)
    # The copied model finds its data: it needed no rewriting.
    copied = model.load(tmp_path / "out" / manifest.model.path)
    assert {file.location for file in copied.external_files} == set(locations)
    assert (tmp_path / "out" / manifest.model.path).read_bytes() == path.read_bytes()


def test_two_spellings_of_one_external_file_are_one_file_and_two_entries(tmp_path: Path) -> None:
    web_bundle.build(external(tmp_path, "w.bin", "./w.bin"), tmp_path / "out")
    shown = page_config(tmp_path / "out")["model"]
    assert {entry["path"]: entry["url"].split("?")[0] for entry in shown["external_data"]} == {
        "w.bin": "model/w.bin",
        "./w.bin": "model/w.bin",
    }


@pytest.mark.parametrize("location", ["model.onnx", "Model.onnx", "model.onnx/w.bin"])
def test_external_data_that_has_the_models_place_moves_the_model(tmp_path: Path, location: str) -> None:
    path = external(tmp_path, location)
    manifest = web_bundle.build(path, tmp_path / "out")
    assert manifest.model.path == "model/model-1.onnx"
    assert (tmp_path / "out/model" / location).read_bytes() == (tmp_path / location).read_bytes()
    assert (tmp_path / "out/model/model-1.onnx").read_bytes() == path.read_bytes()


def test_external_data_that_a_server_would_take_for_a_compressed_copy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"keeps weights in model/w\.bin\.br beside model/w\.bin"):
        web_bundle.build(external(tmp_path, "w.bin", "w.bin.br"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    web_bundle.build(external(tmp_path, "other.br"), tmp_path / "out")


def test_external_data_outside_of_the_models_folder_is_refused_again_here(linear: Path, tmp_path: Path) -> None:
    (tmp_path / "w.bin").touch()
    escaped = external_data.ExternalFile("../w.bin", tmp_path / "w.bin", 0)
    loaded = replace(model.load(linear), external_files=(escaped,))
    with pytest.raises(ModelError, match="not inside its folder"):
        web_bundle.build(linear, tmp_path / "out", model=loaded)
    assert not (tmp_path / "out").exists()


def test_what_no_page_can_read_is_marked_so(linear: Path, tmp_path: Path) -> None:
    surveyed = facts.survey(model.load(linear))
    arguments = (
        facts.Argument("s", "tensor(string)", "string", (None, "N")),
        facts.Argument("q", "seq(map(int64,tensor(float)))", None, None),
        facts.Argument("i", "tensor(int4)", "int4", (2,)),
    )
    web_bundle.build(linear, tmp_path / "out", facts=replace(surveyed, outputs=arguments))
    shown = page_config(tmp_path / "out")["model"]
    assert shown["outputs"] == [
        {"name": "s", "dtype": "string", "shape": [None, "N"], "readable": True},
        {"name": "q", "dtype": "seq(map(int64,tensor(float)))", "shape": None, "readable": False},
        {"name": "i", "dtype": "int4", "shape": [2], "readable": False},
    ]


def test_a_model_that_changed_since_its_cases_were_made_is_refused(linear: Path, tmp_path: Path) -> None:
    cases = web_bundle.cases_for(linear)
    loaded = model.load(linear)
    linear.write_bytes(linear.read_bytes() + b"\x1a\0")
    with pytest.raises(UsageError, match="is not the model that its golden cases were made with"):
        web_bundle.build(linear, tmp_path / "out", cases=cases, model=loaded)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["models"]


def test_a_runtime_that_changed_since_it_was_checked_is_refused(linear: Path, tmp_path: Path) -> None:
    runtime = fetch()
    name = "ort.wasm.min.mjs"
    stale = replace(runtime, files={**runtime.files, name: "0" * 64})
    with pytest.raises(UsageError, match=f"{name} changed while the bundle was built"):
        web_bundle.build(linear, tmp_path / "out", runtime=stale)
    gone = replace(runtime, folder=tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        web_bundle.build(linear, tmp_path / "out", runtime=gone)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["models"]


def test_a_runtime_without_the_targets_variant_is_refused(linear: Path, tmp_path: Path) -> None:
    cpu = dict.fromkeys(pins.load().chosen(["wasm"], "")[0].files, "0" * 64)
    with pytest.raises(UsageError, match="no whole variant 'jspi'"):
        web_bundle.build(linear, tmp_path / "out", target="webgpu", runtime=RuntimeDist(tmp_path, "p", "1", cpu, False))
    target = targets.load("wasm")
    unknown = replace(target, runtime=replace(target.runtime, variants=("wsam",)))
    with pytest.raises(UsageError, match=r"has no variant 'wsam'.*(?i:did you mean 'wasm')"):
        web_bundle.build(linear, tmp_path / "out", target=unknown)


def test_settings_stand_in_the_manifest_and_in_the_page_and_their_absence_changes_nothing(
    tmp_path: Path, linear: Path
) -> None:
    plain = tmp_path / "plain"
    web_bundle.build(linear, plain)
    web_bundle.build(linear, tmp_path / "default", sessions={"wasm": SessionSettings()})
    assert (plain / "manifest.json").read_bytes() == (tmp_path / "default" / "manifest.json").read_bytes()
    settings = SessionSettings(optimization="basic")
    web_bundle.build(linear, tmp_path / "set", sessions={"wasm": settings}, documents={"repair.json": b"{}"})
    bundle = open_bundle(tmp_path / "set")
    assert bundle.manifest.sessions == {"wasm": settings}
    assert "repair.json" in {entry.path for entry in bundle.manifest.files}
    assert '"optimization": "basic"' in (tmp_path / "set" / "index.html").read_text(encoding="utf-8")
