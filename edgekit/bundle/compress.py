"""Precompressed copies of a bundle's large files: ``.br`` (brotli) and ``.gz`` (gzip), the same bytes every time.

Brotli at its highest quality gets through half a megabyte a second, so the copies are kept in the user's cache, under
the hash of what was compressed and the hash of the copy itself, by which a copy is verified before it is used.
"""

import os
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import brotli

from edgekit.errors import EdgekitError
from edgekit.files import sha256_bytes, sha256_file, write_atomic
from edgekit.progress import Progress, silent
from edgekit.runtime import cache

SUFFIXES = (".br", ".gz")
LEAST_BYTES = 16 << 10
# A copy has to save this part of the file, or a server and a cache carry it for nothing.
_LEAST_SAVING = 0.05
# Files up to this size get quality 11 of brotli (0.45 MB/s a core), larger ones 9 (6 MB/s, a seventh larger).
_PATIENT_BYTES = 32 << 20
_CHUNK_BYTES = 256 << 10
_SAMPLE_BYTES = 1 << 20
_CACHE_BYTES = 1 << 30


@dataclass(frozen=True)
class _Task:
    """One copy to make: the compressor is named with all that its bytes depend on."""

    source: Path
    suffix: str
    settings: str
    compress: Callable[[bytes, Callable[[int], None]], bytes]


class _StoppedError(Exception):
    """The work is not wanted any more."""


def write_copies(paths: Sequence[Path], *, progress: Progress = silent) -> tuple[Path, ...]:
    """Write ``.br`` and ``.gz`` beside each file that is large enough and becomes smaller; return the new files.

    A copy whose name is taken is not written. Raises what writing raises.
    """
    written: list[Path] = []

    def keep(task: _Task, copy: bytes) -> None:
        place = task.source.with_name(task.source.name + task.suffix)
        with suppress(FileExistsError), place.open("xb") as stream:
            stream.write(copy)
            written.append(place)

    _run(paths, keep, progress)
    return tuple(sorted(written))


def prepare(paths: Sequence[Path], *, progress: Progress = silent) -> None:
    """Fill the cache with the copies of ``paths``, so that a later ``write_copies`` does not have to wait."""
    _run(paths, lambda task, copy: None, progress)


def known_brotli_bytes(path: Path) -> int | None:
    """Return the bytes of the file's ``.br`` copy where the cache holds one, without making it."""
    brotli_task = _tasks(path)[0]
    copy = _cached(cache.folder() / "compressed" / brotli_task.settings, sha256_file(path))
    return None if copy is None else len(copy)


def _run(paths: Iterable[Path], keep: Callable[[_Task, bytes], None], progress: Progress) -> None:
    tasks = [task for path in paths if _worth_trying(path) for task in _tasks(path)]
    total = sum(task.source.stat().st_size for task in tasks)
    meter = _Meter()
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        # The longest first, so that no core is idle at the end.
        tasks.sort(key=lambda task: (task.suffix, -task.source.stat().st_size, task.source))
        futures: list[Future[None]] = [pool.submit(_one, task, keep, meter) for task in tasks]
        try:
            _watch(futures, meter, total, progress)
        except BaseException:
            meter.stopped.set()
            for future in futures:
                future.cancel()
            raise
    _bound_cache()


def _watch(futures: list[Future[None]], meter: "_Meter", total: int, progress: Progress) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.25, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        progress("Compressing", meter.count / total)


class _Meter:
    """Counts the bytes that all threads have read, and tells them to stop."""

    def __init__(self) -> None:
        self.count = 0
        self.stopped = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, count: int) -> None:
        if self.stopped.is_set():
            raise _StoppedError
        with self._lock:
            self.count += count


def _worth_trying(path: Path) -> bool:
    """Whether a fast look at up to three places of the file says that it may become smaller."""
    size = path.stat().st_size
    if size < LEAST_BYTES:
        return False
    sample = bytearray()
    with path.open("rb") as stream:
        for place in (0, size // 2, size - _SAMPLE_BYTES):
            stream.seek(max(place, 0))
            sample += stream.read(_SAMPLE_BYTES)
    return len(zlib.compress(sample, 1)) <= len(sample) * (1 - _LEAST_SAVING / 2)


def _tasks(path: Path) -> tuple[_Task, ...]:
    quality = 11 if path.stat().st_size <= _PATIENT_BYTES else 9
    return (
        _Task(path, ".br", f"br-{quality}-{brotli.__version__}", lambda data, meter: _brotli(data, quality, meter)),
        _Task(path, ".gz", f"gz-9-{zlib.ZLIB_RUNTIME_VERSION}", _gzip),
    )


def _one(task: _Task, keep: Callable[[_Task, bytes], None], meter: _Meter) -> None:
    data = task.source.read_bytes()
    folder = cache.folder() / "compressed" / task.settings
    digest = sha256_bytes(data)
    copy = _cached(folder, digest)
    if copy is None:
        copy = task.compress(data, meter)
        # A cache that cannot be written only costs time.
        with suppress(EdgekitError, OSError):
            write_atomic(folder / f"{digest}-{sha256_bytes(copy)}", copy)
    else:
        meter(len(data))
    if len(copy) <= len(data) * (1 - _LEAST_SAVING):
        keep(task, copy)


def _cached(folder: Path, digest: str) -> bytes | None:
    for path in folder.glob(f"{digest}-*"):
        with suppress(OSError):
            copy = path.read_bytes()
            if sha256_bytes(copy) == path.name.removeprefix(f"{digest}-"):
                os.utime(path)
                return copy
            path.unlink()
    return None


def _bound_cache() -> None:
    """Remove the copies that were not used for longest when all together are over the bound, and broken writes."""
    with suppress(OSError):
        entries = [(path, path.stat()) for path in (cache.folder() / "compressed").glob("*/*")]
        total = sum(stat.st_size for _, stat in entries)
        for path, stat in sorted(entries, key=lambda entry: entry[1].st_mtime):
            broken = path.name.startswith(".") and stat.st_mtime < time.time() - 3600
            if total > _CACHE_BYTES or broken:
                path.unlink(missing_ok=True)
                total -= stat.st_size


def _brotli(data: bytes, quality: int, meter: Callable[[int], None]) -> bytes:
    # Window 2^24: the largest that browsers read. In chunks, so that the wait can be shown and stopped.
    compressor = brotli.Compressor(quality=quality, lgwin=24)
    parts = []
    for place in range(0, len(data), _CHUNK_BYTES):
        chunk = data[place : place + _CHUNK_BYTES]
        parts.append(compressor.process(chunk))
        meter(len(chunk))
    return b"".join((*parts, compressor.finish()))


def _gzip(data: bytes, meter: Callable[[int], None]) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = []
    for place in range(0, len(data), _CHUNK_BYTES):
        chunk = data[place : place + _CHUNK_BYTES]
        parts.append(compressor.compress(chunk))
        meter(len(chunk))
    made = bytearray(b"".join((*parts, compressor.flush())))
    made[9] = 255  # the operating system that made it: unknown, on every one
    return bytes(made)
