"""Run a program of the system with a time limit, and leave nothing of it behind."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress


def run(
    command: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run ``command`` without input; return its code and, as one text, all that it said.

    ``environment``: variables more than those of this process. Raises TimeoutError when it does not end within
    ``seconds``; it and what it started are then ended, as they are when this process is interrupted.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
        env=None if environment is None else {**os.environ, **environment},
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{command[0]} did not end within {seconds:g} s") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return subprocess.CompletedProcess(command, process.returncode, said)


def last_words(said: str, lines: int = 12) -> str:
    """Return the last lines of what a program said, each on a line of its own and indented, to follow a sentence."""
    kept = [line for line in said.splitlines() if line.strip()]
    return "".join(f"\n  {line}" for line in kept[-lines:])
