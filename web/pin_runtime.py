"""For maintainers: write the hashes in runtime.json from the onnxruntime-web and the Binaryen that the lock file names.

    npm ci && python pin_runtime.py

Raise the version in package.json and run ``npm install`` first; then run the whole test suite.
"""

import json
import sys
from pathlib import Path

from edgekit.files import json_bytes, sha256_file, write_atomic

WEB = Path(__file__).resolve().parent


def pinned(document: dict[str, object], modules: Path) -> dict[str, object]:
    """Return ``document`` with the versions and the file hashes of the packages unpacked in ``modules``."""
    package, optimizer = modules / document["package"], document["optimizer"]
    names = sorted({variant[part] for variant in document["variants"] for part in ("api", "mjs", "wasm")})
    program = modules / optimizer["package"] / optimizer["path"]
    return {
        **document,
        "version": _version(package),
        "files": {name: _pin(package / "dist" / name) for name in names},
        "optimizer": {**optimizer, "version": _version(program.parents[1]), **_pin(program)},
    }


def _version(package: Path) -> str:
    return json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]


def _pin(path: Path) -> dict[str, object]:
    return {"sha256": sha256_file(path), "bytes": path.stat().st_size}


if __name__ == "__main__":
    target = WEB / "runtime.json"
    before = json.loads(target.read_text(encoding="utf-8"))
    after = pinned(before, WEB / "node_modules")
    write_atomic(target, json_bytes(after))
    sys.stdout.write(f"{target}: {after['package']} {after['version']}, {len(after['files'])} files\n")
