"""Choose the runtime's folder: the pinned build in the cache, or a dist folder that the user names."""

from collections.abc import Collection
from pathlib import Path

from edgekit.progress import Progress, silent
from edgekit.runtime import fetch, local
from edgekit.runtime.dist import RuntimeDist


def locate(
    runtime_dir: Path | None, wanted: Collection[str] | None = None, *, progress: Progress = silent
) -> RuntimeDist:
    """Return the runtime, verified: from ``runtime_dir`` where the user names one, else pinned, fetched if need be.

    ``wanted``: the variants to look at in the user's folder; default: all that it holds.

    Raises UsageError for a folder without a whole variant or with parts of different builds, MissingToolError when the
    pinned runtime is not cached and cannot be fetched.
    """
    return fetch.fetch(progress=progress) if runtime_dir is None else local.open_folder(runtime_dir, wanted)
