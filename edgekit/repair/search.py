"""Search what cures a bundle: sieve candidates on single cases, prove what is left on all, and choose the fastest."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

import edgekit
from edgekit import compare, matrix
from edgekit.bundle.open import open_bundle
from edgekit.check import run as checking
from edgekit.check.providers import GPU
from edgekit.errors import EdgekitError, ParityError
from edgekit.matrix import Combination, MatrixRow
from edgekit.parity import DEFAULT_REPEATS, ParityOptions
from edgekit.progress import Progress, silent
from edgekit.records.cases import GoldenCase
from edgekit.records.settings import SessionSettings
from edgekit.records.verdict import OutputVerdict
from edgekit.repair import candidates as listing
from edgekit.repair import known_cures, nodes, rewrite
from edgekit.repair import parts as writing
from edgekit.repair.candidates import FAMILIES, Candidate, Family
from edgekit.repair.parts import Parts
from edgekit.repair.preference import BY_PLACEMENT, BY_TIME, ordered
from edgekit.repair.result import WEBGPU, Proof, Repair, Tried, proofs
from edgekit.repair.trials import Trial, Trials
from edgekit.runners import local
from edgekit.runners.browsers import CHROMIUM, FIREFOX, Gpu
from edgekit.runtime import pins
from edgekit.runtime.pins import Variant

_ROUNDS = 3
# How often nodes are searched anew where those that were found fail in a case that was not tried.
_AGAIN = 3


@dataclass(frozen=True)
class RepairOptions:
    """What is asked of a repair.

    ``browsers``: in which it must pass; none: the target's. ``variants``: which must pass; none: all of the bundle's.
    ``families``: what to try. ``rounds``: how often candidates that pass are timed, in turn. ``runtime``: a dist folder
    in place of the pinned runtime. ``allowed_seconds``: for each answer of a page.
    """

    browsers: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    families: tuple[Family, ...] = FAMILIES
    rounds: int = _ROUNDS
    repeats: int = DEFAULT_REPEATS
    gpu: Gpu = "auto"
    timeout_seconds: float = 300.0
    targets_dir: Path | None = None
    runtime: Path | None = None

    @property
    def parity(self) -> ParityOptions:
        """What is asked of each run."""
        return ParityOptions(
            gpu=self.gpu, repeats=self.repeats, timeout_seconds=self.timeout_seconds, targets_dir=self.targets_dir
        )


@dataclass(frozen=True, eq=False)
class Found:
    """What came of it; ``best``: what passed, the one to prefer first, each with the parts that it is written from."""

    repair: Repair
    best: tuple[tuple[Candidate, Parts], ...] = ()


def search(folder: Path, parts: Parts, options: RepairOptions, work: Path, *, progress: Progress = silent) -> Found:
    """Run the bundle in ``folder``, which is made of ``parts``, and search what cures it, in the empty folder ``work``.

    Raises ParityError where a combination cannot run, so that nothing could be proven in it, and what
    ``edgekit.matrix.verify`` raises.
    """
    asked = options.variants or parts.target.runtime.variants
    rows = matrix.verify(folder, matrix.combinations(options.browsers, asked, ()), options.parity, progress=progress)
    before = proofs(rows)
    sha256 = open_bundle(folder, verify=False).manifest_sha256
    failing = [row for row in rows if not row.result.verdict.passed]
    if not failing:
        return Found(Repair("nothing", edgekit.__version__, sha256, before))
    for row in failing:
        _refuse_unrun(row)
    return _Search(parts, options, work, rows, progress).run(Repair("failed", edgekit.__version__, sha256, before))


def _refuse_unrun(row: MatrixRow) -> None:
    """Raise ParityError where a combination did not run for a reason that no setting cures."""
    verdict = row.result.verdict
    if verdict.status == "not_run":
        raise ParityError(
            f"{row.combination.label} did not run, so nothing can be proven there: {row.note or 'no reason given'}",
            hint=row.hint or "Leave it out, with --browser and --variant.",
        )


@dataclass(eq=False)
class _Search:
    parts: Parts
    options: RepairOptions
    work: Path
    rows: Sequence[MatrixRow]
    progress: Progress
    tried: list[Tried] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        bad = {row.combination.variant for row in self.rows if not row.result.verdict.passed}
        shipped = self.parts.target.runtime.variants
        known = {variant.id: variant for variant in pins.load().chosen(shipped, "The bundle")}
        providers = {known[name].execution_provider for name in bad if name is not None}
        # All variants of an execution provider that fails: what was not asked for is set up alike, though unproven.
        self.failing: list[Variant] = [one for one in known.values() if one.execution_provider in providers]
        ran = {row.combination.variant for row in self.rows}
        self.right = [name for name in shipped if name in ran and known[name] not in self.failing]
        self.first = next(row for row in self.rows if not row.result.verdict.passed)
        self.variant = known[str(self.first.combination.variant)]
        self.trials = self._trials()

    def run(self, repair: Repair) -> Found:
        passed: list[tuple[Candidate, Parts]] = []
        for candidate, tried in self._sieved():
            parts = self._parts(candidate)
            proven = self._proven(candidate, parts, tried)
            self.tried.append(proven)
            if proven.passed:
                passed.append((candidate, parts))
        passed = self._timed(passed)
        why = BY_PLACEMENT if self.software else BY_TIME
        return Found(replace(repair, tried=tuple(self.tried), chosen_by=why if passed else None), tuple(passed))

    def _trials(self) -> Trials | None:
        """Return the sieve; None where there is none: the model has external weights, or the browser no such page."""
        engine = {CHROMIUM.id: CHROMIUM, FIREFOX.id: FIREFOX}.get(self.first.combination.browser or "")
        if engine is None or self.parts.model.external_files:
            return None
        worst = _worst_case(self.first.result.verdict.outputs, self.parts.cases.cases)
        return Trials(self.parts, self.variant, engine, [worst], self.options.gpu, self.progress)

    def _sieved(self) -> Iterator[tuple[Candidate, Tried]]:
        known = known_cures.settings(self.parts.model, self.parts.runtime, self.failing)
        families = self.options.families
        listed = listing.listed(self.parts.model.proto, self.failing, self.right, families, known)
        sieved = [one for one in listed if one.family != "variants"]
        found: dict[int, Trial] = {}
        if self.trials is not None and sieved:
            self.progress("Trying settings")
            found = {id(trial.candidate): trial for trial in self.trials.run(sieved)}
        for candidate in listed:
            trial = found.get(id(candidate))
            tried = _tried(candidate, trial)
            if trial is None or trial.passed:
                yield candidate, tried
            else:
                self.tried.append(tried)
        if "cpu-nodes" in self.options.families and self.trials is not None:
            yield from self._on_cpu(self.trials)

    def _on_cpu(self, trials: Trials) -> Iterator[tuple[Candidate, Tried]]:
        """Yield nodes left to the CPU; anew where those fail in a case that was not tried."""
        if all(variant.execution_provider != GPU for variant in self.failing):
            return
        self.progress("Searching nodes for the CPU")

        proto = self.parts.model.proto
        with_names = rewrite.named(proto)
        given = {} if with_names is None else _nodes_of(with_names).keys() - _nodes_of(proto).keys()

        def candidate(names: tuple[str, ...]) -> Candidate:
            new = [name for name in names if name in given]
            said = f"on the CPU: {', '.join(names)}{' (named so first)' if new else ''}"
            found = listing.with_settings(said, "cpu-nodes", SessionSettings(cpu_nodes=names), self.failing)
            return replace(found, model=with_names) if new else found

        def test(sets: Sequence[tuple[str, ...]]) -> list[bool]:
            return [trial.passed for trial in trials.run([candidate(names) for names in sets])]

        placed = _placed(self.first)
        for _ in range(_AGAIN):
            suspects = self._suspects()
            names = nodes.reduced(suspects, test) if suspects and test([suspects])[0] else None
            if names is None:
                names = nodes.fewest(nodes.by_operator(with_names or proto, placed), test)
            if names is None:
                return
            chosen = candidate(names)
            yield chosen, _tried(chosen, Trial(chosen, True, None, None))
            last = self.tried[-1]
            missed = [case for case in self.parts.cases.cases if case.id in last.failed_cases]
            if last.passed or not missed or missed[0] in trials.cases:
                return
            trials.cases.append(missed[0])

    def _suspects(self) -> tuple[str, ...]:
        """Return the nodes that a check warns of, which are few and often it."""
        try:
            findings = checking.check(self.parts.model, self.parts.target, progress=self.progress)
        except EdgekitError:
            return ()
        known = {name for names in nodes.by_operator(self.parts.model.proto, None).values() for name in names}
        named = tuple(dict.fromkeys(one.node for one in findings if one.node in known and one.node is not None))
        return named if nodes.fits(named) else ()

    def _parts(self, candidate: Candidate) -> Parts:
        if candidate.model is None:
            return self.parts
        self.made += 1
        folder = self.work / f"model-{self.made}"
        folder.mkdir()
        return writing.with_model(self.parts, candidate.model, folder)

    def _combinations(self, candidate: Candidate) -> tuple[Combination, ...]:
        """Return where a candidate is proven and timed: one variant in each browser."""
        variant = candidate.variants[0] if candidate.variants else self.variant.id
        return matrix.combinations(self.options.browsers, [variant], ())

    def _rows(self, candidate: Candidate, parts: Parts, cases: tuple[str, ...] | None = None) -> tuple[MatrixRow, ...]:
        draft = self.work / "draft"
        writing.write(parts, candidate, draft)
        asked = replace(self.options.parity, cases=cases)
        try:
            return matrix.verify(draft, self._combinations(candidate), asked, progress=self.progress)
        finally:
            shutil.rmtree(draft)

    def _proven(self, candidate: Candidate, parts: Parts, tried: Tried) -> Tried:
        if candidate.model is not None and (problem := _wrong_on_desktop(parts)):
            return replace(tried, reason=f"on the desktop: {problem}")
        rows = self._rows(candidate, parts)
        failed = [row for row in rows if not row.result.verdict.passed]
        return replace(
            tried,
            proofs=proofs(rows),
            times_ms=_times(proofs(rows)),
            reason=failed[0].note if failed else None,
            failed_cases=tuple(dict.fromkeys(_wrong_cases(row.result.verdict.outputs) for row in failed)),
        )

    @property
    def software(self) -> bool:
        """Whether an adapter is, so that times say nothing of a GPU."""
        return any(proof.software for one in self.tried for proof in one.proofs)

    def _timed(self, passed: list[tuple[Candidate, Parts]]) -> list[tuple[Candidate, Parts]]:
        """Time what passes, in turn, and return it, the one to prefer first."""
        # What comes last anyway need not be timed. (See ``ordered``.)
        racing = [one for one in passed if not (self.software and one[0].family == "variants")]
        # Later runs are of one case anyway.
        cases = self.parts.cases.cases
        timed = next((case for case in cases if case.feed_back is None), cases[0]).id
        for _ in range(self.options.rounds - 1 if len(racing) > 1 else 0):
            for candidate, parts in racing:
                more = dict(_times(proofs(self._rows(candidate, parts, (timed,)))))
                at = next(k for k, one in enumerate(self.tried) if one.name == candidate.name)
                before = self.tried[at].times_ms
                self.tried[at] = replace(
                    self.tried[at], times_ms=tuple((name, (*times, *more.get(name, ()))) for name, times in before)
                )
        best = ordered([one for one in self.tried if one.passed], software=self.software)
        places = {one.name: place for place, one in enumerate(best)}
        return sorted(passed, key=lambda one: places[one[0].name])


def _nodes_of(proto: onnx.ModelProto) -> dict[str, None]:
    return dict.fromkeys(name for names in nodes.by_operator(proto, None).values() for name in names)


def _tried(candidate: Candidate, trial: Trial | None) -> Tried:
    return Tried(
        candidate.name,
        candidate.family,
        None if trial is None else trial.passed,
        None if trial is None else trial.error,
        dict(candidate.sessions),
        candidate.variants,
        reason=None if trial is None else trial.reason,
    )


def _times(found: Sequence[Proof]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((proof.browser or "", (proof.later_ms,)) for proof in found if proof.later_ms is not None)


def _worst_case(outputs: Sequence[OutputVerdict], cases: Sequence[GoldenCase]) -> GoldenCase:
    wrong = [one for one in outputs if one.status not in ("match", "not_comparable")]
    worst = max(wrong, key=lambda one: one.metrics.passing_relative if one.metrics else 0.0, default=None)
    return next((case for case in cases if worst is not None and case.id == worst.case), cases[0])


def _wrong_cases(outputs: Sequence[OutputVerdict]) -> str:
    return next((one.case for one in outputs if one.status not in ("match", "not_comparable")), "")


def _placed(row: MatrixRow) -> frozenset[str] | None:
    record = row.result.record
    if record is None or record.placement is None:
        return None
    found = [placed for placed in record.placement if placed.execution_provider == WEBGPU]
    named = frozenset(node.op_type for placed in found for node in placed.nodes)
    return named or None


def _wrong_on_desktop(parts: Parts) -> str | None:
    """Say in what a rewritten model is not the one that it was; None where it is, in every case."""
    record = local.replay(parts.model.path, parts.cases, repeats=0)
    verdict = compare.judge(parts.cases, record, title="", target=None)
    return None if verdict.passed else verdict.reasons[0]
