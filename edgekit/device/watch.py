"""Deadlines: a slow client loses its connection, a slow inference is stopped. And systemd hears that we live."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import onnxruntime as ort

from edgekit.device import notify

_LOOK_SECONDS = 0.25
# An inference that does not stop, so long after it was told to, will not: the service is not alive.
_STUCK_SECONDS = 30.0


class Watch:
    """One thread that looks at every deadline four times a second."""

    def __init__(self, dropped: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._due: dict[int, tuple[float, Callable[[], None]]] = {}
        self._runs: dict[int, float] = {}
        self._numbers = count()
        self._dropped = dropped
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._done.set()
        self._thread.join()

    @contextmanager
    def client(self, connection: socket.socket, seconds: float, *, idle: bool = False) -> Iterator[None]:
        """Shut the connection when the block takes longer: whoever reads or writes then gets an error or an end.

        ``idle``: the client owes nothing, so it is not counted as dropped.
        """

        def shut() -> None:
            if not idle:
                self._dropped()
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        with self._deadline(seconds, shut):
            yield

    @contextmanager
    def inference(self, options: ort.RunOptions, seconds: float) -> Iterator[None]:
        """Ask the runtime to stop, between two nodes, when the block takes longer."""

        def stop() -> None:
            options.terminate = True

        with self._deadline(seconds, stop) as number:
            self._runs[number] = time.monotonic() + seconds + _STUCK_SECONDS
            try:
                yield
            finally:
                del self._runs[number]

    @property
    def alive(self) -> bool:
        """Whether no inference is stuck."""
        now = time.monotonic()
        return all(end > now for end in list(self._runs.values()))

    @contextmanager
    def _deadline(self, seconds: float, then: Callable[[], None]) -> Iterator[int]:
        number = next(self._numbers)
        with self._lock:
            self._due[number] = (time.monotonic() + seconds, then)
        try:
            yield number
        finally:
            with self._lock:
                self._due.pop(number, None)

    def _work(self) -> None:
        every = notify.watchdog_seconds()
        told = 0.0
        while not self._done.wait(_LOOK_SECONDS):
            now = time.monotonic()
            with self._lock:
                late = [number for number, (end, _) in self._due.items() if end <= now]
                # Called with the lock: what is taken out by its owner in the meantime must not be called.
                for number in late:
                    self._due.pop(number)[1]()
            if every is not None and now - told >= every / 3 and self.alive:
                told = now
                notify.notify("WATCHDOG=1")
