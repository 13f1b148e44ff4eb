"""Cut the runtime of a bundle to what its model needs, and prove that the answers stay the same, bit by bit.

The model's golden cases run on a recording build; that and the runtime's profile say what to keep. Then they run on
what was cut, beside what the recording build answered. A variant that cannot be proven is shipped as it was published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from edgekit import runtime_record
from edgekit.bundle import compress
from edgekit.desktop.messages import NO_KERNEL
from edgekit.errors import EdgekitError, LimitError, MissingToolError, UsageError
from edgekit.facts import study
from edgekit.facts.operators import Operator
from edgekit.files import sha256_bytes
from edgekit.model.io import LoadedModel
from edgekit.model.walk import DEFAULT_DOMAIN
from edgekit.progress import Progress, silent
from edgekit.records import store
from edgekit.records.jsonable import jsonable
from edgekit.records.manifest import Manifest
from edgekit.records.tensors import Value, same_bits
from edgekit.runners.recording import RecordedRun
from edgekit.runtime import branches, cut, fetch, keep, pins
from edgekit.runtime import profile as profiles
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.keep import Keep
from edgekit.runtime.pins import Variant
from edgekit.runtime.profile import Profile
from edgekit.runtime_record import Recorded, record
from edgekit.wasm.edits import NONE, Branches

# A miss while a cut runtime is proven names a group of functions, which is then kept. More rounds than this, and the
# profile is not of such a model at all.
_ROUNDS = 3

Source = Literal["profile", "recording"]


@dataclass(frozen=True)
class TrimmedVariant:
    """One variant's runtime: ``wasm`` is what is shipped, None where it is the stock one, for ``reason``.

    ``refused``: this build refuses the model, stock or cut. ``sources``: what told which functions to keep. ``kept``,
    ``functions``: how many functions are kept, of how many. ``steps``: what each step of the cutting did. ``proven``:
    the threads with which golden cases answered the same on it, bit by bit. ``note``: what else there is to say.
    """

    variant: str
    stock_sha256: str
    stock_bytes: int
    wasm: bytes | None
    refused: bool = False
    sources: tuple[Source, ...] = ()
    kept: int = 0
    functions: int = 0
    added: tuple[tuple[str, int], ...] = ()
    steps: tuple[cut.Step, ...] = ()
    proven: tuple[int, ...] = ()
    reason: str = ""
    note: str = ""


@dataclass(frozen=True)
class RuntimeSize:
    """What became of one variant's runtime, and what a visitor loads of it (brotli, as the bundle holds it).

    ``stock_brotli_bytes`` None: the stock file was not compressed on this machine ('edgekit runtime fetch' does that).
    ``bytes`` and ``brotli_bytes`` are the stock ones where it is shipped as published, for ``reason``. ``reported``:
    how many functions are kept for what devices missed alone.
    """

    variant: str
    stock_bytes: int
    stock_brotli_bytes: int | None
    bytes: int
    brotli_bytes: int | None
    kept: int
    functions: int
    sources: tuple[Source, ...]
    proven: tuple[int, ...]
    reported: int
    reason: str
    note: str


@dataclass(frozen=True)
class Missed:
    """What devices missed of one variant: ``groups`` of functions, and the kernels of ``operators``."""

    groups: frozenset[int] = frozenset()
    operators: frozenset[Operator] = frozenset()

    def __or__(self, other: "Missed") -> "Missed":
        return Missed(self.groups | other.groups, self.operators | other.operators)


Misses = Mapping[str, Missed]


@dataclass(frozen=True)
class Reported:
    """What run records tell: by variant what devices missed; the runtime's versions, and the models' sha256."""

    misses: Misses
    versions: frozenset[str]
    models: frozenset[str]


def reported(path: Path) -> Reported:
    """Return what devices missed, as the run record in ``path`` says, or those in its folders, one a combination.

    Raises UsageError where there is no record, or none with misses.
    """
    below = path.iterdir() if path.is_dir() and not store.holds_run(path) else ()
    inside = sorted(one for one in below if store.holds_run(one))
    records = [record for each in inside or (path,) if (record := store.load_run(each).record) is not None]
    telling = [record for record in records if record.misses]
    found: dict[str, Missed] = {}
    for miss in (miss for record in telling for miss in record.misses):
        # A page tells the number of a stub less 1.
        groups = frozenset(number + 1 for number in miss.functions)
        one = Missed(groups, _operators_without_kernel(miss.message) if miss.reason == "kernel" else frozenset())
        if one != Missed():
            found[miss.variant] = found.get(miss.variant, Missed()) | one
    if not found:
        raise UsageError(
            f"{path} tells of no function that a trimmed runtime missed.",
            hint="'edgekit parity' keeps the run record of a bundle with --output.",
        )
    versions = frozenset(record.environment.runtime_version for record in telling)
    return Reported(found, versions, frozenset(filter(None, (record.hashes.model for record in telling))))


def _operators_without_kernel(message: str) -> frozenset[Operator]:
    """Return the operators for which onnxruntime says that it has no kernel."""
    named = ((*one["op"].rpartition(".")[::2], int(one["version"])) for one in NO_KERNEL.finditer(message))
    return frozenset(Operator(domain or DEFAULT_DOMAIN, op_type, 1, since=since) for domain, op_type, since in named)


def plan(runtimes: Sequence[TrimmedVariant], net: str) -> dict[str, Any]:
    """Return what the bundle says of its runtimes, as JSON: what was cut, told by what, and proven how."""
    # All but the bytes of the runtime.
    rows = [
        {name: value for name, value in asdict(one).items() if not isinstance(value, bytes | None)} for one in runtimes
    ]
    document: dict[str, Any] = jsonable({"format": 1, "net": net, "group": profiles.GROUP, "runtimes": rows})
    return document


def sizes(
    manifest: Manifest, runtime: RuntimeDist, variants: Sequence[Variant], runtimes: Sequence[TrimmedVariant]
) -> tuple[RuntimeSize, ...]:
    """Return what each of ``variants`` weighs in the bundle of ``manifest``, beside the stock one."""
    entries = {entry.path: entry.bytes for entry in manifest.files}
    return tuple(
        RuntimeSize(
            one.variant,
            one.stock_bytes,
            compress.known_brotli_bytes(runtime.folder / variant.wasm),
            entries[f"runtime/{variant.wasm}"],
            entries.get(f"runtime/{variant.wasm}.br"),
            one.kept,
            one.functions,
            one.sources,
            one.proven,
            dict(one.added).get(keep.REPORTED, 0),
            one.reason,
            one.note,
        )
        for variant, one in zip(variants, runtimes, strict=True)
    )


def trim(
    draft: Path,
    model: LoadedModel,
    runtime: RuntimeDist,
    variants: Sequence[Variant],
    work: Path,
    *,
    reported: Misses | None = None,
    browser_path: Path | None = None,
    progress: Progress = silent,
) -> tuple[TrimmedVariant, ...]:
    """Cut each of ``variants`` of ``runtime`` to what ``model`` needs; one answer a variant, in their order.

    ``draft``: a bundle with that model and its golden cases. ``work``: an empty folder. ``reported``: by variant,
    what devices missed before. Without a browser the profile alone must do, with a margin.
    """
    known = [(variant, profiles.find(runtime.files[variant.wasm])) for variant in variants]
    chosen = [(variant, profile) for variant, profile in known if profile is not None]
    operators = _operators(model) if chosen else ()
    recorded = {
        variant.id: record(draft, runtime, variant, profile.branches, browser_path, progress)
        for variant, profile in chosen
    }
    optimizer = _optimizer(progress)
    found = []
    for variant, profile in known:
        stock = TrimmedVariant(variant.id, runtime.files[variant.wasm], 0, None)
        stock = replace(stock, stock_bytes=(runtime.folder / variant.wasm).stat().st_size)
        if profile is None:
            named = "" if runtime.pinned else f" --runtime {runtime.folder}"
            measure = f"edgekit runtime profile{named} --variant {variant.id}"
            reason = f"no profile of this build is at hand ('{measure}' measures one)"
            found.append(replace(stock, reason=reason))
            continue
        merging = None if variant.id in pins.load().optimizer.leaves else optimizer
        trial = _Trial(draft, runtime, variant, profile, operators, merging, work, browser_path, progress)
        made = trial.run(stock, recorded[variant.id], (reported or {}).get(variant.id, Missed()))
        if merging is not optimizer and made.proven:
            made = replace(made, note="")  # that no optimizer was at hand is no news there
        found.append(made)
    return tuple(found)


def _operators(model: LoadedModel) -> tuple[Operator, ...]:
    """Return the model's operators with the dtypes that they run on, where shape inference tells them."""
    return study.study(model).facts.operators


def _optimizer(progress: Progress) -> Path | None:
    try:
        return fetch.optimizer(progress=progress)
    except (MissingToolError, LimitError):  # it is not there, or the cache's disk is full: the step is left out
        return None


@dataclass(frozen=True)
class _Trial:
    draft: Path
    runtime: RuntimeDist
    variant: Variant
    profile: Profile
    operators: Sequence[Operator]
    optimizer: Path | None
    work: Path
    browser_path: Path | None
    progress: Progress

    def run(self, stock: TrimmedVariant, recorded: Recorded, reported: Missed) -> TrimmedVariant:
        """Cut, prove, and keep more after each miss; what cannot be proven is given up."""
        if recorded.trap is not None:
            return replace(stock, reason=f"the model makes this build trap: {recorded.trap}")
        stock = replace(stock, refused=recorded.refused)
        for _ in range(_ROUNDS):
            made, wasm = self._cut(stock, recorded, reported)
            if not recorded.runs:
                return replace(made, wasm=wasm, note=f"not proven here: {recorded.reason}")
            missed, wrong = self._prove(wasm, recorded.runs)
            if wrong and self.optimizer is not None:
                made = replace(self, optimizer=None).run(stock, recorded, reported)
                note = f"proven as it is, and not merged by wasm-opt: merged, {wrong.removeprefix('cut, ')}"
                return replace(made, note=note) if made.wasm is not None else made
            if wrong:
                return replace(stock, reason=wrong)
            if not missed and recorded.failing is not None:
                return replace(made, wasm=wasm, note=f"not proven here, where golden cases fail: {recorded.failing}")
            if not missed:
                return replace(made, wasm=wasm, proven=runtime_record.threads(self.variant))
            reported |= Missed(missed)
        return replace(stock, reason=f"after {_ROUNDS} rounds it still lacks functions that the model enters")

    def _functions(self, missed: Missed) -> frozenset[int]:
        """Return the functions of the groups that were missed."""
        count = self.profile.count
        return frozenset(k for number in missed.groups for k in profiles.functions_of(number, count))

    def _dead(self, recorded: Recorded, missed: Missed) -> Branches:
        """Return the branches to cut. A model that was not recorded may take some that no measured session took."""
        if not recorded.runs or recorded.failing is not None:
            return NONE
        return branches.left(self.profile.branches, recorded.branches, self._functions(missed))

    def _choose(self, recorded: Recorded, missed: Missed) -> Keep:
        # With several threads a handful of functions depend on the moment: who waits, who wakes whom. The profile has
        # them all, so that the same model gives the same bytes each time.
        return keep.choose(
            self.profile,
            [*self.operators, *missed.operators],
            recorded=recorded.functions if recorded.runs else None,
            whole=recorded.failing is None,
            elsewhere=recorded.functions_elsewhere,
            reported=self._functions(missed),
        )

    def _cut(self, stock: TrimmedVariant, recorded: Recorded, missed: Missed) -> tuple[TrimmedVariant, bytes]:
        chosen = self._choose(recorded, missed)
        self.progress(f"Cutting the runtime ({self.variant.id})")
        wasm = (self.runtime.folder / self.variant.wasm).read_bytes()
        done = cut.cut(wasm, self.profile, chosen.functions, self.optimizer, self._dead(recorded, missed))
        made = replace(
            stock,
            sources=("profile", "recording") if recorded.runs else ("profile",),
            kept=len(chosen.functions),
            functions=self.profile.count,
            added=chosen.added,
            steps=done.steps,
            note=done.note or "",
        )
        return made, done.wasm

    def _prove(self, wasm: bytes, stock: Sequence[RecordedRun]) -> tuple[frozenset[int], str]:
        """Run the golden cases on ``wasm``; return the groups that were missed, and why it is not to be used."""
        jobs = runtime_record.jobs(self.variant, self._dist(wasm), miss_address=cut.MISS_ADDRESS)
        missed: set[int] = set()
        try:
            runs = runtime_record.run(self.draft, jobs, self.browser_path, self.progress)
        except EdgekitError as error:
            return frozenset(), f"cut, it could not be proven: {error.message}"
        for one, before in zip(runs, stock, strict=True):
            missed |= set(one.misses)
            if not one.misses and not _same(one.outputs, before.outputs):
                return frozenset(), f"cut, it does not answer the same with {one.threads} threads"
            if not one.misses and one.failures != before.failures:
                return frozenset(), f"cut, it does not fail in the same words with {one.threads} threads"
        return frozenset(missed), ""

    def _dist(self, wasm: bytes) -> RuntimeDist:
        folder = self.work / self.variant.id
        folder.mkdir(exist_ok=True)
        for name in (self.variant.api, self.variant.mjs):
            (folder / name).write_bytes((self.runtime.folder / name).read_bytes())
        (folder / self.variant.wasm).write_bytes(wasm)
        files = {name: self.runtime.files[name] for name in self.variant.files}
        return replace(self.runtime, folder=folder, files=files | {self.variant.wasm: sha256_bytes(wasm)}, pinned=False)


def _same(given: Mapping[str, Sequence[Value]], expected: Mapping[str, Sequence[Value]]) -> bool:
    return given.keys() == expected.keys() and all(
        len(given[case]) == len(expected[case]) and all(map(same_bits, given[case], expected[case]))
        for case in expected
    )
