"""For maintainers: write the hashes in runtime.json from the onnxruntime-web that the lock file names.

    npm ci && python pin_runtime.py

Raise the version in package.json and run ``npm install`` first; then run the whole test suite.
"""

import json
import sys
from pathlib import Path

from edgekit.files import json_bytes, sha256_file, write_atomic

WEB = Path(__file__).resolve().parent


def pinned(document: dict[str, object], package: Path) -> dict[str, object]:
    """Return ``document`` with the version and the file hashes of the unpacked ``package``."""
    names = sorted({variant[part] for variant in document["variants"] for part in ("api", "mjs", "wasm")})
    files = {name: package / "dist" / name for name in names}
    return {
        **document,
        "version": json.loads((package / "package.json").read_text(encoding="utf-8"))["version"],
        "files": {name: {"sha256": sha256_file(path), "bytes": path.stat().st_size} for name, path in files.items()},
    }


if __name__ == "__main__":
    target = WEB / "runtime.json"
    before = json.loads(target.read_text(encoding="utf-8"))
    after = pinned(before, WEB / "node_modules" / before["package"])
    write_atomic(target, json_bytes(after))
    sys.stdout.write(f"{target}: {after['package']} {after['version']}, {len(after['files'])} files\n")
