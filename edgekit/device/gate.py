"""Let so many inferences run at once, so many requests wait, so many bytes be held, and send the rest away."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class BusyError(Exception):
    """As many requests wait as may."""


class Gate:
    """``running`` at once inside, ``waiting`` before it."""

    def __init__(self, running: int, waiting: int) -> None:
        self._slots = threading.Semaphore(running)
        self._most = running + waiting
        self._lock = threading.Lock()
        self._here = 0
        self._inside = 0

    @property
    def running(self) -> int:
        """How many run."""
        return self._inside

    @property
    def waiting(self) -> int:
        """How many wait."""
        return max(0, self._here - self._inside)

    @contextmanager
    def __call__(self, seconds: float) -> Iterator[None]:
        """Hold a place to run in. Raises BusyError when too many wait, or none came free within ``seconds``."""
        with self._lock:
            if self._here >= self._most:
                raise BusyError
            self._here += 1
        try:
            if not self._slots.acquire(timeout=seconds):
                raise BusyError
            with self._lock:
                self._inside += 1
            try:
                yield
            finally:
                with self._lock:
                    self._inside -= 1
                self._slots.release()
        finally:
            with self._lock:
                self._here -= 1


class Budget:
    """Bytes of bodies that may be in memory at once."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Hold so many bytes. Raises BusyError when they are not free: who waits for memory would hold a thread."""
        with self._lock:
            if count > self._free:
                raise BusyError
            self._free -= count
        try:
            yield
        finally:
            with self._lock:
                self._free += count
