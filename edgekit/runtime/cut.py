"""Cut one build of the runtime to what a model needs.

Five steps, each on the result of the one before: functions that are not kept become stubs that report a miss and trap;
so do branches that no session takes; kernels that nobody creates any more are left out of what start-up registers;
texts that only cut code reads, and documentation of operators, become zeros; and Binaryen merges what has become equal.
No step changes an index that the JavaScript beside the module knows, or an instruction that is kept.
"""

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from edgekit.errors import UsageError
from edgekit.runtime import binaryen, kernels
from edgekit.runtime.binaryen import BinaryenError
from edgekit.runtime.profile import Profile, check_belongs, group_of
from edgekit.wasm import edits, texts
from edgekit.wasm.binary import EditError, WasmError
from edgekit.wasm.edits import Branches
from edgekit.wasm.module import Module, parse

# Below all data of a wasm-ld module (its first kibibyte is never used), and not the null that code tests for.
MISS_ADDRESS = 16


@dataclass(frozen=True)
class Step:
    """``bytes``: of the module after the step."""

    name: str
    bytes: int
    count: int


@dataclass(frozen=True)
class CutRuntime:
    """A runtime that was cut, valid by itself. ``note``: why a step was left out."""

    wasm: bytes
    steps: tuple[Step, ...]
    note: str | None


def cut(
    wasm: bytes, profile: Profile, keep: Set[int], optimizer: Path | None, dead: Branches = edits.NONE
) -> CutRuntime:
    """Return ``wasm`` cut to the functions ``keep``, and those to what is not ``dead``: some of the profile's branches.

    ``optimizer``: Binaryen's wasm-opt; None leaves its step out. Raises UsageError when the profile is of another file,
    or the file cannot be cut.
    """
    check_belongs(profile, wasm)
    try:
        return _cut(parse(wasm), profile, keep, optimizer, dead)
    except (EditError, WasmError) as error:
        raise UsageError(f"The runtime of {profile.variant} cannot be cut: {str(error).rstrip('.')}.") from error


def _cut(module: Module, profile: Profile, keep: Set[int], optimizer: Path | None, dead: Branches) -> CutRuntime:
    steps = [Step("stock", len(module.to_bytes()), profile.count)]
    known, unneeded = profile.kernels, frozenset[int]()
    if known is not None:
        unneeded = frozenset(k for k, creating in known.builders.items() if not creating & keep)
    kept = keep - unneeded
    ids = {k: group_of(k) for k in range(profile.count)}
    module = edits.cut(module, kept | unneeded, MISS_ADDRESS, ids)
    steps.append(Step("functions cut", len(module.to_bytes()), profile.count - len(kept)))
    dead = {k: some for k, some in dead.items() if k in kept}
    if dead:
        module = edits.cut(module, range(profile.count), MISS_ADDRESS, ids, dead)
        steps.append(Step("branches cut", len(module.to_bytes()), sum(map(len, dead.values()))))
    if known is not None:
        module = kernels.leave_out(module, known, unneeded)
        steps.append(Step("kernels left out", len(module.to_bytes()), len(unneeded)))
    without = frozenset(k for k, some in dead.items() if len(some) == len(profile.branches[k]))
    blanked = [
        text
        for text in profile.texts
        if text.documentation or not (text.functions - (text.in_branches & without)) & kept
    ]
    wasm = texts.blank(module, [(text.address, text.bytes) for text in blanked]).to_bytes()
    steps.append(Step("texts blanked", len(wasm), len(blanked)))
    note = "wasm-opt is not at hand: the runtime is larger than it could be" if optimizer is None else None
    if optimizer is not None:
        try:
            wasm = binaryen.merged(wasm, optimizer)
            steps.append(Step("merged", len(wasm), 0))
        except BinaryenError as error:
            note = error.message
    return CutRuntime(wasm, tuple(steps), note)
