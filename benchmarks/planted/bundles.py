"""Change files of a bundle and make its manifest right again, as a build with the fault in it would have written it."""

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from edgekit.files import json_bytes, sha256_bytes
from edgekit.records import manifest as manifests
from edgekit.records.manifest import FileEntry
from edgekit.runtime.dist import RuntimeDist
from planted.faults import EngineFault

_COPIES = (".br", ".gz")
_CREATE = "static async create("


def changed(bundle: Path, destination: Path, files: Mapping[str, bytes], *, honest: bool = True) -> Path:
    """Copy a bundle with other contents of some files; ``honest``: its manifest knows of them."""
    shutil.copytree(bundle, destination, copy_function=_link)
    manifest = manifests.from_json(json.loads((bundle / manifests.NAME).read_bytes()))
    entries = {entry.path: entry for entry in manifest.files}
    for path, data in files.items():
        (destination / path).unlink()
        (destination / path).write_bytes(data)
        if honest:
            entries[path] = FileEntry(path, sha256_bytes(data), len(data))
            for suffix in _COPIES:
                if entries.pop(path + suffix, None) is not None:
                    (destination / (path + suffix)).unlink()
    if honest:
        model = entries[manifest.model.path]
        manifest = dataclasses.replace(
            manifest,
            files=tuple(entries[path] for path in sorted(entries)),
            model=dataclasses.replace(manifest.model, sha256=model.sha256),
        )
        (destination / manifests.NAME).unlink()
        (destination / manifests.NAME).write_bytes(json_bytes(manifests.to_json(manifest)))
    return destination


def _link(source: str, destination: str) -> None:
    Path(destination).hardlink_to(source)


def replaced(bundle: Path, path: str, old: str, new: str) -> bytes:
    """Return a script of the bundle with ``old`` made ``new``. Raises ValueError when it does not stand there once."""
    text = (bundle / path).read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{path} holds {text.count(old)} of: {old}")
    return text.replace(old, new).encode()


def spoilt_api(script: str, fault: EngineFault) -> str:
    """Return onnxruntime-web's script with the fault in it: bytes of a model are others before it sees them."""
    start = script.index(_CREATE) + len(_CREATE)
    argument = script[start : script.index(",", start)]
    body = script.index("{", start) + 1
    old, new = (list(data) for data in (fault.bytes_, fault.others))
    code = (
        f"if({argument} instanceof Uint8Array){{{argument}={argument}.slice();const o={old},n={new};"
        f"for(let i={argument}.indexOf(o[0]);i>=0&&i+o.length<={argument}.length;i={argument}.indexOf(o[0],i+1))"
        f"if(o.every((b,k)=>{argument}[i+k]===b)){argument}.set(n,i)}}"
    )
    return script[:body] + code + script[body:]


def spoilt_dist(dist: RuntimeDist, api: str, fault: EngineFault, folder: Path) -> RuntimeDist:
    """Return a runtime folder whose script ``api`` has the fault in it; the other files are links."""
    folder.mkdir()
    for name in dist.files:
        if name == api:
            text = (dist.folder / name).read_text(encoding="utf-8")
            (folder / name).write_text(spoilt_api(text, fault), encoding="utf-8")
        else:
            (folder / name).symlink_to(dist.folder / name)
    files = {**dist.files, api: sha256_bytes((folder / api).read_bytes())}
    return dataclasses.replace(dist, folder=folder, files=files, pinned=False)
