"""Measure what the functions of a runtime are for: replay the conformance cases on a recording build of it.

``edgekit runtime profile`` calls this. It needs a browser, and takes some minutes a variant.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
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
from edgekit.runners import browsers
from edgekit.runners import conformance as browser
from edgekit.runtime import branches, cut, keep, kernels, locate, pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.kernels import Kernels
from edgekit.runtime.pins import AdapterName, Variant
from edgekit.runtime.profile import ModelFunctions, OperatorFunctions, Profile, TextPlace
from edgekit.runtime.recording import THREADS, Recording, entered_by_chance, of_bits, recording_dist
from edgekit.wasm import edits, sections, texts
from edgekit.wasm.binary import EditError, WasmError
from edgekit.wasm.edits import Branches
from edgekit.wasm.module import Module, parse

_NOTHING_DONE = "test_identity"
# A hundred cases on a software GPU take ten seconds, and many times that on a busy machine.
_SILENCE_SECONDS = 400.0
# A busy machine may not compile the largest build in the time that a page has to start, and minutes would be lost.
_STARTS = 3
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
    named = pins.load().chosen(variant_ids, "--variant")
    dist = locate.locate(runtime_dir, {one.id for one in named} or None, progress=progress)
    held = [one.id for one in pins.load().variants if all(name in dist.files for name in one.files)]
    chosen = named or pins.load().chosen(held, "--variant")
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
    if browser_path is not None:
        browsers.find(browser_path, None)  # before the module is read, which takes half a minute
    progress(f"Reading {variant.wasm}")
    try:
        module = parse((dist.folder / variant.wasm).read_bytes())
        listed = branches.listed(module)
    except WasmError as error:
        raise UsageError(f"{variant.wasm} cannot be read: {str(error).rstrip('.')}.") from error
    recorder, recording = recording_dist(dist, variant, listed)
    nothing = next(case for case in cases if case.name == _NOTHING_DONE)
    runs = _runs([nothing, *cases], variant, recorder, recording, browser_path, progress)
    progress(f"Reading {variant.wasm}")
    try:
        # Beside another execution provider, a kernel for the CPU that is only looked for decides where a node goes.
        known = None if variant.needs else kernels.find(module)
        if known is not None:
            # What reads the table of kernels meets, in a cut runtime, places where one was left out.
            with tempfile.TemporaryDirectory(prefix="edgekit-profile-") as name:
                bare = _without_kernels(recorder, variant, known, Path(name))
                done = browser.replay(
                    [nothing], variant, bare, recording=recording, browser_path=browser_path, progress=progress
                )
            runs.append(_Run(frozenset(), (), done.branches))
        return _profile(dist, variant, module, runs, listed, known)
    except (EditError, WasmError) as error:
        raise UsageError(f"{variant.wasm} cannot be read: {str(error).rstrip('.')}.") from error


def _runs(
    given: Sequence[Case],
    variant: Variant,
    recorder: RuntimeDist,
    recording: Recording,
    browser_path: Path | None,
    progress: Progress,
) -> "list[_Run]":
    """Return what was entered with each number of ``THREADS``. The first case, which does nothing, starts each page."""
    nothing, *cases = given

    def replay(chosen: Sequence[Case], threads: int, posing_as: AdapterName | None = None) -> _Run:
        done = browser.replay(
            [nothing, *chosen],
            variant,
            recorder,
            recording=recording,
            posing_as=posing_as,
            threads=threads,
            browser_path=browser_path,
            gpu="software",
            silence_seconds=_SILENCE_SECONDS,
            starts=_STARTS,
            progress=progress,
        )
        replies = tuple(zip(chosen, done.replies[1:], strict=True))
        return _Run(_functions(done.replies[0]), replies, done.branches)

    # Several threads matter where sessions do some work; one node of each kind with each dtype has been seen then.
    few = [case for case in cases if case.operator is None or case.source == "standard"]
    alone = [replay(cases, 1)]
    if variant.needs:
        # A model that cannot be read never lets go of its GPU device (onnxruntime-web 1.30.0), and the device keeps its
        # programs: sessions after that do not enter what makes the programs that other operators had made. Without
        # those that are refused, each has a device of its own.
        taken = {case.name for case, reply in alone[0].replies if reply.outcome in ("done", "loaded", "failed")}
        some = [case for case in cases if case.source == "standard" and case.name in taken]
        alone.append(replay(some, 1))
        # What is done for other GPUs is done for all dtypes alike.
        each = {(one.operator.domain, one.operator.op_type): one for one in some if one.operator is not None}
        alone += (replay(tuple(each.values()), 1, adapter) for adapter in pins.load().adapters)
    return [_Run.of(alone), *(replay(few, threads) for threads in THREADS[1:])]


@dataclass(frozen=True, eq=False)
class _Run:
    """What one number of threads gave: the functions of the first session, and each case with what became of it.

    ``branches``: numbers of those that any case entered.
    """

    start: frozenset[int]
    replies: tuple[tuple[Case, Reply], ...]
    branches: frozenset[int]

    @classmethod
    def of(cls, runs: "Sequence[_Run]") -> "_Run":
        """Return several as one."""
        return cls(
            frozenset[int]().union(*(run.start for run in runs)),
            tuple(entry for run in runs for entry in run.replies),
            frozenset[int]().union(*(run.branches for run in runs)),
        )

    def functions(self) -> frozenset[int]:
        return self.start.union(*(entered for _, _, entered in _recorded(self.replies)))


def _without_kernels(recorder: RuntimeDist, variant: Variant, known: Kernels, folder: Path) -> RuntimeDist:
    """Write to ``folder`` a recording runtime that registers no kernel at all."""
    wasm = parse((recorder.folder / variant.wasm).read_bytes())
    for name in (variant.api, variant.mjs):
        (folder / name).write_bytes((recorder.folder / name).read_bytes())
    bare = kernels.leave_out(wasm, known, known.builders).to_bytes()
    (folder / variant.wasm).write_bytes(bare)
    return replace(recorder, folder=folder, files={**recorder.files, variant.wasm: sha256_bytes(bare)})


def _profile(
    dist: RuntimeDist,
    variant: Variant,
    module: Module,
    runs: Sequence[_Run],
    listed: Branches,
    known: Kernels | None,
) -> Profile:
    start = frozenset[int]().union(*(run.start for run in runs))
    replies = [entry for run in runs for entry in run.replies]
    one = runs[0].functions()
    several = frozenset[int]().union(*(run.functions() for run in runs[1:]))
    failures, threads = _failures(replies) - start, (several - one) | entered_by_chance(module, one, several)
    operators = _of_operators(replies, start)
    # Not of what only failures enter: there a rare word of onnxruntime's is worth more than bytes.
    everywhere = start | (keep.shared(operators, keep.SHARED_WITH_RECORDING) - failures)
    entered = frozenset[int]().union(*(run.branches for run in runs))
    dead = branches.never_entered(module, listed, entered, everywhere, threads)
    return Profile(
        dist.package,
        dist.version,
        variant.id,
        sha256_bytes(module.to_bytes()),
        len(sections.functions(module)),
        start,
        failures,
        threads,
        operators,
        _of_models(replies, start),
        known,
        _texts(module, _start_alone(start, replies), dead),
        dead,
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
    """Return what each operator enters, on the way to a refusal too: its words are to be those of the whole build."""
    found: dict[tuple[str, str, int, tuple[str, ...]], set[int]] = {}
    for case, _, entered in _recorded(replies):
        if case.operator is not None:
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


def _texts(module: Module, start_alone: Set[int], dead: Branches) -> tuple[TextPlace, ...]:
    """Return the texts, and who reads them outside of ``dead`` branches.

    Those that only start-up reads, and that have words, describe operators to people. But not those whose end is a text
    of its own: "the scale" may be where code finds the name "scale".
    """
    found = texts.texts(module)
    everything = range(len(sections.functions(module)))
    outside = texts.readers(edits.cut(module, everything, cut.MISS_ADDRESS, None, dead), found)
    return tuple(
        TextPlace(
            text.address,
            len(text.data),
            text.functions,
            text.functions - still,
            not text.shared
            and text.functions <= start_alone
            and len(text.data) >= _SHORTEST_DOCUMENTATION
            and b" " in text.data
            and _READ.search(text.data) is None,
        )
        for text, still in zip(found, outside, strict=True)
    )
