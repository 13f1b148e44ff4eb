"""Whether a bundle may be written at a place: only where nothing is, or where a bundle is and may be replaced."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from edgekit import files
from edgekit.bundle.open import foreign_files, open_bundle
from edgekit.errors import BundleError, UsageError
from edgekit.records import manifest as manifests

_ELSEWHERE = "Choose another folder with -o."


def check(destination: Path, *, force: bool, sources: Iterable[Path]) -> None:
    """Raise UsageError, with nothing touched, when a bundle may not be written at ``destination``.

    ``force`` allows to replace a bundle, never anything else, and never one that holds ``sources`` or other files.
    """
    check_outside_bundles(destination)
    if not destination.exists():
        return
    if not destination.is_dir():
        raise UsageError(f"{destination} exists and is not a folder.", hint=_ELSEWHERE)
    try:
        bundle = open_bundle(destination, verify=False)
    except BundleError as error:
        raise UsageError(
            f"{destination} exists and is not a bundle, so it is not replaced.",
            hint=f"{_ELSEWHERE} (--force replaces bundles only.)",
        ) from error
    if not force:
        killed = " A build of it was killed: what belongs beside it (an archive, a package, an app) may be missing."
        raise UsageError(
            f"{destination} holds a bundle already.{killed if files.was_killed(destination) else ''}",
            hint="--force replaces it; or choose another folder with -o.",
        )
    files.check_not_inside(destination)
    inside = [source for source in sources if files.is_inside(source, destination)]
    if inside:
        raise UsageError(f"{inside[0]} lies inside the bundle that would be replaced, {destination}.", hint=_ELSEWHERE)
    foreign = foreign_files(bundle)
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise UsageError(
            f"{destination} holds files that are not of its bundle and would be lost: {', '.join(foreign[:3])}{more}.",
            hint=f"Move them away. Or: {_ELSEWHERE[0].lower()}{_ELSEWHERE[1:]}",
        )


def check_outside_bundles(place: Path) -> None:
    """Raise UsageError when something written at ``place`` would be a file too many in a bundle."""
    _check_outside(Path(os.path.realpath(place)).parents, place)


def _check_outside(folders: Iterable[Path], place: Path) -> None:
    """Raise UsageError when one of ``folders`` is a bundle."""
    for folder in folders:
        if not (folder / manifests.NAME).is_file():
            continue
        with suppress(BundleError):
            open_bundle(folder, verify=False)
            where = "is a bundle" if folder == Path(os.path.realpath(place)) else f"lies inside the bundle {folder}"
            raise UsageError(
                f"{place} {where}, which would no longer match its manifest.",
                hint="Choose a place outside of it.",
            )


def check_takes_files(folder: Path) -> None:
    """Raise UsageError when files cannot be written into ``folder``, or would be files too many in a bundle."""
    real = Path(os.path.realpath(folder))
    _check_outside((real, *real.parents), folder)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder.", hint=_ELSEWHERE)


def check_beside(path: Path, *, force: bool, ours: Callable[[Path], bool], elsewhere: str = _ELSEWHERE) -> None:
    """Refuse a file beside the bundle that may not be written: one that is there, but for ``ours`` with ``force``.

    ``ours``: whether a file is what an earlier build wrote there. ``elsewhere``: how to have another place, a sentence.
    Raises UsageError.
    """
    if not path.is_symlink() and not path.exists():
        return
    if path.is_symlink() or not path.is_file() or not ours(path):
        raise UsageError(f"{path} is there, and no build of edgekit wrote it: it is kept.", hint=elsewhere)
    if not force:
        other = f"{elsewhere[0].lower()}{elsewhere[1:]}"
        raise UsageError(f"{path} is there already.", hint=f"--force replaces it; or {other}")
