"""A recording build of the runtime: the same as the stock one, and it notes which of its functions are entered."""

import json
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgekit.errors import UsageError
from edgekit.files import json_bytes, replace_folder, sha256_bytes, sha256_file
from edgekit.runtime import cache
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.wasm import code, edits, layout, references, sections
from edgekit.wasm.binary import EditError, WasmError
from edgekit.wasm.edits import NONE, Branches
from edgekit.wasm.module import Module, parse
from edgekit.wasm.sections import Kind

# Another number for each change of what `edgekit.wasm.edits.record` writes: builds of older ones are then made anew.
FORMAT = 2
_STATED = "recording.json"


@dataclass(frozen=True)
class Recording:
    """Where a recording runtime sets its flags: a byte for each of its ``functions``, from address ``flag_base``.

    The flags of ``branches`` follow.
    """

    flag_base: int
    functions: int
    branches: int


def recording_dist(dist: RuntimeDist, variant: Variant, branches: Branches = NONE) -> tuple[RuntimeDist, Recording]:
    """Return the recording build of one variant of ``dist``, a folder of edgekit's cache, and where it sets its flags.

    ``branches`` of functions are recorded too. Made in seconds where the cache lacks it or holds it damaged; two
    processes may do this at once. Raises UsageError when ``dist`` lacks the variant, its wasm was changed or cannot be
    made to record, or the cache cannot be written.
    """
    dist.require([variant])
    of_branches = "" if not branches else f"-{_digest(branches)[:16]}"
    place = cache.folder() / "recording" / f"{dist.files[variant.wasm]}-{FORMAT}{of_branches}"
    found = _look(place, dist, variant)
    if found is None:
        with cache.writing():
            replace_folder(place, lambda folder: _make(folder, dist, variant, branches))
        found = _look(place, dist, variant)
        if found is None:
            raise UsageError(f"What was just written to {place} cannot be read.", hint="Run the command again.")
    return found


# Recordings to make of a model so that they hold for one thread up to four. Measured (with three models on the wasm
# variant, one on the others): two threads never enter two functions of wasm's thread pool that three and four do;
# nothing that three enter for sure is lacking with four; and one thread enters some that none of the others does.
THREADS = (1, 4)


def _digest(branches: Branches) -> str:
    listed = [(k, [(one.start, one.stop) for one in branches[k]]) for k in sorted(branches)]
    return sha256_bytes(repr(listed).encode())


def of_bits(bits: bytes) -> frozenset[int]:
    """Return the numbers of the bits that are set, the lowest bit of the first byte being 0: what a page recorded."""
    return frozenset(np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")).tolist())


def entered_by_chance(module: Module, one: Collection[int], several: Collection[int]) -> frozenset[int]:
    """Return the code indices of functions that threads may enter at another time, recorded or not.

    ``one``, ``several``: those entered with one thread and with several. Recordings with one thread are the same each
    time. With several, a handful differ: who waits for a lock, who sleeps before work comes, who wakes whom. They are
    called by the functions that come in with threads, or by JavaScript, when a message of a thread arrives or one has
    crashed. So this is all that is reached by direct calls from those functions and from the exports that one thread
    does not enter. (What the other exports call, one thread has shown.) What is called through the table alone cannot
    be told so: record with several threads more than once where every miss counts.
    """
    first = code.imported_functions(module)
    calls = references.direct_references(module)
    exports = {entry.index - first for entry in sections.exports(module) if entry.kind is Kind.FUNCTION}
    found: set[int] = set()
    waiting = [k for k in (exports | set(several)) - set(one) if k >= 0]  # an import may be exported too
    while waiting:
        k = waiting.pop()
        if k not in found:
            found.add(k)
            waiting += [index - first for index in calls[k] if index >= first]
    return frozenset(found)


def _make(folder: Path, dist: RuntimeDist, variant: Variant, branches: Branches) -> None:
    source = dist.folder / variant.wasm
    data = source.read_bytes()
    if sha256_bytes(data) != dist.files[variant.wasm]:
        raise UsageError(f"{source} has changed.", hint="Run the command again.")
    try:
        module = parse(data)
        functions, more = len(sections.functions(module)), sum(map(len, branches.values()))
        recording = Recording(layout.flag_base(module, flags=functions + more), functions, more)
        recorded = edits.record(module, recording.flag_base, branches).to_bytes()
    except (EditError, WasmError) as error:
        raise UsageError(f"{source} cannot be made to record: {str(error).rstrip('.')}.") from error
    for name in (variant.api, variant.mjs):
        shutil.copyfile(dist.folder / name, folder / name)
    (folder / variant.wasm).write_bytes(recorded)
    stated = {"recording": asdict(recording), "wasm_sha256": sha256_bytes(recorded)}
    (folder / _STATED).write_bytes(json_bytes(stated))


def _look(place: Path, dist: RuntimeDist, variant: Variant) -> tuple[RuntimeDist, Recording] | None:
    """Return what the cache holds, or None where it is not whole, or not of the same JavaScript."""
    try:
        stated: dict[str, Any] = json.loads((place / _STATED).read_bytes())
        expected = {**{name: dist.files[name] for name in variant.files}, variant.wasm: stated["wasm_sha256"]}
        if any(sha256_file(place / name) != sha256 for name, sha256 in expected.items()):
            return None
        return RuntimeDist(place, dist.package, dist.version, expected, False), Recording(**stated["recording"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None
