"""Say what a file probably is that is not an ONNX model. Standard library only; called after parsing has failed.

Magic numbers are never a reason to refuse: a valid model's bytes may hold any of them. They only explain a refusal.
"""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

HEAD_BYTES = 4096

_DOWNLOAD = "Download or copy the model itself."
_TORCH = "Export it from PyTorch with torch.onnx.export(model, example_inputs, 'model.onnx')."
_TFLITE = "Convert it to ONNX first: python -m tf2onnx.convert --tflite model.tflite --output model.onnx"
_KERAS = "Export it with model.export('model.onnx', format='onnx') (Keras 3), or convert it with the tf2onnx package."


@dataclass(frozen=True)
class Guess:
    """What the file is, to follow "is", and what to do."""

    what: str
    hint: str


_NOT_A_MODEL = "Give an ONNX model (.onnx). If this is a file of weights beside one, name the .onnx file instead."

# (offset, magic bytes, guess)
_MAGIC: tuple[tuple[int, bytes, Guess], ...] = (
    (4, b"TFL3", Guess("a TensorFlow Lite model", _TFLITE)),
    (4, b"ORTM", Guess("a model in onnxruntime's own format (.ort)", "Give the ONNX model that it was made from.")),
    (0, b"\x89HDF\r\n\x1a\n", Guess("an HDF5 file, such as Keras weights (.h5)", _KERAS)),
    (0, b"\x93NUMPY", Guess("a numpy array (.npy)", _NOT_A_MODEL)),
    (0, b"GGUF", Guess("a GGUF model", "Export the model that it was made from to ONNX.")),
    (0, b"\x1f\x8b", Guess("compressed with gzip", "Unpack it first: gunzip, or tar -xzf.")),
    (0, b"BZh", Guess("compressed with bzip2", "Unpack it first: bunzip2.")),
    (0, b"\xfd7zXZ\x00", Guess("compressed with xz", "Unpack it first: unxz.")),
    (0, b"\x28\xb5\x2f\xfd", Guess("compressed with zstd", "Unpack it first: unzstd.")),
    (0, b"7z\xbc\xaf\x27\x1c", Guess("a 7-Zip archive", "Unpack it first.")),
    (257, b"ustar", Guess("a tar archive", "Unpack it first: tar -xf.")),
    (0, b"ftrt", Guess("a TensorRT engine", "Give the ONNX model that it was made from.")),
    (0, b"\x7fELF", Guess("a program or a shared library", _NOT_A_MODEL)),
    (0, b"\x89PNG", Guess("a picture (PNG)", "Pictures are given with --sample.")),
    (0, b"\xff\xd8\xff", Guess("a picture (JPEG)", "Pictures are given with --sample.")),
    (0, b"%PDF", Guess("a PDF document", _NOT_A_MODEL)),
)  # fmt: skip

_TORCH_LEGACY_MAGIC = bytes.fromhex("6cfc9c46f9206aa85019")  # the first pickled number of torch.save before 1.6


def guess(path: Path, head: bytes) -> Guess | None:
    """Say what a file is from its first ``HEAD_BYTES`` (and, for a zip, its listing). None: no idea."""
    for offset, magic, found in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            return found
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip(path)
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        if _TORCH_LEGACY_MAGIC in head[:64]:
            return Guess("a PyTorch checkpoint", _TORCH)
        return Guess("a Python pickle", f"If it holds a PyTorch model: {_TORCH}")
    if _is_safetensors(head):
        return Guess("a safetensors file: weights without a graph", "Export the model that the weights belong to.")
    text = _text(head)
    return None if text is None else _text_guess(text)


def _zip(path: Path) -> Guess:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return Guess("a damaged zip archive", "Download it again, then unpack it.")
    leaves = {name.rsplit("/", 1)[-1] for name in names}
    if "data.pkl" in leaves:
        return Guess("a PyTorch checkpoint", _TORCH)
    if "model.weights.h5" in leaves:
        return Guess("a Keras model (.keras)", _KERAS)
    if names and all(name.endswith(".npy") for name in names):
        return Guess("a file of numpy arrays (.npz)", "Arrays are given with --sample.")
    models = sorted(name for name in names if name.endswith(".onnx"))
    inside = f" It holds {models[0]!r}." if models else ""
    return Guess("a zip archive", f"Unpack it first.{inside}")


def _is_safetensors(head: bytes) -> bool:
    """safetensors: the length of a JSON header as 8 bytes, little-endian, then the header's brace."""
    return len(head) > 9 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 100_000_000


def _text(head: bytes) -> str | None:
    """Decode the head of a text file; None for binary. The last character may be cut by the head's end."""
    for encoding in ("utf-8-sig", "utf-16"):
        if encoding == "utf-16" and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            continue
        for cut in range(4):
            try:
                text = head[: len(head) - cut].decode(encoding)
            except UnicodeDecodeError:
                continue
            if text and all(c.isprintable() or c in "\t\r\n\f" for c in text):
                return text
            break
    return None


def _text_guess(text: str) -> Guess:
    start = text.lstrip()
    lower = start.lower()
    if start.startswith("version https://git-lfs"):
        return Guess("a Git LFS pointer, not the model that it points to", "Fetch the file itself: git lfs pull")
    if start.startswith("<") and "ir_version" in start[:200]:
        hint = "Save it as binary: onnx.save(onnx.load('model.txt', format='onnxtxt'), 'model.onnx')"
        return Guess("a model in ONNX's text form", hint)
    if start.startswith("ir_version:") or '"irVersion"' in start:
        return Guess(
            "a model in protobuf's text form", "Save it as binary with onnx.load(..., format=...) and onnx.save."
        )
    if lower.startswith(("<!doctype html", "<html")) or "<html" in lower[:1000]:
        return Guess("a web page (HTML)", f"The link led to a page about the model. {_DOWNLOAD}")
    if start.startswith("<"):
        return Guess("an XML file", _NOT_A_MODEL)
    if start.startswith(("{", "[")):
        return Guess(f"a JSON file{_json_keys(start)}", _NOT_A_MODEL)
    return Guess("a text file", _NOT_A_MODEL)


def _json_keys(text: str) -> str:
    """An error message saved in place of the model is common: show it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict):
        for key in ("error", "message", "detail"):
            if isinstance(value.get(key), str):
                return f" that says {value[key][:120]!r}"
    return ""


# The fields of onnx.ModelProto: number -> wire type (0 varint, 2 length-delimited).
_MODEL_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}


def missing_bytes(data: bytes, size: int) -> int | None:
    """Return how many bytes are missing from the end of a model that was cut short; None when it was not cut.

    Reads only the outermost fields: a model is cut when one of them claims more bytes than are left. ``data``: the
    beginning of the file, of ``size`` bytes.
    """
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        if tag is None:
            return 1 if len(data) == size else None
        field, wire = tag >> 3, tag & 7
        if _MODEL_FIELDS.get(field) != wire:
            return None
        value, position = _varint(data, position)
        if value is None:
            return 1 if len(data) == size else None
        if wire == 2:
            if value > size - position:
                return value - (size - position)
            position += value
    return None


def _varint(data: bytes, position: int) -> tuple[int | None, int]:
    """Read one base-128 number (at most 10 bytes); None where the data ends inside it."""
    value = 0
    for index in range(10):
        if position + index >= len(data):
            return None, len(data)
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    return value, position + 10
