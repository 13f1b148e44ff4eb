import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from trimming import parse, run

from edgekit.errors import LimitError
from edgekit.model import io
from edgekit.trim import output
from edgekit.trim.weights import LARGE_BYTES, Store, stored_bytes

X = np.ones((1, 64), np.float32)


def weights(count: int = 4) -> onnx.ModelProto:
    """A model with ``count`` matrices of 16 KiB."""
    nodes = " ".join(f"v{n + 1} = MatMul(v{n}, w{n})" for n in range(count))
    proto = parse(f"g (float[1, 64] v0) => (float[1, 64] v{count}) {{ {nodes} }}")
    rng = np.random.default_rng(1)
    for n in range(count):
        array = rng.standard_normal((64, 64)).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, f"w{n}"))
    return proto


def pack(proto: onnx.ModelProto, folder: Path, *, external: bool, most: int | None = None) -> list[Path]:
    work, made = folder / "work", folder / "made"
    work.mkdir()
    made.mkdir()
    (work / "m.onnx").write_bytes(proto.SerializeToString())
    store = Store(work)
    output.write(store.detach(io.load(work / "m.onnx")), store, made, "out.onnx", external=external, most=most)
    return sorted(path for path in made.iterdir())


def test_one_file_holds_all(tmp_path: Path) -> None:
    (path,) = pack(weights(), tmp_path, external=False)

    assert run(onnx.load(path), {"v0": X})[0].tobytes() == run(weights(), {"v0": X})[0].tobytes()


def test_weights_are_cut_into_files_under_a_size(tmp_path: Path) -> None:
    paths = pack(weights(5), tmp_path, external=True, most=40_000)

    assert [path.name for path in paths] == ["out.onnx", "out.onnx.data", "out.onnx.data_1", "out.onnx.data_2"]
    assert all(path.stat().st_size <= 40_000 for path in paths)
    assert run(onnx.load(paths[0]), {"v0": X})[0].tobytes() == run(weights(5), {"v0": X})[0].tobytes()
    io.load(paths[0])


def test_a_tensor_larger_than_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match=r"'w0' has 16,384 bytes, more than the 10,000"):
        pack(weights(), tmp_path, external=True, most=10_000)


def test_split_and_merged_again_gives_the_same_tensors(tmp_path: Path) -> None:
    first = pack(weights(), tmp_path, external=True, most=20_000)[0]
    work, made = tmp_path / "again", tmp_path / "merged"
    work.mkdir()
    made.mkdir()
    store = Store(work)
    output.write(store.detach(io.load(first)), store, made, "m.onnx", external=False, most=None)

    merged = onnx.load(made / "m.onnx", load_external_data=False)
    for a, b in zip(merged.graph.initializer, weights().graph.initializer, strict=True):
        assert onnx.numpy_helper.to_array(a).tobytes() == onnx.numpy_helper.to_array(b).tobytes()


def test_tensors_that_lie_in_one_place_are_written_once(tmp_path: Path) -> None:
    first = pack(weights(2), tmp_path, external=True)[0]
    proto = onnx.load(first, load_external_data=False)
    del proto.graph.initializer[1].external_data[:]
    proto.graph.initializer[1].external_data.extend(proto.graph.initializer[0].external_data)
    first.write_bytes(proto.SerializeToString())
    work, made = tmp_path / "again", tmp_path / "twice"
    work.mkdir()
    made.mkdir()
    store = Store(work)
    lean = store.detach(io.load(first))
    output.write(lean, store, made, "m.onnx", external=True, most=None)

    assert (made / "m.onnx.data").stat().st_size == 64 * 64 * 4
    assert stored_bytes(lean) < 20_000


def test_short_lists_of_integers_take_a_byte_each(tmp_path: Path) -> None:
    proto = parse("g (float[2, 3] x) => (float[3, 2] y) <int64[2] s> { y = Reshape(x, s) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([3, -1], np.int64), "s"))
    small = parse("g (float[2, 3] x) => (float[3, 2] y) <int64[2] s> { y = Reshape(x, s) }")
    small.graph.initializer.append(onnx.numpy_helper.from_array(np.array([3, 2], np.int64), "s"))

    (path,) = pack(small, tmp_path, external=False)

    (tensor,) = onnx.load(path).graph.initializer
    assert list(tensor.int64_data) == [3, 2]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), [3, 2])
    assert path.stat().st_size < small.ByteSize()


def test_each_length_of_number_is_read_back(tmp_path: Path) -> None:
    numbers = np.array([0, 127, 128, 2**40, 2**63 - 1, 5, 6, 7, 8, 9], np.int64)
    proto = parse("g (int64[10] x) => (int64[10] y) { y = Add(x, s) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "s"))

    (path,) = pack(proto, tmp_path, external=False)

    np.testing.assert_array_equal(onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[0]), numbers)


MEASURE = """
import json, resource, sys
from pathlib import Path
import edgekit.pipeline as pipeline
from edgekit.trim.output import Packing
from edgekit.trim.run import TrimOptions
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
options = TrimOptions(passes=False, packing=Packing(external=True, file_bytes=100_000_000))
plan = pipeline.trim(Path(sys.argv[1]), Path(sys.argv[2]), options)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"kib": after - before, "files": [file.bytes for file in plan.files]}))
"""


def test_large_weights_never_lie_in_memory(tmp_path: Path) -> None:
    """300 MB of (sparse) weights are cut in files with a few megabytes of memory."""
    tensors, size = 6, 50_000_000
    proto = parse("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    for n in range(tensors):
        tensor = proto.graph.initializer.add(name=f"w{n}", data_type=1, dims=[size // 4], data_location=1)
        for key, value in (("location", "w.data"), ("offset", str(n * size)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with (tmp_path / "w.data").open("wb") as stream:
        stream.truncate(tensors * size)

    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "m.onnx"), str(tmp_path / "out" / "big.onnx")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    measured = json.loads(done.stdout)
    assert measured["kib"] < 40 << 10
    assert sum(measured["files"]) >= tensors * size and max(measured["files"]) <= 100_000_000


def test_what_is_small_stays_in_the_graph(tmp_path: Path) -> None:
    proto = weights(1)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(LARGE_BYTES // 4 - 1, np.float32), "small"))

    path = pack(proto, tmp_path, external=True)[0]

    where = {t.name: t.data_location for t in onnx.load(path, load_external_data=False).graph.initializer}
    assert where == {"w0": onnx.TensorProto.EXTERNAL, "small": onnx.TensorProto.DEFAULT}
