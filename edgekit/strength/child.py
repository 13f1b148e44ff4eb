"""The child process of ``edgekit.strength.measure``: one faulty model after the other, each on the golden cases.

It reads ``request.json`` and the cases from its folder. ``plan.json`` says which faults it tries; ``results.jsonl``
gains a line for each that is done, so that the one at which it died is known.
"""

import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner
import onnx.shape_inference
import onnxruntime as ort

from edgekit import compare
from edgekit.desktop import child as desktop_child
from edgekit.desktop.exchange import StoredFeed, read_json, write_json
from edgekit.errors import EdgekitError
from edgekit.facts import shapes, shapes_child, strip, work
from edgekit.facts.shapes import ShapeTable
from edgekit.golden.grade import Judge, shift
from edgekit.model import io as models
from edgekit.model import walk
from edgekit.model.detach import WEIGHTS, detached
from edgekit.model.io import LoadedModel
from edgekit.records import cases as case_files
from edgekit.records.cases import CaseSet, GoldenCase
from edgekit.records.run_record import CaseRun
from edgekit.records.tensors import Value
from edgekit.strength.faults import Fault, all_faults, with_fault

_FATAL_ONLY = 4
_FEED_SECONDS = 20.0
# What a faulty model costs, from what is known without running it: figures of one core, on the slow side.
_START_SECONDS, _SECONDS_PER_NODE, _SECONDS_PER_BYTE, _SECONDS_PER_MAC = 2e-3, 3e-5, 1e-9, 5e-10
# A fault is mostly caught by the first case or the second.
_CASES_A_FAULT = 2.5
_LEAST, _MOST = 16, 240
_LARGEST_SHARE = 1e9


@dataclass(frozen=True, eq=False)
class _Bench:
    """What stays the same from fault to fault."""

    folder: Path
    model: LoadedModel
    proto: onnx.ModelProto
    table: ShapeTable | None
    cases: tuple[GoldenCase, ...]
    judge: Judge
    seed: int
    every_case: bool


def main(folder: Path) -> None:
    """Do what ``folder/request.json`` asks; what is done already is not done again."""
    request = read_json(folder / "request.json")
    ort.set_default_logger_severity(_FATAL_ONLY)
    ort.disable_telemetry_events()
    case_set = case_files.from_files(read_json(folder / "cases.json"), (folder / "cases.safetensors").read_bytes())
    model = models.load(Path(request["model"]))
    proto = detached(model, folder)
    table = _table(model, case_set.cases[0] if case_set.cases else None)
    judge = Judge(case_set.tolerance, case_set.output_tolerance)
    bench = _Bench(folder, model, proto, table, case_set.cases, judge, request["seed"], request["every_case"])
    plan = folder / "plan.json"
    if not plan.is_file():
        write_json(plan, _plan(bench, case_set, request))
    planned = read_json(plan)
    bench = _with_cases(bench, planned["cases"])
    results = folder / "results.jsonl"
    done = len(results.read_text(encoding="utf-8").splitlines()) if results.is_file() else 0
    with results.open("a", encoding="utf-8") as stream:
        for number in range(done, len(planned["faults"])):
            outcome = _outcome(bench, Fault(**planned["faults"][number]))
            stream.write(json.dumps(outcome) + "\n")
            stream.flush()


def _table(model: LoadedModel, case: GoldenCase | None) -> ShapeTable | None:
    """Infer types and shapes for the sizes of a case; None where onnx cannot."""
    try:
        bare = strip.without_weights(model)
        given = {} if case is None else {value.name: value.shape for value in case.inputs if value.shape is not None}
        for info in bare.graph.input:
            if (shape := given.get(info.name)) is not None:
                kind = onnx.helper.make_tensor_type_proto(info.type.tensor_type.elem_type, shape)
                info.type.CopyFrom(kind)
        if bare.functions:
            bare = onnx.inliner.inline_local_functions(bare)
        shapes_child.declare(bare.graph, onnx.shape_inference.infer_shapes(bare, data_prop=True).graph)
        return ShapeTable(dict(shapes.scopes(bare.graph)), bare)
    except Exception:
        return None


def _plan(bench: _Bench, case_set: CaseSet, request: Mapping[str, Any]) -> dict[str, Any]:
    """Choose cases (of those that the model itself passes, the smallest first) and faults."""
    passing = _passing(bench)
    ordered = sorted(passing, key=lambda case: (not case.grade.strong, _elements(case), case.id))
    found = all_faults(bench.proto, bench.table)
    wanted = request["faults"]
    if wanted is None:
        tried = _sampled(found, bench.seed, _how_many(bench, request["budget_seconds"], len(ordered)))
    else:
        tried = [Fault(**fault) for fault in wanted]
    return {
        "possible": len(found),
        "cases": [case.id for case in ordered],
        "faults": [asdict(fault) for fault in tried] if ordered else [],
    }


def _passing(bench: _Bench) -> list[GoldenCase]:
    session = _session(bench, bench.proto)
    if session is None:
        return []
    found = []
    for case in bench.cases:
        outputs = _run(session, case)
        if outputs is not None and not _caught(bench, case, outputs):
            found.append(case)
    return found


def _elements(case: GoldenCase) -> int:
    steps = 1 if case.feed_back is None else case.feed_back.steps
    return steps * sum(value.array.size for value in case.inputs if value.array is not None)


def _how_many(bench: _Bench, budget_seconds: float, cases: int) -> int:
    """Return how many faults fit into the budget, by an estimate that is the same on every machine."""
    nodes = sum(1 for _ in walk.all_nodes(bench.proto))
    stored = (bench.folder / WEIGHTS).stat().st_size
    macs = 0
    if bench.table is not None:
        try:
            macs = work.estimate(bench.table).macs
        except EdgekitError:
            macs = 0
    create = _START_SECONDS + nodes * _SECONDS_PER_NODE + stored * _SECONDS_PER_BYTE
    cost = create + min(_CASES_A_FAULT, cases) * (_START_SECONDS + nodes * _SECONDS_PER_NODE + macs * _SECONDS_PER_MAC)
    return min(_MOST, max(_LEAST, int(budget_seconds / cost)))


def _sampled(faults: Sequence[Fault], seed: int, most: int) -> list[Fault]:
    """Choose at random, but a second fault of a node only after a first one of every node."""
    rng = random.Random(seed)  # noqa: S311  a sample, not a secret
    by_site: dict[int, list[Fault]] = {}
    for fault in faults:
        by_site.setdefault(fault.site, []).append(fault)
    ranked: list[tuple[int, float, Fault]] = []
    for group in by_site.values():
        rng.shuffle(group)
        ranked += [(rank, rng.random(), fault) for rank, fault in enumerate(group)]
    ranked.sort(key=lambda entry: entry[:2])
    chosen = [fault for _, _, fault in ranked[:most]]
    return sorted(chosen, key=lambda fault: (fault.site, fault.place, fault.kind, fault.step))


def _with_cases(bench: _Bench, ids: Sequence[str]) -> _Bench:
    known = {case.id: case for case in bench.cases}
    return _Bench(**{**vars(bench), "cases": tuple(known[name] for name in ids)})


def _outcome(bench: _Bench, fault: Fault) -> dict[str, Any]:
    """Try one fault: which cases catch it, and how large an error it makes, in tolerances."""
    proto = onnx.ModelProto()
    proto.CopyFrom(bench.proto)
    try:
        with_fault(bench.model, proto, fault, bench.table, bench.seed)
        session = _session(bench, proto)
    except Exception:  # surgery on a strange model: no fault that a device could have
        session = None
    if session is None:
        return {"ran": False, "caught_by": [], "share": 0.0}
    caught_by: list[str] = []
    share = 0.0
    for case in bench.cases:
        outputs = _run(session, case)
        if outputs is None:
            return {"ran": bool(caught_by), "caught_by": caught_by, "share": share}
        if _caught(bench, case, outputs):
            caught_by.append(case.id)
            if not bench.every_case:
                break
        moved = shift([*map(case.defined, case.outputs)], [*map(case.defined, outputs)], bench.judge)
        share = max(share, 0.0 if moved is None else min(_LARGEST_SHARE, moved.in_tolerances))
    return {"ran": True, "caught_by": caught_by, "share": float(f"{share:.2g}")}


def _session(bench: _Bench, proto: onnx.ModelProto) -> ort.InferenceSession | None:
    """Create a session as the reference had it; None where the runtime refuses the model."""
    path = bench.folder / "faulty.onnx"
    path.write_bytes(proto.SerializeToString())
    try:
        return desktop_child.create_session(str(path), "disabled", 1)
    except Exception:
        return None


def _run(session: ort.InferenceSession, case: GoldenCase) -> tuple[Value, ...] | None:
    done = desktop_child.run_feed(session, StoredFeed(case.inputs, case.feed_back, 1), _FEED_SECONDS)
    return None if done.error is not None else done.outputs


def _caught(bench: _Bench, case: GoldenCase, outputs: tuple[Value, ...]) -> bool:
    """Whether the judge would fail this case."""
    run = CaseRun(case.id, "done", outputs)
    verdicts = compare.judge_case(case, run, bench.judge.tolerance, bench.judge.output_tolerance)
    return any(verdict.status not in ("match", "not_comparable") for verdict in verdicts)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
