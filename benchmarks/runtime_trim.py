"""Cut the runtime and measure: sizes beside the published build, times in pairs, and what a cut runtime still does.

    python benchmarks/runtime_trim.py sizes [--variant wasm] [--model KEY ...]
    python benchmarks/runtime_trim.py every                one runtime with every operator of ai.onnx, by variant
    python benchmarks/runtime_trim.py times [--model KEY]  session creation and first run, cut over stock, in pairs
    python benchmarks/runtime_trim.py suite [--most N]     each conformance case on a runtime cut for its operators
    python benchmarks/runtime_trim.py leave-one-out        how often a profile without a case lacks a function of it

Each writes its part of ``results/runtime_trim.json``. Bytes are those of brotli, quality 11, as a bundle holds it.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from edgekit import parity, pipeline, runtime_profile
from edgekit.bundle import compress
from edgekit.bundle.runtime_files import CutRuntimes
from edgekit.conformance.cases import Case, standard
from edgekit.conformance.suite import Reply
from edgekit.desktop.messages import NO_KERNEL
from edgekit.facts.operators import Operator
from edgekit.files import json_bytes, sha256_bytes, write_atomic
from edgekit.kinds.config import BuildConfig
from edgekit.model import walk
from edgekit.parity import ParityOptions
from edgekit.progress import Progress, silent
from edgekit.records import store
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import same_bits
from edgekit.runners import conformance, recording
from edgekit.runners.recording import Job
from edgekit.runtime import branches, cut, fetch, keep, locate, pins, profile
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.runtime.profile import Profile
from edgekit.runtime.recording import recording_dist
from edgekit.wasm.module import parse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "models"))
import real
import web_bundle

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "runtime_trim.json"
PAIRS = 15
COMPARED_WITH = (1, 2)


def main() -> None:
    """Measure one part, print it, and write it beside the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("sizes", "every", "times", "suite", "leave-one-out"))
    parser.add_argument("--variant", default="wasm", choices=[one.id for one in pins.load().variants])
    parser.add_argument("--model", action="append", choices=list(real.table()))
    parser.add_argument("--most", type=int, help="of the suite, this many sets of operators")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    models = asked.model or list(real.table())
    if asked.part == "sizes":
        found: Any = {asked.variant: list(sizes(models, asked.variant))}
    elif asked.part == "every":
        found = {asked.variant: every(asked.variant)}
    elif asked.part == "times":
        found = {asked.variant: {key: times(key, asked.variant) for key in models}}
    elif asked.part == "suite":
        found = {asked.variant: suite(asked.variant, asked.most)}
    else:
        found = {asked.variant: leave_one_out(asked.variant)}
    document = json.loads(asked.output.read_text()) if asked.output.is_file() else {}
    document.setdefault(asked.part, {}).update(found)
    write_atomic(asked.output, json_bytes(document))
    print(json.dumps(found, indent=2))


def sizes(keys: Iterable[str], variant_id: str) -> Iterator[dict[str, Any]]:
    """Build each model with the variant alone, and compare what a visitor loads."""
    variant, dist, _ = _of(variant_id)
    stock = _brotli(dist.folder / variant.wasm)
    for key in keys:
        with tempfile.TemporaryDirectory(prefix="edgekit-sizes-") as name:
            heard = _Heard([])
            built = _build(key, variant, Path(name), heard)
            (one,) = built.runtimes
            now = _brotli(built.folder / "runtime" / variant.wasm)
            same = _same_bits(built.folder, variant, dist)
        row = {"model": key, "stock": stock, "trimmed": now, "ratio": round(now / stock, 3), "functions": one.kept}
        row |= {"model_bytes": real.obtain(real.table()[key]).stat().st_size, "seconds": heard.seconds()}
        yield row | {"proven_with_threads": list(one.proven), "reason": one.reason, "note": one.note, **same}


def _same_bits(bundle: Path, variant: Variant, dist: RuntimeDist) -> dict[str, Any]:
    """Run the golden cases on the published and the cut runtime; with how many threads are they the same, bit by bit?

    So are refusals, in the same words, where the runtime refuses the model.
    """
    trimmed = _shipped(bundle, variant, dist)
    jobs = [Job(variant, one, threads=threads) for threads in COMPARED_WITH for one in (dist, trimmed)]
    runs = recording.record_all(bundle, jobs)
    same = []
    for stock, now in zip(runs[::2], runs[1::2], strict=True):
        pairs = zip(stock.outputs.values(), now.outputs.values(), strict=True)
        bits = all(len(a) == len(b) and all(map(same_bits, a, b)) for a, b in pairs)
        if bits and list(stock.outputs) == list(now.outputs) and stock.failures == now.failures:
            same.append(stock.threads)
    # A step records and proves, so it takes twice this at least, whatever cutting takes.
    once = sum(step.ms for step in runs[0].steps if step.case_id is not None) / 1000
    return {"cases": len(runs[0].outputs), "golden_seconds": round(once, 1), "same_bits_with_threads": same}


def every(variant_id: str) -> dict[str, Any]:
    """Keep what every operator of ai.onnx enters, in every version and dtype that was measured."""
    variant, dist, known = _of(variant_id)
    wasm = (dist.folder / variant.wasm).read_bytes()
    kept = keep.every(known, "")
    # What Binaryen writes of the builds for WebGPU is not used where a tab crashes on it, so it is not counted here.
    optimizer = None if variant.needs else fetch.optimizer()
    made = cut.cut(wasm, known, kept.functions, optimizer, known.branches)
    with tempfile.TemporaryDirectory(prefix="edgekit-every-") as name:
        trimmed = _dist(dist, variant, made.wasm, Path(name))
        cases = [case for case in standard() if case.operator is not None and case.operator.domain == ""]
        before = conformance.replay(cases, variant, dist).replies
        after = conformance.replay(cases, variant, trimmed).replies
        now, stock = _brotli(trimmed.folder / variant.wasm), _brotli(dist.folder / variant.wasm)
    outcome = Counter(map(_compared, before, after))
    row = {"stock": stock, "trimmed": now, "ratio": round(now / stock, 3), "functions": len(kept.functions)}
    return row | {"steps": [[one.name, one.bytes] for one in made.steps], "cases": dict(outcome)}


def times(key: str, variant_id: str) -> dict[str, Any]:
    """Create a session and run it, on the stock and the cut runtime by turns; medians of the ratios of each pair."""
    variant, dist, _ = _of(variant_id)
    with tempfile.TemporaryDirectory(prefix="edgekit-times-") as name:
        built = _build(key, variant, Path(name))
        trimmed = _shipped(built.folder, variant, dist)
        jobs = [Job(variant, one) for _ in range(PAIRS) for one in (dist, trimmed)]
        runs = recording.record_all(built.folder, jobs)
    rows: dict[str, list[float]] = defaultdict(list)
    for stock, now in zip(runs[::2], runs[1::2], strict=True):
        for number, step in enumerate(("create", "first run")):
            rows[step].append(now.steps[number].ms / stock.steps[number].ms)
        rows["both"].append(sum(s.ms for s in now.steps[:2]) / sum(s.ms for s in stock.steps[:2]))
    return {"pairs": PAIRS, **{step: round(statistics.median(ratios), 3) for step, ratios in rows.items()}}


def suite(variant_id: str, most: int | None) -> dict[str, Any]:
    """Run the standard cases on runtimes cut from the profile alone, one for each set of operators that a case has.

    As ``build`` cuts for a model that it could not record: whole functions, and no branches.
    """
    variant, dist, known = _of(variant_id)
    wasm = (dist.folder / variant.wasm).read_bytes()
    groups: dict[frozenset[tuple[str, str]], list[Case]] = defaultdict(list)
    for case in standard():
        groups[_operators(case)].append(case)
    chosen = sorted(groups.items(), key=lambda item: sorted(item[0]))[:most]
    everything = [case for _, cases in chosen for case in cases]
    before = dict(zip((c.name for c in everything), conformance.replay(everything, variant, dist).replies, strict=True))
    outcome: Counter[str] = Counter()
    differing: list[str] = []
    recovered = 0
    for operators, cases in chosen:
        with tempfile.TemporaryDirectory(prefix="edgekit-suite-") as name:
            made = cut.cut(wasm, known, _kept(known, operators), None, {}).wasm
            trimmed = _dist(dist, variant, made, Path(name))
            for case, reply in zip(cases, conformance.replay(cases, variant, trimmed).replies, strict=True):
                result = _compared(before[case.name], reply)
                outcome[result] += 1
                if result != "same":
                    differing.append(f"{case.name}: {result}: {reply.error}")
                if result == "missed":
                    recovered += _recovered(
                        case, before[case.name], variant, made, Path(name) / f"case{len(differing)}"
                    )
    missed = outcome["missed"]
    row = {"cases": len(everything), "runtimes": len(chosen), **outcome, "recovered": f"{recovered} of {missed}"}
    return row | {"differing": differing}


def _recovered(case: Case, before: Reply, variant: Variant, wasm: bytes, folder: Path) -> bool:
    """Whether a page with that runtime and the net gives what the whole build gave: its outputs, or its refusal."""
    folder.mkdir()
    (folder / "model.onnx").write_bytes(case.model)
    golden = GoldenCase("only", case.name, case.inputs, before.outputs)
    cases = replace(web_bundle.cases_for(folder / "model.onnx"), cases=(golden,))
    target = "wasm" if variant.execution_provider == "wasm" else "webgpu"
    made = CutRuntimes({variant.id: wasm}, "same", {})
    web_bundle.build(folder / "model.onnx", folder / "bundle", target, cases=cases, cut=made, copies=False)
    options = ParityOptions(output=folder / "run", repeats=1, gpu="software", variant=variant.id)
    parity.verify(folder / "bundle", options)
    record = store.load_run(folder / "run").record
    if record is None:
        return False
    if before.outcome == "done":
        if not record.misses:
            return False
        outputs = record.cases[0].outputs
        return len(outputs) == len(before.outputs) and all(map(same_bits, outputs, before.outputs))
    said = [record.error, *(one.reason for one in record.attempts), *(one.error for one in record.cases)]
    return any(before.error is not None and before.error in (text or "") for text in said)


def leave_one_out(variant_id: str) -> dict[str, Any]:
    """Record every case; of how many does the rest of the profile not name every function, or every branch?

    A branch is one of a function that every session enters. It counts where no other case enters it, but for those that
    are never cut. "Nothing left out" is what ``suite`` tries, told from what each standard case enters.
    """
    variant, dist, known = _of(variant_id)
    module = parse((dist.folder / variant.wasm).read_bytes())
    everywhere = known.start | (keep.shared(known.operators, keep.SHARED_WITH_RECORDING) - known.failures)
    listed = {k: some for k, some in branches.listed(module).items() if k in everywhere}
    recorder, flags = recording_dist(dist, variant, listed)
    # Read as if they were functions, so that each case tells its own.
    flags = replace(flags, functions=flags.functions + flags.branches, branches=0)
    could_die = branches.never_entered(module, listed, (), everywhere, known.threads)
    replayed = [case for case in runtime_profile.suite() if case.operator is not None or case.source == "standard"]
    replies = list(conformance.replay(replayed, variant, recorder, recording=flags, gpu="software").replies)
    if variant.needs:  # after a refusal, cases share a device and its programs (see edgekit.runtime_profile)
        taken = [number for number, reply in enumerate(replies) if reply.outcome != "refused"]
        again = [replayed[number] for number in taken]
        for number, reply in zip(
            taken, conformance.replay(again, variant, recorder, recording=flags, gpu="software").replies, strict=True
        ):
            replies[number] = reply
    entered = np.stack([np.unpackbits(np.frombuffer(_bits(r), np.uint8), bitorder="little") for r in replies])
    rows = [number for number, case in enumerate(replayed) if case.operator is not None]
    cases, bits = [replayed[number] for number in rows], entered[rows]
    own = [(case.operator.domain, case.operator.op_type) for case in cases if case.operator is not None]
    order = {operator: number for number, operator in enumerate(dict.fromkeys(own))}
    counts = np.zeros((len(order), bits.shape[1]), np.int32)
    np.add.at(counts, [order[one] for one in own], bits)
    entering = (counts > 0).sum(0)
    by_cases = bits.sum(0, dtype=np.int32)
    cuttable = np.zeros(bits.shape[1], bool)
    cuttable[known.count : known.count + sum(map(len, listed.values()))] = [
        any(one.start <= branch.start and branch.stop <= one.stop for one in could_die.get(k, ()))
        for k, branch in branches.flagged(listed)
    ]
    always = np.zeros(bits.shape[1], bool)
    always[known.count :] = True
    always[list(known.start | known.threads | known.failures)] = True
    missing: dict[str, list[int]] = {"standard": [], "all": [], "all, branches": []}
    for number, case in enumerate(cases):
        rest = counts[order[own[number]]] - bits[number]
        others = entering - ((counts[order[own[number]]] > 0) & (rest == 0))
        lacks = bool((bits[number].astype(bool) & ~always & (rest == 0) & (others < keep.SHARED_ALONE)).any())
        missing["all"].append(lacks)
        missing["all, branches"].append(bool((bits[number].astype(bool) & cuttable & (by_cases == 1)).any()))
        if case.source == "standard":
            missing["standard"].append(lacks)
    missing["standard, nothing left out"] = list(_lacking(known, replayed, entered[:, : known.count]))
    return {
        name: {"cases": len(rows), "misses": sum(rows), "per_cent": round(100 * sum(rows) / len(rows), 2)}
        for name, rows in missing.items()
    }


def _lacking(known: Profile, cases: Sequence[Case], entered: np.ndarray) -> Iterator[int]:
    """Yield for each standard case whether it enters a function that ``suite`` would not keep for it."""
    masks: dict[frozenset[tuple[str, str]], np.ndarray] = {}
    for case, row in zip(cases, entered, strict=True):
        if case.source == "standard":
            operators = _operators(case)
            if operators not in masks:
                masks[operators] = np.zeros(known.count, bool)
                masks[operators][list(_kept(known, operators))] = True
            yield int((row.astype(bool) & ~masks[operators]).any())


def _kept(known: Profile, operators: frozenset[tuple[str, str]]) -> frozenset[int]:
    """Return what the profile alone keeps for these operators."""
    listed = [Operator(domain or walk.DEFAULT_DOMAIN, op_type, 1) for domain, op_type in sorted(operators)]
    return keep.choose(known, listed, recorded=None).functions


def _of(variant_id: str) -> tuple[Variant, RuntimeDist, Profile]:
    (variant,) = pins.load().chosen([variant_id], "--variant")
    dist = locate.locate(None)
    known = profile.find(dist.files[variant.wasm])
    if known is None:
        sys.exit(f"edgekit has no profile of {variant.wasm}.")
    return variant, dist, known


@dataclass(frozen=True)
class _Heard:
    """What a build says it does, and when."""

    said: list[tuple[float, str]]

    def __call__(self, message: str, done: float | None = None) -> None:
        self.said.append((time.monotonic(), message))

    def seconds(self) -> float:
        """Return how long the runtime took to record, cut and prove: from the browser's start to what is done next."""
        own = ("Starting the browser", "Running the golden cases", "Cutting the runtime")
        times = [at for at, what in self.said if what.startswith(own)]
        return round(next(at for at, _ in self.said if at > times[-1]) - times[0], 1)


def _build(key: str, variant: Variant, folder: Path, progress: Progress = silent) -> pipeline.BuildResult:
    """Build a bundle with one variant: a target of its own."""
    base = "wasm" if variant.execution_provider == "wasm" else "webgpu"
    (folder / "one.toml").write_text(f'extends = "{base}"\ntitle = "one"\n[runtime]\nvariants = ["{variant.id}"]\n')
    model = real.obtain(real.table()[key])
    return pipeline.build(BuildConfig(model, "one", folder / "bundle", targets_dir=folder), progress=progress)


def _shipped(bundle: Path, variant: Variant, dist: RuntimeDist) -> RuntimeDist:
    """Return the runtime that the bundle holds."""
    folder = bundle / "runtime"
    return replace(dist, folder=folder, files={**dist.files, variant.wasm: _sha256(folder / variant.wasm)})


def _dist(dist: RuntimeDist, variant: Variant, wasm: bytes, folder: Path) -> RuntimeDist:
    for name in (variant.api, variant.mjs):
        (folder / name).write_bytes((dist.folder / name).read_bytes())
    (folder / variant.wasm).write_bytes(wasm)
    return replace(dist, folder=folder, files={**dist.files, variant.wasm: sha256_bytes(wasm)}, pinned=False)


def _operators(case: Case) -> frozenset[tuple[str, str]]:
    nodes = walk.all_nodes(onnx.load_from_string(case.model))
    return frozenset(("" if node.domain == walk.DEFAULT_DOMAIN else node.domain, node.op_type) for node in nodes)


def _compared(before: Reply, now: Reply) -> str:
    # A page takes it for a miss too (web/src/net.js): the whole build may have the kernel, or refuse for another node.
    lacks_kernel = now.error is not None and NO_KERNEL.search(now.error) is not None and now.error != before.error
    if (now.outcome == "crashed" and before.outcome != "crashed") or lacks_kernel:
        return "missed"
    if (now.outcome, now.error) != (before.outcome, before.error) or len(now.outputs) != len(before.outputs):
        return "other"
    return "same" if all(map(same_bits, now.outputs, before.outputs)) else "other values"


def _bits(reply: Reply) -> bytes:
    if reply.functions is None:
        sys.exit(f"A case did not come to an end: {reply.error}")
    return reply.functions


def _brotli(path: Path) -> int:
    compress.prepare([path])
    return compress.known_brotli_bytes(path) or path.stat().st_size


def _sha256(path: Path) -> str:
    return sha256_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
