import fcntl
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekit import files
from edgekit.errors import LimitError, UsageError


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def child(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a python process with ``files`` and ``Path`` at hand."""
    head = "import sys, time, os\nfrom pathlib import Path\nfrom edgekit import files\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_one(folder: Path) -> None:
    (folder / "a").write_bytes(b"new")


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let this process write no file over 64 KiB: the system's own refusal, as a full disk would give it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_sha256_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    data = os.urandom(3_000_001)
    (tmp_path / "x").write_bytes(data)
    assert files.sha256_file(tmp_path / "x") == files.sha256_bytes(data)
    assert files.sha256_bytes(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_json_bytes_refuse_what_is_not_json() -> None:
    assert files.json_bytes({"b": "é", "a": 1}) == '{\n  "b": "é",\n  "a": 1\n}\n'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.json_bytes(float("nan"))


def test_write_atomic_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "deep" / "x", b"1")
    files.write_atomic(tmp_path / "deep" / "x", b"2")
    assert tree(tmp_path) == {"deep/x": b"2"}


def test_write_atomic_over_the_limit_keeps_the_old_file(tmp_path: Path, small_files: None) -> None:
    files.write_atomic(tmp_path / "x", b"old")
    with pytest.raises(LimitError, match="does not allow files that large"):
        files.write_atomic(tmp_path / "x", bytes(100_000))
    assert tree(tmp_path) == {"x": b"old"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_a_limit_error() -> None:
    with (
        pytest.raises(LimitError, match="The disk is full"),
        files.disk_errors(Path("x")),
        Path("/dev/full").open("wb") as stream,
    ):
        stream.write(b"x")


def test_a_parent_that_is_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name in ("file/x", "file/y/z"):
        with pytest.raises(UsageError, match="is a file, not a folder"):
            files.replace_folder(tmp_path / name, write_one)
    with pytest.raises(UsageError, match="the name is too long"):
        files.replace_folder(tmp_path / ("x" * 300), write_one)


def test_replace_folder_makes_and_replaces(tmp_path: Path) -> None:
    destination = tmp_path / "deep" / "out [1]*"
    files.replace_folder(destination, lambda folder: (folder / "old").write_bytes(b"1") and None)
    files.replace_folder(destination, write_one)
    assert tree(tmp_path) == {"deep/out [1]*/a": b"new"}


def test_replace_folder_keeps_the_old_one_when_filling_fails(tmp_path: Path) -> None:
    destination = tmp_path / "out"
    files.replace_folder(destination, write_one)

    def fail(folder: Path) -> None:
        (folder / "b").write_bytes(b"half")
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        files.replace_folder(destination, fail)
    assert tree(tmp_path) == {"out/a": b"new"}


def test_replace_folder_over_the_limit_leaves_nothing(tmp_path: Path, small_files: None) -> None:
    def fill(folder: Path) -> None:
        (folder / "b").write_bytes(bytes(100_000))

    with pytest.raises(LimitError):
        files.replace_folder(tmp_path / "out", fill)
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link_and_its_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old").write_bytes(b"")
    (tmp_path / "link").symlink_to("real")
    files.replace_folder(tmp_path / "link", write_one)
    assert (tmp_path / "link").is_symlink()
    assert tree(tmp_path / "real") == {"a": b"new"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


def test_without_an_atomic_exchange_two_renames_do_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    files.replace_folder(tmp_path / "out", lambda folder: (folder / "old").write_bytes(b"1") and None)
    files.replace_folder(tmp_path / "out", write_one)
    assert tree(tmp_path) == {"out/a": b"new"}


def test_a_kill_between_the_two_renames_is_repaired_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / ".out.old").mkdir()
    (tmp_path / ".out.old" / "a").write_bytes(b"old")

    def look(folder: Path) -> None:
        assert tree(tmp_path / "out") == {"a": b"old"}
        raise UsageError("seen")

    with pytest.raises(UsageError, match="seen"):
        files.replace_folder(tmp_path / "out", look)
    assert tree(tmp_path) == {"out/a": b"old"}


def test_a_killed_run_leaves_the_old_folder_and_the_next_run_cleans_up(tmp_path: Path) -> None:
    destination = tmp_path / "out"
    files.replace_folder(destination, write_one)
    process = child(
        """
        def fill(folder):
            (folder / "half").write_bytes(bytes(1000))
            print("filling", flush=True)
            time.sleep(60)
        files.replace_folder(Path(sys.argv[1]), fill)
        """,
        str(destination),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "filling\n"
    # While it lives, its work is not touched by others.
    files.replace_folder(destination, write_one)
    assert len(list(tmp_path.glob(".out.*.tmp/half"))) == 1
    assert not files.was_killed(destination)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert files.was_killed(destination)
    assert tree(destination) == {"a": b"new"}
    assert len(list(tmp_path.glob(".out.*.tmp"))) == 1
    files.replace_folder(destination, write_one)
    assert tree(tmp_path) == {"out/a": b"new"}
    assert not files.was_killed(destination)


def test_a_folder_that_another_program_locks_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.1)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match=r"Another program holds the folder .* did not let go within 0\.1 s"):
            files.replace_folder(tmp_path / "out", write_one)
    finally:
        os.close(descriptor)
    assert tree(tmp_path) == {}
    files.replace_folder(tmp_path / "out", write_one)


def test_what_others_keep_under_a_like_name_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_bytes(b"")
    (tmp_path / ".out.12345678.tmp").symlink_to("elsewhere")
    (tmp_path / ".out.notes.tmp").mkdir()
    files.replace_folder(tmp_path / "out", write_one)
    assert (tmp_path / "elsewhere" / "kept").exists()
    assert (tmp_path / ".out.notes.tmp").exists()


def test_many_processes_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    code = """
        def fill(folder):
            for name in "abc":
                (folder / name).write_text(sys.argv[2])
        for _ in range(20):
            files.replace_folder(Path(sys.argv[1]), fill)
            seen = {(Path(sys.argv[1]) / name).read_text() for name in "a"}
            assert len(seen) == 1
        """
    processes = [child(code, str(tmp_path / "out"), str(k)) for k in range(4)]
    for process in processes:
        _, talk = process.communicate(timeout=60)
        assert process.returncode == 0, talk
    assert sorted(tree(tmp_path)) == ["out/a", "out/b", "out/c"]
    assert len(set(tree(tmp_path).values())) == 1


@pytest.mark.parametrize("place", ["/", ".", ""])
def test_a_file_without_a_name_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="it is a folder"):
        files.write_atomic(Path(place), b"1")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that takes no files from anyone")
def test_a_folder_that_takes_no_files_is_no_bug() -> None:
    with pytest.raises(UsageError, match="Cannot write /proc/edgekit"):
        files.write_atomic(Path("/proc/edgekit"), b"1")
    with pytest.raises(UsageError, match="Cannot write /proc/edgekit"):
        files.replace_folder(Path("/proc/edgekit"), write_one)
    with pytest.raises(UsageError, match="Cannot write /proc/edgekit/deep"):
        files.replace_folder(Path("/proc/edgekit/deep"), write_one)
