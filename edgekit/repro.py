"""Write a fault down so that others can see it: a folder with a small model, what it gives, and what it should give.

The page in it uses onnxruntime-web alone, from the folder itself, and the report is text to file as it stands.
"""

import base64
import io
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from edgekit import __version__, files, resources
from edgekit.errors import UsageError
from edgekit.facts.attributes import attribute_text
from edgekit.facts.types import dtype_name
from edgekit.records import settings as session_settings
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import Value
from edgekit.render import render
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!&])")
_MOST_ELEMENTS = 8
_RELATIVE, _ABSOLUTE = 1e-3, 1e-6
_MOST_NODES = 8
_URL = "http://127.0.0.1:8000/"
_SERVE = "python3 -m http.server 8000 --bind 127.0.0.1"


@dataclass(frozen=True, eq=False)
class Repro:
    """A fault, and all that it takes to see it.

    ``expected``, ``got``: the outputs that are right and those that came. ``combination``: where it was seen, in words
    ("chromium jspi"). ``facts``: pairs of a name and a text, such as the adapter. ``text``: what is wrong, in Markdown;
    names that come from a model are to be escaped with ``escaped``. ``settings``, ``threads``: of the session that
    fails. ``flags``: with which Chromium was started to get its adapter. An element is wrong on the page when it is off
    by more than ``absolute + relative * scale``.
    """

    title: str
    model: bytes
    inputs: tuple[Value, ...]
    expected: tuple[Value, ...]
    got: tuple[Value, ...]
    combination: str
    facts: tuple[tuple[str, str], ...]
    text: str
    settings: SessionSettings = session_settings.DEFAULT
    threads: int = 1
    relative: float = _RELATIVE
    absolute: float = _ABSOLUTE
    flags: tuple[str, ...] = ()


_FILES = frozenset(
    {"model.onnx", "inputs.npz", "expected.npz", "got.npz", "index.html", "repro.js", "repro.css", "report.md"}
)
_RUNTIME_SUFFIXES = (".wasm", ".mjs", ".js")


def check_place(folder: Path) -> None:
    """Raise UsageError, with nothing touched, where a repro must not be written.

    Only an empty folder, or an earlier repro, is replaced: one that has every file of a repro, and no other.
    """
    place = Path(os.path.realpath(folder))
    if not place.exists():
        return
    if not place.is_dir() or (any(place.iterdir()) and not is_repro(place)):
        raise UsageError(
            f"{folder} holds something else than a repro, so it is not replaced.", hint="Choose another place with -o."
        )
    files.check_not_inside(folder)


def is_repro(folder: Path) -> bool:
    """Whether ``folder`` has every file of a repro, and no other."""
    names = {path.name for path in folder.iterdir()}
    runtime = folder / "runtime"
    if names != _FILES | {runtime.name} or runtime.is_symlink() or not runtime.is_dir():
        return False
    return all(
        path.is_file() and (path.suffix in _RUNTIME_SUFFIXES or path.name == "LICENSE") for path in runtime.iterdir()
    ) and all((folder / name).is_file() for name in _FILES)


def write(folder: Path, repro: Repro, variant: Variant, dist: RuntimeDist) -> Path:
    """Write ``folder`` anew and return it.

    In it: ``model.onnx``, ``inputs.npz``, ``expected.npz``, ``got.npz``, ``index.html`` (with its script, its style and
    the files of ``variant`` in ``runtime/``), and ``report.md``. The same repro gives the same bytes.

    Raises UsageError when the place holds something else than a repro, cannot be written, or ``dist`` lacks the
    variant; LimitError for a full disk.
    """
    check_place(folder)
    dist.require([variant])

    def fill(temporary: Path) -> None:
        (temporary / "model.onnx").write_bytes(repro.model)
        for name, values in (("inputs", repro.inputs), ("expected", repro.expected), ("got", repro.got)):
            (temporary / f"{name}.npz").write_bytes(_npz(values))
        _write_page(temporary, repro, variant, dist)
        (temporary / "report.md").write_text(report(repro, variant, dist), encoding="utf-8")

    files.replace_folder(folder, fill)
    return folder


def escaped(text: str) -> str:
    """Escape text from a model for Markdown: no character of it means anything but itself, and it is one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def report(repro: Repro, variant: Variant, dist: RuntimeDist) -> str:
    """Return the text to file as a bug report, in Markdown."""
    facts = [
        ("Runtime", f"{dist.package} {dist.version}, {variant.wasm} ({variant.execution_provider})"),
        ("Seen in", repro.combination),
        *_settings_facts(repro),
        *repro.facts,
        ("System", f"{platform.system()} {platform.release()} {platform.machine()}"),
    ]
    lines = [f"# {escaped(repro.title)}", "", repro.text.strip(), "", "## To see it", ""]
    lines += [f"Serve this folder (`{_SERVE}`), and open <{_URL}>: the page runs `model.onnx` on"]
    lines += ["`inputs.npz` with the runtime beside it, and compares with `expected.npz`.", ""]
    if repro.flags:
        lines += [f"The adapter was software; Chromium gives it with `chromium {' '.join(repro.flags)} {_URL}`.", ""]
    lines += _nodes(repro.model)
    lines += ["| output | dtype and shape | expected | got |", "|---|---|---|---|"]
    given = {value.name: value for value in repro.got}
    lines += [_row(value, given.get(value.name)) for value in repro.expected]
    lines += ["", "## Where", ""]
    lines += [f"- {escaped(name)}: {escaped(text)}" for name, text in facts]
    lines += ["", f"Found and made small by edgekit {__version__}."]
    return "\n".join(lines) + "\n"


def _nodes(data: bytes) -> list[str]:
    """Say of each node of a small model: its operator, its attributes, and the shapes of what it reads and gives."""
    graph = onnx.load_from_string(data).graph
    if len(graph.node) > _MOST_NODES:
        return []
    shapes = {info.name: _declared(info) for info in (*graph.input, *graph.output)}
    shapes |= {each.name: f"{dtype_name(each.data_type)} {list(each.dims)} (weight)" for each in graph.initializer}
    lines = ["| node of `model.onnx` | attributes | reads | gives |", "|---|---|---|---|"]
    for node in graph.node:
        attributes = ", ".join(f"{each.name}={attribute_text(each)}" for each in node.attribute)
        cells = [node.op_type if not node.domain else f"{node.domain}.{node.op_type}", attributes or "none"]
        for names in (node.input, node.output):
            cells += [", ".join(f"{name} {shapes.get(name, '')}".strip() if name else "nothing" for name in names)]
        lines.append(f"| {' | '.join(escaped(cell) for cell in cells)} |")
    return [*lines, ""]


def _declared(info: onnx.ValueInfoProto) -> str:
    kind = info.type.tensor_type
    dtype = dtype_name(kind.elem_type) if kind.elem_type else "?"
    return f"{dtype} [{', '.join(str(size.dim_value or '?') for size in kind.shape.dim)}]"


def _settings_facts(repro: Repro) -> list[tuple[str, str]]:
    if repro.settings == session_settings.DEFAULT and repro.threads == 1:
        return []
    document = session_settings.to_json(repro.settings) | {"threads": repro.threads}
    return [("Session", ", ".join(f"{name} {value}" for name, value in document.items() if value not in (None, [])))]


def _row(expected: Value, given: Value | None) -> str:
    kind = f"{expected.dtype} {list(expected.shape or ())}"
    right, wrong = _first_elements(expected, given)
    return f"| {escaped(expected.name)} | {escaped(kind)} | {escaped(right)} | {escaped(wrong)} |"


def _first_elements(expected: Value, given: Value | None) -> tuple[str, str]:
    """Return some elements of both as text, from the first that differs on."""
    start = 0
    if given is not None and given.array is not None and expected.array is not None and given.shape == expected.shape:
        a, b = given.array.ravel(), expected.array.ravel()
        with np.errstate(all="ignore"):
            unlike = ~((a == b) | ((a != a) & (b != b)))
            if expected.dtype.startswith(("float", "bfloat")) and unlike.any():
                errors = np.where(unlike, np.abs(a.astype(np.float64) - b.astype(np.float64)), 0.0)
                errors[np.isnan(errors)] = np.inf  # beside NaN or infinity, rounding is no difference
                unlike &= errors >= 0.5 * errors.max()
        start = int(unlike.argmax()) if unlike.any() else 0
    return _elements(expected, start), "nothing" if given is None else _elements(given, start)


def _elements(value: Value, start: int) -> str:
    if value.array is None:
        return value.note or value.dtype
    flat = value.array.ravel()
    shown = ", ".join(str(element) for element in flat[start : start + _MOST_ELEMENTS])
    before = f"at {start}: " if start else ""
    return f"{before}{shown}{', …' if flat.size > start + _MOST_ELEMENTS else ''}"


def _npz(values: tuple[Value, ...]) -> bytes:
    """Return the arrays as .npz bytes; what numpy has no dtype for (bfloat16) is kept as float32, text as unicode."""
    arrays: dict[str, Any] = {}
    for value in values:
        if value.array is not None:
            kind = {"bfloat16": np.float32, "string": np.str_}.get(value.dtype)
            arrays[value.name] = value.array if kind is None else value.array.astype(kind)
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # its entries bear the date 1980: the same arrays give the same bytes
    return stream.getvalue()


def _write_page(folder: Path, repro: Repro, variant: Variant, dist: RuntimeDist) -> None:
    source = resources.root("templates") / "repro"
    (folder / "runtime").mkdir()
    for name in variant.files:
        shutil.copyfile(dist.folder / name, folder / "runtime" / name)
    (folder / "runtime" / "LICENSE").write_text(pins.load().license_text, encoding="utf-8")
    for name in ("repro.js", "repro.css"):
        shutil.copyfile(source / name, folder / name)
    config = {
        "title": repro.title,
        "package": dist.package,
        "version": dist.version,
        "execution_provider": variant.execution_provider,
        "api_url": f"runtime/{variant.api}",
        "mjs_url": f"runtime/{variant.mjs}",
        "wasm_url": f"runtime/{variant.wasm}",
        "threads": repro.threads,
        "settings": session_settings.to_json(repro.settings),
        "flags": list(repro.flags),
        "relative": repro.relative,
        "absolute": repro.absolute,
        "inputs": [_entry(value) for value in repro.inputs],
        "expected": [_entry(value) for value in repro.expected],
        "got": [_entry(value) for value in repro.got],
        "facts": [("Seen in", repro.combination), *repro.facts],
    }
    (folder / "index.html").write_text(render(source, "index.html.j2", {"config": config}), encoding="utf-8")


def _entry(value: Value) -> dict[str, Any]:
    """Return a value as JSON: its bits as base64, or its strings."""
    entry: dict[str, Any] = {"name": value.name, "dtype": value.dtype, "shape": list(value.shape or ())}
    if value.array is None:
        return entry | {"strings": []}
    if value.dtype == "string":
        return entry | {"strings": [str(text) for text in value.array.ravel()]}
    data = np.ascontiguousarray(value.array).tobytes()
    return entry | {"data": base64.b64encode(data).decode()}
