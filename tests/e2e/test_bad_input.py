"""What a person does wrong, or is handed: each gets its own message, its exit code, no traceback, and loses nothing."""

import json
import pickle
import shutil
import socket
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from models_text import LINEAR, PRIVATE_DOMAIN, parse, write
from onnx import TensorProto, helper

from edgekit.cli.main import run
from edgekit.records.manifest import NAME as MANIFEST

HOSTILE = "<script>alert('x')</script> \"é ☃"
# Reshape to a size that never fits.
IMPOSSIBLE = """
<ir_version: 8, opset_import: ["" : 17]>
impossible (float[2] x) => (float[3] y) <int64[1] three = {3}> { y = Reshape(x, three) }
"""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def edgekit(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command; whatever it meets, it shows no traceback."""

    def command(*arguments: object) -> Said:
        capsys.readouterr()
        code = run([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Said(code, out, err)

    return command


@pytest.fixture
def bundle(edgekit: Callable[..., Said], tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    said = edgekit("build", write(LINEAR, tmp_path), "--target", "wasm", "--no-trim-runtime", "-o", folder)
    assert said.code == 0, said.err
    return folder


def external(folder: Path, location: str) -> Path:
    """Write a model whose weights are said to lie at ``location``."""
    proto = parse(LINEAR)
    (weights,) = proto.graph.initializer
    weights.ClearField("float_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=location)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def newer(folder: Path, *, ir_version: int = 8, opset: int = 17) -> Path:
    proto = parse(LINEAR)
    proto.ir_version = ir_version
    proto.opset_import[0].version = opset
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def file(folder: Path, data: bytes, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def checkpoint(folder: Path) -> Path:
    path = folder / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", pickle.dumps({"weight": [1.0]}))
        archive.writestr("model/version", "3")
    return path


def without_outputs(folder: Path) -> Path:
    proto = parse(LINEAR)
    del proto.graph.output[:]
    return file(folder, proto.SerializeToString())


BAD_MODELS: dict[str, tuple[Callable[[Path], Path], int, str]] = {
    "missing file": (lambda folder: folder / "none.onnx", 2, "There is no file"),
    "folder": (lambda folder: folder, 2, "folder"),
    "empty file": (lambda folder: file(folder, b""), 3, "empty"),
    "text file": (lambda folder: file(folder, b"hello, this is only text\n" * 20), 3, "text"),
    "truncated": (lambda folder: file(folder, parse(LINEAR).SerializeToString()[:-20]), 3, "cut|truncated|incomplete"),
    "PyTorch checkpoint": (checkpoint, 3, "PyTorch"),
    "TFLite file": (lambda folder: file(folder, b"\x1c\0\0\0TFL3" + bytes(200)), 3, "TFLite|TensorFlow Lite"),
    "newer IR": (lambda folder: newer(folder, ir_version=99), 3, "IR version 99"),
    "newer opset": (lambda folder: newer(folder, opset=99), 3, "opset 99|version 99"),
    "external data missing": (lambda folder: external(folder, "weights.bin"), 3, "weights.bin"),
    "external data absolute": (lambda folder: external(folder, "/etc/hostname"), 3, "/etc/hostname"),
    "external data outside": (lambda folder: external(folder, "../weights.bin"), 3, "../weights.bin"),
    "no outputs": (without_outputs, 3, "no outputs|has no output"),
    "no case runs": (lambda folder: write(IMPOSSIBLE, folder), 3, "Reshape|reshape"),
    "operator of a private domain": (lambda folder: write(PRIVATE_DOMAIN, folder), 3, "Frobnicate"),
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_model_that_cannot_be_built_is_refused_in_words(
    name: str, edgekit: Callable[..., Said], tmp_path: Path
) -> None:
    make, code, words = BAD_MODELS[name]
    folder = tmp_path / "models"
    folder.mkdir()
    output = tmp_path / "bundle"
    said = edgekit("build", make(folder), "--target", "wasm", "-o", output)
    assert said.code == code, said.err
    assert any(word in said.err for word in words.split("|")), said.err
    assert "hint: " in said.err
    assert said.out == ""
    assert not output.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["models"]


def test_the_twin_of_the_bad_models_builds(bundle: Path) -> None:
    assert (bundle / MANIFEST).is_file()


def test_an_unknown_target_names_the_nearest(edgekit: Callable[..., Said], tmp_path: Path) -> None:
    said = edgekit("build", write(LINEAR, tmp_path), "--target", "webgpo", "-o", tmp_path / "bundle")
    assert said.code == 2
    assert "webgpu" in said.err


def test_a_folder_that_is_no_bundle_is_kept_even_by_force(edgekit: Callable[..., Said], tmp_path: Path) -> None:
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years")
    for force in ([], ["--force"]):
        said = edgekit("build", write(LINEAR, tmp_path), "--target", "wasm", "-o", precious, *force)
        assert said.code == 2
        assert "not a bundle" in said.err
    assert (precious / "thesis.txt").read_text() == "years"


def test_a_bundle_is_replaced_by_force_only(edgekit: Callable[..., Said], bundle: Path, tmp_path: Path) -> None:
    before = (bundle / MANIFEST).read_bytes()
    again = ("build", tmp_path / "model.onnx", "--target", "wasm", "--no-trim-runtime", "-o", bundle)
    said = edgekit(*again)
    assert said.code == 2
    assert "--force" in said.err
    assert edgekit(*again, "--force").code == 0
    assert (bundle / MANIFEST).read_bytes() == before, "the same inputs give the same bytes"


def test_a_bundle_that_was_changed_is_not_run_and_the_file_is_named(edgekit: Callable[..., Said], bundle: Path) -> None:
    model = bundle / "model" / "model.onnx"
    data = bytearray(model.read_bytes())
    data[-1] ^= 1
    model.write_bytes(data)
    for command in ("parity", "serve"):
        said = edgekit(command, bundle)
        assert said.code == 2
        assert "model/model.onnx" in said.err


@pytest.mark.browser
def test_a_browser_that_is_not_there_is_a_missing_tool(edgekit: Callable[..., Said], bundle: Path) -> None:
    said = edgekit("parity", bundle, "--browser-path", bundle / "none")
    assert said.code == 4
    assert "is not there" in said.err


def test_an_unknown_case_is_refused_before_a_browser_starts(edgekit: Callable[..., Said], bundle: Path) -> None:
    said = edgekit("parity", bundle, "--case", "none", "--browser-path", bundle / "none")
    assert said.code == 2
    assert "none" in said.err


def test_a_port_in_use_is_said(edgekit: Callable[..., Said], bundle: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = edgekit("serve", bundle, "--port", taken.getsockname()[1])
    assert said.code == 2
    assert str(taken) not in said.err
    assert "in use" in said.err


@pytest.mark.browser
def test_hostile_names_go_all_the_way_and_stay_text(edgekit: Callable[..., Said], tmp_path: Path) -> None:
    names = {"x": HOSTILE, "y": f"{HOSTILE}/out\n\x1b[31m"}
    proto = parse(LINEAR)
    proto.graph.name = HOSTILE
    for value in (*proto.graph.input, *proto.graph.output):
        value.name = names[value.name]
    for node in proto.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    folder = tmp_path / HOSTILE.replace("/", "_")
    folder.mkdir()
    model = folder / f"{HOSTILE.replace('/', '_')}.onnx"
    onnx.save(proto, model)
    sample = folder / "sample 'é'.npz"
    np.savez(sample, **{HOSTILE: np.array([[1.0, 2.0]], np.float32)})
    bundle, report, xml = folder / "b u n", folder / "report.html", folder / "j.xml"

    options = ("--target", "wasm", "--no-trim-runtime", "--sample", sample)
    built = edgekit("build", model, *options, "-o", bundle)
    assert built.code == 0, built.err
    said = edgekit("parity", bundle, "--report", report, "--junit", xml, "--repeats", 0)
    assert said.code == 0, said.err
    inspected = edgekit("inspect", model)
    assert inspected.code == 0
    assert "\x1b[31m" not in built.out + built.err + said.out + said.err + inspected.out
    for page in (report, bundle / "index.html"):
        assert "<script>alert" not in page.read_text(encoding="utf-8")
    assert b"<script>alert" not in xml.read_bytes()


def test_a_sample_that_does_not_fit_names_file_input_found_and_wanted(
    edgekit: Callable[..., Said], tmp_path: Path
) -> None:
    sample = tmp_path / "wrong.npy"
    np.save(sample, np.zeros((1, 5), np.float32))
    said = edgekit("build", write(LINEAR, tmp_path), "--target", "wasm", "-o", tmp_path / "b", "--sample", sample)
    assert said.code == 2
    for word in ("wrong.npy", "'x'", "5", "2"):
        assert word in said.err


def test_a_runtime_of_two_builds_is_refused_by_hash(edgekit: Callable[..., Said], tmp_path: Path) -> None:
    assert edgekit("runtime", "fetch").code == 0
    shown = json.loads(edgekit("runtime", "--json").out)
    mixed = tmp_path / "dist"
    shutil.copytree(shown["folder"], mixed)
    glue = mixed / "ort-wasm-simd-threaded.mjs"
    glue.chmod(0o644)
    glue.write_bytes(glue.read_bytes() + b"\n// another build\n")
    said = edgekit("build", write(LINEAR, tmp_path), "--target", "wasm", "-o", tmp_path / "b", "--runtime", mixed)
    assert said.code == 2
    assert "ort-wasm-simd-threaded.mjs" in said.err
    assert not (tmp_path / "b").exists()


def test_a_model_of_nothing_but_a_header_is_refused(edgekit: Callable[..., Said], tmp_path: Path) -> None:
    empty = helper.make_model(helper.make_graph([], "empty", [], []))
    said = edgekit("build", file(tmp_path, empty.SerializeToString()), "--target", "wasm", "-o", tmp_path / "b")
    assert said.code == 3
    assert "output" in said.err
