"""The files that a parent and its child process exchange: feeds one way, results the other.

Every feed and every result is a JSON document beside a safetensors file; the document is written last, so one that is
there is whole. What is there when a child dies tells how far it came.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgekit.files import disk_errors
from edgekit.records import tensors
from edgekit.records.cases import FeedBack
from edgekit.records.tensors import Value

INPUTS, RESULTS = "inputs", "results"

# How the error of a feed begins that was stopped for its time.
LATE = "the run did not end within"


@dataclass(frozen=True, eq=False)
class StoredFeed:
    """A feed as the child reads it. ``repeats`` counts where nothing is fed back, the steps of the loop where it is."""

    inputs: tuple[Value, ...]
    feed_back: FeedBack | None
    repeats: int

    @property
    def runs(self) -> int:
        return self.repeats if self.feed_back is None else self.feed_back.steps


@dataclass(frozen=True, eq=False)
class StoredResult:
    """A result as the parent reads it: outputs, or an error."""

    outputs: tuple[Value, ...]
    error: str | None
    run_ms: tuple[float, ...]


def write_json(path: Path, document: Any) -> None:
    """Write so that a reader sees nothing or all of it. Raises LimitError when the disk is full."""
    part = path.with_suffix(".part")
    with disk_errors(path):
        part.write_text(json.dumps(document), encoding="utf-8")
        part.replace(path)


def read_json(path: Path) -> Any:
    """Undo ``write_json``."""
    return json.loads(path.read_text(encoding="utf-8"))


def save_feed(folder: Path, index: int, feed: StoredFeed) -> None:
    """Write one feed."""
    loop = feed.feed_back
    document = {
        "repeats": feed.repeats,
        "feed_back": None if loop is None else {"steps": loop.steps, "links": dict(loop.links)},
    }
    _save(folder / INPUTS, index, document, feed.inputs)


def load_feed(folder: Path, index: int) -> StoredFeed:
    """Undo ``save_feed``."""
    document, values = _load(folder / INPUTS, index)
    loop = document["feed_back"]
    return StoredFeed(values, None if loop is None else FeedBack(loop["steps"], loop["links"]), document["repeats"])


def save_result(folder: Path, index: int, result: StoredResult) -> None:
    """Write one result."""
    _save(folder / RESULTS, index, {"error": result.error, "run_ms": list(result.run_ms)}, result.outputs)


def load_result(folder: Path, index: int) -> StoredResult:
    """Undo ``save_result``."""
    document, values = _load(folder / RESULTS, index)
    return StoredResult(values, document["error"], tuple(document["run_ms"]))


def finished(folder: Path) -> set[int]:
    """Return the feeds that have a result."""
    return {int(path.stem) for path in (folder / RESULTS).glob("*.json")}


def _save(folder: Path, index: int, document: dict[str, Any], values: Iterable[Value]) -> None:
    entries, arrays = tensors.split("value", values)
    with disk_errors(folder):
        folder.mkdir(exist_ok=True)
        (folder / f"{index}.safetensors").write_bytes(tensors.encode(arrays))
    write_json(folder / f"{index}.json", document | {"values": entries})


def _load(folder: Path, index: int) -> tuple[dict[str, Any], tuple[Value, ...]]:
    document = read_json(folder / f"{index}.json")
    arrays = tensors.decode((folder / f"{index}.safetensors").read_bytes(), "A file of a child process")
    return document, tensors.join(document["values"], arrays)
