"""Bundles for Linux devices, built by the pipeline for a target of the test's own."""

import ast
import errno
import json
import os
import re
import shutil
import stat
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import linux_bundle
import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import pytest

from edgekit import pipeline
from edgekit.bundle import archive, linux, travel, wheels
from edgekit.bundle.android_names import application_id
from edgekit.bundle.open import open_bundle
from edgekit.cli import main
from edgekit.desktop import optimize
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.facts import survey as facts
from edgekit.files import sha256_file
from edgekit.kinds import linux as kind
from edgekit.kinds.config import BuildConfig, Built, LinuxOptions, Parts
from edgekit.model import io
from edgekit.progress import silent
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import value_of
from edgekit.targets import load as targets

# A target as a user would write it: a file in a folder, and no code.
TARGET = """
title = "My board"
extends = "linux-arm64"
[runtime]
threads = 2
[linux]
systems = ["debian:bookworm"]
pythons = ["3.11"]
cores = [0, 1]
cpu = "cortex-a72"
memory_max_bytes = 100000000
"""
CONV = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 1, 8, 8] x) => (float[1, 2, 8, 8] y)
<float[2, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}, float[2] b = {0.5, -1}>
{ c = Conv <pads = [1, 1, 1, 1]> (x, w, b)  y = Relu(c) }
"""


@pytest.fixture(scope="module")
def targets_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("targets")
    (folder / "my-board.toml").write_text(TARGET)
    return folder


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, targets_dir: Path) -> pipeline.BuildResult:
    return build(tmp_path_factory.mktemp("linux"), targets_dir)


@pytest.fixture(scope="module")
def built(result: pipeline.BuildResult) -> Path:
    return result.folder


@pytest.fixture(autouse=True, scope="module")
def small_wheels(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Wheels of some bytes in place of 40 MB; real ones travel in the tests of emulated devices."""
    packages = ("onnxruntime", "numpy", "ml-dtypes")
    places, pinned = linux_bundle.wheels(tmp_path_factory.mktemp("wheels"), ("3.11",), "aarch64", packages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wheels, "pinned", lambda: wheels.Pinned(pinned))
        patch.setattr(wheels, "fetch", lambda chosen, progress: {one.file: places[one.file] for one in chosen})
        yield


def build(folder: Path, targets_dir: Path, **changes: object) -> pipeline.BuildResult:
    folder.mkdir(exist_ok=True)
    (folder / "my model!.onnx").write_bytes(onnx.parser.parse_model(CONV).SerializeToString())
    return pipeline.build(
        BuildConfig(
            folder / "my model!.onnx", "my-board", folder / "bundle", targets_dir=targets_dir, strength=False, **changes
        )
    )


def write(
    folder: Path,
    targets_dir: Path,
    *,
    force: bool = False,
    text: str = CONV,
    x: np.ndarray | None = None,
    shift: float = 0,
) -> Built:
    """Write a bundle as the pipeline does, with a golden case by hand in place of those that it makes."""
    source = folder / "model.onnx"
    source.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8) if x is None else x
    (y,) = onnx.reference.ReferenceEvaluator(str(source)).run(None, {"x": x})
    case = GoldenCase("only", "by hand", (value_of("x", x),), (value_of("y", (y + shift).astype(y.dtype)),))
    loaded = io.load(source)
    cases = replace(linux_bundle.case_set(source.read_bytes()), cases=(case,))
    asked = BuildConfig(source, "my-board", folder / "bundle", targets_dir=targets_dir, force=force)
    (folder / "work").mkdir(exist_ok=True)
    writer = kind.prepare(asked, targets.load("my-board", targets_dir), silent)
    return writer(Parts(loaded, facts.survey(loaded), cases, "model"), folder / "work")


def test_a_target_file_alone_makes_a_bundle(built: Path) -> None:
    bundle = open_bundle(built)
    assert (bundle.manifest.kind, bundle.manifest.target) == ("linux", "my-board")
    assert bundle.manifest.runtime.package == "onnxruntime" and bundle.manifest.runtime.variants == ("cpu",)
    names = {entry.path for entry in bundle.manifest.files}
    assert {"install.sh", "edgekit-run", "config.toml", "README.md", "LICENSE.txt", "model/model.onnx"} <= names
    assert {"cases/cases.json", "lib/edgekit/device/main.py", "examples/request.json", optimize.OPERATORS} <= names


def test_a_processor_of_which_nothing_is_known_is_told(tmp_path: Path, targets_dir: Path) -> None:
    known, unknown = tmp_path / "known", tmp_path / "unknown"
    known.mkdir()
    unknown.mkdir()
    assert not any("processor" in warning for warning in write(known, targets_dir).warnings)
    (unknown / "my-board.toml").write_text(TARGET.replace("cortex-a72", "cortex-a72x"))
    (warning,) = (one for one in write(unknown, unknown).warnings if "processor" in one)
    assert "'cortex-a72x' of target 'my-board'. Did you mean 'cortex-a72'?" in warning


def test_the_target_s_threads_cores_and_memory_reach_the_device(built: Path) -> None:
    text = (built / "config.toml").read_text()
    assert "threads = 2\n" in text and "cores = [0, 1]\n" in text
    assert "MemoryMax=100000000" in (built / "lib/install/service.in").read_text()
    assert "SYSTEMS='debian:bookworm'" in (built / "lib/install/names.sh").read_text()
    assert "NAME=my-model\n" in (built / "lib/install/names.sh").read_text()
    # The bundle itself says what an emulated device plays: the target is a file that may not be at hand.
    assert linux.cpu(open_bundle(built)) == "cortex-a72"


def test_the_graph_is_optimized_ahead_and_proven(built: Path) -> None:
    told = json.loads((built / "optimize.json").read_bytes())
    assert told["level"] == "extended" and told["nodes_after"] < told["nodes_before"] == 2 and told["proven_with"]
    model = onnx.load(built / "model/model.onnx")
    assert [node.op_type for node in model.graph.node] == ["FusedConv"]
    operators = (built / optimize.OPERATORS).read_text()
    assert "com.microsoft;1;FusedConv" in operators and "/" not in operators


def test_what_runs_is_executable_and_the_rest_is_not(built: Path) -> None:
    modes = {p.relative_to(built).as_posix(): stat.S_IMODE(p.stat().st_mode) for p in built.rglob("*") if p.is_file()}
    assert {path for path, mode in modes.items() if mode == 0o755} == {"install.sh", "edgekit-run"}
    assert set(modes.values()) == {0o755, 0o644}


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, targets_dir: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made = write(tmp_path / name, targets_dir)
        assert made.beside == (tmp_path / name / "bundle.tar.gz",)
    first, second = ((tmp_path / name / "bundle.tar.gz") for name in ("a", "b"))
    assert sha256_file(first) == sha256_file(second)
    with tarfile.open(first) as tar:
        inside = {entry.name for entry in tar if entry.isfile()}
    assert {name.split("/")[0] for name in inside} == {"model-my-board"}
    assert len(inside) == sum(path.is_file() for path in (tmp_path / "a" / "bundle").rglob("*"))


def test_an_archive_that_is_there_is_replaced_by_force_only_and_anything_else_never(
    tmp_path: Path, targets_dir: Path
) -> None:
    place = tmp_path / "bundle.tar.gz"
    with tarfile.open(tmp_path / "photos.tar.gz", "w:gz") as photos:
        photos.add(__file__, "photos/one")
    for mine in (b"mine", b"", (tmp_path / "photos.tar.gz").read_bytes()):
        place.write_bytes(mine)
        for force in (False, True):
            with pytest.raises(UsageError, match=r"bundle\.tar\.gz is there, and no build of edgekit wrote it"):
                write(tmp_path, targets_dir, force=force)
        assert place.read_bytes() == mine and not (tmp_path / "bundle").exists()
    place.unlink()
    write(tmp_path, targets_dir)
    shutil.rmtree(tmp_path / "work")
    with pytest.raises(UsageError, match="is there already"):
        write(tmp_path, targets_dir)
    write(tmp_path, targets_dir, force=True)
    assert tarfile.is_tarfile(place)


def test_whoever_is_killed_while_a_bundle_is_replaced_leaves_no_archive_of_another(
    tmp_path: Path, targets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, targets_dir)
    before = open_bundle(tmp_path / "bundle").manifest_sha256
    shutil.rmtree(tmp_path / "work")
    seen: list[tuple[bool, bool]] = []

    class KilledError(BaseException):
        pass

    def swapped(new: Path, destination: Path) -> None:
        made = tmp_path / "work" / "bundle.tar.gz"
        seen.append((tarfile.is_tarfile(made), (tmp_path / "bundle.tar.gz").exists()))
        raise KilledError

    monkeypatch.setattr("edgekit.files._swap", swapped)
    with pytest.raises(KilledError):
        write(tmp_path, targets_dir, force=True)
    assert seen == [(True, False)]
    assert open_bundle(tmp_path / "bundle").manifest_sha256 == before
    assert not [path for path in tmp_path.iterdir() if "tar.gz" in path.name]


def test_an_archive_that_the_disk_has_no_room_for_leaves_the_bundle_and_its_archive(
    tmp_path: Path, targets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, targets_dir)
    before = sha256_file(tmp_path / "bundle.tar.gz")
    shutil.rmtree(tmp_path / "work")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(archive, "write", full)
    with pytest.raises(LimitError, match="The disk is full: cannot write"):
        write(tmp_path, targets_dir, force=True)
    assert sha256_file(tmp_path / "bundle.tar.gz") == before
    open_bundle(tmp_path / "bundle")


def test_the_table_of_sizes_tells_model_runtime_and_code(built: Path, result: pipeline.BuildResult) -> None:
    rows = {row.name: row for row in result.sizes}
    assert set(rows) == {"model", "onnxruntime 9.0", "numpy 9.0", "code", "golden cases"}
    assert rows["model"].raw_bytes == (built / "model/model.onnx").stat().st_size
    assert rows["onnxruntime 9.0"].official_bytes and "Python 3.11" in rows["onnxruntime 9.0"].note
    assert f"| model | {rows['model'].raw_bytes:,} |" in (built / "README.md").read_text()


BFLOAT16 = """
<ir_version: 10, opset_import: ["" : 21]>
brain (bfloat16[3] x) => (float[3] y) { y = Cast <to = 1> (x) }
"""


def test_the_package_of_bfloat16_travels_with_a_model_that_takes_it_and_with_no_other(
    built: Path, tmp_path: Path, targets_dir: Path
) -> None:
    made = write(tmp_path, targets_dir, text=BFLOAT16, x=np.array([1, 2, 3], ml_dtypes.bfloat16))
    assert {path.name.split("-")[0] for path in (built / "wheels").iterdir()} == {"onnxruntime", "numpy"}
    assert [p.name.split("-cp")[0] for p in (tmp_path / "bundle/wheels").glob("ml_dtypes*")] == ["ml_dtypes-9.0"]
    assert "ml-dtypes 9.0" in {row.name for row in made.sizes}


def test_what_travels_needs_python_numpy_and_onnxruntime_alone() -> None:
    allowed = {*sys.stdlib_module_names, "edgekit", "numpy", "onnxruntime"}
    tried = {"ml_dtypes", "jsonschema"}  # where they are not, the code goes without
    found = travel.modules()
    assert "edgekit/device/server.py" in found and "edgekit/records/run_record.py" in found
    for path in found.values():
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= allowed | tried, path
    heavy = {path for path in found if path.startswith(("edgekit/model", "edgekit/golden", "edgekit/child"))}
    assert not heavy


@pytest.mark.parametrize(
    ("title", "name"),
    [("My Model", "my-model"), ("../../etc", "etc"), ("", "model"), ("--", "model"), ("a" * 40, "a" * 40),
     ("$(reboot)", "reboot"), ("a'b\"c\n", "a-b-c")],
)  # fmt: skip
def test_a_name_is_made_of_letters_digits_and_hyphens(title: str, name: str) -> None:
    assert linux.slug(title) == name


@pytest.mark.parametrize("pair", [("数字", "文字"), ("Модель 1", "Голос 1"), ("Schön", "Schon"), ("a" * 50, "a" * 51)])
def test_titles_whose_letters_a_name_cannot_have_get_names_of_their_own(pair: tuple[str, str]) -> None:
    for made, most in ((linux.slug, 40), (lambda title: application_id(title).rpartition(".")[2], 66)):
        first, second = map(made, pair)
        assert first != second and made(pair[0]) == first
        assert len(first) <= most and re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)*", first)


def test_a_readme_has_the_title_on_one_line_as_it_is_read(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path, name='It\'s\x1b[31m "the"\nmodel & <b>')
    first = (bundle.folder / "README.md").read_text().splitlines()[0]
    assert first == r"""# It's \[31m "the" model \& \<b>, for This machine"""


def test_a_hostile_title_stays_text(tmp_path: Path) -> None:
    bundle = linux_bundle.make(tmp_path, name="</h1>`rm -rf ~`$(id)\n[Service]\nUser=root")
    for path in ("lib/install/names.sh", "lib/install/service.in", "config.toml"):
        text = (bundle.folder / path).read_text()
        assert "rm -rf ~" not in text and "User=root" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--net", "none"], "--net is for targets of kind web"),
        (["--repair"], "--repair is for targets of kind web"),
        (["--layout", "NCHW"], "--layout is for targets of kind web"),
        (["--deb", "--deb-version", "no"], "'no' is no version of a Debian package"),
    ],
)
def test_options_of_another_kind_are_refused(
    tmp_path: Path, targets_dir: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(CONV).SerializeToString())
    words = ["build", str(tmp_path / "m.onnx"), "-t", "my-board", "--targets-dir", str(targets_dir)]
    assert main.run([*words, "-o", str(tmp_path / "bundle"), *options]) == 2
    assert said in capsys.readouterr().err


def test_variants_that_the_wheels_lack_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text('title = "odd"\nextends = "linux-arm64"\n[runtime]\nvariants = ["cuda"]\n')
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(CONV).SerializeToString())
    with pytest.raises(UsageError, match="execution provider 'cpu' alone"):
        pipeline.build(BuildConfig(tmp_path / "m.onnx", "odd", tmp_path / "b", targets_dir=tmp_path))


def test_a_graph_that_cannot_be_optimized_is_shipped_as_it_is(
    tmp_path: Path, targets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ModelError("onnxruntime could not optimize the model: SIGSEGV")

    monkeypatch.setattr(optimize, "optimize", refuse)
    result = write(tmp_path, targets_dir)
    assert any("SIGSEGV" in warning for warning in result.warnings)
    told = json.loads((tmp_path / "bundle/optimize.json").read_bytes())
    assert told["level"] is None and "SIGSEGV" in told["reason"]
    assert [node.op_type for node in onnx.load(tmp_path / "bundle/model/model.onnx").graph.node] == ["Conv", "Relu"]


def test_a_model_that_misses_the_reference_is_optimized_where_that_changes_nothing(
    tmp_path: Path, targets_dir: Path
) -> None:
    result = write(tmp_path, targets_dir, shift=1)  # as a quantized model does
    assert any("does not give the reference's answers, optimized or not" in warning for warning in result.warnings)
    assert [node.op_type for node in onnx.load(tmp_path / "bundle/model/model.onnx").graph.node] == ["FusedConv"]


@pytest.mark.parametrize(
    ("shift", "said"),
    [(0, "does not give the golden answers"), (1, "does not give the answers that it gives as it is")],
)
def test_a_graph_that_the_optimizer_got_wrong_is_not_shipped(
    shift: float, said: str, tmp_path: Path, targets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = optimize.optimize

    def wrong(*arguments: object) -> optimize.Optimized:
        made = right(*arguments)  # type: ignore[arg-type]
        proto = made.model.proto
        for tensor in proto.graph.initializer:
            if list(tensor.dims) == [2]:
                tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32([9, 9]), tensor.name))
        made.model.path.write_bytes(proto.SerializeToString())
        return made

    monkeypatch.setattr(optimize, "optimize", wrong)
    result = write(tmp_path, targets_dir, shift=shift)
    assert any(said in warning for warning in result.warnings)
    assert [node.op_type for node in onnx.load(tmp_path / "bundle/model/model.onnx").graph.node] == ["Conv", "Relu"]


def test_no_wheel_is_asked_of_the_cache_twice(
    tmp_path: Path, targets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time is a hash of all its bytes."""
    asked: list[str] = []
    fetch = wheels.fetch

    def counted(chosen: Sequence[wheels.Wheel], **options: Any) -> dict[str, Path]:
        asked.extend(one.file for one in chosen)
        return fetch(chosen, **options)

    monkeypatch.setattr(wheels, "fetch", counted)
    write(tmp_path, targets_dir)
    assert len(asked) == len(set(asked)) > 0


def test_another_board_s_package_is_refused_before_the_work(tmp_path: Path, targets_dir: Path) -> None:
    """It is named after the model alone, whatever the folder is called."""
    package = tmp_path / "edgekit-my-model_1_arm64.deb"
    package.write_bytes(b"!<arch>\n")
    asked = BuildConfig(
        tmp_path / "my model.onnx", "my-board", tmp_path / "b", targets_dir=targets_dir, linux=LinuxOptions(deb=True)
    )
    with pytest.raises(UsageError, match="is there already") as caught:
        kind.prepare(asked, targets.load("my-board", targets_dir), silent)
    assert caught.value.hint == "--force replaces it; or choose a place in another folder with -o, or another --title."
    kind.prepare(replace(asked, force=True), targets.load("my-board", targets_dir), silent)
    kind.prepare(replace(asked, title="another"), targets.load("my-board", targets_dir), silent)


def test_a_package_that_comes_meanwhile_is_kept(
    tmp_path: Path, targets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(folder: Path, target: object, name: str, work: Path, *, version: str) -> Path:
        (tmp_path / "edgekit-my-model_1_arm64.deb").write_bytes(b"!<arch>\nof another")
        (work / "made.deb").write_bytes(b"!<arch>\n")
        return work / "made.deb"

    monkeypatch.setattr(kind.deb, "write", meanwhile)
    with pytest.raises(UsageError, match="is there already"):
        build(tmp_path, targets_dir, linux=LinuxOptions(deb=True))
    assert (tmp_path / "edgekit-my-model_1_arm64.deb").read_bytes() == b"!<arch>\nof another"
    assert not (tmp_path / "bundle").exists()
