"""How a stage says that it is alive, without knowing who listens."""

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Called with what is being done now and, where it is known, the fraction that is done (0 to 1)."""

    def __call__(self, message: str, done: float | None = None) -> None: ...


def silent(message: str, done: float | None = None) -> None:
    """Listen to nothing."""


class Stage:
    """Progress within a stage, whose name stands before what is said: "Searching the node: Starting the browser"."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._name = progress, ""

    def enter(self, name: str) -> None:
        """Begin a stage, and say so."""
        self._name = name
        self._progress(name)

    def __call__(self, message: str, done: float | None = None) -> None:
        self._progress(f"{self._name}: {message}" if self._name else message, done)


# Called with a finding, in a sentence, as soon as it is known, while the work goes on.
Tell = Callable[[str], None]


def untold(sentence: str) -> None:
    """Tell no one."""
