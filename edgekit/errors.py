"""The exception tree. Each class has an exit code; each error says what to do next.

    EdgekitError                1  a bug in edgekit (no subclass of it is raised for a user's mistake)
     ├─ UsageError              2  an argument, a configuration, a file that is not what was asked for
     │   └─ BundleError         2  a folder that is not a bundle, or whose files do not match its manifest
     ├─ ModelError              3  the model is invalid or unsupported
     ├─ MissingToolError        4  a tool, browser or device is missing
     ├─ LimitError              5  over a limit or budget: memory, time, disk
     └─ ParityError             6  parity failed or did not run

Messages take strings and numbers only, so that this module stays at the bottom of the house.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class EdgekitError(Exception):
    """Base of every error that edgekit raises on purpose.

    ``message`` says what was wrong and where (file, node, output); ``hint`` says what to do.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(EdgekitError):
    """An argument, a configuration or a file is not what the command needs."""

    exit_code = 2


class BundleError(UsageError):
    """A folder is not a bundle, or its files do not match its manifest."""


class ModelError(EdgekitError):
    """The model is invalid, or the target or runtime cannot run it."""

    exit_code = 3


class MissingToolError(EdgekitError):
    """A tool, a browser or a device is not there."""

    exit_code = 4


class LimitError(EdgekitError):
    """A limit or budget was passed: bytes, memory, time, disk space."""

    exit_code = 5


class ParityError(EdgekitError):
    """Parity failed, or did not run."""

    exit_code = 6


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the sentence " Did you mean '…'?" with the known name nearest to ``name``; "" when none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
