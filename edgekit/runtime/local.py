"""A dist folder that the user names: the pinned build, or one of the user's own whose parts fit each other."""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from edgekit.errors import UsageError
from edgekit.files import sha256_file
from edgekit.runtime import glue, pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Pins, Variant
from edgekit.wasm import module, sections
from edgekit.wasm.binary import WasmError

_HINT = "All files must come from one build: copy the whole dist folder of one onnxruntime-web."
_BANNER = re.compile(r"ONNX Runtime Web v(\d+\.\d+\.\d+[\w.+-]*)")


def open_folder(folder: Path, wanted: Collection[str] | None = None) -> RuntimeDist:
    """Return the runtime in ``folder`` (a ``dist``, or a package that holds one), with every whole variant in it.

    ``wanted``: only these variants are looked at; others of another time may be there.

    Files known by hash to be of the pinned build are good as they are. Raises UsageError when there is no whole
    variant, and when the JavaScript and the wasm are of different builds: some pinned and some not; versions that
    disagree; a wasm that lacks what its glue reads, or wants what its glue does not give.
    """
    folder = _dist(folder)
    pinned = pins.load()
    asked = [variant for variant in pinned.variants if wanted is None or variant.id in wanted]
    whole = [variant for variant in asked if all((folder / name).is_file() for name in variant.files)]
    if not whole:
        raise UsageError(
            f"{folder} holds no whole variant of {pinned.package}.",
            hint="One needs " + "; or ".join(", ".join(variant.files) for variant in asked) + ".",
        )
    names = sorted({name for variant in whole for name in variant.files})
    try:
        hashes = {name: sha256_file(folder / name) for name in names}
        version = pinned.version if _is_pinned(folder, hashes, pinned) else _own_version(folder, whole)
    except OSError as error:
        raise UsageError(f"The runtime in {folder} cannot be read: {error.strerror}: {error.filename}.") from error
    is_pinned = hashes[names[0]] == pinned.files[names[0]].sha256
    return RuntimeDist(folder, pinned.package, version, hashes, is_pinned)


def _dist(folder: Path) -> Path:
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise UsageError(
            f"The runtime folder {folder} {what}.", hint="--runtime takes the dist folder of onnxruntime-web."
        )
    inner = folder / "dist"
    return (inner if inner.is_dir() else folder).absolute()


def _is_pinned(folder: Path, hashes: Mapping[str, str], pinned: Pins) -> bool:
    known = [name for name, sha256 in hashes.items() if sha256 == pinned.files[name].sha256]
    other = [name for name in hashes if name not in known]
    if known and other:
        raise UsageError(
            f"The runtime in {folder} mixes builds: "
            f"{known[0]} is of {pinned.package} {pinned.version}, {other[0]} is not.",
            hint=_HINT,
        )
    return not other


def _own_version(folder: Path, variants: list[Variant]) -> str:
    """Return the one version that every part of the user's own build states."""
    stated: dict[str, str] = {}
    package = next((p for p in (folder / "package.json", folder.parent / "package.json") if p.is_file()), None)
    if package is not None:
        stated |= _package_version(package)
    for variant in variants:
        banner = _BANNER.search((folder / variant.api).read_text(encoding="utf-8", errors="replace"))
        if banner is None:
            raise UsageError(
                f"{folder / variant.api} does not say which version of ONNX Runtime Web it is.", hint=_HINT
            )
        stated[variant.api] = banner[1]
    first_name, version = next(iter(stated.items()))
    for name, other in stated.items():
        if other != version:
            raise UsageError(
                f"The runtime in {folder} mixes builds: {first_name} is of version {version}, {name} of {other}.",
                hint=_HINT,
            )
    for variant in variants:
        _check_wasm(folder, variant, version)
    return version


def _package_version(path: Path) -> dict[str, str]:
    """Return the version in a ``package.json``, where it is one of onnxruntime-web at all."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or document.get("name") != pins.load().package:
        return {}
    return {path.name: str(document.get("version"))}


def _check_wasm(folder: Path, variant: Variant, version: str) -> None:
    data = (folder / variant.wasm).read_bytes()
    try:
        parsed = module.parse(data)
        exports = {entry.name for entry in sections.exports(parsed)}
        imports = sections.imports(parsed)
    except WasmError as error:
        raise UsageError(f"{folder / variant.wasm} is not a WebAssembly module: {error}.", hint=_HINT) from error
    # A development build is 1.31.0-dev.something to npm, and 1.31.0 to itself.
    if version.split("-")[0].encode() + b"\0" not in data:
        _mixed(folder, variant, f"the wasm is not of version {version}")
    expected = glue.parse((folder / variant.mjs).read_text(encoding="utf-8", errors="replace"))
    if expected is None:
        raise UsageError(
            f"edgekit cannot read how {folder / variant.mjs} (of {version}) and its wasm are linked.",
            hint=f"It reads release builds from {glue.READS} on. {_HINT}",
        )
    for name, meaning in expected.reads.items():
        if name not in exports:
            _mixed(folder, variant, f"the glue reads the export '{name}' ({meaning}), which the wasm does not have")
    for entry in imports:
        if entry.name not in expected.gives.get(entry.module, ()):
            _mixed(folder, variant, f"the wasm wants '{entry.module}.{entry.name}', which the glue does not give")


def _mixed(folder: Path, variant: Variant, why: str) -> None:
    raise UsageError(
        f"The runtime in {folder} mixes builds: {variant.mjs} and {variant.wasm} do not fit: {why}.", hint=_HINT
    )
