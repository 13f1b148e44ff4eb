"""What is known to be answered wrongly: a data file for each version and variant of a runtime, made by the fuzzer.

``edgekit/known/findings`` holds the files; ``edgekit fuzz --update`` writes them, nobody else does.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from edgekit.files import json_bytes
from edgekit.known import patterns
from edgekit.known.patterns import Condition
from edgekit.records import settings as session_settings
from edgekit.records.settings import SessionSettings

FORMAT = 1
FINDINGS = Path(__file__).resolve().parent / "findings"

Kind = Literal["layout", "cpu_nodes", "optimization", "variant"]


@dataclass(frozen=True)
class Cure:
    """One thing changed, and whether the answers were right then, in each of ``tried`` failing cases.

    ``kind`` "layout" or "optimization": ``value`` is the session's; "cpu_nodes": the operators left to the CPU, in
    words; "variant": another build of the runtime.
    """

    kind: Kind
    value: str
    cures: bool
    tried: int

    def settings(self, nodes: Sequence[str] = ()) -> SessionSettings | None:
        """Return the settings of a session that has the cure, for ``nodes`` by name; None where it takes another build.

        Whether it cured anything is ``cures``.
        """
        if self.kind == "layout":
            return replace(session_settings.DEFAULT, layout="NCHW" if self.value == "NCHW" else "NHWC")
        if self.kind == "optimization":
            return replace(session_settings.DEFAULT, optimization="basic" if self.value == "basic" else "disabled")
        return replace(session_settings.DEFAULT, cpu_nodes=tuple(nodes)) if self.kind == "cpu_nodes" else None

    def __str__(self) -> str:
        words = {"layout": f"preferredLayout {self.value}", "cpu_nodes": "the node on the CPU",
                 "optimization": f"graph optimization {self.value}", "variant": f"the {self.value} build"}  # fmt: skip
        return words[self.kind]


@dataclass(frozen=True)
class Entry:
    """One cause of wrong answers.

    ``operators``: the node that the conditions are on, and for a chain those that must follow it. ``side``: who is
    wrong by the onnx reference evaluator: "browser", "both" or "unknown". ``failures``, ``passes``: how many cases of
    these operators the pattern was made from. ``example``: the smallest case, as ONNX text; ``problem``: what came.
    ``drawn``: generator and choices that make the example again.
    """

    id: str
    operators: tuple[str, ...]
    conditions: tuple[Condition, ...]
    side: str
    failures: int
    passes: int
    example: str
    problem: str
    cures: tuple[Cure, ...]
    drawn: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The pattern in one line: "Conv: output channels a multiple of 4; ..."."""
        return f"{' + '.join(self.operators)}: {patterns.text(self.conditions)}"


@dataclass(frozen=True)
class Knowledge:
    """What is known of one build. ``measured``: browser, adapter, seed and how many cases, by name."""

    package: str
    version: str
    variant: str
    measured: Mapping[str, Any]
    entries: tuple[Entry, ...]


def file_name(package: str, version: str, variant: str) -> str:
    """Return the name of a build's file."""
    return f"{package}-{version}-{variant}.json"


@cache
def load(package: str, version: str, variant: str, folder: Path = FINDINGS) -> Knowledge | None:
    """Return what is known of a build; None: nobody looked."""
    path = folder / file_name(package, version, variant)
    return from_json(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def to_bytes(known: Knowledge) -> bytes:
    """Return the bytes of a build's file."""
    document = asdict(known) | {"format": FORMAT}
    for entry, written in zip(known.entries, document["entries"], strict=True):
        written["conditions"] = patterns.to_json(entry.conditions)
        written["text"] = entry.text
    return json_bytes(document)


def from_json(document: Mapping[str, Any]) -> Knowledge:
    """Undo ``to_bytes``, of a file of edgekit's own."""
    return Knowledge(
        document["package"],
        document["version"],
        document["variant"],
        document["measured"],
        tuple(_entry(each) for each in document["entries"]),
    )


def _entry(document: Mapping[str, Any]) -> Entry:
    values = {key: value for key, value in document.items() if key != "text"}
    return Entry(**values | {
        "operators": tuple(document["operators"]),
        "conditions": patterns.from_json(document["conditions"]),
        "cures": tuple(Cure(**cure) for cure in document["cures"]),
    })  # fmt: skip
