"""The inbox: run records that pages post, bounded, and kept so that a reader never sees half of one."""

import datetime
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgekit.errors import LimitError
from edgekit.files import json_bytes, replace_folder
from edgekit.records import run_record
from edgekit.records.run_record import RunRecord
from edgekit.records.store import RECORD


@dataclass(frozen=True)
class InboxLimits:
    """``post_bytes``: the largest post. ``records``, ``total_bytes``: what the folder may hold, old ones included."""

    post_bytes: int = 256 << 20
    records: int = 1000
    total_bytes: int = 4 << 30


@dataclass(frozen=True, eq=False)
class Arrival:
    """What a page posted: a record and the folder that keeps it, or the ``problem`` for which it was refused."""

    record: RunRecord | None = None
    folder: Path | None = None
    problem: str | None = None


class InboxFullError(LimitError):
    """The inbox takes no more; ``bound`` says what it has too many of."""

    def __init__(self, message: str, *, bound: Literal["records", "bytes"]) -> None:
        super().__init__(message, hint="Move or delete records there, then start the server again.")
        self.bound = bound


def _tell_no_one(arrival: Arrival) -> None:
    """The listener of an inbox that nobody watches."""


class Inbox:
    """A folder of run records, one folder each, safe to fill from several threads.

    ``listener`` is told of every arrival, in the thread that received it. The folder is made with the first record.
    """

    def __init__(
        self, folder: Path, limits: InboxLimits = InboxLimits(), listener: Callable[[Arrival], None] = _tell_no_one
    ) -> None:
        self.folder = folder
        self.limits = limits
        self._listener = listener
        self._lock = threading.Lock()
        kept = [path for path in folder.glob(f"*/{RECORD}.*") if path.is_file()]
        self._records = len({path.parent for path in kept})
        self._bytes = sum(path.stat().st_size for path in kept)

    def receive(self, size_bytes: int, read: Callable[[], RunRecord]) -> str:
        """Take one post of ``size_bytes``: call ``read`` for its record, keep it, and return its id (a folder's name).

        Room is held before anything is read, so that posts at the same time cannot pass the bounds together, neither on
        disk nor in memory. Raises InboxFullError when there is none, LimitError when the disk is full, and what
        ``read`` raises.
        """
        self._hold(size_bytes)
        kept_bytes = None
        try:
            record = read()
            folder, kept_bytes = self._keep(record)
        finally:
            self._settle(size_bytes, kept_bytes)
        self._listener(Arrival(record=record, folder=folder))
        return folder.name

    def refuse(self, problem: str) -> None:
        """Tell the listener that a post was refused, and why."""
        self._listener(Arrival(problem=problem))

    def _hold(self, size_bytes: int) -> None:
        with self._lock:
            if self._records >= self.limits.records:
                raise InboxFullError(f"The inbox {self.folder} is full: {self._records} records.", bound="records")
            if self._bytes + size_bytes > self.limits.total_bytes:
                raise InboxFullError(f"The inbox {self.folder} is full: {self._bytes} bytes.", bound="bytes")
            self._records += 1
            self._bytes += size_bytes

    def _settle(self, held_bytes: int, kept_bytes: int | None) -> None:
        """Count what was kept in place of what was held; None: nothing was kept."""
        with self._lock:
            self._bytes += (kept_bytes or 0) - held_bytes
            if kept_bytes is None:
                self._records -= 1

    def _keep(self, record: RunRecord) -> tuple[Path, int]:
        document, tensors = run_record.to_files(record)
        text = json_bytes(document)
        now = datetime.datetime.now(datetime.UTC)
        folder = self.folder / f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"

        def fill(place: Path) -> None:
            (place / f"{RECORD}.json").write_bytes(text)
            (place / f"{RECORD}.safetensors").write_bytes(tensors)

        replace_folder(folder, fill)
        return folder, len(text) + len(tensors)
