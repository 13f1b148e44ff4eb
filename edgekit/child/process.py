"""Run a module in a child process with limits of time and memory.

Native code that reads a user's model may end its process, never end, or take all memory. Here that is an error that
says which of these it was. Memory is limited on Linux only; time everywhere.
"""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgekit.child import main as child_main
from edgekit.errors import EdgekitError, LimitError

# Memory fills at up to about 5 GB/s: a look every 20 ms lets a child pass its limit by about 0.1 GB.
_LOOK_SECONDS = 0.02
# With the process that waits, and what the child maps, this stays below 1 GB.
_LEAST_MEMORY_BYTES = 640 << 20
# Of these, starting takes up to 1 s.
_LEAST_SECONDS = 6.0
_OUTPUT_BYTES = 64 << 10
_OUT_OF_MEMORY = ("bad_alloc", "cannot allocate memory", "Cannot allocate memory", "Failed to allocate memory")


def _usual_memory_bytes() -> int:
    """Return 8 GiB, or three quarters of this machine's memory where that is less."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return 8 << 30
    return min(8 << 30, physical * 3 // 4)


@dataclass(frozen=True)
class ChildLimits:
    """What a child process may take: seconds from its start, and bytes of memory (mapped files do not count).

    ``cpu_seconds``: of computing, on all threads; where the machine is busy, more of ``seconds`` pass. None: no limit.
    """

    seconds: float = 300.0
    memory_bytes: int = field(default_factory=_usual_memory_bytes)
    cpu_seconds: float | None = None

    def for_model(self, model_bytes: int, *, elements: int = 0, feeds: int = 0) -> "ChildLimits":
        """Tighten the limits to what a model may need: a small one that takes gigabytes is hostile or broken.

        ``model_bytes``: with its weights. ``feeds``, ``elements``: how often it is run, and what it is given in all.
        The rules are ten times what real models take: a detector of 10 MB on 12 pictures of 640 × 640 takes 6 s and
        0.3 GB, and may take 166 s and 8 GB.
        """
        seconds = _LEAST_SECONDS + model_bytes / 1e6 + elements / 1e5 + feeds / 10
        memory = _LEAST_MEMORY_BYTES + 16 * model_bytes + 512 * elements // max(1, feeds)
        return replace(
            self,
            memory_bytes=min(self.memory_bytes, memory),
            cpu_seconds=seconds if self.cpu_seconds is None else min(self.cpu_seconds, seconds),
        )


DEFAULT_LIMITS = ChildLimits()


class ChildFailedError(EdgekitError):
    """A child process did not do its work. Whoever started it turns this into an error about the work.

    ``reason``: how it ended, for a person: "SIGSEGV", "exit code 3", or the last line of a Python error. ``crashed``:
    the process was ended from below, not by a Python error. ``output``: the end of what it wrote, at most 64 KiB.
    """

    def __init__(self, message: str, *, reason: str, crashed: bool, output: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.crashed = crashed
        self.output = output


def run_module(
    module: str,
    folder: Path,
    *,
    limits: ChildLimits,
    what: str,
    each_look: Callable[[], None] | None = None,
) -> None:
    """Run ``python -m module folder`` in a process of its own, and wait for it.

    ``what`` says in the errors what it was doing: "running m.onnx". ``each_look`` is called about 50 times a second
    while it runs. Nothing of the child outlives this call, nor the death of this process.

    Raises LimitError when time or memory runs out, ChildFailedError when the child crashes or fails.
    """
    with _started(module, folder, limits) as process:
        tail = _Tail(process)
        try:
            _wait(process, limits, what, each_look)
        finally:
            _kill_group(process)
            output = tail.close()
    _judge(process.returncode, output, limits, what)


@contextmanager
def _started(module: str, folder: Path, limits: ChildLimits) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable, "-P", "-X", "utf8", child_main.__file__,
        str(limits.memory_bytes), str(math.ceil(limits.cpu_seconds or 0)), str(os.getpid()), module, str(folder),
    ]  # fmt: skip
    # A session of its own: Ctrl-C reaches this process alone, which then ends the whole group.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    with process:  # closes the pipes
        yield process


def _wait(
    process: subprocess.Popen[bytes], limits: ChildLimits, what: str, each_look: Callable[[], None] | None
) -> None:
    deadline = time.monotonic() + limits.seconds
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
            return
        if each_look is not None:
            each_look()
        if memory_of(process.pid) > limits.memory_bytes:
            raise _memory_error(what, limits)
        if time.monotonic() >= deadline:
            raise _time_error(what, f"{limits.seconds:g} s")


def memory_of(process_id: int) -> int:
    """Return the bytes of memory that a process has taken, swapped ones too, mapped files not; 0 where unknown."""
    total = 0
    # The process may end between two reads; other systems have no /proc.
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
            if line.startswith(("RssAnon:", "RssShmem:", "VmSwap:")):
                total += int(line.split()[1]) << 10
    return total


def _judge(code: int, output: str, limits: ChildLimits, what: str) -> None:
    if code == 0:
        return
    if code == child_main.EXIT_MEMORY:
        raise _memory_error(what, limits)
    if code == child_main.EXIT_ERROR:
        reason = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no reason given")
        raise ChildFailedError(f"Failed: {what}: {reason}", reason=reason, crashed=False, output=output)
    if any(mark in output for mark in _OUT_OF_MEMORY):
        raise _memory_error(what, limits)
    reason = _name_of(code)
    if reason == "SIGXCPU":
        raise _time_error(what, f"{limits.cpu_seconds:.0f} s of computing")
    if reason == "SIGKILL":  # not by us: that raised before
        raise LimitError(
            f"The system killed the process (SIGKILL): {what}. It does so when memory runs out.",
            hint="Close other programs, or use a machine with more memory.",
        )
    raise ChildFailedError(f"The process crashed ({reason}): {what}.", reason=reason, crashed=True, output=output)


def _name_of(code: int) -> str:
    if code >= 0:
        return f"exit code {code}" if code < 1 << 16 else f"exit code {code:#x}"  # Windows: 0xc0000005
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _time_error(what: str, passed: str) -> LimitError:
    return LimitError(
        f"Stopped after {passed}: {what}.",
        hint="The model may hold a loop that does not end with these inputs, or be too large for this machine.",
    )


def _memory_error(what: str, limits: ChildLimits) -> LimitError:
    return LimitError(
        f"Stopped: {what} needs more memory than its limit of {limits.memory_bytes / (1 << 30):.3g} GiB.",
        hint="Use smaller inputs (dimensions), or a smaller model.",
    )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the child and everything it started."""
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        process.kill()
    process.wait()


class _Tail:
    """Reads what a process writes, so that it never waits for a reader, and keeps the end of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._stream = process.stdout
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True, name="child-output")
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            while self._stream is not None and (chunk := os.read(self._stream.fileno(), 1 << 16)):
                self._kept = (self._kept + chunk)[-_OUTPUT_BYTES:]

    def close(self) -> str:
        # All writers are dead, so this ends; the limit is for one that left the group.
        self._thread.join(timeout=2)
        return self._kept.decode(errors="replace")
