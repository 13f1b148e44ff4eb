"""Commands that drive browsers for minutes, ended in the middle: one line, exit code 130, and nothing left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from running import is_running, processes
from wrong_bundle import bundle, tiny

pytestmark = [pytest.mark.browser, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

EDGEKIT = [sys.executable, "-c", "from edgekit.cli.main import main; main()"]


def ended(arguments: list[str], folder: Path, number: signal.Signals) -> tuple[int, str, set[int], list[str]]:
    """Run a command, and send it ``number`` when a page of its browser runs (Ctrl-C: to its whole group, as terminals).

    Return its exit code, what it said, which of its processes still run, and what lies in its folder for temporary
    files.
    """
    with tempfile.TemporaryDirectory(prefix="ek") as scratch:  # short: Chromium makes a socket in it
        process = subprocess.Popen(
            [*EDGEKIT, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
            cwd=folder, env={**os.environ, "TMPDIR": scratch},
        )  # fmt: skip
        with process:
            while not any("--type=renderer" in line for line in processes().values()):
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.05)
            started = set(processes())
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            try:
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
        left = {child for child in started if is_running(child)}
        return process.returncode, said.decode(), left, sorted(path.name for path in Path(scratch).iterdir())


def test_what_a_killed_repair_leaves_is_removed_by_the_next_command_that_writes_there(tmp_path: Path) -> None:
    path, inputs = tiny(tmp_path)
    folder = bundle(path, tmp_path / "bundle", inputs)
    code, *_ = ended(["repair", "bundle", "--variant", "jspi"], tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert [left.name.startswith(".bundle.") for left in tmp_path.glob(".*")] == [True]
    bundle(path, folder, inputs, force=True)  # build and repair alike: both make such a folder first
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "command", ["diagnose", "repair", "fuzz", pytest.param("conformance", marks=pytest.mark.sweep)]
)
def test_an_interrupted_command_says_one_line_and_leaves_nothing(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    if command in ("diagnose", "repair"):
        path, inputs = tiny(tmp_path)
        bundle(path, tmp_path / "bundle", inputs)
    arguments = {
        "diagnose": ["diagnose", "bundle", "--variant", "jspi"],
        "repair": ["repair", "bundle", "--variant", "jspi"],
        "fuzz": ["fuzz", "--variant", "jspi", "--ops", "Conv,Relu", "-o", "found"],
        "conformance": ["conformance", "--variant", "jspi"],
    }[command]
    code, said, left, files = ended(arguments, tmp_path, number)
    assert (code, left, files) == (130, set(), [])
    assert said.splitlines()[-1].startswith("Stopped"), said
    assert not any(word in said for word in ("Traceback", "Error", "never retrieved", "exception")), said
    assert not list(tmp_path.glob(".*")), "a temporary folder is left"
    if command == "fuzz":
        assert (tmp_path / "found" / "journal.json").is_file()
        assert "the same command goes on from there" in said
