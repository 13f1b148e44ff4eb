"""What the server may serve: the files of a bundle's manifest, each with its type, its tag and its compressed copies.

A request is a look-up in a table made from the manifest. No path is ever joined with what a client sent, so there is
nothing to traverse, and nothing that the manifest does not list can leave.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from edgekit.bundle.open import Bundle
from edgekit.records import manifest as manifests

# The characters of a file's sha256 that stand behind "?v=" in the page's addresses.
VERSION_LENGTH = 16

# Written here, not taken from the system's tables: those lack .mjs and .wasm on some machines, and some Windows
# registries call .js text/plain, which the browser then refuses to run.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".map": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}
_ENCODINGS = {".br": "br", ".gz": "gzip"}


@dataclass(frozen=True)
class Copy:
    """One stored form of a file: the file itself, or a compressed copy. ``sha256`` is of the bytes in ``path``."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Asset:
    """A file that is served, and its compressed copies by content coding ("br", "gzip")."""

    content_type: str
    identity: Copy
    encoded: Mapping[str, Copy] = field(default_factory=dict)

    def is_version(self, version: str | None) -> bool:
        """Return whether ``version`` names this very content, so that an answer may be kept for ever."""
        return version is not None and version == self.identity.sha256[:VERSION_LENGTH]


def content_type(path: str) -> str:
    """Return the media type of a file by its ending; what is not known is plain bytes, which no browser runs."""
    return _TYPES.get(PurePosixPath(path).suffix.lower(), "application/octet-stream")


def of_bundle(bundle: Bundle) -> dict[str, Asset]:
    """Return every file of a bundle that is served, keyed by its path in the bundle (with "/"), and its manifest."""
    files = [(entry.path, entry.sha256) for entry in bundle.manifest.files]
    return of_files(bundle.folder, [*files, (manifests.NAME, bundle.manifest_sha256)])


def of_files(folder: Path, files: Iterable[tuple[str, str]]) -> dict[str, Asset]:
    """Return an asset for each (path, sha256). A file beside its compressed copy becomes one asset with that copy."""
    hashes = dict(files)
    copies: dict[str, dict[str, Copy]] = {path: {} for path in hashes}
    for path, sha256 in hashes.items():
        base, ending = path[:-3], path[-3:]
        if ending in _ENCODINGS and base in hashes:
            copies[base][_ENCODINGS[ending]] = Copy(folder / path, sha256)
            del copies[path]  # a copy has no address of its own
    return {
        path: Asset(content_type(path), Copy(folder / path, hashes[path]), encoded) for path, encoded in copies.items()
    }


def choose_encoding(accept_encoding: str, available: Iterable[str]) -> str | None:
    """Choose a content coding (RFC 9110, 12.5.3): the one with the highest weight, brotli before gzip where equal.

    Returns None for the file itself: nothing else is acceptable, or the client likes it better. A client that forbids
    even that (``identity;q=0`` and no coding that exists) gets the file itself: an answer is better than none.
    """
    weights = _weights(accept_encoding)
    others = weights.get("*", 0.0)
    offered = [(weights.get(coding, others), coding == "br", coding) for coding in available]
    best = max((offer for offer in offered if offer[0] > 0), default=None)
    if best is None or weights.get("identity", 0.0) > best[0]:
        return None
    return best[2]


def _weights(accept_encoding: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in accept_encoding.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if not name:
            continue
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                weight = _weight(value.strip())
        weights["gzip" if name == "x-gzip" else name] = weight
    return weights


def _weight(text: str) -> float:
    """Read a weight; what is not a number from 0 to 1 counts as 0 (not acceptable)."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 0 <= value <= 1 else 0.0
