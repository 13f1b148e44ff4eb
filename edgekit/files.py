"""Atomic writes, hashes, and JSON bytes that are the same every time."""

import ctypes
import errno
import hashlib
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgekit.errors import LimitError, UsageError

if sys.platform != "win32":
    import fcntl

_CHUNK_BYTES = 1 << 20
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
# Lies in a temporary folder while it is filled.
LOCK = ".lock"
_LOCK_SECONDS = 30.0
_LOCK_POLL_SECONDS = 0.02
# What a tool leaves of a full disk: some remove what they began before they say that they failed.
_FULL_BYTES = 1 << 20

# Given a folder that is whole and not in its place yet, makes of it the files that belong beside it: by their places,
# where each lies until then.
Beside = Callable[[Path], Mapping[Path, Path]]


def sha256_bytes(data: bytes) -> str:
    """Return the lower-case hexadecimal sha256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the lower-case hexadecimal sha256 of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def json_bytes(value: Any) -> bytes:
    """Encode ``value`` as stable, readable UTF-8 JSON. NaN and infinities are errors: they are not JSON."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write ``path`` into errors with a hint.

    Raises LimitError for a full disk or a file over the file system's limit, UsageError for a place that cannot be
    written: no permission, a read-only disk, a parent that is a file, a name that is too long.
    """
    try:
        yield
    except OSError as error:
        raise _explained(error, path) from error


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """Turn a full disk, on the way to ``path``, into a LimitError; other errors of the system pass as they are."""
    try:
        yield
    except OSError as error:
        if is_full_disk(error):
            raise no_space(path) from error
        raise


def is_full_disk(error: OSError) -> bool:
    """Whether an error says that a disk, or a user's share of it, is full; also one that tells of several files."""
    return error.errno in _NO_SPACE or (isinstance(error, shutil.Error) and _says_full(str(error)))


def check_space(path: Path, said: str, folder: Path) -> None:
    """Raise LimitError where a tool that wrote into ``folder``, for ``path``, failed because the disk is full.

    ``said``: its words. Some say nothing of it, so the space that is left counts as well.
    """
    if _says_full(said) or shutil.disk_usage(folder).free < _FULL_BYTES:
        raise no_space(path)


def _says_full(said: str) -> bool:
    return any(words in said for words in ("No space left on device", "Disk quota exceeded"))


def no_space(path: Path | None) -> LimitError:
    """Return the error of a disk that is full; ``path``: what could not be written, None where that is not known."""
    what = "not all could be written" if path is None else f"cannot write {path}"
    return LimitError(f"The disk is full: {what}.", hint="Free some space, then run the command again.")


def _explained(error: OSError, path: Path) -> Exception:
    if is_full_disk(error):
        return no_space(path)
    if error.errno == errno.EFBIG:
        return LimitError(
            f"The file system, or the limit of this process, does not allow files that large: cannot write {path}.",
            hint="Choose another place for the output, or raise the limit (ulimit -f).",
        )
    reasons: dict[int | None, str] = {
        errno.EACCES: f"No permission to write {path}.",
        errno.EPERM: f"No permission to write {path}.",
        errno.EROFS: f"Cannot write {path}: the disk is read-only.",
        errno.ENOTDIR: f"Cannot write {path}: a part of that path is a file, not a folder.",
        errno.EEXIST: f"Cannot write {path}: a part of that path is a file, not a folder.",
        errno.EISDIR: f"Cannot write {path}: there is a folder of that name.",
        errno.ENAMETOOLONG: f"Cannot write {path}: the name is too long.",
        errno.ELOOP: f"Cannot write {path}: its links go round in a circle.",
        errno.ENOENT: f"Cannot write {path}: its folder takes no files.",  # it was made, or was there, just before
        errno.EINVAL: f"Cannot write {path}: the file system does not take that name.",
        errno.EILSEQ: f"Cannot write {path}: the file system does not take that name.",
        errno.EBUSY: f"Cannot write {path}: it is in use by the system.",
        errno.EIO: f"Cannot write {path}: the disk reports an error.",
    }
    if error.errno in reasons:
        return UsageError(reasons[error.errno], hint="Choose another output.")
    return error


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path`` lies in ``folder``, or is it, once links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_not_inside(folder: Path) -> None:
    """Raise UsageError where ``folder``, which is to be replaced, holds the current one."""
    if is_inside(Path.cwd(), folder):
        raise UsageError(
            f"{folder} holds the folder that you are in, which would be gone from under you.",
            hint="Run the command from another folder.",
        )


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one, never a part.

    Raises LimitError when the disk is full, UsageError when the place cannot be written.
    """
    if not path.name:  # "/" and "."
        raise UsageError(f"Cannot write {path}: it is a folder.", hint="Choose another output.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def keep_sources(written: Path, sources: Iterable[Path], what: str = "the model that is read") -> None:
    """Raise UsageError when writing ``written`` would replace one of ``sources``, also through a link."""
    if written.exists() and any(source.exists() and written.samefile(source) for source in sources):
        raise UsageError(f"{written} would replace {what}.", hint="Choose another output.")


def glob_escape(name: str) -> str:
    """Escape the characters that have a meaning in a glob pattern."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def replace_folder(destination: Path, fill: Callable[[Path], None], beside: Beside | None = None) -> None:
    """Make ``destination`` anew: ``fill`` writes a temporary folder beside it, which then takes its place.

    When ``fill`` raises, or the process dies, the old folder is intact; what a killed run left is removed by the next.
    ``beside``: makes the files that belong to the folder before anything is replaced. The old ones go before the folder
    is replaced, and the new ones come after it: whoever is killed between leaves none, which is seen, and never those
    of another folder, which is not. Two processes at once may do this for the same destination: each puts a whole
    folder in place, the last one stays.
    Raises LimitError when the disk is full, UsageError when the place cannot be written.
    """
    destination = Path(os.path.realpath(destination))  # a link stays a link, and what it leads to is replaced
    with disk_errors(destination), temporary_folder(destination) as temporary:
        fill(temporary)
        files = beside(temporary) if beside is not None else {}
        with _locked_folder(destination.parent):
            (temporary / LOCK).unlink()
            for place in files:
                place.unlink(missing_ok=True)
            _swap(temporary, destination)
            for place, made in files.items():
                _move(made, place)


def _move(made: Path, place: Path) -> None:
    """Put a file in its place, whole or not at all, also on another disk (where the folder's name is a link)."""
    try:
        made.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with temporary_folder(place) as folder:
            shutil.copyfile(made, folder / place.name)
            (folder / place.name).replace(place)


@contextmanager
def temporary_folder(destination: Path, *, alone: bool = False) -> Iterator[Path]:
    """Make a hidden folder beside ``destination``, on the same file system, and hold its lock until it is removed.

    The lock, which the system drops when a process ends however it ends, tells work in progress from what a killed run
    left. A process's number would not: it is used again by others, in containers within minutes.

    ``alone``: raise UsageError where another holds such a folder for the same destination: of what it writes beside
    that and what is written here, the last of each would stay, and they would not belong together.

    Raises LimitError when the disk is full, UsageError when the place cannot be written.
    """
    temporary = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.tmp")
    with disk_errors(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _locked_folder(destination.parent):
            _recover(destination)
            others = _remove_stale(destination)
            if alone:
                _refuse_others(destination, others)
            temporary.mkdir()
            lock = (temporary / LOCK).open("wb")
            _try_lock(lock.fileno())
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        lock.close()


def check_alone(destination: Path) -> None:
    """Raise UsageError, before minutes of work, where another command writes ``destination`` at this moment."""
    found = _temporary_folders(Path(os.path.realpath(destination)))
    _refuse_others(destination, [folder for folder, stale in found if not stale])


def _refuse_others(destination: Path, others: Sequence[Path]) -> None:
    if others:
        raise UsageError(
            f"Another command writes {destination} at this moment.",
            hint=f"Wait until it has ended, or choose another output. (If there is none, remove {others[0]}.)",
        )


def was_killed(destination: Path) -> bool:
    """Whether a run that wrote ``destination`` was killed, and none has cleaned up after it since.

    What belongs beside the folder is then missing, if it was killed between the two.
    """
    try:
        found = [stale for _, stale in _temporary_folders(Path(os.path.realpath(destination)))]
        return bool(found) and all(found)  # while another run is at work, what it replaced may look the same
    except OSError:
        return False


def _remove_stale(destination: Path) -> list[Path]:
    """Remove what killed runs left; return the folders of those that still run."""
    others = []
    for folder, stale in _temporary_folders(destination):
        if stale:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            others.append(folder)
    return others


def _temporary_folders(destination: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the temporary folders for ``destination``, and whether each was left by a run that was killed."""
    for folder in destination.parent.glob(f".{glob_escape(destination.name)}.????????.tmp"):
        if folder.is_symlink() or not folder.is_dir():
            continue
        try:
            with (folder / LOCK).open("rb") as lock:
                stale = _try_lock(lock.fileno())
        except FileNotFoundError:
            stale = True  # killed after the swap: this is the old folder
        yield folder, stale


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time into the block (where the file system knows locks on folders, else all).

    Raises UsageError where another holds the lock for half a minute: edgekit does for the moment of a few renames, but
    whoever may read a folder may lock it for as long as they like.
    """
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _wait_for_lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, folder: Path) -> None:
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise UsageError(
                    f"Another program holds the folder {folder} locked, and did not let go within {_LOCK_SECONDS:g} s.",
                    hint="'lslocks' and 'fuser' say which. Wait until it has ended, or choose another output.",
                ) from None
            time.sleep(_LOCK_POLL_SECONDS)
        except OSError:
            return  # the file system knows no such locks


def _try_lock(descriptor: int) -> bool:
    """Take the lock of an open file, which lasts until it is closed; False when another process holds it."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _swap(new: Path, destination: Path) -> None:
    """Put ``new`` in the place of ``destination``, in one step where the system can, else in two renames."""
    if not destination.exists():
        new.rename(destination)
        return
    if _exchange(new, destination):
        return  # the old folder now has the temporary name, and is removed under it
    old = _old_name(destination)
    shutil.rmtree(old, ignore_errors=True)
    destination.rename(old)
    try:
        new.rename(destination)
    except OSError:
        old.rename(destination)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Exchange two names atomically (Linux renameat2 with RENAME_EXCHANGE); False where that does not exist."""
    if sys.platform != "linux":
        return False
    at_cwd, exchange = -100, 2
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(renameat2(at_cwd, os.fsencode(a), at_cwd, os.fsencode(b), exchange) == 0)


def _old_name(destination: Path) -> Path:
    return destination.with_name(f".{destination.name}.old")


def _recover(destination: Path) -> None:
    """Put the old folder back where a run was killed between the two renames of ``_swap``."""
    old = _old_name(destination)
    if old.is_dir() and not destination.exists():
        old.rename(destination)
