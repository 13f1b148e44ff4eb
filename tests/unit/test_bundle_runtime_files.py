"""Which files of the runtime a bundle gets, cut or stock, and which stock ones it carries for a miss."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import web_bundle
from models_text import LINEAR, write

from edgekit.bundle import runtime_files
from edgekit.bundle.open import open_bundle
from edgekit.bundle.page import Net, Trimmed
from edgekit.bundle.runtime_files import NETS, CutRuntimes, RuntimeFiles
from edgekit.errors import UsageError
from edgekit.files import sha256_file
from edgekit.runtime import pins
from edgekit.runtime.cut import MISS_ADDRESS
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

JSPI, ASYNCIFY, CPU = pins.load().chosen(["jspi", "asyncify", "wasm"], "test")
NET_CPU = Net(
    "wasm", "wasm", f"runtime/{CPU.api}", f"runtime/{CPU.mjs}", f"runtime/stock/{CPU.wasm}"
)  # fmt: skip


@dataclass
class Files:
    """What was written, by path."""

    contents: dict[str, bytes] = field(default_factory=dict)

    def add_bytes(self, path: str, data: bytes) -> None:
        assert path not in self.contents
        self.contents[path] = data

    def add_file(self, path: str, source: Path, sha256: str | None = None) -> None:
        if sha256 != sha256_file(source):
            raise ValueError(source)
        self.add_bytes(path, source.read_bytes())


@pytest.fixture
def dist(tmp_path: Path) -> RuntimeDist:
    """Files with the names of the real ones, each of which holds its own name."""
    names = {name for variant in (JSPI, ASYNCIFY, CPU) for name in variant.files}
    for name in names:
        (tmp_path / name).write_text(name)
    return RuntimeDist(tmp_path, "onnxruntime-web", "0", {name: sha256_file(tmp_path / name) for name in names}, False)


def added(dist: RuntimeDist, variants: list[Variant], **cut: Any) -> tuple[RuntimeFiles, Mapping[str, bytes]]:
    files = Files()
    made = runtime_files.add(files, dist, variants, CutRuntimes(**cut))
    assert files.contents.pop("runtime/LICENSE.txt").startswith(b"MIT License")
    return made, files.contents


def test_a_runtime_that_is_not_cut_is_the_stock_one_and_has_no_net(dist: RuntimeDist) -> None:
    made, files = added(dist, [JSPI, CPU])
    assert made == RuntimeFiles({}, ())
    assert files == {f"runtime/{name}": name.encode() for name in {*JSPI.files, *CPU.files}}


def test_by_default_the_stock_cpu_runtime_serves_every_variant(dist: RuntimeDist) -> None:
    made, files = added(dist, [JSPI, ASYNCIFY, CPU], wasm={"jspi": b"j", "asyncify": b"a", "wasm": b"w"})
    assert made.trimmed == {
        variant.id: Trimmed(f"runtime/{variant.wasm}", MISS_ADDRESS, "wasm") for variant in (JSPI, ASYNCIFY, CPU)
    }
    assert made.nets == (NET_CPU,)
    assert [files[f"runtime/{variant.wasm}"] for variant in (JSPI, ASYNCIFY, CPU)] == [b"j", b"a", b"w"]
    assert [path for path in files if "/stock/" in path] == [f"runtime/stock/{CPU.wasm}"]
    assert files[f"runtime/stock/{CPU.wasm}"] == CPU.wasm.encode()


def test_a_target_without_the_cpu_variant_gets_all_that_the_net_for_the_cpu_needs(dist: RuntimeDist) -> None:
    made, files = added(dist, [JSPI], wasm={"jspi": b"j"})
    assert made.nets == (NET_CPU,)
    assert set(files) == {f"runtime/{name}" for name in {*JSPI.files, CPU.api, CPU.mjs}} | {NET_CPU.wasm}


def test_with_same_each_variant_has_its_own_stock_build(dist: RuntimeDist) -> None:
    made, files = added(dist, [JSPI, CPU], wasm={"jspi": b"j", "wasm": b"w"}, net="same")
    assert {key: one.net for key, one in made.trimmed.items()} == {"jspi": "jspi", "wasm": "wasm"}
    assert [(net.id, net.execution_provider) for net in made.nets] == [("jspi", "webgpu"), ("wasm", "wasm")]
    assert {path for path in files if "/stock/" in path} == {net.wasm for net in made.nets}
    assert files[f"runtime/stock/{JSPI.wasm}"] == JSPI.wasm.encode()


def test_with_none_there_is_no_stock_file_and_a_miss_has_no_net(dist: RuntimeDist) -> None:
    made, files = added(dist, [JSPI, CPU], wasm={"jspi": b"j", "wasm": b"w"}, net="none")
    assert {key: one.net for key, one in made.trimmed.items()} == {"jspi": None, "wasm": None}
    assert made.nets == ()
    assert not [path for path in files if "/stock/" in path]


@pytest.mark.parametrize("net", NETS)
def test_a_variant_that_could_not_be_cut_is_stock_and_needs_no_net(net: str, dist: RuntimeDist) -> None:
    made, files = added(dist, [JSPI, CPU], wasm={"wasm": b"w"}, net=net)
    assert set(made.trimmed) == {"wasm"}
    assert files[f"runtime/{JSPI.wasm}"] == JSPI.wasm.encode()
    assert f"runtime/stock/{JSPI.wasm}" not in files


@pytest.mark.parametrize("name", [CPU.wasm, CPU.mjs, JSPI.api])
def test_a_file_that_changed_meanwhile_is_an_error(name: str, dist: RuntimeDist) -> None:
    (dist.folder / name).write_text("changed")
    with pytest.raises(UsageError, match="changed while the bundle was built") as caught:
        added(dist, [JSPI], wasm={"jspi": b"j"})
    assert str(dist.folder / name) in caught.value.message


def test_the_twin_a_stock_file_that_nothing_needs_may_change(dist: RuntimeDist) -> None:
    (dist.folder / JSPI.wasm).write_text("changed")
    added(dist, [JSPI], wasm={"jspi": b"j"})
    with pytest.raises(UsageError, match="changed while"):
        added(dist, [JSPI], wasm={"jspi": b"j"}, net="same")


def test_a_runtime_that_lacks_the_files_of_the_net_is_refused_unless_no_net_is_asked_for(dist: RuntimeDist) -> None:
    (dist.folder / CPU.wasm).unlink()
    only = replace(dist, files={name: dist.files[name] for name in JSPI.files})
    with pytest.raises(UsageError, match="has no whole variant 'wasm'"):
        added(only, [JSPI], wasm={"jspi": b"j"})
    for net in ("same", "none"):
        added(only, [JSPI], wasm={"jspi": b"j"}, net=net)


def test_the_bundle_lists_the_cut_and_the_stock_file_and_the_page_knows_both(tmp_path: Path) -> None:
    plan = {"format": 1, "net": "cpu"}
    cut = CutRuntimes({"wasm": b"\0asm\1\0\0\0"}, "cpu", plan)
    manifest = web_bundle.build(write(LINEAR, tmp_path), tmp_path / "out", cut=cut, copies=False)
    assert open_bundle(tmp_path / "out").manifest == manifest
    bytes_ = {entry.path: entry.bytes for entry in manifest.files}
    assert bytes_[f"runtime/{CPU.wasm}"] == 8
    assert bytes_[NET_CPU.wasm] > 10_000_000
    assert not [path for path in bytes_ if path.endswith((".br", ".gz"))]
    assert (tmp_path / "out/runtime-trim.json").read_text() == '{\n  "format": 1,\n  "net": "cpu"\n}\n'
    page = (tmp_path / "out/index.html").read_text()
    assert '"miss_address":16' in page.replace(" ", "")
    assert f"runtime/stock/{CPU.wasm}" in page


def test_a_variant_that_refuses_the_model_needs_no_net_and_is_not_watched_for_misses(dist: RuntimeDist) -> None:
    cut = {"jspi": b"j", "wasm": b"w"}
    made, files = added(dist, [JSPI, CPU], wasm=cut, net="same", refused=frozenset({"jspi"}))
    assert set(made.trimmed) == {"wasm"}
    assert [net.id for net in made.nets] == ["wasm"]
    assert files[f"runtime/{JSPI.wasm}"] == b"j"
    assert f"runtime/stock/{JSPI.wasm}" not in files
