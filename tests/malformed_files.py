"""Hostile files and hostile places: what is no model, what is no file, what lies beside one, and what is too long."""

import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import malformed_models
import onnx
from malformed_models import made, node, varint
from onnx import TensorProto

Maker = Callable[[Path], Path]
Made = tuple[str, str, Maker]

_CHUNK = 1 << 20
FOREST = (b"nodes_treeids", b"nodes_nodeids", b"nodes_featureids", b"nodes_truenodeids")


def files() -> Iterator[Made]:
    """Yield kind, name and maker of every file."""
    yield from _no_models()
    yield from _places()
    yield from _external()
    yield from _gigabytes()


def _file(data: bytes, name: str = "m.onnx") -> Maker:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def _zip(names: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in names.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("m.onnx"))
    return stream.getvalue()


def _no_models() -> Iterator[Made]:
    for name, data in _other_bytes().items():
        yield "no models", name, _file(data)


@cache
def _other_bytes() -> dict[str, bytes]:
    """What is no model, by name."""
    return {
        "empty": b"", "one byte": b"\x08", "NULs": b"\0" * 5000, "ones": b"\xff" * 5000, "text": b"hello\n" * 100,
        "JSON": b'{"error": "\x1b[31mno\\u001b[32m"}', "deep JSON": b"[" * 100_000, "HTML": b"<!doctype html><p>404",
        "zip": _zip({"a/m.onnx": b"x"}), "zip bomb": _zip({"a": b"\0" * (50 << 20)}),
        "zip of escapes": _zip({"\x1b[2Jm.onnx": b"x"}), "zip of many": _zip({f"f{i}": b"" for i in range(20_000)}),
        "damaged zip": _zip({"a": b"x"})[:-9], "checkpoint": _zip({"m/data.pkl": b"x"}), "tar": _tar(),
        "pickle": pickle.dumps({"w": 1}), "pickle that runs": b"\x80\x04cos\nsystem\n(S'touch owned'\ntR.",
        "gzip": b"\x1f\x8b" + b"\0" * 99, "safetensors": (9).to_bytes(8, "little") + b"{" + b" " * 50,
        "huge safetensors": b"\xff\xff\xff\x05\0\0\0\0{" + b" " * 99,
        "LFS": b"version https://git-lfs.github.com/spec/v1\n",
        "ELF": b"\x7fELF" + b"\0" * 99, "UTF-16": "hello".encode("utf-16"), "half UTF-16": b"\xff\xfeh",
        "varint": b"\x80" * 5000,
        "groups": b"\x0b" * 5000, "ends of groups": b"\x0c" * 100, "field 0": b"\x00\x01" * 99,
        "model without end": b"\x3a" + b"\xff" * 9 + b"\x01",
        "only a graph": b"\x3a\x00", "only a version": b"\x08\x08",
        "an empty graph": b"\x08\x08\x3a\x00\x42\x02\x10\x11",
        "unknown fields": b"\x08\x08" + b"\xfa\x3e\x02hi" * 5000,
        "TensorProto": TensorProto(name="w", dims=[1]).SerializeToString(),
    }  # fmt: skip


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "m.onnx")
    return folder / "m.onnx"


def _link(target: str) -> Maker:
    def make(folder: Path) -> Path:
        (folder / "m.onnx").symlink_to(target)
        return folder / "m.onnx"

    return make


def _locked(folder: Path) -> Path:
    path = _file(made([node("Relu", "x", "y")]).SerializeToString())(folder)
    path.chmod(0)
    return path


def _socket(folder: Path) -> Path:
    import socket

    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is at most 107 bytes
        try:
            one.bind("m.onnx")
        finally:
            os.chdir(here)
    return folder / "m.onnx"


def _places() -> Iterator[Made]:
    yield "places", "nothing", lambda folder: folder / "m.onnx"
    yield "places", "a folder", lambda folder: folder
    yield "places", "a pipe", _fifo
    yield "places", "a socket", _socket
    yield "places", "a loop of links", _link("m.onnx")
    yield "places", "a link to nothing", _link("nothing")
    yield "places", "no permission", _locked
    for device in ("/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem", "/proc/self/status", "/dev/full"):
        yield "places", device, lambda _folder, device=device: Path(device)
        yield "places", f"a link to {device}", _link(device)
    yield "places", "a name that is too long", lambda folder: folder / ("n" * 300)
    yield "places", "a path that is too long", lambda folder: folder / "/".join(["n" * 200] * 30)
    yield "places", "a file as a folder", lambda folder: _file(b"x")(folder) / "m.onnx"
    yield "places", "escapes in the name", lambda folder: folder / "\x1b[2J\n.onnx"
    yield "places", "no text in the name", lambda folder: _file(b"x", os.fsdecode(b"\xff\xfe.onnx"))(folder)


def external(entries: dict[str, str], *, dims: tuple[int, ...] = (1, 4), dtype: int = 1) -> onnx.ModelProto:
    """A model whose weight lies elsewhere."""
    tensor = TensorProto(name="w", data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return made([node("Add", "xw", "y")], tensor)


def _beside(proto: onnx.ModelProto, prepare: Callable[[Path], object] = lambda _: None) -> Maker:
    def make(folder: Path) -> Path:
        (folder / "m.onnx").write_bytes(proto.SerializeToString())
        prepare(folder)
        return folder / "m.onnx"

    return make


def _external() -> Iterator[Made]:
    def data(folder: Path) -> object:
        return (folder / "w").write_bytes(b"x" * 16)

    for place in (
        "", ".", "..", "/", "/etc/passwd", "../w", "a/../../w", "C:\\w", "\\\\host\\w", "w\0", "a\0/../w", "~/w", "w/",
        "./w", "w/w", "//w", "a" * 5000, "/dev/zero", "/dev/stdin", "*/_ORT_MEM_ADDR_/1", "file:///etc/passwd",
        "\x1b[2J", "m.onnx", "w ", "W",
    ):  # fmt: skip
        yield "external data", f"at {place[:40]!r}", _beside(external({"location": place}), data)
    for key in ("offset", "length"):
        for value in ("", "-1", "1e3", "0x10", " 16", "16", "17", "9" * 19, "9" * 20, "1" * 100_000, "٣", "8"):
            yield "external data", f"{key} {value[:30]!r}", _beside(external({"location": "w", key: value}), data)
    for dtype in (0, 2, 8, 14, 22, 99):
        yield "external data", f"of type {dtype}", _beside(external({"location": "w"}, dtype=dtype), data)
    for dims in ((1 << 62,), (1 << 31, 1 << 31), (-1, 4), (0, 1 << 62), (1 << 40,)):
        yield "external data", f"of shape {dims}", _beside(external({"location": "w"}, dims=dims), data)
    yield "external data", "nowhere", _beside(external({}))
    for name, prepare in (
        ("missing", lambda folder: None),
        ("a folder", lambda folder: (folder / "w").mkdir()),
        ("a pipe", lambda folder: os.mkfifo(folder / "w")),
        ("a loop", lambda folder: (folder / "w").symlink_to("w")),
        ("a link out", lambda folder: (folder / "w").symlink_to("/etc/passwd")),
        ("a link to /dev/zero", lambda folder: (folder / "w").symlink_to("/dev/zero")),
        ("empty", lambda folder: (folder / "w").touch()),
        ("a hole of 8 GB", lambda folder: _hole(folder / "w", 8 << 30)),
    ):  # fmt: skip
        yield "external data", name, _beside(external({"location": "w"}), prepare)
    big = external({"location": "w"}, dims=(1 << 13, 1 << 13))
    yield "external data", "256 MiB that are there", _beside(big, lambda folder: _hole(folder / "w", 256 << 20))
    many = external({"location": "w"})
    for number in range(20_000):
        many.graph.initializer.add().CopyFrom(many.graph.initializer[0])
        many.graph.initializer[-1].name = f"w{number}"
    yield "external data", "20000 tensors of one file", _beside(many, data)
    for number in range(5000):
        many.graph.initializer[number].external_data[0].value = f"f{number}"
    yield "external data", "5000 files that are missing", _beside(many, data)


def _hole(path: Path, size: int) -> None:
    with path.open("wb") as stream:
        stream.truncate(size)


class Field:
    """One field of the wire format, of any size: a length is known before a byte of it is made."""

    def __init__(self, tag: int, *parts: "bytes | Field | Filler") -> None:
        self.parts: tuple[bytes | Field | Filler, ...] = parts
        inner = sum(len(part) for part in parts)
        self.head = varint(tag << 3 | 2) + varint(inner)
        self.size = len(self.head) + inner

    def __len__(self) -> int:
        return self.size

    def write(self, stream: io.BufferedWriter) -> None:
        """Write the field; zeros become a hole, which takes no room on the disk."""
        stream.write(self.head)
        for part in self.parts:
            if isinstance(part, bytes):
                stream.write(part)
            else:
                part.write(stream)


class Filler:
    """``block``, ``count`` times."""

    def __init__(self, block: bytes, count: int) -> None:
        self.block, self.count = block, count

    def __len__(self) -> int:
        return len(self.block) * self.count

    def write(self, stream: io.BufferedWriter) -> None:
        """Write all of it, a megabyte at a time, or as a hole."""
        if not any(self.block):
            stream.seek(len(self), os.SEEK_CUR)
            stream.truncate()
            return
        each = max(1, _CHUNK // len(self.block))
        for start in range(0, self.count, each):
            stream.write(self.block * min(each, self.count - start))


def _large(*in_graph: "bytes | Field | Filler") -> Maker:
    """A model whose graph holds these fields besides a Relu."""

    def make(folder: Path) -> Path:
        model = made([node("Relu", "x", "y")])
        graph = model.graph.SerializeToString()
        model.ClearField("graph")
        with (folder / "m.onnx").open("wb") as stream:
            stream.write(model.SerializeToString())
            Field(7, graph, *in_graph).write(stream)
        return folder / "m.onnx"

    return make


def attribute_list(*values: "bytes | Field | Filler") -> Field:
    """A node of the graph with one attribute, "a"."""
    return Field(1, b"\x0a\x01x\x12\x01z\x22\x03Foo\x3a\x01f", Field(5, b"\x0a\x01a", *values))


def _gigabytes() -> Iterator[Made]:
    billion = 1_000_000_000
    for count in (3_000_000, 20_000_000, 100_000_000, billion):
        size = f"{count:,}"
        yield "billions", f"{size} packed ints", _large(attribute_list(Field(8, Filler(b"\0", count))))
        yield "billions", f"{size} packed dims", _large(Field(5, Field(1, Filler(b"\0", count)), b"\x42\x01w\x10\x01"))
        yield (
            "billions",
            f"{size} packed int64 data",
            _large(Field(5, Field(7, Filler(b"\0", count)), b"\x42\x01w\x10\x07")),
        )
        yield "billions", f"{size} packed floats", _large(attribute_list(Field(7, Filler(b"\0" * 4, count // 4))))
        yield "billions", f"{size} bytes of a name", _large(Field(1, Field(3, Filler(b"\0", count))))
    for count in (2_000_000, 20_000_000, 100_000_000):
        size = f"{count:,}"
        yield "billions", f"{size} unpacked ints", _large(attribute_list(Filler(b"\x40\x01", count)))
        yield (
            "billions",
            f"{size} long unpacked ints",
            _large(attribute_list(Filler(b"\x40" + b"\xff" * 9 + b"\x01", count // 5))),
        )
        yield "billions", f"{size} unpacked floats", _large(attribute_list(Filler(b"\x3d\0\0\0\1", count // 2)))
        yield "billions", f"{size} empty strings", _large(attribute_list(Filler(b"\x4a\x00", count)))
        yield "billions", f"{size} short strings", _large(attribute_list(Filler(b"\x4a\x01s", count // 2)))
        yield "billions", f"{size} empty nodes", _large(Filler(b"\x0a\x00", count))
        yield "billions", f"{size} empty weights", _large(Filler(b"\x2a\x00", count))
        yield "billions", f"{size} inputs of a node", _large(Field(1, Filler(b"\x0a\x00", count)))
        yield (
            "billions",
            f"{size} empty dimensions",
            _large(Field(13, b"\x0a\x01v", Field(2, Field(1, Field(2, Filler(b"\x0a\x00", count)))))),
        )
        yield "billions", f"{size} unknown fields", _large(Filler(b"\xb8\x3e\x01", count // 2))
        yield "billions", f"{size} empty graphs", _large(attribute_list(Filler(b"\x5a\x00", count)))
        yield "billions", f"{size} data of strings", _large(Field(5, Filler(b"\x32\x00", count), b"\x42\x01w\x10\x08"))
    raw = Field(9, Filler(b"\0", 200_000_000))
    yield "billions", "200,000,000 raw bytes without a type", _large(Field(5, raw, b"\x42\x01w"))
    raw = Field(9, Filler(b"\0", 100_000_000))
    shape = b"\x08" + varint(25_000_001)
    yield "billions", "100,000,000 raw bytes of another shape", _large(Field(5, shape, b"\x10\x01\x42\x01w", raw))
    for count in (1_000_000, 8_000_000, 100_000_000):
        entries = Filler(b"\x40\xff\xff\x01", count // 4)
        lists = (Field(5, b"\x0a" + bytes([len(name)]) + name, entries) for name in FOREST)
        forest = Field(1, b"\x0a\x01x\x12\x01z\x22\x15TreeEnsembleRegressor\x3a\x0aai.onnx.ml", *lists)
        yield "billions", f"{count:,} entries of a forest", _large(forest)
    yield "billions", "a billion unpacked ints", _large(attribute_list(Filler(b"\x40\x01", billion)))
    for size in ((1 << 31) - 1, 1 << 31, 5 << 30, 1 << 40):
        yield "billions", f"a hole of {size:,} bytes", partial(_hollow, size)
    yield "billions", "a cut model of 2 GB", _cut_large


def _hollow(size: int, folder: Path) -> Path:
    _hole(folder / "m.onnx", size)
    return folder / "m.onnx"


def _cut_large(folder: Path) -> Path:
    path = _large(Field(5, Field(9, Filler(b"\0", 2_000_000_000)), b"\x42\x01w"))(folder)
    os.truncate(path, 1_500_000_000)
    return path


__all__ = ["Field", "Filler", "attribute_list", "external", "files", "malformed_models"]
