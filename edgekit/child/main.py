"""What runs first in a child process: its limits, then the module that was asked for.

Standard library only, and started by its path: it must stand before anything of edgekit is imported. Arguments: the
memory limit in bytes, the limit of CPU seconds (0: none), the parent's process id, the module, the folder that is given
to the module.
"""

import ctypes
import importlib.util
import os
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path

EXIT_ERROR = 86
EXIT_MEMORY = 87
EXIT_ORPHAN = 88

_PR_SET_PDEATHSIG = 1
# The stacks of thread pools and the allocator's books are reserved, not used. Measured with 64 threads: 0.6 GB.
_RESERVED_BYTES = 1 << 30
_RESERVED_BYTES_PER_CPU = 32 << 20


def limit_memory(memory_bytes: int) -> None:
    """Let one huge allocation fail at once. What grows in steps is measured, and stopped, by the parent.

    RLIMIT_DATA and not RLIMIT_AS: an address space holds mapped weight files and threads' empty reserves, and 64
    threads alone make 1.7 GB of it.
    """
    if sys.platform != "linux":
        return
    import resource

    wanted = memory_bytes + _RESERVED_BYTES + _RESERVED_BYTES_PER_CPU * (os.cpu_count() or 1)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def limit_cpu(seconds: int) -> None:
    """End this process (SIGXCPU) when it has computed for so long; waiting for a busy machine does not count."""
    if sys.platform == "win32" or seconds <= 0:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def forbid_core_dumps() -> None:
    """A crash of a user's model must not leave gigabytes behind."""
    if sys.platform == "win32":
        return
    import resource

    # To Linux, 0 still allows a dump into a program (core(5)); 1 forbids that too, and is less than any dump's size.
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    soft = 1 if sys.platform == "linux" and hard != 0 else 0
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def end_with_parent(parent: int) -> None:
    """End when the parent ends, however it ends.

    Standard input is a pipe that only the parent holds open, and that nothing is ever written to. On Linux the kernel
    is asked as well: it does not need Python's lock, which native code may hold.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(EXIT_ORPHAN)
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        while os.read(pipe, 1):
            pass
        os._exit(EXIT_ORPHAN)

    threading.Thread(target=watch, daemon=True, name="parent-watch").start()


def find_edgekit() -> None:
    """Make edgekit importable where the parent found it on a path of its own, without hiding anything else."""
    if importlib.util.find_spec("edgekit") is None:
        sys.path.append(str(Path(__file__).resolve().parent.parent))


def main(memory_bytes: int, cpu_seconds: int, parent: int, module: str, folder: str) -> int:
    """Run ``module`` as a script with ``folder`` as its argument; return the exit code."""
    end_with_parent(parent)
    forbid_core_dumps()
    limit_memory(memory_bytes)
    limit_cpu(cpu_seconds)
    find_edgekit()
    # Official builds of onnxruntime report on their use, since 1.28 on Linux too; edgekit never phones home.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    sys.argv = [module, folder]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as request:
        if isinstance(request.code, str):
            sys.stderr.write(request.code)
        return EXIT_ERROR if request.code else 0
    except MemoryError:
        return EXIT_MEMORY
    except BaseException:
        traceback.print_exc()
        return EXIT_ERROR
    return 0


if __name__ == "__main__":
    code = main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: native libraries crash or wait in their clean-up, after the work is done.
    os._exit(code)
