"""Loading and saving models, and what is said about every file that is none."""

import gzip
import io
import json
import os
import pickle
import random
import struct
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models_text import LINEAR, NESTED_IF, PRIVATE_DOMAIN, loaded, parse, write
from onnx import TensorProto

from edgekit.errors import EdgekitError, LimitError, ModelError, UsageError
from edgekit.model import io as model


def with_external(folder: Path, data: bytes | None, **entries: str) -> Path:
    """Write LINEAR with its 24 bytes of weights in another file, recorded as ``entries`` say."""
    proto = parse(LINEAR)
    tensor = proto.graph.initializer[0]
    if data is None:
        data = onnx.numpy_helper.to_array(tensor).tobytes()
    del tensor.float_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "w.bin").write_bytes(data)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


# What loads


def test_a_model_loads_as_it_was_saved(tmp_path: Path) -> None:
    model.save(parse(NESTED_IF), tmp_path / "a.onnx")
    model.save(parse(NESTED_IF), tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert model.load(tmp_path / "a.onnx").proto == parse(NESTED_IF)


def test_an_operator_of_a_private_domain_loads(tmp_path: Path) -> None:
    assert loaded(PRIVATE_DOMAIN, tmp_path).proto.graph.node[0].op_type == "Frobnicate"


def test_a_model_without_inputs_loads(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g () => (float[1] y) { y = Constant <value = float[1] {1}> () }'
    assert not loaded(text, tmp_path).proto.graph.input


def test_a_model_whose_file_name_is_not_plain_loads(tmp_path: Path) -> None:
    path = write(LINEAR, tmp_path, "<script> größe 'x' \"y\"\n.onnx")
    assert model.load(path).path == path


def test_values_are_read_from_the_model_or_from_external_data_alike(tmp_path: Path) -> None:
    inside = loaded(LINEAR, tmp_path)
    beside = model.load(with_external(tmp_path / "external", None, offset="0", length="24"))
    assert [(f.location, f.bytes) for f in beside.external_files] == [("w.bin", 24)]
    assert not beside.proto.graph.initializer[0].raw_data, "external data is left where it is"
    values = [model.to_array(m, m.proto.graph.initializer[0]) for m in (inside, beside)]
    assert values[0].tolist() == values[1].tolist() == [[0.5, -1, 2], [1, 0.25, -3]]
    assert values[1].dtype == np.float32


def test_external_data_is_read_at_its_offset(tmp_path: Path) -> None:
    data = b"\xff" * 16 + np.arange(6, dtype=np.float32).tobytes() + b"\xff" * 4
    found = model.load(with_external(tmp_path, data, offset="16"))
    assert model.to_array(found, found.proto.graph.initializer[0]).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_strings_and_small_integers_are_read(tmp_path: Path) -> None:
    found = loaded(LINEAR, tmp_path)
    strings = onnx.helper.make_tensor("s", TensorProto.STRING, [2], ["a", "ö"])
    nibbles = TensorProto(name="n", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x21\x0f")
    assert [x.decode() if isinstance(x, bytes) else x for x in model.to_array(found, strings)] == ["a", "ö"]
    assert [int(x) for x in model.to_array(found, nibbles)] == [1, 2, -1]


def test_values_that_do_not_fill_their_shape_are_an_error(tmp_path: Path) -> None:
    short = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], raw_data=b"\0" * 8)
    with pytest.raises(ModelError, match="'w' do not fit its type and shape"):
        model.to_array(loaded(LINEAR, tmp_path), short)


# Files that are not there, or are something else


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("gone.onnx", "There is no file", "Models in that folder: here.onnx"),
        ("no/such/m.onnx", "There is no file", "does not exist"),
        (".", "is a folder, not a model file", "here.onnx"),
        ("pipe", "is not an ordinary file", "Name a model file"),
        ("here.onnx/m.onnx", "cannot be read", "Check the path"),
        ("loop", "cannot be read", "Check the path"),
        ("x" * 300, "cannot be read", "Check the path"),
    ],
)
def test_a_path_without_a_readable_file_is_a_usage_error(tmp_path: Path, name: str, message: str, hint: str) -> None:
    write(LINEAR, tmp_path, "here.onnx")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match=message) as caught:
        model.load(tmp_path / name)
    assert hint in str(caught.value.hint)
    assert caught.value.exit_code == 2


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Drop root's power to read everything, where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_file_without_permission_is_a_usage_error(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = write(LINEAR, tmp_path)
    path.chmod(0)
    request.getfixturevalue("ordinary_user")
    with pytest.raises(UsageError, match="No permission to read"):
        model.load(path)


def zip_of(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return stream.getvalue()


def safetensors_bytes() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * 4


LEGACY_TORCH = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + pickle.dumps(1001, protocol=2)

IMPOSTORS = {
    "empty": (b"", "is empty"),
    "text": (b"Hello, this is not a model.\n", "a text file"),
    "long text in UTF-8": ("größe ".encode() * 2000, "a text file"),
    "text in UTF-16": ("hello".encode("utf-16"), "a text file"),
    "web page": (b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>", r"a web page \(HTML\)"),
    "JSON": (b'{"layers": []}', "a JSON file"),
    "an error as JSON": (b'{"error": "Repository not found"}', "a JSON file that says 'Repository not found'"),
    "XML": (b'<?xml version="1.0"?><net/>', "an XML file"),
    "Git LFS pointer": (b"version https://git-lfs.example/spec/v1\noid sha256:4d7a\nsize 12345\n", "a Git LFS pointer"),
    "ONNX text": (LINEAR.encode(), "ONNX's text form"),
    "protobuf text": (b"ir_version: 8\ngraph {\n}\n", "protobuf's text form"),
    "PyTorch checkpoint": (
        zip_of({"archive/data.pkl": b"\x80\x02.", "archive/version": b"3"}),
        "a PyTorch checkpoint",
    ),
    "old PyTorch checkpoint": (LEGACY_TORCH, "a PyTorch checkpoint"),
    "pickle": (pickle.dumps({"a": 1}), "a Python pickle"),
    "Keras HDF5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 64, "an HDF5 file"),
    "Keras zip": (zip_of({"config.json": b"{}", "model.weights.h5": b""}), "a Keras model"),
    "TFLite": (b"\x1c\0\0\0TFL3" + b"\0" * 64, "a TensorFlow Lite model"),
    "ORT": (b"\x1c\0\0\0ORTM" + b"\0" * 64, "onnxruntime's own format"),
    "safetensors": (safetensors_bytes(), "a safetensors file"),
    "GGUF": (b"GGUF\x03\0\0\0" + b"\0" * 64, "a GGUF model"),
    "numpy": (b"\x93NUMPY\x01\0" + b"\0" * 64, "a numpy array"),
    "npz": (zip_of({"x.npy": b""}), r"numpy arrays \(\.npz\)"),
    "gzip": (gzip.compress(b"model"), "compressed with gzip"),
    "zipped model": (zip_of({"a/m.onnx": b"\x08\x08"}), "a zip archive"),
    "damaged zip": (b"PK\x03\x04" + b"\0" * 50, "a damaged zip archive"),
    "picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 64, r"a picture \(PNG\)"),
    "noise": (bytes(random.Random(3).randbytes(5000)), "is not an ONNX model"),  # noqa: S311
    "protobuf of something else": (
        TensorProto(dims=[1], data_type=1, raw_data=b"\0\0\0\0").SerializeToString(),
        "it has no graph",
    ),
    "no graph": (onnx.ModelProto(ir_version=8, producer_name="p").SerializeToString(), "it has no graph"),
    "no IR version": (onnx.ModelProto(graph=parse(LINEAR).graph).SerializeToString(), "it has no IR version"),
}


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_a_file_that_is_no_model_is_named_for_what_it_is(tmp_path: Path, kind: str) -> None:
    data, message = IMPOSTORS[kind]
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=message) as caught:
        model.load(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == 3


def test_a_model_is_not_refused_for_bytes_that_look_like_another_format(tmp_path: Path) -> None:
    # A producer of this name puts the mark of a TensorFlow Lite file at its place.
    proto = onnx.ModelProto(
        ir_version=8, producer_name="TFL3", graph=parse(LINEAR).graph, opset_import=parse(LINEAR).opset_import
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert path.read_bytes()[4:8] == b"TFL3"
    assert model.load(path).proto == proto


def test_a_file_larger_than_protobuf_allows_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as stream:
        stream.write(b"\x08\x08")
        stream.truncate(3 << 30)
    with pytest.raises(ModelError, match=r"3,221,225,472 bytes; one ONNX file holds at most"):
        model.load(path)


def test_a_model_nested_without_end_is_refused(tmp_path: Path) -> None:
    def field(number: int, payload: bytes) -> bytes:
        size, length = len(payload), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + payload

    graph = b""
    for _ in range(200):
        graph = field(1, field(5, field(6, graph)))  # node, attribute, graph
    path = tmp_path / "deep.onnx"
    path.write_bytes(b"\x08\x08" + field(7, graph))
    with pytest.raises(ModelError, match="nested too deeply"):
        model.load(path)


def test_a_model_without_outputs_is_refused(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    del proto.graph.output[:]
    model.save(proto, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="has no outputs"):
        model.load(tmp_path / "m.onnx")


def test_a_model_without_an_opset_is_refused(tmp_path: Path) -> None:
    proto = parse(LINEAR)
    del proto.opset_import[:]
    model.save(proto, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="does not say which opset"):
        model.load(tmp_path / "m.onnx")


def test_a_name_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = write(LINEAR.replace("a = MatMul", "ABCD = MatMul").replace("Relu(a)", "Relu(ABCD)"), tmp_path)
    path.write_bytes(path.read_bytes().replace(b"ABCD", b"\xff\xfeCD"))
    with pytest.raises(ModelError, match="not UTF-8"):
        model.load(path)


# Damage


def test_a_model_cut_short_anywhere_is_refused_and_mostly_said_to_be_cut(tmp_path: Path) -> None:
    whole = write(LINEAR, tmp_path).read_bytes()
    path, said = tmp_path / "cut.onnx", 0
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError) as caught:
            model.load(path)
        said += "cut short" in caught.value.message
    assert said > len(whole) * 0.8


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "m.onnx"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_load_or_are_refused_in_words(damaged: Path, flips: list[tuple[int, int]]) -> None:
    data = bytearray(parse(NESTED_IF).SerializeToString())
    for position, mask in flips:
        data[position % len(data)] ^= mask
    damaged.write_bytes(bytes(data))
    try:
        model.load(damaged)
    except EdgekitError as error:
        assert isinstance(error, ModelError)
        assert error.hint


# External data


OUTSIDE = "must lie inside the model's folder"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "gone.bin"}, "gone.bin is missing"),
        ({"location": "no/such/folder.bin"}, "is missing"),
        ({"location": ""}, "without a usable file name"),
        ({"location": "w.bin\0"}, "without a usable file name"),
        ({"location": "/etc/passwd"}, "an absolute path"),
        ({"location": "C:/w.bin"}, "an absolute path"),
        ({"location": "C:w.bin"}, "an absolute path"),
        ({"location": "\\\\server\\share\\w.bin"}, "an absolute path"),
        ({"location": "sub\\w.bin"}, "forward slashes"),
        ({"location": "../w.bin"}, OUTSIDE),
        ({"location": "sub/../../w.bin"}, OUTSIDE),
        ({"location": "sub/../w.bin"}, OUTSIDE),
        ({"location": "*/_ORT_MEM_ADDR_/*", "offset": "140737488355328"}, "an address in memory"),
        ({"location": "."}, "not an ordinary file"),
        ({"location": "folder"}, "not an ordinary file"),
        ({"location": "pipe"}, "not an ordinary file"),
        ({"location": "loop"}, "cannot be read"),
        ({"location": "out"}, "a link that leads out of the model's folder"),
        ({"location": "out-folder/secret.bin"}, "a link that leads out of the model's folder"),
        ({"location": "x" * 300}, "cannot be read"),
        ({"offset": "4"}, "is too short"),
        ({"offset": "9999999999999999999"}, "is too short"),
        ({"offset": "-4"}, "offset that is no number"),
        ({"offset": "0x10"}, "offset that is no number"),
        ({"offset": "1_0"}, "offset that is no number"),
        ({"offset": "٣"}, "offset that is no number"),
        ({"length": "9" * 30}, "length that is no number"),
        ({"length": "20"}, "is 24 bytes by its type and shape"),
        ({"length": "28"}, "is 24 bytes by its type and shape"),
    ],
)
def test_hostile_or_broken_external_data_is_refused(tmp_path: Path, entries: dict[str, str], message: str) -> None:
    folder = tmp_path / "model"
    path = with_external(folder, None, **entries)
    (tmp_path / "secret.bin").write_bytes(b"\0" * 24)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "out").symlink_to("../secret.bin")
    (folder / "out-folder").symlink_to("..")
    with pytest.raises(ModelError, match=message) as caught:
        model.load(path)
    assert str(path) in caught.value.message
    assert "'w'" in caught.value.message
    assert caught.value.hint


def test_a_file_of_weights_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"w.bin is too short: tensor 'w' needs its bytes up to 24, and it has 23"):
        model.load(with_external(tmp_path, b"\0" * 23))


def test_external_data_in_an_attribute_of_a_nested_graph_is_checked_too(tmp_path: Path) -> None:
    proto = parse(NESTED_IF)
    inner = proto.graph.node[0].attribute[0].g.node[0].attribute[1].g.node[0].attribute[0].t
    assert inner.dims == [2]
    inner.data_location = TensorProto.EXTERNAL
    inner.external_data.add(key="location", value="../../etc/passwd")
    model.save(proto, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=OUTSIDE):
        model.load(tmp_path / "m.onnx")


def test_impossible_external_tensors_are_refused(tmp_path: Path) -> None:
    for change, message in (
        ({"dims": [-1, 6]}, "negative dimension"),
        ({"data_type": TensorProto.STRING}, "strings in external data"),
        ({"data_type": 99}, "no fixed size"),
        ({"dims": [1 << 40]}, "too short"),
        ({"dims": [1 << 62] * 3000}, "impossible shape"),
    ):
        path = with_external(tmp_path, None)
        proto = onnx.ModelProto.FromString(path.read_bytes())
        tensor = proto.graph.initializer[0]
        if "dims" in change:
            del tensor.dims[:]
        tensor.MergeFrom(TensorProto(**change))
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(ModelError, match=message):
            model.load(path)


def test_links_that_stay_with_the_model_are_followed(tmp_path: Path) -> None:
    """As a download cache lays them out: both files are links to one folder of blobs."""
    blobs, shown = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    path = with_external(blobs, None)
    path.rename(blobs / "aa")
    (blobs / "w.bin").rename(blobs / "bb")
    shown.mkdir(parents=True)
    (shown / "model.onnx").symlink_to("../../blobs/aa")
    (shown / "w.bin").symlink_to("../../blobs/bb")
    assert model.load(shown / "model.onnx").external_files[0].bytes == 24
    (blobs / "bb").rename(tmp_path / "bb")
    (shown / "w.bin").unlink()
    (shown / "w.bin").symlink_to(tmp_path / "bb")
    with pytest.raises(ModelError, match="leads out of"):
        model.load(shown / "model.onnx")


# Limits of a target


def test_a_model_within_the_limits_passes(tmp_path: Path) -> None:
    model.check_limits(loaded(LINEAR, tmp_path), ir_version=8, opset=17)


@pytest.mark.parametrize(
    ("limits", "message", "hint"),
    [
        ({"ir_version": 7, "opset": 17}, "has IR version 8; .* at most IR version 7", "m.ir_version = 7"),
        (
            {"ir_version": 8, "opset": 16},
            "uses opset 17 .* at most opset 16",
            "convert_version(onnx.load('model.onnx'), 16)",
        ),
    ],
)
def test_a_model_newer_than_the_runtime_is_refused_with_a_way_back(
    tmp_path: Path, limits: dict[str, int], message: str, hint: str
) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        model.check_limits(loaded(LINEAR, tmp_path), **limits)
    assert hint in str(caught.value.hint)


def test_the_opset_of_a_private_domain_has_no_limit(tmp_path: Path) -> None:
    found = loaded(PRIVATE_DOMAIN.replace('"my.company" : 1', '"my.company" : 99'), tmp_path)
    model.check_limits(found, ir_version=8, opset=17)


def test_graphs_in_a_node_count_as_nodes(tmp_path: Path) -> None:
    for count, refused in ((10_000, False), (30_000, True)):
        proto = parse(LINEAR)
        graphs = [onnx.GraphProto()] * count
        proto.graph.node[0].attribute.add(name="many", type=onnx.AttributeProto.GRAPHS, graphs=graphs)
        (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
        with pytest.raises(LimitError, match="too many nodes, or too many graphs") if refused else nullcontext():
            model.read(tmp_path / "m.onnx")


@pytest.mark.parametrize("offset", ["16", "9999999999999999999"])
def test_values_beyond_the_end_of_their_file_are_missed_when_they_are_read(offset: str, tmp_path: Path) -> None:
    found = model.load(with_external(tmp_path, bytes(24), offset=offset), complete=False)
    for read in (model.to_array, lambda *given: b"".join(model.raw_bytes(*given))):
        with pytest.raises(ModelError, match="is too short for tensor"):
            read(found, found.proto.graph.initializer[0])
