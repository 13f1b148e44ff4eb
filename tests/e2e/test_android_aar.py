"""onnxruntime's official library for Android, out of an npm package: the core compiles against its classes.

Its native code is Android's own, and runs on no desktop; what needs it is not run here.
"""

import struct
import zipfile
from pathlib import Path

import jvm
import pytest
from android_bundle import needs
from models import real
from models.real import RealModel

from edgekit.bundle import android_project

pytestmark = [
    pytest.mark.real_models,
    needs("tests"),
    pytest.mark.xdist_group("android aar"),
]

AAR = RealModel(
    key="onnxruntime_aar",
    package="com.github.asus4.onnxruntime",
    version="0.4.9",
    registry="npm",
    path="package/Plugins/Android/onnxruntime.aar",
    sha256="98cddbac92640b4a6af72a03c42e0491851f366d3da66bbaeb5dd66310946cf2",
    licence="MIT",
    wasm="refused",
    webgpu="refused",
    sample="generated",
    package_file="com.github.asus4.onnxruntime-0.4.9.tgz",
    package_sha256="e59788788818fdde1b2e522e766a21ba0f7d8391de55737abf81e32cc801785d",
)


@pytest.fixture(scope="module")
def aar() -> Path:
    try:
        return real.obtain(AAR)
    except real.OfflineError as error:
        pytest.skip(f"offline: {error}")


def test_the_core_compiles_against_the_official_classes(aar: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(aar) as archive:
        (tmp_path / "classes.jar").write_bytes(archive.read("classes.jar"))
    jvm.compile_java(sorted(jvm.CORE.glob("*.java")), tmp_path, release=8, classes=[tmp_path / "classes.jar"])


def test_the_sizes_that_a_build_tells_are_those_of_the_library(aar: Path) -> None:
    told = android_project.versions()
    assert told.aar_bytes == aar.stat().st_size
    with zipfile.ZipFile(aar) as archive:
        entries = archive.infolist()
    for abi, size in told.abis.items():
        native = [entry for entry in entries if entry.filename.startswith(f"jni/{abi}/") and entry.file_size]
        assert len(native) == 2
        assert size.raw_bytes == sum(entry.file_size for entry in native)
        assert size.packed_bytes == sum(entry.compress_size for entry in native)
    classes = next(entry for entry in entries if entry.filename == "classes.jar")
    assert (told.classes.raw_bytes, told.classes.packed_bytes) == (classes.file_size, classes.compress_size)


def test_the_library_is_the_pinned_one_and_its_code_lies_at_multiples_of_16_kib(aar: Path) -> None:
    """Which devices with pages of 16 KiB demand of every part that is loaded (ELF, program headers)."""
    with zipfile.ZipFile(aar) as archive:
        assert android_project.versions().onnxruntime.encode() in archive.read("jni/arm64-v8a/libonnxruntime.so")
        for name in ("libonnxruntime.so", "libonnxruntime4j_jni.so"):
            for abi in ("arm64-v8a", "x86_64"):
                data = archive.read(f"jni/{abi}/{name}")
                (start,) = struct.unpack_from("<Q", data, 32)
                size, count = struct.unpack_from("<HH", data, 54)
                headers = [struct.unpack_from("<IIQQQQQQ", data, start + index * size) for index in range(count)]
                loaded = [header[7] for header in headers if header[0] == 1]
                assert loaded
                assert all(align % 0x4000 == 0 for align in loaded)
