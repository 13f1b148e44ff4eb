"""How strong golden cases are: make the model faulty in many small ways, and count what the cases would catch.

A fault is at one node: a weight disturbed by 1 %, a bias dropped, an axis, an attribute, an output of zeros. Each
faulty model runs on the desktop, all of them in one child process, and ``edgekit.compare`` judges what it gave. How
many are tried follows from an estimate of their cost that is the same on every machine, and which ones from the seed.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgekit.child import process as child
from edgekit.child.process import DEFAULT_LIMITS, ChildFailedError, ChildLimits
from edgekit.desktop import exchange
from edgekit.errors import EdgekitError, LimitError
from edgekit.model import io as models
from edgekit.progress import Progress, silent
from edgekit.records import cases as case_files
from edgekit.records.cases import CaseSet, Tolerance
from edgekit.records.strength import KINDS, KindCount, Missed, Strength, Unwatched, unmeasured

# Seconds of one core, by the estimate.
BUILD_SECONDS = 4.0
FULL_SECONDS = 30.0
_MOST_NAMED = 100
_MOST_CRASHES = 8
# The estimate may be wrong by this much before the child is ended.
_PATIENCE = 20.0
# Of faulty models that were ended, the runtime gives some memory back late.
_MORE_MEMORY_BYTES = 1 << 30
_DOING = "Trying the cases on faulty models"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of each fault, in the order of ``faults``: JSON values of ``edgekit.strength.child``."""

    possible: int
    faults: tuple[Mapping[str, Any], ...]
    results: tuple[Mapping[str, Any], ...]

    def missed(self) -> list[Mapping[str, Any]]:
        """Return the faults that ran and that no case caught."""
        return [fault for fault, result in zip(self.faults, self.results, strict=True) if _missed(result)]


def _missed(result: Mapping[str, Any]) -> bool:
    return bool(result["ran"]) and not result["caught_by"]


def measure(
    model: Path,
    case_set: CaseSet,
    *,
    seed: int = 0,
    budget_seconds: float = BUILD_SECONDS,
    tolerance: Mapping[str, Tolerance] | None = None,
    limits: ChildLimits = DEFAULT_LIMITS,
    progress: Progress = silent,
) -> Strength:
    """Measure how many faults of ``model`` the cases would catch. ``tolerance``: by output, over that of the cases.

    Cases that the model itself does not pass on the desktop are left aside. Where nothing can be measured (the model
    does not run, or takes too long), the result says why.
    """
    judged = replace(case_set, output_tolerance={**case_set.output_tolerance, **(tolerance or {})})
    try:
        found = outcomes(model, judged, seed=seed, budget_seconds=budget_seconds, limits=limits, progress=progress)
    except EdgekitError as error:
        return unmeasured(case_set.model_sha256, seed, error.message)
    return summarize(found, case_set.model_sha256, seed)


def outcomes(
    model: Path,
    case_set: CaseSet,
    *,
    seed: int = 0,
    budget_seconds: float = BUILD_SECONDS,
    faults: Sequence[Mapping[str, Any]] | None = None,
    every_case: bool = False,
    limits: ChildLimits = DEFAULT_LIMITS,
    progress: Progress = silent,
) -> Outcomes:
    """Try ``faults`` (None: a sample of all) on the cases. ``every_case``: go on after a case that catches a fault.

    Raises LimitError when it takes too much time or memory, ModelError for a model that cannot be read.
    """
    progress(_DOING)
    with tempfile.TemporaryDirectory(prefix="edgekit-strength-") as name:
        folder = Path(name)
        document, tensors = case_files.to_files(case_set)
        exchange.write_json(folder / "cases.json", document)
        (folder / "cases.safetensors").write_bytes(tensors)
        exchange.write_json(
            folder / "request.json",
            {
                "model": str(model.absolute()),
                "seed": seed,
                "budget_seconds": budget_seconds,
                "faults": None if faults is None else list(faults),
                "every_case": every_case,
            },
        )
        _run(folder, model, budget_seconds, limits)
        plan = exchange.read_json(folder / "plan.json")
        return Outcomes(plan["possible"], tuple(plan["faults"]), tuple(_results(folder)))


def _run(folder: Path, model: Path, budget_seconds: float, limits: ChildLimits) -> None:
    loaded = models.load(model)
    size = model.stat().st_size + sum(file.bytes for file in loaded.external_files)
    own = limits.for_model(2 * size, feeds=10)
    seconds = (own.cpu_seconds or 0.0) + _PATIENCE * budget_seconds
    memory = min(limits.memory_bytes, own.memory_bytes + _MORE_MEMORY_BYTES)
    own = replace(own, cpu_seconds=seconds, seconds=max(own.seconds, 2 * seconds), memory_bytes=memory)
    what = f"trying faulty copies of {model.name} on the desktop"

    for _ in range(_MOST_CRASHES):
        try:
            child.run_module("edgekit.strength.child", folder, limits=own, what=what)
            return
        except ChildFailedError as error:
            if not error.crashed or not (folder / "plan.json").is_file():
                raise
            with (folder / "results.jsonl").open("a", encoding="utf-8") as stream:  # a crash is no silent fault
                stream.write(json.dumps({"ran": False, "caught_by": [], "share": 0.0}) + "\n")
    raise LimitError(f"{what} crashed the runtime {_MOST_CRASHES} times.")


def _results(folder: Path) -> list[Mapping[str, Any]]:
    path = folder / "results.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def summarize(found: Outcomes, model_sha256: str, seed: int) -> Strength:
    """Count what was caught, by kind and by node."""
    if not found.faults:
        return unmeasured(model_sha256, seed, "No fault could be tried.")
    pairs = [(f, r) for f, r in zip(found.faults, found.results, strict=True) if r["ran"]]
    kinds = [(kind, [r for f, r in pairs if f["kind"] == kind]) for kind in KINDS]
    nodes: dict[int, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for fault, result in pairs:
        nodes.setdefault(fault["site"], []).append((fault, result))
    blind = [group for group in nodes.values() if all(_missed(result) for _, result in group)]
    missed = [Missed(f["kind"], f["node"], f["op_type"], f["what"], r["share"]) for f, r in pairs if _missed(r)]
    return Strength(
        model_sha256=model_sha256,
        seed=seed,
        possible=found.possible,
        tried=len(found.faults),
        refused=len(found.faults) - len(pairs),
        kinds=tuple(KindCount(kind, len(rs), sum(not _missed(r) for r in rs)) for kind, rs in kinds if rs),
        watched_nodes=len(nodes) - len(blind),
        unwatched_nodes=len(blind),
        unwatched=tuple(Unwatched(g[0][0]["node"], g[0][0]["op_type"], len(g)) for g in blind[:_MOST_NAMED]),
        missed=tuple(missed[:_MOST_NAMED]),
    )
