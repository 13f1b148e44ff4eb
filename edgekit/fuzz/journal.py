"""What a run knows so far, in a file that is replaced as a whole: a run that was ended goes on from it."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any

from edgekit import files
from edgekit.errors import UsageError

FORMAT = 1
NAME = "journal.json"
# One letter for each case in order: the journal of a million cases is a megabyte.
LETTERS = {
    "right": ".", "wrong": "W", "desktop": "D", "unsteady": "u", "loads": "l", "refused": "r", "failed": "f",
    "crashed": "c", "invalid": "-",
}  # fmt: skip


# How what a run is of reads in a sentence, where its name does not say it.
_SAID = {"edgekit": "version of edgekit"}
# Of hashes, only that they differ means anything to a person.
_UNREADABLE = {
    "generators": "it drew other kinds of cases (--ops, --ops-from)",
    "wasm_sha256": "its runtime's WebAssembly is another (--runtime)",
}


class Journal:
    """``asked``: what the run is of; another run has another journal. ``outcomes``: a letter a case, from number 0 on.

    ``problems``: what was wrong with each case that was wrong, with its ``side``. ``seconds``: spent looking.
    ``evidence``: further cases that were tried to understand what was found: generator, choices, letter.
    ``unconfirmed``: the numbers of wrong cases that a run was ended before asking about again.
    """

    def __init__(
        self,
        asked: Mapping[str, Any],
        outcomes: str = "",
        problems: Mapping[str, dict[str, Any]] | None = None,
        seconds: float = 0.0,
        evidence: Sequence[dict[str, Any]] = (),
        unconfirmed: Sequence[int] = (),
    ) -> None:
        self.asked, self.outcomes, self.seconds = dict(asked), outcomes, seconds
        self.problems = dict(problems or {})
        self.evidence = list(evidence)
        self.unconfirmed = list(unconfirmed)

    def count(self, status: str) -> int:
        """How many cases had an outcome."""
        return self.outcomes.count(LETTERS[status])

    @property
    def compared(self) -> int:
        """How many cases had answers on both sides."""
        return sum(self.count(status) for status in ("right", "wrong", "desktop", "unsteady"))

    def numbers(self, status: str) -> list[int]:
        """The numbers of the cases with an outcome."""
        return [number for number, letter in enumerate(self.outcomes) if letter == LETTERS[status]]


def check_place(folder: Path) -> None:
    """Raise UsageError, with nothing touched, where ``folder`` is not empty and holds no run of this kind."""
    if (folder / NAME).is_file() or not folder.exists():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise UsageError(f"{folder} holds something else than a fuzz run.", hint="Name another folder.")


def open_journal(folder: Path | None, asked: Mapping[str, Any]) -> Journal:
    """Read the journal in ``folder``, or begin one.

    Raises UsageError when the folder holds something else, or the journal of another run.
    """
    if folder is not None:
        check_place(folder)
    path = None if folder is None else folder / NAME
    if path is None or not path.is_file():
        return Journal(dict(asked))
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        _check(document)
        found = Journal(**{key: value for key, value in document.items() if key != "format"})
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {error}.", hint="Remove the folder to begin anew.") from error
    if document.get("format") != FORMAT or found.asked != dict(asked):
        differing = [key for key in sorted(asked) if found.asked.get(key) != asked[key]]
        said = [
            _UNREADABLE.get(key)
            or f"its {_SAID.get(key, key)} is {found.asked.get(key)}, and {asked[key]} was asked for"
            for key in differing
        ]
        raise UsageError(
            f"{folder} holds another run: {'; '.join(said) or 'its format is another'}.",
            hint="Name another folder, or ask for the same to go on with it.",
        )
    return found


def _check(document: Any) -> None:
    """Raise ValueError where a document of this format is not what ``keep`` writes."""
    if not isinstance(document, dict) or not isinstance(document.get("asked"), dict):
        raise ValueError("it does not say what the run was of")
    if document.get("format") != FORMAT:
        return  # another format is told as such
    outcomes, seconds = document.get("outcomes"), document.get("seconds")
    if not isinstance(outcomes, str) or not set(outcomes) <= set(LETTERS.values()):
        raise ValueError("its outcomes are none")
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError("its seconds are no time")
    problems, evidence, unconfirmed = (document.get(key) for key in ("problems", "evidence", "unconfirmed"))
    numbers = {str(number) for number in range(len(outcomes))}
    if not isinstance(problems, dict) or not all(
        # What was not asked about a second time is of no side yet, and a crash has no words of its own.
        number in numbers and _has(one, generator=str, problem=str | None, side=str | None)
        for number, one in problems.items()
    ):
        raise ValueError("its problems are not those of its cases")
    if not isinstance(evidence, list) or not all(
        _has(one, generator=str, choices=dict, outcome=str) for one in evidence
    ):
        raise ValueError("its evidence is none")
    if not isinstance(unconfirmed, list) or not all(type(at) is int and str(at) in problems for at in unconfirmed):
        raise ValueError("its unconfirmed cases are not among its problems")


def _has(entry: Any, **kinds: type | UnionType) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), kind) for key, kind in kinds.items())


def keep(journal: Journal, folder: Path | None) -> None:
    """Write the journal in ``folder``, whole or not at all."""
    if folder is not None:
        files.write_atomic(folder / NAME, files.json_bytes(vars(journal) | {"format": FORMAT}))
