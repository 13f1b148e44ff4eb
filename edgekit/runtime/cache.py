"""The user's cache folder, and the pinned runtime in it. Nothing in it is trusted before its hash is checked."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs

from edgekit.errors import UsageError
from edgekit.files import sha256_file
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist

State = Literal["verified", "changed", "missing"]


@dataclass(frozen=True)
class CachedFile:
    """A file of the pinned runtime: the bytes and sha256 that it must have, and what the cache holds of it."""

    name: str
    bytes: int
    sha256: str
    state: State


@dataclass(frozen=True)
class CachedRuntime:
    """What the cache holds of the pinned runtime."""

    package: str
    version: str
    folder: Path
    files: tuple[CachedFile, ...]

    @property
    def verified(self) -> bool:
        return all(file.state == "verified" for file in self.files)

    @property
    def empty(self) -> bool:
        return all(file.state == "missing" for file in self.files)

    def dist(self) -> RuntimeDist:
        """Return the cached files as a dist; only for a cache that is ``verified``."""
        return RuntimeDist(
            self.folder, self.package, self.version, {file.name: file.sha256 for file in self.files}, True
        )


def folder() -> Path:
    """Return edgekit's cache folder: ``EDGEKIT_CACHE``, else the one that the system has for each user."""
    named = os.environ.get("EDGEKIT_CACHE")
    return Path(named).absolute() if named else platformdirs.user_cache_path("edgekit")


@contextmanager
def writing() -> Iterator[None]:
    """Say which setting chooses the place when the cache folder cannot be written."""
    try:
        yield
    except UsageError as error:
        raise UsageError(
            error.message, hint="Name a folder that can be written in the variable EDGEKIT_CACHE."
        ) from error


def look() -> CachedRuntime:
    """Compare the cache with the pins: every file is hashed (0.1 s for all)."""
    pinned = pins.load()
    place = folder() / "runtime" / f"{pinned.package}-{pinned.version}"
    files = tuple(
        CachedFile(name, file.bytes, file.sha256, _state(place / name, file))
        for name, file in sorted(pinned.files.items())
    )
    return CachedRuntime(pinned.package, pinned.version, place, files)


def _state(path: Path, pinned: pins.PinnedFile) -> State:
    try:
        same = path.stat().st_size == pinned.bytes and sha256_file(path) == pinned.sha256
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:
        return "changed"  # there, and not readable
    return "verified" if same else "changed"
