import gzip
import os
import threading
import time
from pathlib import Path

import brotli
import pytest

from edgekit.bundle import compress
from edgekit.bundle.compress import prepare, write_copies

TEXT = b"".join(b"line %d\n" % k for k in range(5000))


def folder_of(own_cache: Path) -> list[Path]:
    return sorted(p for p in (own_cache / "compressed").rglob("*") if p.is_file())


def test_large_files_that_shrink_get_copies_and_others_do_not(own_cache: Path, tmp_path: Path) -> None:
    contents = {
        "text": TEXT,
        "small": TEXT[: compress.LEAST_BYTES - 1],
        "just large enough": TEXT[: compress.LEAST_BYTES],
        "noise": os.urandom(100_000),
        # Half noise, half zeros at the very end: worth a copy, though it begins like noise.
        "late": os.urandom(1_100_000) + bytes(1_100_000),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    written = write_copies([tmp_path / name for name in contents])
    assert [path.name for path in written] == sorted(
        f"{name}{suffix}" for name in ("text", "just large enough", "late") for suffix in (".br", ".gz")
    )
    for path in written:
        unpack = brotli.decompress if path.suffix == ".br" else gzip.decompress
        assert unpack(path.read_bytes()) == contents[path.name[:-3]]


def test_a_copy_whose_name_is_taken_is_left_alone(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    (tmp_path / "a.br").write_bytes(b"mine")
    assert [path.name for path in write_copies([tmp_path / "a"])] == ["a.gz"]
    assert (tmp_path / "a.br").read_bytes() == b"mine"


def test_gzip_copies_hold_no_name_time_or_system(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    write_copies([tmp_path / "a"])
    assert (tmp_path / "a.gz").read_bytes()[:10] == bytes.fromhex("1f8b0800 00000000 02ff")


def test_copies_come_from_the_cache_the_second_time(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    prepare([tmp_path / "a"])
    assert len(folder_of(own_cache)) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "cache"]
    monkeypatch.setattr(compress, "_brotli", lambda *_: pytest.fail("compressed again"))
    monkeypatch.setattr(compress, "_gzip", lambda *_: pytest.fail("compressed again"))
    assert len(write_copies([tmp_path / "a"])) == 2
    assert brotli.decompress((tmp_path / "a.br").read_bytes()) == TEXT


def test_a_changed_copy_in_the_cache_is_made_again(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    prepare([tmp_path / "a"])
    before = {path: path.read_bytes() for path in folder_of(own_cache)}
    for path in before:
        path.write_bytes(brotli.compress(b"something else"))
    write_copies([tmp_path / "a"])
    assert brotli.decompress((tmp_path / "a.br").read_bytes()) == TEXT
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == TEXT
    assert {path: path.read_bytes() for path in folder_of(own_cache)} == before


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGEKIT_CACHE", str(tmp_path / "file"))
    (tmp_path / "a").write_bytes(TEXT)
    assert len(write_copies([tmp_path / "a"])) == 2


def test_the_cache_is_bounded_and_what_was_used_last_stays(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(4):
        (tmp_path / f"{k}").write_bytes(TEXT + bytes([k]))
        prepare([tmp_path / f"{k}"])
    for path in folder_of(own_cache):
        os.utime(path, (1000, 1000))
    prepare([tmp_path / "0"])
    kept = sum(path.stat().st_size for path in folder_of(own_cache) if path.stat().st_mtime > 1000)
    monkeypatch.setattr(compress, "_CACHE_BYTES", kept)
    prepare([tmp_path / "0"])
    assert len(folder_of(own_cache)) == 2
    broken = folder_of(own_cache)[0].with_name(".x.tmp")
    broken.touch()
    prepare([tmp_path / "0"])
    assert broken.exists()  # another process may be writing it
    os.utime(broken, (1000, 1000))
    prepare([tmp_path / "0"])
    assert not broken.exists()


def test_progress_goes_to_the_end_and_an_interrupt_stops_the_work_soon(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    heard: list[float | None] = []
    prepare([tmp_path / "a"], progress=lambda message, done=None: heard.append(done))
    assert heard[-1] == 1.0

    # Some 20 s of work, of which the interrupt leaves the rest of one chunk.
    (tmp_path / "large").write_bytes(b"".join(os.urandom(500) + bytes(300) for _ in range(10_000)))

    def interrupt(message: str, done: float | None = None) -> None:
        raise KeyboardInterrupt

    begun, threads = time.monotonic(), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        prepare([tmp_path / "large"], progress=interrupt)
    assert time.monotonic() - begun < 10
    assert threading.active_count() == threads


def test_an_error_of_the_disk_comes_through(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / ("x" * 254)).write_bytes(TEXT)  # with a suffix, the name is too long
    with pytest.raises(OSError, match="File name too long"):
        write_copies([tmp_path / ("x" * 254)])


def test_nothing_to_do_is_nothing_done(own_cache: Path) -> None:
    assert write_copies([]) == ()
    assert not own_cache.exists()
