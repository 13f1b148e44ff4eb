"""Builds that end in the middle: killed, or out of space. Real processes, a real full disk."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import web_bundle
from models_text import LINEAR, write

from edgekit import pipeline
from edgekit.bundle.open import open_bundle
from edgekit.errors import LimitError, UsageError
from edgekit.files import temporary_folder
from edgekit.kinds.config import BuildConfig
from edgekit.runtime.fetch import fetch

BUILD = [sys.executable, str(Path(web_bundle.__file__))]
# The build itself takes some tenths of a second: kill from its start to after its end.
KILLS = 10


@pytest.fixture(scope="session", autouse=True)
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The runtime is fetched and compressed: what is killed or starved is the build alone."""
    folder = tmp_path_factory.mktemp("warm")
    fetch()
    web_bundle.build(write(LINEAR, folder), folder / "out")


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return write(LINEAR, tmp_path / "models")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield disk
    unmount = ["umount", str(disk)]
    subprocess.run(unmount, capture_output=True, check=True)


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may be larger than 1 MiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed_build(model: Path, destination: Path, *, after_seconds: float) -> None:
    """Start a build, wait until its temporary folder shows, and kill it ``after_seconds`` later."""
    process = subprocess.Popen([*BUILD, str(model), str(destination)])
    while process.poll() is None and not list(destination.parent.glob(f".{destination.name}.*.tmp")):
        time.sleep(0.002)
    time.sleep(after_seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_kill_at_any_moment_leaves_the_old_bundle_or_the_whole_new_one(linear: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    old = web_bundle.build(linear, out, title="old")
    unfinished = 0
    for k in range(KILLS):
        killed_build(linear, out, after_seconds=0.5 * k / KILLS)
        now = open_bundle(out).manifest
        assert now.title in ("old", "tiny")
        unfinished += now == old
        assert set(names(tmp_path)) - {"models", "out"} == {
            name for name in names(tmp_path) if name.startswith(".out.")
        }
        # The next build removes what was left, and starts from the old bundle again.
        web_bundle.build(linear, out, title="old", force=True)
        assert names(tmp_path) == ["models", "out"]
    assert unfinished > 0


def test_while_another_build_writes_a_place_none_is_begun_there(linear: Path, tmp_path: Path) -> None:
    asked = BuildConfig(linear, "wasm", tmp_path / "out", strength=False, trim=False, trim_runtime=False)
    said: list[str] = []
    with temporary_folder(tmp_path / "out") as another:
        with pytest.raises(UsageError, match=r"Another command writes .*out at this moment") as caught:
            pipeline.build(asked, progress=said.append)
        assert said == ["Reading the model"]  # and not the minutes of work that come after it
        assert another.is_dir() and str(another) in (caught.value.hint or "")
    assert names(tmp_path) == ["models"]
    pipeline.build(asked)
    assert names(tmp_path) == ["models", "out"]


def test_a_kill_of_a_first_build_leaves_nothing_under_its_name(linear: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed_build(linear, out, after_seconds=0)
    assert not out.exists()
    web_bundle.build(linear, out)
    assert names(tmp_path) == ["models", "out"]
    open_bundle(out)


def test_a_full_disk_is_a_limit_error_and_leaves_nothing(linear: Path, small_disk: Path) -> None:
    with pytest.raises(LimitError, match="The disk is full: cannot write") as caught:
        web_bundle.build(linear, small_disk / "out")
    assert caught.value.exit_code == 5
    assert caught.value.hint == "Free some space, then run the command again."
    assert names(small_disk) == []


def test_a_limit_on_file_sizes_is_a_limit_error_and_leaves_nothing(
    linear: Path, tmp_path: Path, small_files: None
) -> None:
    with pytest.raises(LimitError, match="does not allow files that large") as caught:
        web_bundle.build(linear, tmp_path / "out")
    assert caught.value.exit_code == 5
    assert names(tmp_path) == ["models"]


def test_running_out_of_space_keeps_the_old_bundle(
    linear: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    old = web_bundle.build(linear, tmp_path / "out", title="old")
    request.getfixturevalue("small_files")
    with pytest.raises(LimitError):
        web_bundle.build(linear, tmp_path / "out", force=True)
    assert open_bundle(tmp_path / "out").manifest == old
    assert names(tmp_path) == ["models", "out"]
