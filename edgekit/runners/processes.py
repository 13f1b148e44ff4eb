"""Helper programs of a run (a driver, a display): in a session of their own, and ended with all that they started."""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from edgekit.errors import MissingToolError

_END_SECONDS = 5.0


@asynccontextmanager
async def started(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    keep_open: Sequence[int] = (),
) -> AsyncIterator[Process]:
    """Run ``command`` while the block runs; then end it, and every process that it started.

    A session of its own keeps Ctrl-C of a terminal from it, so that it is there to be asked to end. ``keep_open``: file
    descriptors that it inherits. Raises MissingToolError when it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *_tied(command),
            env=environment,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
            pass_fds=tuple(keep_open),
        )
    except OSError as error:
        raise MissingToolError(f"{command[0]} cannot be started: {error.strerror}.") from error
    try:
        yield process
    finally:
        await _end(process)


def _tied(command: Sequence[str]) -> list[str]:
    """Tie a program's life to this process's on Linux: should this be killed outright, nothing cleans up."""
    tie = shutil.which("setpriv") if sys.platform == "linux" else None
    return [tie, "--pdeathsig", "TERM", "--", *command] if tie else list(command)


async def _end(process: Process) -> None:
    """End the whole session: politely, and after some seconds by force."""
    _signal(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _END_SECONDS)
    _signal(process.pid, signal.SIGKILL)  # what the first signal did not end, and the children that it left
    await process.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says the second of a group that has ended
        os.killpg(group, number)
