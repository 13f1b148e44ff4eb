"""Measure what the functions of a runtime are for: replay the conformance cases on a recording build of it.

``edgekit runtime profile`` calls this. It needs a browser, and takes one to six minutes a variant.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import onnx

from edgekit.conformance import cases as conformance_cases
from edgekit.conformance import contrib, coverage, generate
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.errors import ParityError, UsageError
from edgekit.files import sha256_bytes, write_atomic
from edgekit.model import walk
from edgekit.progress import Progress, silent
from edgekit.runners import conformance as browser
from edgekit.runtime import kernels, locate, pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant
from edgekit.runtime.profile import ModelFunctions, OperatorFunctions, Profile, TextPlace
from edgekit.runtime.recording import THREADS, entered_by_chance, of_bits, recording_dist
from edgekit.wasm import sections, texts
from edgekit.wasm.binary import EditError, WasmError
from edgekit.wasm.module import Module, parse

_NOTHING_DONE = "test_identity"
# Only the first case of a page starts the runtime, and a page replays thousands: what is start-up's alone is entered by
# fewer cases than one in this many.
_PAGE_CASES = 500
# What fails for so many different operators fails in a way that is not theirs.
_FAILING_OPERATORS = 3
# Short ones are names and more: blanking some of them, start-up throws.
_SHORTEST_DOCUMENTATION = 100
# Texts of operator schemas that code reads: types, and bodies of functions written in ONNX's own text format.
_READ = re.compile(
    rb"^\s*(?:(?:tensor|seq|map|optional|sparse_tensor|opaque)\(|\{|<)|[A-Za-z0-9_]\s*=\s*[A-Za-z0-9_.]+\s*[(<{]"
)


@dataclass(frozen=True)
class Written:
    """A profile that was measured: how many functions the build has, start-up enters, and of how many operators."""

    variant: str
    functions: int
    start: int
    operators: int
    bytes: int
    path: Path


def write(
    runtime_dir: Path | None,
    variant_ids: Sequence[str],
    output: Path | None,
    *,
    browser_path: Path | None = None,
    progress: Progress = silent,
) -> tuple[Written, ...]:
    """Measure variants of a runtime (all that it holds, where none is named) and write their profiles.

    ``runtime_dir`` None: the pinned build. ``output`` None: the folder in the cache where ``build`` looks. Raises
    UsageError for a folder or variant that is not there, and what ``measure`` raises.
    """
    dist = locate.locate(runtime_dir, progress=progress)
    held = [one.id for one in pins.load().variants if all(name in dist.files for name in one.files)]
    chosen = pins.load().chosen(variant_ids or held, "--variant")
    dist.require(chosen)
    cases = suite(progress=progress)
    found = []
    for variant in chosen:
        profile = measure(dist, variant, cases, browser_path=browser_path, progress=progress)
        path = (output or profiles.cached()) / profiles.file_name(profile.wasm_sha256)
        data = profiles.to_bytes(profile)
        write_atomic(path, data)
        operators = len({(one.domain, one.op_type) for one in profile.operators})
        found.append(Written(variant.id, profile.count, len(profile.start), operators, len(data), path))
    return tuple(found)


def suite(*, progress: Progress = silent) -> tuple[Case, ...]:
    """Return the cases that a profile is made of: those of the operator tables, and sessions of several nodes."""
    progress("Making the cases")
    standard = conformance_cases.standard()
    return (*standard, *generate.generated(standard), *contrib.contrib(), *coverage.cases())


def measure(
    dist: RuntimeDist,
    variant: Variant,
    cases: Sequence[Case],
    *,
    browser_path: Path | None = None,
    progress: Progress = silent,
) -> Profile:
    """Return the profile of one variant in ``dist``.

    Raises MissingToolError without a browser, ParityError when the page does not start, UsageError when the build
    cannot be read or made to record.
    """
    recorder, recording = recording_dist(dist, variant)
    nothing = next(case for case in cases if case.name == _NOTHING_DONE)
    runs: list[_Run] = []
    for threads in THREADS:
        # Several threads matter where sessions do some work; one node of each kind with each dtype has been seen then.
        chosen = cases if threads == 1 else [c for c in cases if c.operator is None or c.source == "standard"]
        done = browser.replay(
            [nothing, *chosen],
            variant,
            recorder,
            recording=recording,
            threads=threads,
            browser_path=browser_path,
            gpu="software",
            progress=progress,
        )
        replies = tuple(zip(chosen, done.replies[1:], strict=True))
        runs.append(_Run(_functions(done.replies[0]), replies))
    progress(f"Reading {variant.wasm}")
    try:
        return _profile(dist, variant, runs)
    except (EditError, WasmError) as error:
        raise UsageError(f"{variant.wasm} cannot be read: {str(error).rstrip('.')}.") from error


@dataclass(frozen=True, eq=False)
class _Run:
    """What one number of threads gave: the functions of the first session, and each case with what became of it."""

    start: frozenset[int]
    replies: tuple[tuple[Case, Reply], ...]

    def functions(self) -> frozenset[int]:
        return self.start.union(*(entered for _, _, entered in _recorded(self.replies)))


def _profile(dist: RuntimeDist, variant: Variant, runs: Sequence[_Run]) -> Profile:
    wasm = (dist.folder / variant.wasm).read_bytes()
    module = parse(wasm)
    start = frozenset[int]().union(*(run.start for run in runs))
    replies = [entry for run in runs for entry in run.replies]
    one = runs[0].functions()
    several = frozenset[int]().union(*(run.functions() for run in runs[1:]))
    return Profile(
        dist.package,
        dist.version,
        variant.id,
        sha256_bytes(wasm),
        len(sections.functions(module)),
        start,
        _failures(replies) - start,
        (several - one) | entered_by_chance(module, one, several),
        _of_operators(replies, start),
        _of_models(replies, start),
        # Beside another execution provider, a kernel for the CPU that is only looked for decides where a node goes.
        None if variant.needs else kernels.find(module),
        _texts(module, _start_alone(start, replies)),
    )


def _functions(reply: Reply) -> frozenset[int]:
    """Return the functions that a case entered. Raises ParityError when its runtime did not record."""
    if reply.functions is None:
        raise ParityError(f"The runtime did not record what a case entered: {reply.error}")
    return of_bits(reply.functions)


def _recorded(replies: Iterable[tuple[Case, Reply]]) -> Iterable[tuple[Case, Reply, frozenset[int]]]:
    """Yield the cases whose page lived to tell: one that trapped has its functions, one that never answered has not."""
    return ((case, reply, of_bits(reply.functions)) for case, reply in replies if reply.functions is not None)


def _start_alone(start: Set[int], replies: Sequence[tuple[Case, Reply]]) -> frozenset[int]:
    """Return what only start-up enters."""
    counts = Counter(k for _, _, entered in _recorded(replies) for k in entered)
    most = max(1, len(replies) // _PAGE_CASES)
    return frozenset(k for k in start if counts[k] <= most)


def _failures(replies: Sequence[tuple[Case, Reply]]) -> frozenset[int]:
    found: dict[int, set[str]] = {}
    for case, reply, entered in _recorded(replies):
        if reply.outcome in ("refused", "failed"):
            who = case.name if case.operator is None else f"{case.operator.domain} {case.operator.op_type}"
            for k in entered:
                found.setdefault(k, set()).add(who)
    return frozenset(k for k, who in found.items() if len(who) >= _FAILING_OPERATORS)


def _of_operators(replies: Sequence[tuple[Case, Reply]], start: Set[int]) -> tuple[OperatorFunctions, ...]:
    """Return what each operator enters, but for nodes that are refused: a model with one does not run."""
    found: dict[tuple[str, str, int, tuple[str, ...]], set[int]] = {}
    for case, reply, entered in _recorded(replies):
        if case.operator is not None and reply.outcome != "refused":
            one = case.operator
            key = (one.domain, one.op_type, one.since_version, one.dtypes)
            found.setdefault(key, set()).update(entered - start)
    return tuple(OperatorFunctions(*key, frozenset(entered)) for key, entered in sorted(found.items()))


def _of_models(replies: Sequence[tuple[Case, Reply]], start: Set[int]) -> tuple[ModelFunctions, ...]:
    found: dict[frozenset[tuple[str, str]], set[int]] = {}
    for case, _, entered in _recorded(replies):
        if case.operator is None:
            nodes = walk.all_nodes(onnx.load_from_string(case.model))
            operators = frozenset(
                ("" if node.domain == walk.DEFAULT_DOMAIN else node.domain, node.op_type) for node in nodes
            )
            found.setdefault(operators, set()).update(entered - start)
    ordered = sorted(found.items(), key=lambda item: sorted(item[0]))
    return tuple(ModelFunctions(operators, frozenset(entered)) for operators, entered in ordered)


def _texts(module: Module, start_alone: Set[int]) -> tuple[TextPlace, ...]:
    """Return the texts. Those that only start-up reads, and that have words, describe operators to people.

    But not those whose end is a text of its own: "the scale" may be where code finds the name "scale".
    """
    return tuple(
        TextPlace(
            text.address,
            len(text.data),
            text.functions,
            not text.shared
            and text.functions <= start_alone
            and len(text.data) >= _SHORTEST_DOCUMENTATION
            and b" " in text.data
            and _READ.search(text.data) is None,
        )
        for text in texts.texts(module)
    )
