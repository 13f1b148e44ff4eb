"""Target files: one TOML each, checked wholly when read."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgekit import resources
from edgekit.errors import UsageError
from edgekit.records.cases import Tolerance
from edgekit.targets import load as targets

GOOD = """
title = "A device"
kind = "web"
[runtime]
package = "onnxruntime-web"
variants = ["a", "b"]
[limits]
file_bytes = 100
ir_version = 10
opset = 20
[tolerance]
float32 = { relative = 1e-3, absolute = 0 }
[parity]
runner = "chromium"
"""


def write(folder: Path, **documents: str) -> Path:
    for name, text in documents.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def problem(folder: Path, target_id: str = "a") -> UsageError:
    with pytest.raises(UsageError) as caught:
        targets.load(target_id, folder)
    return caught.value


def test_a_target_is_read_whole(tmp_path: Path) -> None:
    target = targets.load("a", write(tmp_path, a=GOOD))
    assert (target.id, target.title, target.kind) == ("a", "A device", "web")
    assert target.runtime == targets.Runtime("onnxruntime-web", ("a", "b"), threads=0)
    assert target.limits == targets.Limits(file_bytes=100, ir_version=10, opset=20)
    assert target.tolerance == {"float32": Tolerance(relative=1e-3, absolute=0.0)}
    assert target.parity.runner == "chromium"


def test_a_gpu_is_the_weakest_that_webgpu_allows_unless_the_target_says_more(tmp_path: Path) -> None:
    assert targets.load("a", write(tmp_path, a=GOOD)).gpu == targets.Gpu(128 << 20, 8, ())
    more = GOOD + '[gpu]\nstorage_buffers = 10\nfeatures = ["shader-f16"]\n'
    assert targets.load("a", write(tmp_path, a=more)).gpu == targets.Gpu(128 << 20, 10, ("shader-f16",))


def test_ids_are_the_names_of_the_files(tmp_path: Path) -> None:
    write(tmp_path, b=GOOD, a=GOOD)
    (tmp_path / "README.md").write_text("")
    assert targets.ids(tmp_path) == ("a", "b")


def test_a_target_changes_what_it_extends(tmp_path: Path) -> None:
    over = (
        'extends = "base"\ntitle = "Another"\n[runtime]\nvariants = ["b"]\n[tolerance]\nint8 = {relative=0, absolute=1}'
    )
    target = targets.load("a", write(tmp_path, base=GOOD, a=over))
    assert (target.title, target.kind) == ("Another", "web")
    assert target.runtime == targets.Runtime("onnxruntime-web", ("b",))
    assert set(target.tolerance) == {"float32", "int8"}


def test_only_one_level_is_extended(tmp_path: Path) -> None:
    write(tmp_path, base=GOOD, middle='extends = "base"', a='extends = "middle"')
    assert "only one level" in problem(tmp_path).message


def base_of_edgekits_own() -> str:
    """Return the id of a target of edgekit's own that extends no other, so that it may be extended."""
    folder = resources.root("device_targets")
    return next(own for own in targets.ids() if not (folder / f"{own}.toml").read_text().count("extends ="))


def test_a_users_target_may_extend_one_of_edgekits_own_and_its_own_folder_comes_first(tmp_path: Path) -> None:
    own = base_of_edgekits_own()
    write(tmp_path, a=f'extends = "{own}"\ntitle = "Mine"')
    assert targets.load("a", tmp_path) == replace(targets.load(own), id="a", title="Mine")
    write(tmp_path, **{own: GOOD})
    assert targets.load("a", tmp_path).runtime == targets.load(own, tmp_path).runtime


def test_extending_nothing_is_said(tmp_path: Path) -> None:
    found = problem(write(tmp_path, a='extends = "gone"', beside=GOOD))
    assert found.message == f"{tmp_path / 'a.toml'} extends 'gone', which is no target."
    assert found.hint is not None and "beside, " in found.hint and "webgpu-ios" in found.hint


def test_extending_nothing_names_the_nearest_of_edgekits_own_too(tmp_path: Path) -> None:
    found = problem(write(tmp_path, a='extends = "webgpuu"'))
    assert found.message.endswith("a.toml extends 'webgpuu', which is no target. Did you mean 'webgpu'?")


def test_a_target_may_take_the_name_of_one_of_edgekits_own_and_extend_it_but_never_itself(tmp_path: Path) -> None:
    own = base_of_edgekits_own()
    write(tmp_path, **{own: f'extends = "{own}"\ntitle = "Mine"', "a": 'extends = "a"'})
    assert targets.load(own, tmp_path) == replace(targets.load(own), title="Mine")
    assert "extends 'a', which is no target" in problem(tmp_path).message


def test_an_unknown_id_names_the_nearest_and_all(tmp_path: Path) -> None:
    caught = problem(write(tmp_path, webgpu=GOOD, wasm=GOOD), "webgp")
    assert caught.message == "There is no target 'webgp'. Did you mean 'webgpu'?"
    assert caught.hint is not None
    assert "wasm, webgpu" in caught.hint


@pytest.mark.parametrize("target_id", ["", ".", "..", "../a", "a/b", "a\0b", "a\n", "x" * 5000])
def test_an_id_is_never_a_path(tmp_path: Path, target_id: str) -> None:
    folder = tmp_path / "targets"
    folder.mkdir()
    write(tmp_path, a=GOOD)
    assert "There is no target" in problem(folder, target_id).message


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert "does not exist" in problem(tmp_path / "gone").message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title", "titel", "a.toml: unknown key 'titel'. Did you mean 'title'?"),
        ("file_bytes", "file_byte", "a.toml: unknown key 'limits.file_byte'. Did you mean 'file_bytes'?"),
        ("relative", "relativ", "a.toml: unknown key 'tolerance.float32.relativ'. Did you mean 'relative'?"),
        ("float32", "flaot32", "a.toml: 'tolerance.flaot32' is for no dtype. Did you mean 'float32'?"),
        ('title = "A device"', "", "a.toml: missing key title."),
        ("opset = 20", "", "a.toml: missing key limits.opset."),
        ("opset = 20", "opset = 2.5", "a.toml: 'limits.opset' must be a whole number, not 2.5."),
        ("opset = 20", "opset = true", "a.toml: 'limits.opset' must be a whole number, not true."),
        ("relative = 1e-3", "relative = true", "a.toml: 'tolerance.float32.relative' must be a number, not true."),
        ("relative = 1e-3", "relative = -1", "a.toml: 'tolerance.float32' must hold finite numbers of 0 or more."),
        ("relative = 1e-3", "relative = nan", "a.toml: 'tolerance.float32' must hold finite numbers of 0 or more."),
        ("relative = 1e-3", "relative = inf", "a.toml: 'tolerance.float32' must hold finite numbers of 0 or more."),
        ('["a", "b"]', '["a", 1]', "a.toml: 'runtime.variants[]' must be a text in quotes, not 1."),
        ('["a", "b"]', '"a"', "a.toml: 'runtime.variants' must be a list, not \"a\"."),
        ('["a", "b"]', "[]", "a.toml: 'runtime.variants' is empty."),
        ("opset = 20", "opset = 20\nnodes = -1", "a.toml: 'limits.nodes' must be 0 or more."),
        ("[parity]", "[gpu]\nbuffer_bytes = -1\n[parity]", "a.toml: 'gpu.buffer_bytes' must be 0 or more."),
        ("[parity]", "[gpu]\nbuffers = 1\n[parity]", "a.toml: unknown key 'gpu.buffers'. Did you mean 'buffer_bytes'?"),
        ('["a", "b"]', '["a"]\nthreads = -1', "a.toml: 'runtime.threads' must be 0 (choose on the device) to 256."),
        ('["a", "b"]', '["a"]\nthreads = 257', "a.toml: 'runtime.threads' must be 0 (choose on the device) to 256."),
        (
            '"onnxruntime-web"',
            '"onnxruntime"',
            "a.toml: 'runtime.package' is 'onnxruntime': targets of kind 'web' run onnxruntime-web.",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert problem(write(tmp_path, a=GOOD.replace(old, new, 1))).message == message


@pytest.mark.parametrize("data", [b"title = ", b"\xff\xfe", b"[runtime"])
def test_a_file_that_is_not_toml_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.toml").write_bytes(data)
    assert "is not valid TOML" in problem(tmp_path).message
    (tmp_path / "a.toml").write_bytes(b"title = '\xff'")
    assert "the byte at 9 is not of UTF-8" in problem(tmp_path).message
    (tmp_path / "a.toml").write_text("extends = ['linux']")
    assert "'extends' must be a text in quotes" in problem(tmp_path).message


def test_a_kind_that_nothing_builds_names_the_nearest(tmp_path: Path) -> None:
    error = problem(write(tmp_path, a=GOOD.replace('"web"', '"linus"')))
    assert "'kind' is 'linus'" in error.message and "Did you mean 'linux'" in error.message


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    error = problem(write(tmp_path, a=GOOD + '[linux]\nmachine = "aarch64"\n'))
    assert "'linux' is for targets of that kind, and this one is of kind 'web'" in error.message


def test_what_a_kind_states_of_itself_is_read_strictly(tmp_path: Path) -> None:
    linux = GOOD.replace('"web"', '"linux"').replace("onnxruntime-web", "onnxruntime") + "[linux]\n"
    loaded = targets.load("a", write(tmp_path, a=linux + 'pythons = ["3.11"]\ncores = [0, 2]\n'))
    assert (loaded.linux.pythons, loaded.linux.cores, loaded.linux.machine) == (("3.11",), (0, 2), "aarch64")
    assert "Did you mean 'cores'" in problem(write(tmp_path, a=linux + "core = [0]\n")).message
    assert (
        "'linux.cores[]' must be a whole number, not \"0\""
        in problem(write(tmp_path, a=linux + 'cores = ["0"]\n')).message
    )


@pytest.mark.parametrize(
    ("base", "text", "message"),
    [
        ("linux-arm64", "pythons = []", "a.toml: 'linux.pythons' is empty."),
        ("linux-arm64", 'pythons = ["3.11", "3.11"]', "a.toml: 'linux.pythons' names 3.11 twice."),
        ("linux-arm64", 'pythons = ["3"]', "a.toml: 'linux.pythons' holds '3', which is no version of Python."),
        ("linux-arm64", 'machine = ""', "a.toml: 'linux.machine' is no name of a processor."),
        ("linux-arm64", 'machine = "x; y"', "a.toml: 'linux.machine' is no name of a processor."),
        ("linux-arm64", 'cpu = "cortex a72"', "a.toml: 'linux.cpu' is no name of a processor."),
        ("linux-arm64", 'systems = ["a b"]', "a.toml: 'linux.systems' holds 'a b', which no system calls itself."),
        ("linux-arm64", "cores = [-1]", "a.toml: 'linux.cores' holds a number below 0."),
        ("linux-arm64", "cores = [1, 1]", "a.toml: 'linux.cores' names 1 twice."),
        ("linux-arm64", "memory_max_bytes = -1", "a.toml: 'linux.memory_max_bytes' must be 0 (no bound) or more."),
        ("android", 'abis = ["x86", "x86"]', "a.toml: 'android.abis' names x86 twice."),
        (
            "android",
            "min_sdk = 23",
            "a.toml: 'android.min_sdk' is 23: onnxruntime-android takes no Android older than API level 24.",
        ),
        (
            "android",
            "target_sdk = 23",
            "a.toml: 'android.target_sdk' is 23, which is below 'android.min_sdk', 24.",
        ),
    ],
)
def test_what_a_kind_cannot_be_is_named_with_its_place(tmp_path: Path, base: str, text: str, message: str) -> None:
    kind = targets.load(base).kind
    assert problem(write(tmp_path, a=f'extends = "{base}"\n[{kind}]\n{text}\n')).message == message


def test_where_one_level_is_not_enough_the_base_of_the_base_is_named(tmp_path: Path) -> None:
    error = problem(write(tmp_path, a='extends = "b"\n', b='extends = "c"\n', c=GOOD))
    assert error.hint is not None and error.hint.startswith('Write extends = "c"')
