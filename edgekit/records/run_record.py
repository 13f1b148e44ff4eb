"""Run records: what a device reports. Devices run and report; only ``edgekit.compare`` judges."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NoReturn

from edgekit.records import settings, tensors
from edgekit.records.jsonable import jsonable
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import Array, Value
from edgekit.records.validate import validated

FORMAT = 1


@dataclass(frozen=True)
class Adapter:
    """The GPU adapter. ``software``: its arithmetic runs on the CPU, so its times say nothing about a GPU."""

    vendor: str
    architecture: str
    device: str
    description: str
    software: bool
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """Where a record was made. Execution providers are "webgpu", "wasm", "cpu" or another of onnxruntime's.

    ``session``: how the session was created; None: as onnxruntime does by itself. ``emulated``: the processor was
    another one that played this one, so the times say nothing.
    """

    runner: str
    runtime: str
    runtime_version: str
    variant: str | None
    execution_provider_asked: str
    execution_provider: str | None
    threads: int
    cross_origin_isolated: bool | None
    adapter: Adapter | None
    user_agent: str | None
    device: str | None
    session: SessionSettings | None = None
    emulated: bool = False


@dataclass(frozen=True)
class Attempt:
    """One step down the chain of variants: what was tried, what came of it, and why."""

    variant: str
    execution_provider: str
    status: Literal["created", "refused", "unavailable"]
    reason: str | None = None


@dataclass(frozen=True)
class Timings:
    """Milliseconds. None: not measured. ``later_run_ms``: runs after the first one, in order."""

    fetch_ms: float | None = None
    compile_ms: float | None = None
    create_ms: float | None = None
    first_run_ms: float | None = None
    later_run_ms: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class CaseRun:
    """What became of one golden case. Failed and skipped cases are entries, not gaps."""

    id: str
    status: Literal["done", "failed", "skipped"]
    outputs: tuple[Value, ...] = ()
    error: str | None = None
    run_ms: float | None = None


@dataclass(frozen=True)
class Hashes:
    """sha256 of what ran: the bundle's manifest (None for a record without a bundle), the model, the runtime's wasm."""

    manifest: str | None
    model: str
    runtime: str | None


@dataclass(frozen=True)
class Miss:
    """A trimmed runtime was asked for a function that was removed from it.

    ``functions``: what the stubs said, less 1: groups of neighbours in the code section of the variant's wasm; empty
    where the trap left no trace.
    ``recovered_by``: the id of the stock runtime that took over and ran the same inputs again; None: none did.
    ``reason``: "trap", the call failed so; "flag", it came to an end and the flag stood; "silence", no end came;
    "kernel", onnxruntime had no kernel for a node, which its ``message`` names.
    """

    variant: str
    functions: tuple[int, ...]
    during: Literal["create", "run"]
    recovered_by: str | None
    reason: Literal["trap", "flag", "silence", "kernel"]
    message: str


@dataclass(frozen=True)
class PlacedNode:
    """A node of the graph that the runtime made of the model: fused nodes have one name, added ones a new one."""

    name: str
    op_type: str


@dataclass(frozen=True)
class Placed:
    """The nodes that one execution provider got, which is named as the runtime spells it ("CPUExecutionProvider").

    ``copies``: nodes that the runtime added to bring a tensor to or from the CPU's memory; ``node_count`` does not
    count them. ``nodes``: fewer than ``node_count`` where there are too many to list, and none where the runtime put
    all in one place and named none.
    """

    execution_provider: str
    node_count: int
    copies: int
    nodes: tuple[PlacedNode, ...] = ()


@dataclass(frozen=True, eq=False)
class AgainRun:
    """A case that was run once more: in the same session, or in a "new" one. ``outputs``: none where they are equal.

    ``equal``: in every bit.
    """

    id: str
    session: Literal["same", "new"]
    equal: bool
    outputs: tuple[Value, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class MemorySample:
    """Bytes after a run: of the runtime's WebAssembly memory, and of JavaScript in the page. None: not known.

    On a device that has no page ``heap_bytes`` is what the process holds.
    """

    run: int
    wasm_bytes: int | None
    heap_bytes: int | None


@dataclass(frozen=True, eq=False)
class SoakRun:
    """One case, run many times in one session. ``different``: runs that gave other bits than the case did first.

    ``outputs``: of the last of those. ``run_ms`` has fewer entries than ``asked`` where a run ended in ``error``.
    """

    id: str
    asked: int
    different: int
    first_different: int | None
    run_ms: tuple[float, ...]
    memory: tuple[MemorySample, ...]
    outputs: tuple[Value, ...] = ()
    error: str | None = None


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Everything in ``record.json`` and ``record.safetensors``. ``run`` is the id that whoever asked for it gave.

    ``placement``: by execution provider; None where it is not known. ``again``: cases that were run once more;
    ``soak``: one that was run many times, None where that was not asked for.
    """

    run: str
    hashes: Hashes
    environment: Environment
    attempts: tuple[Attempt, ...]
    timings: Timings
    cases: tuple[CaseRun, ...]
    error: str | None = None
    misses: tuple[Miss, ...] = ()
    placement: tuple[Placed, ...] | None = None
    again: tuple[AgainRun, ...] = ()
    soak: SoakRun | None = None


def to_files(record: RunRecord) -> tuple[dict[str, Any], bytes]:
    """Return ``record.json`` (as a JSON value) and the bytes of ``record.safetensors``."""
    arrays: dict[str, Array] = {}
    cases = []
    for case in record.cases:
        outputs, output_arrays = tensors.split(f"{case.id}/output", case.outputs)
        arrays |= output_arrays
        cases.append(
            {"id": case.id, "status": case.status, "error": case.error, "run_ms": case.run_ms, "outputs": outputs}
        )
    again = []
    for one in record.again:
        outputs, output_arrays = tensors.split(f"{one.id}/again-{one.session}", one.outputs)
        arrays |= output_arrays
        again.append({"id": one.id, "session": one.session, "equal": one.equal, "error": one.error, "outputs": outputs})
    soak, soak_arrays = _soak_json(record.soak)
    arrays |= soak_arrays
    document: dict[str, Any] = {
        "format": FORMAT,
        "run": record.run,
        "hashes": asdict(record.hashes),
        "environment": _environment_json(record.environment),
        "attempts": [asdict(attempt) for attempt in record.attempts],
        "timings": asdict(record.timings),
        "error": record.error,
        "misses": [asdict(miss) for miss in record.misses],
        "placement": placement_json(record),
        "again": again,
        "soak": soak,
        "cases": cases,
    }
    return jsonable(document), tensors.encode(arrays)


def _environment_json(environment: Environment) -> dict[str, Any]:
    said = asdict(environment)
    if not environment.emulated:
        del said["emulated"]  # only of devices that may be
    return said


def _soak_json(soak: SoakRun | None) -> tuple[dict[str, Any] | None, dict[str, Array]]:
    if soak is None:
        return None, {}
    outputs, arrays = tensors.split(f"{soak.id}/soak", soak.outputs)
    said = {name: value for name, value in vars(soak).items() if name not in ("outputs", "memory")}
    return {**said, "memory": [asdict(sample) for sample in soak.memory], "outputs": outputs}, arrays


def placement_json(record: RunRecord) -> list[dict[str, Any]] | None:
    """Return the record's placement as a JSON value; None where it is not known."""
    return None if record.placement is None else jsonable([asdict(placed) for placed in record.placement])


def from_device(document: bytes, data: bytes) -> RunRecord:
    """Undo ``to_files`` for what a device handed over, which is untrusted.

    Raises UsageError like ``from_files``; ValueError, OverflowError or RecursionError for what is not JSON, or cannot
    be written again: JSON may name half of a surrogate pair, which no file can hold.
    """
    record = from_files(json.loads(document, parse_constant=_refuse_constant), data)
    json.dumps(to_files(record)[0], ensure_ascii=False).encode()
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def from_files(document: Any, data: bytes) -> RunRecord:
    """Undo ``to_files``. Raises UsageError when the document does not fit its schema or the tensors."""
    document = validated(document, "record", "record.json")
    arrays = tensors.decode(data, "record.safetensors")
    environment: dict[str, Any] = dict(document["environment"])
    if environment["adapter"] is not None:
        adapter = environment["adapter"]
        environment["adapter"] = Adapter(**{**adapter, "features": tuple(adapter["features"])})
    if environment.get("session") is not None:  # absent in records of older pages
        environment["session"] = settings.from_json(environment["session"])
    timings = document["timings"]
    return RunRecord(
        run=document["run"],
        hashes=Hashes(**document["hashes"]),
        environment=Environment(**environment),
        attempts=tuple(Attempt(**attempt) for attempt in document["attempts"]),
        timings=Timings(**{**timings, "later_run_ms": tuple(timings["later_run_ms"])}),
        cases=tuple(_case_run(case, arrays) for case in document["cases"]),
        error=document["error"],
        # Records of pages that knew no trimmed runtimes have no such list.
        misses=tuple(Miss(**{**miss, "functions": tuple(miss["functions"])}) for miss in document.get("misses", ())),
        # What follows is absent in records of older pages.
        placement=_placement(document.get("placement")),
        again=tuple(
            AgainRun(**{**one, "outputs": tensors.join(one["outputs"], arrays)}) for one in document.get("again", ())
        ),
        soak=_soak(document.get("soak"), arrays),
    )


def _soak(soak: Mapping[str, Any] | None, arrays: Mapping[str, Array]) -> SoakRun | None:
    if soak is None:
        return None
    return SoakRun(
        **{
            **soak,
            "run_ms": tuple(soak["run_ms"]),
            "memory": tuple(MemorySample(**sample) for sample in soak["memory"]),
            "outputs": tensors.join(soak["outputs"], arrays),
        }
    )


def _placement(groups: Sequence[Mapping[str, Any]] | None) -> tuple[Placed, ...] | None:
    if groups is None:
        return None
    return tuple(Placed(**{**group, "nodes": tuple(PlacedNode(**node) for node in group["nodes"])}) for group in groups)


def _case_run(case: Mapping[str, Any], arrays: Mapping[str, Array]) -> CaseRun:
    return CaseRun(
        id=case["id"],
        status=case["status"],
        outputs=tensors.join(case["outputs"], arrays),
        error=case["error"],
        run_ms=case["run_ms"],
    )
