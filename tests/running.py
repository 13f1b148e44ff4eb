"""The processes that a test started, and the ways to end a run in the middle, for the tests of runners (Linux)."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from edgekit.bundle.open import open_bundle
from edgekit.parity import load_runner
from edgekit.runners.page import Ask
def say(message, done=None):
    print(message, flush=True)
try:
    load_runner(sys.argv[1]).run(open_bundle(Path(sys.argv[2])), Ask(timeout_seconds=60), progress=say)
except KeyboardInterrupt:
    sys.exit(130)
"""


def processes() -> dict[int, str]:
    """The command lines of this process's descendants (Linux)."""
    parents, lines = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            lines[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except (OSError, UnicodeDecodeError):
            continue
        parents[int(folder.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {number: lines[number] for number in found - {os.getpid()} if lines[number]}


@contextmanager
def killing(those: Callable[[str], bool]) -> Iterator[Callable[[str, float | None], None]]:
    """Yield a progress listener; from "replays" on, this test's processes with one of ``those`` command lines die."""
    started, over = threading.Event(), threading.Event()

    def kill() -> None:
        started.wait(60)
        while not over.wait(0.5):
            for number, line in processes().items():
                if those(line):
                    with suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)

    def hear(message: str, done: float | None = None) -> None:
        if "replays" in message:
            started.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield hear
    finally:
        started.set()
        over.set()
        killer.join()


def interrupt_after(runner: str, bundle: Path, word: str, seconds: float) -> tuple[int, set[int]]:
    """Run a runner in a process of its own; ``seconds`` after it said ``word`` interrupt it, as Ctrl-C does.

    Return its exit code, and which of the processes that it had started are still alive.
    """
    command = [sys.executable, "-c", PROGRAM, runner, str(bundle)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdout is not None
        while word.encode() not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(seconds)
        started = set(processes())
        os.killpg(process.pid, signal.SIGINT)
        try:
            code = process.wait(timeout=30)
        finally:
            process.kill()
    return code, {number for number in started if is_running(number)}


def is_running(number: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"
