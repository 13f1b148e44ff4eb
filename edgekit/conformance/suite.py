"""Cases as files for whoever replays them (a child process, a page), and what comes back.

``suite.json`` lists the cases in order; ``suite.safetensors`` holds ``INDEX/model`` (bytes) and ``INDEX/input/NAME``.
A reply is a JSON document and safetensors bytes for some of the cases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edgekit.conformance.cases import Case
from edgekit.records import settings, tensors
from edgekit.records.tensors import Array, Value

Outcome = Literal["done", "loaded", "refused", "failed", "crashed"]


@dataclass(frozen=True, eq=False)
class Reply:
    """What became of one case on a device; no judgement.

    ``refused``: no session was created. ``failed``: the session stands and the run threw. ``crashed``: the runtime
    trapped, ended its process, or never answered. ``placement``: the execution providers that got the nodes, in the
    runtime's own names; empty where not known. ``functions``: those of a recording runtime that the case entered, a
    bit each in order of code index, lowest bit first; None where the runtime does not record.
    """

    outcome: Outcome
    outputs: tuple[Value, ...] = ()
    error: str | None = None
    placement: tuple[str, ...] = ()
    functions: bytes | None = None


def encode(cases: Sequence[Case], todo: Sequence[int]) -> tuple[list[dict[str, Any]], bytes]:
    """Return the list for ``suite.json`` and the bytes of ``suite.safetensors``, of the cases numbered in ``todo``."""
    entries, arrays = [], dict[str, Array]()
    for index in todo:
        case = cases[index]
        inputs, input_arrays = tensors.split(f"{index}/input", case.inputs)
        arrays |= input_arrays
        arrays[f"{index}/model"] = np.frombuffer(case.model, dtype=np.uint8)
        entry = {"index": index, "model": f"{index}/model", "inputs": inputs, "run": case.run}
        if case.settings != settings.DEFAULT:
            entry["settings"] = settings.to_json(case.settings)
        entries.append(entry)
    return entries, tensors.encode(arrays)


def replies(document: Sequence[Mapping[str, Any]], data: bytes) -> dict[int, Reply]:
    """Read a reply. Raises UsageError when its tensors are malformed."""
    arrays = tensors.decode(data, "A reply")
    return {
        entry["index"]: Reply(
            entry["outcome"],
            tensors.join(entry["outputs"], arrays),
            entry["error"],
            tuple(entry.get("placement", ())),
            _functions(arrays.get(f"{entry['index']}/functions")),
        )
        for entry in document
    }


def branches(data: bytes) -> bytes:
    """Return the branches of a recording runtime that the cases of a reply entered together, a bit each."""
    bits = tensors.decode(data, "A reply").get("branches")
    return b"" if bits is None else bits.tobytes()


def _functions(bits: Array | None) -> bytes | None:
    return None if bits is None else bits.tobytes()
