"""Replay the golden cases on this device, and write a run record. The device judges nothing."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit.bundle.open import Bundle, load_cases
from edgekit.desktop.exchange import StoredFeed, StoredResult
from edgekit.device import health
from edgekit.device.config import Session
from edgekit.device.engine import Engine, runtime_sha256
from edgekit.errors import UsageError
from edgekit.files import json_bytes, write_atomic
from edgekit.records import run_record
from edgekit.records.cases import CaseSet, GoldenCase
from edgekit.records.run_record import AgainRun, CaseRun, Hashes, MemorySample, RunRecord, SoakRun, Timings
from edgekit.records.tensors import Value, same_bits

RECORD, TENSORS = "record.json", "record.safetensors"
_MEMORY_SAMPLES = 50


@dataclass(frozen=True)
class ReplayOptions:
    """``run``: the id that the record brings back. ``cases`` None: all. ``repeats``: timed runs after the first.

    ``again``: run each case once more in the same session; ``soak``: run one case so often more.
    """

    run: str = ""
    cases: tuple[str, ...] | None = None
    repeats: int = 5
    again: bool = True
    soak: int = 0


def replay(bundle: Bundle, settings: Session, options: ReplayOptions) -> RunRecord:
    """Create a session, run the cases, and return the record.

    Raises UsageError for a case that is not there, ModelError where the runtime refuses the model.
    """
    case_set = load_cases(bundle)
    chosen = _chosen(case_set, options.cases)
    engine = Engine(bundle, settings)
    timed = next((case for case in chosen if case.feed_back is None), chosen[0])
    results: dict[str, StoredResult] = {}
    for case in chosen:
        results[case.id] = engine.run(StoredFeed(case.inputs, case.feed_back, 1))
    first, later = results[timed.id].run_ms, _later(engine, timed, options.repeats)
    return RunRecord(
        run=options.run or secrets.token_hex(8),
        hashes=Hashes(bundle.manifest_sha256, bundle.manifest.model.sha256, runtime_sha256()),
        environment=engine.environment(),
        attempts=(),
        timings=Timings(
            create_ms=engine.create_ms, first_run_ms=first[0] if first else None, later_run_ms=later or first[1:]
        ),
        cases=tuple(_case_run(case, results.get(case.id)) for case in case_set.cases),
        again=tuple(_again(engine, case, results[case.id]) for case in chosen) if options.again else (),
        soak=_soak(engine, timed, results[timed.id], options.soak) if options.soak else None,
    )


def write(folder: Path, record: RunRecord) -> None:
    """Write ``record.json`` and ``record.safetensors``; the document comes last, so one that is there is whole."""
    document, tensors = run_record.to_files(record)
    write_atomic(folder / TENSORS, tensors)
    write_atomic(folder / RECORD, json_bytes(document))


def _chosen(case_set: CaseSet, ids: Sequence[str] | None) -> tuple[GoldenCase, ...]:
    known = [case.id for case in case_set.cases]
    for name in ids or ():
        if name not in known:
            raise UsageError(f"There is no golden case '{name}'.", hint=f"There are: {', '.join(known)}.")
    return tuple(case for case in case_set.cases if ids is None or case.id in ids)


def _later(engine: Engine, case: GoldenCase, repeats: int) -> tuple[float, ...]:
    if case.feed_back is not None or repeats < 1:
        return ()
    return engine.run(StoredFeed(case.inputs, None, repeats)).run_ms


def _case_run(case: GoldenCase, result: StoredResult | None) -> CaseRun:
    if result is None:
        return CaseRun(case.id, "skipped")
    if result.error is not None:
        return CaseRun(case.id, "failed", error=result.error)
    return CaseRun(case.id, "done", result.outputs, run_ms=sum(result.run_ms))


def _same(a: Sequence[Value], b: Sequence[Value]) -> bool:
    return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))


def _again(engine: Engine, case: GoldenCase, before: StoredResult) -> AgainRun:
    now = engine.run(StoredFeed(case.inputs, case.feed_back, 1))
    equal = now.error is None and _same(now.outputs, before.outputs)
    return AgainRun(case.id, "same", equal, () if equal else now.outputs, now.error)


def _soak(engine: Engine, case: GoldenCase, before: StoredResult, count: int) -> SoakRun:
    different, first_different, error = 0, None, None
    run_ms: list[float] = []
    memory: list[MemorySample] = []
    last: tuple[Value, ...] = ()
    every = max(1, count // _MEMORY_SAMPLES)
    for number in range(1, count + 1):
        result = engine.run(StoredFeed(case.inputs, case.feed_back, 1))
        if result.error is not None:
            error = result.error
            break
        run_ms.append(sum(result.run_ms))
        if not _same(result.outputs, before.outputs):
            different += 1
            first_different = first_different or number
            last = result.outputs
        if number % every == 0 or number == count:
            memory.append(MemorySample(number, None, health.resident_bytes()))
    return SoakRun(case.id, count, different, first_different, tuple(run_ms), tuple(memory), last, error)
