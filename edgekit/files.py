"""Atomic writes, hashes, and JSON bytes that are the same every time."""

import ctypes
import errno
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgekit.errors import LimitError, UsageError

_CHUNK_BYTES = 1 << 20
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_BAD_PLACE = {errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}


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
    """Turn the operating system's refusals to write ``path`` into errors with a hint."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise LimitError(
                f"The disk is full: cannot write {path}.", hint="Free some space, then run the command again."
            ) from error
        if isinstance(error, PermissionError):
            raise UsageError(f"No permission to write {path}.", hint="Choose another output with -o.") from error
        if error.errno in _BAD_PLACE:
            raise UsageError(
                f"Cannot write {path}: {error.strerror}.", hint="Choose another output with -o."
            ) from error
        raise


def write_atomic(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one, never a part.

    Raises LimitError when the disk is full, UsageError when the place cannot be written.
    """
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


def temporary_sibling(destination: Path) -> Path:
    """Name a hidden folder beside ``destination``, on the same file system, for work in progress."""
    return destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.tmp")


def remove_stale_siblings(destination: Path) -> None:
    """Remove the work in progress that a killed run left beside ``destination``.

    A folder is stale when the process named in its ``.pid`` file no longer lives; work of a live process stays.
    """
    for folder in destination.parent.glob(f".{glob_escape(destination.name)}.????????.tmp"):
        if folder.is_dir() and not _is_alive(folder / ".pid"):
            shutil.rmtree(folder, ignore_errors=True)


def glob_escape(name: str) -> str:
    """Escape the characters that have a meaning in a glob pattern."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def _is_alive(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text()), 0)
    except (OSError, ValueError) as error:
        return isinstance(error, PermissionError)
    return True


def replace_folder(destination: Path, fill: Callable[[Path], None]) -> None:
    """Make ``destination`` anew: ``fill`` writes a temporary folder beside it, which then takes its place.

    When ``fill`` raises, or the process dies, the old folder is intact; what a killed run left is removed by the next.
    Raises LimitError when the disk is full, UsageError when the place cannot be written.
    """
    with disk_errors(destination):
        destination = destination.resolve()  # a link keeps pointing at the folder that is made anew
        destination.parent.mkdir(parents=True, exist_ok=True)
        _recover(destination)
        if destination.exists() and not destination.is_dir():
            raise UsageError(f"{destination} is a file, not a folder.", hint="Choose another output with -o.")
        remove_stale_siblings(destination)
        temporary = temporary_sibling(destination)
        temporary.mkdir()
        try:
            pid_file = temporary / ".pid"
            pid_file.write_text(str(os.getpid()))
            fill(temporary)
            pid_file.unlink()
            _swap(temporary, destination)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _swap(new: Path, destination: Path) -> None:
    """Put ``new`` in the place of ``destination``, in one step where the system can, else in two renames."""
    if not destination.exists():
        new.rename(destination)
        return
    if _exchange(new, destination):
        return  # the old folder now has the temporary name, and is removed under it
    old = destination.with_name(f".{destination.name}.old")
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


def _recover(destination: Path) -> None:
    """Put the old folder back where a run was killed between the two renames of ``_swap``."""
    old = destination.with_name(f".{destination.name}.old")
    if old.is_dir() and not destination.exists():
        old.rename(destination)
