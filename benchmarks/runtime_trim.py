"""Cut the runtime and measure: sizes beside the published build, times in pairs, and what a cut runtime still does.

    python benchmarks/runtime_trim.py sizes [--variant wasm] [--model KEY ...]
    python benchmarks/runtime_trim.py every                one runtime with every operator of ai.onnx, by variant
    python benchmarks/runtime_trim.py times [--model KEY]  session creation and first run, cut over stock, in pairs
    python benchmarks/runtime_trim.py suite [--most N]     each conformance case on a runtime cut for its operators
    python benchmarks/runtime_trim.py leave-one-out        how often a profile without a case lacks a function of it

Each writes its part of ``results/runtime_trim.json``. Bytes are those of brotli, quality 11, of the whole file at once.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import brotli
import numpy as np
import onnx

from edgekit import pipeline, runtime_profile
from edgekit.conformance.cases import Case, standard
from edgekit.conformance.suite import Reply
from edgekit.facts.operators import Operator
from edgekit.files import json_bytes, sha256_bytes, write_atomic
from edgekit.model import walk
from edgekit.pipeline import BuildConfig
from edgekit.records.tensors import same_bits
from edgekit.runners import conformance, recording
from edgekit.runners.recording import Job
from edgekit.runtime import cut, fetch, keep, locate, pins, profile
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.runtime.profile import Profile
from edgekit.runtime.recording import recording_dist

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "models"))
import real

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "runtime_trim.json"
PAIRS = 15


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
    stock = _brotli((dist.folder / variant.wasm).read_bytes())
    for key in keys:
        with tempfile.TemporaryDirectory(prefix="edgekit-sizes-") as name:
            built = _build(key, variant, Path(name))
            (one,) = built.runtimes
            now = _brotli((built.folder / "runtime" / variant.wasm).read_bytes())
        row = {"model": key, "stock": stock, "trimmed": now, "ratio": round(now / stock, 3), "functions": one.kept}
        yield row | {"proven_with_threads": list(one.proven), "reason": one.reason}


def every(variant_id: str) -> dict[str, Any]:
    """Keep what every operator of ai.onnx enters, in every version and dtype that was measured."""
    variant, dist, known = _of(variant_id)
    wasm = (dist.folder / variant.wasm).read_bytes()
    kept = keep.every(known, "")
    now, stock = _brotli(cut.cut(wasm, known, kept.functions, fetch.optimizer()).wasm), _brotli(wasm)
    return {"stock": stock, "trimmed": now, "ratio": round(now / stock, 3), "functions": len(kept.functions)}


def times(key: str, variant_id: str) -> dict[str, Any]:
    """Create a session and run it, on the stock and the cut runtime by turns; medians of the ratios of each pair."""
    variant, dist, _ = _of(variant_id)
    with tempfile.TemporaryDirectory(prefix="edgekit-times-") as name:
        built = _build(key, variant, Path(name))
        folder = built.folder / "runtime"
        trimmed = replace(dist, folder=folder, files={**dist.files, variant.wasm: _sha256(folder / variant.wasm)})
        jobs = [Job(variant, one) for _ in range(PAIRS) for one in (dist, trimmed)]
        runs = recording.record_all(built.folder, jobs)
    rows: dict[str, list[float]] = defaultdict(list)
    for stock, now in zip(runs[::2], runs[1::2], strict=True):
        for number, step in enumerate(("create", "first run")):
            rows[step].append(now.steps[number].ms / stock.steps[number].ms)
        rows["both"].append(sum(s.ms for s in now.steps[:2]) / sum(s.ms for s in stock.steps[:2]))
    return {"pairs": PAIRS, **{step: round(statistics.median(ratios), 3) for step, ratios in rows.items()}}


def suite(variant_id: str, most: int | None) -> dict[str, Any]:
    """Run the standard cases on runtimes cut from the profile alone, one for each set of operators that a case has."""
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
    for operators, cases in chosen:
        listed = [Operator(domain or walk.DEFAULT_DOMAIN, op_type, 1) for domain, op_type in sorted(operators)]
        kept = keep.choose(known, listed, recorded=None)
        with tempfile.TemporaryDirectory(prefix="edgekit-suite-") as name:
            trimmed = _dist(dist, variant, cut.cut(wasm, known, kept.functions, None).wasm, Path(name))
            for case, reply in zip(cases, conformance.replay(cases, variant, trimmed).replies, strict=True):
                result = _compared(before[case.name], reply)
                outcome[result] += 1
                if result != "same":
                    differing.append(f"{case.name}: {result}: {reply.error}")
    return {"cases": len(everything), "runtimes": len(chosen), **outcome, "differing": differing}


def leave_one_out(variant_id: str) -> dict[str, Any]:
    """Record every case; of how many does the rest of the profile not name every function?"""
    variant, dist, known = _of(variant_id)
    recorder, flags = recording_dist(dist, variant)
    cases = [case for case in runtime_profile.suite() if case.operator is not None]
    replies = conformance.replay(cases, variant, recorder, recording=flags, gpu="software").replies
    bits = np.stack([np.unpackbits(np.frombuffer(_bits(r), np.uint8), bitorder="little") for r in replies])
    own = [(case.operator.domain, case.operator.op_type) for case in cases if case.operator is not None]
    order = {operator: number for number, operator in enumerate(dict.fromkeys(own))}
    counts = np.zeros((len(order), bits.shape[1]), np.int32)
    np.add.at(counts, [order[one] for one in own], bits)
    entering = (counts > 0).sum(0)
    always = np.zeros(bits.shape[1], bool)
    always[list(known.start | known.threads | known.failures)] = True
    missing: dict[str, list[int]] = {"standard": [], "all": []}
    for number, case in enumerate(cases):
        rest = counts[order[own[number]]] - bits[number]
        others = entering - ((counts[order[own[number]]] > 0) & (rest == 0))
        lacks = bool((bits[number].astype(bool) & ~always & (rest == 0) & (others < keep.SHARED_ALONE)).any())
        missing["all"].append(lacks)
        if case.source == "standard":
            missing["standard"].append(lacks)
    return {
        name: {"cases": len(rows), "misses": sum(rows), "per_cent": round(100 * sum(rows) / len(rows), 2)}
        for name, rows in missing.items()
    }


def _of(variant_id: str) -> tuple[Variant, RuntimeDist, Profile]:
    (variant,) = pins.load().chosen([variant_id], "--variant")
    dist = locate.locate(None)
    known = profile.find(dist.files[variant.wasm])
    if known is None:
        sys.exit(f"edgekit has no profile of {variant.wasm}.")
    return variant, dist, known


def _build(key: str, variant: Variant, folder: Path) -> pipeline.BuildResult:
    """Build a bundle with one variant: a target of its own."""
    base = "wasm" if variant.execution_provider == "wasm" else "webgpu"
    (folder / "one.toml").write_text(f'extends = "{base}"\ntitle = "one"\n[runtime]\nvariants = ["{variant.id}"]\n')
    model = real.obtain(real.table()[key])
    return pipeline.build(BuildConfig(model, "one", folder / "bundle", targets_dir=folder))


def _dist(dist: RuntimeDist, variant: Variant, wasm: bytes, folder: Path) -> RuntimeDist:
    for name in (variant.api, variant.mjs):
        (folder / name).write_bytes((dist.folder / name).read_bytes())
    (folder / variant.wasm).write_bytes(wasm)
    return replace(dist, folder=folder, files={**dist.files, variant.wasm: sha256_bytes(wasm)}, pinned=False)


def _operators(case: Case) -> frozenset[tuple[str, str]]:
    nodes = walk.all_nodes(onnx.load_from_string(case.model))
    return frozenset(("" if node.domain == walk.DEFAULT_DOMAIN else node.domain, node.op_type) for node in nodes)


def _compared(before: Reply, now: Reply) -> str:
    if now.outcome == "crashed" and before.outcome != "crashed":
        return "missed"
    if (now.outcome, now.error) != (before.outcome, before.error) or len(now.outputs) != len(before.outputs):
        return "other"
    return "same" if all(map(same_bits, now.outputs, before.outputs)) else "other values"


def _bits(reply: Reply) -> bytes:
    if reply.functions is None:
        sys.exit(f"A case did not come to an end: {reply.error}")
    return reply.functions


def _brotli(data: bytes) -> int:
    return len(brotli.compress(data, quality=11))


def _sha256(path: Path) -> str:
    return sha256_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
