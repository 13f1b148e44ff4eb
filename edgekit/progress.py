"""How a stage says that it is alive, without knowing who listens."""

from typing import Protocol


class Progress(Protocol):
    """Called with what is being done now and, where it is known, the fraction that is done (0 to 1)."""

    def __call__(self, message: str, done: float | None = None) -> None: ...


def silent(message: str, done: float | None = None) -> None:
    """Listen to nothing."""
