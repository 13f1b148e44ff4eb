"""Try candidates on single golden cases, many in one page of a browser: a sieve, and no proof.

What passes here is proven with the bundle's own page and all of its cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgekit import compare
from edgekit.conformance import desktop
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.progress import Progress, silent
from edgekit.records.cases import GoldenCase
from edgekit.records.run_record import CaseRun
from edgekit.records.settings import DEFAULT
from edgekit.records.verdict import OutputVerdict
from edgekit.repair.candidates import Candidate
from edgekit.repair.parts import Parts
from edgekit.runners import conformance
from edgekit.runners.browsers import Engine, Gpu
from edgekit.runtime.pins import Variant

# A session that WebGPU's provider refuses is never done with being created, and all later ones of the page are refused.
_RUINED = "another WebGPU EP inference session is being created"
# A page is sent the model once for each of its trials.
_PAGE_BYTES = 256 << 20
# A page tells of its trials when all are done. On a software GPU one of a large model takes many seconds.
_PAGE_TRIALS = 8
_SILENCE_SECONDS = 300.0


@dataclass(frozen=True, eq=False)
class Trial:
    """What a candidate gave. ``error``: the largest relative error, of the scale; None where nothing was compared."""

    candidate: Candidate
    passed: bool
    error: float | None
    reason: str | None


class Trials:
    """Tries candidates on one variant in one browser. ``cases``: those that they are tried on; they may become more."""

    def __init__(
        self,
        parts: Parts,
        variant: Variant,
        engine: Engine,
        cases: Sequence[GoldenCase],
        gpu: Gpu = "auto",
        progress: Progress = silent,
    ) -> None:
        self.cases = list(cases)
        self._parts = parts
        self._variant = variant
        self._engine = engine
        self._gpu = gpu
        self._progress = progress
        self._expected: dict[str, GoldenCase] = {}

    def run(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Try each candidate on each case; a trial for each candidate, in their order."""
        models = [self._model(candidate) for candidate in candidates]
        found: list[Trial] = []
        while len(found) < len(candidates):
            start, size = len(found), 0
            page: list[Candidate] = []
            for candidate, model in zip(candidates[start:], models[start:], strict=True):
                size += len(model) * len(self.cases)
                if page and size > _PAGE_BYTES:
                    break
                page.append(candidate)
            found += self._page(page, models[start : start + len(page)])
        return found

    def _model(self, candidate: Candidate) -> bytes:
        if candidate.model is not None:
            data: bytes = candidate.model.SerializeToString(deterministic=True)
            return data
        return self._parts.model.path.read_bytes()

    def _page(self, candidates: Sequence[Candidate], models: Sequence[bytes]) -> list[Trial]:
        golden = [self._known(case) for case in self.cases]
        cases = [
            _case(case, model, candidate, self._variant)
            for candidate, model in zip(candidates, models, strict=True)
            for case in golden
        ]
        replies = self._replies(cases)
        each = len(golden)
        return [
            self._judged(candidate, golden, replies[number * each : (number + 1) * each])
            for number, candidate in enumerate(candidates)
        ]

    def _replies(self, cases: Sequence[Case]) -> list[Reply]:
        found: list[Reply] = []
        while len(found) < len(cases):
            left = cases[len(found) : len(found) + _PAGE_TRIALS]
            done = conformance.replay(
                left,
                self._variant,
                self._parts.runtime,
                engine=self._engine,
                gpu=self._gpu,
                silence_seconds=_SILENCE_SECONDS,
                progress=self._progress,
            )
            # The first is never another's victim, so each turn gets on.
            ruined = (at for at, reply in enumerate(done.replies) if at and _RUINED in (reply.error or ""))
            found += done.replies[: next(ruined, len(left))]
        return found

    def _known(self, case: GoldenCase) -> GoldenCase:
        """Return a case of one step: of one that feeds outputs back, the desktop is asked for those of the first."""
        if case.feed_back is None:
            return case
        if case.id not in self._expected:
            model = self._parts.model.path.read_bytes()
            (reply,) = desktop.replay([_case(case, model, None, self._variant)])
            self._expected[case.id] = replace(case, outputs=reply.outputs, feed_back=None)
        return self._expected[case.id]

    def _judged(self, candidate: Candidate, golden: Sequence[GoldenCase], replies: Sequence[Reply]) -> Trial:
        cases = self._parts.cases
        outputs: list[OutputVerdict] = []
        for case, reply in zip(golden, replies, strict=True):
            done = reply.outcome == "done"
            run = CaseRun(case.id, "done" if done else "failed", reply.outputs, reply.error or reply.outcome)
            outputs += compare.judge_case(case, run, cases.tolerance, cases.output_tolerance)
        wrong = [one for one in outputs if one.status not in ("match", "not_comparable")]
        errors = [one.metrics.max_rel for one in outputs if one.metrics is not None]
        matching = sum(one.status == "match" for one in outputs)
        return Trial(
            candidate,
            passed=not wrong and matching > 0,
            error=max(errors, default=None),
            reason=wrong[0].reason if wrong else None,
        )


def _case(case: GoldenCase, model: bytes, candidate: Candidate | None, variant: Variant) -> Case:
    settings = DEFAULT if candidate is None else candidate.sessions.get(variant.id, DEFAULT)
    return Case(case.id, "generated", model, case.inputs, case.outputs, None, settings=settings)
