from pathlib import Path

import pytest
import web_bundle
from models_text import LINEAR, write

from edgekit.bundle import sizes
from edgekit.bundle.sizes import FileSizes
from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.targets import load as targets


def manifest(**files: int) -> Manifest:
    listed = tuple(FileEntry(path, "0" * 64, size) for path, size in sorted(files.items()))
    return Manifest("0", "web", "t", "t", ModelEntry("m", "0" * 64), RuntimeEntry("r", "1", ("a", "b")), listed)


def test_copies_are_columns_of_the_file_they_copy() -> None:
    made = manifest(**{"b.js": 100, "b.js.gz": 30, "b.js.br": 20, "a": 5, "lonely.gz": 7})
    assert sizes.table(made) == (
        FileSizes("a", 5, None, None),
        FileSizes("b.js", 100, 30, 20),
        FileSizes("lonely.gz", 7, None, None),
    )


def test_a_file_of_just_the_limit_is_served_and_one_byte_more_is_not() -> None:
    target = targets.load("wasm")
    limit = target.limits.file_bytes
    assert sizes.warnings(manifest(**{"model/model.onnx": limit}), target) == ()
    (said,) = sizes.warnings(manifest(**{"model/model.onnx": limit + 1, "model/model.onnx.br": 1}), target)
    assert said.startswith("model/model.onnx has 26,214,401 bytes (25.00 MiB).")
    assert said.endswith("Serve it from a host without that limit.")


@pytest.mark.parametrize(("target_id", "warned"), [("webgpu", True), ("wasm", False)])
def test_the_real_chain_has_one_file_that_is_too_large_and_the_remedy_is_said(
    tmp_path: Path, target_id: str, warned: bool
) -> None:
    target = targets.load(target_id)
    said = sizes.warnings(web_bundle.build(write(LINEAR, tmp_path), tmp_path / "out", target), target)
    assert len(said) == warned
    if warned:
        assert "runtime/ort-wasm-simd-threaded.asyncify.wasm has 26,781,914 bytes (25.54 MiB)" in said[0]
        assert f"{target.limits.file_bytes:,} bytes (25 MiB)" in said[0]
        assert 'extends = "webgpu"' in said[0] and "--targets-dir" in said[0]


def test_the_remedy_works(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets/mine.toml").write_text('extends = "webgpu"\n[runtime]\nvariants = ["jspi", "wasm"]\n')
    target = targets.load("mine", tmp_path / "targets")
    made = web_bundle.build(write(LINEAR, tmp_path), tmp_path / "out", target)
    assert sizes.warnings(made, target) == ()
    assert not any("asyncify" in entry.path for entry in made.files)
