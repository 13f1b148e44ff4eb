"""Trim a model: run the passes, prove each, undo what does not prove, write what is left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from edgekit import files
from edgekit.child.process import DEFAULT_LIMITS, ChildLimits
from edgekit.errors import ModelError, ParityError, UsageError
from edgekit.figures import figure
from edgekit.files import temporary_folder, write_atomic
from edgekit.golden.make import CaseOptions
from edgekit.model import walk
from edgekit.model.io import LoadedModel
from edgekit.passes import fold_constants, no_ops
from edgekit.progress import Progress, silent
from edgekit.records.cases import GoldenCase
from edgekit.targets.load import Target
from edgekit.trim import output as packing
from edgekit.trim import plan as plans
from edgekit.trim.evidence import Evidence, gather
from edgekit.trim.native import Native
from edgekit.trim.output import Packing
from edgekit.trim.passing import Passing, Snapshot
from edgekit.trim.plan import PassRecord, Plan, ProofCase
from edgekit.trim.prove import Verdict
from edgekit.trim.request import Shape
from edgekit.trim.steps import DECLARE, INLINE, Work, names
from edgekit.trim.weights import Store, stored_bytes

# Each failed proof costs a repetition of the passes; a model on which more than this many fail is left as it is.
_MOST_UNDONE = 8
_USUAL_ROUNDING = 1e-4
_CONSTANTS_IR, _FUNCTIONS_IR = 4, 8


@dataclass(frozen=True)
class TrimOptions:
    """What the user says.

    ``cases``: how golden cases are made; ``given``: those to prove with, where there are some already.
    ``shape``: what of the model is wanted. ``opset``: convert to it. ``ir``: the IR version that the file states.
    ``allow_rounding``: admit passes that reorder arithmetic. ``int32``: let whole numbers leave int64.
    ``keep_metadata``: keep doc strings, metadata and recorded shapes of nodes too; ``drop_metadata``: drop those of the
    model as well. ``skip``: passes to leave out; ``passes`` False leaves out all, and changes nothing but how weights
    are stored.
    ``unproven``: go on with structural passes where nothing can be run. ``plan``: where the plan is written; None for
    ``OUT.plan.json``.
    """

    cases: CaseOptions = field(default_factory=CaseOptions)
    given: tuple[GoldenCase, ...] = ()
    shape: Shape = field(default_factory=Shape)
    opset: int | None = None
    ir: int | None = None
    allow_rounding: bool = False
    int32: bool = False
    keep_metadata: bool = False
    drop_metadata: bool = False
    skip: tuple[str, ...] = ()
    passes: bool = True
    unproven: bool = False
    packing: Packing = field(default_factory=Packing)
    plan: Path | None = None
    limits: ChildLimits = DEFAULT_LIMITS


def trim(
    model: LoadedModel, output: Path, target: Target, options: TrimOptions, *, progress: Progress = silent
) -> Plan:
    """Write a smaller model that gives the same answers to ``output``, and the plan beside it.

    Raises UsageError for an option that does not fit the model, or an output that is the input; ModelError when the
    graph makes no sense, or nothing can be run and ``unproven`` is not set; LimitError over a limit; ParityError when
    what was asked for (a part, an opset) cannot be proven.
    """
    _check(model, output, options)
    # Beside the output, so that weights can be linked and results renamed.
    with temporary_folder(output) as folder:
        return _Trim(model, output, target, options, folder, progress).run()


def _place_of_plan(output: Path, options: TrimOptions) -> Path:
    return options.plan or output.with_name(f"{output.stem}.plan.json")


def _check(model: LoadedModel, output: Path, options: TrimOptions) -> None:
    sources = [model.path, *(file.path for file in model.external_files)]
    written = [output, *(output.with_name(packing.data_name(output.name, number)) for number in range(4))]
    for place in (*written, _place_of_plan(output, options)):
        files.keep_sources(place, sources)
    if _place_of_plan(output, options).absolute() in {place.absolute() for place in written}:
        raise UsageError(f"The plan would replace the model in {output}.", hint="Choose another file for --plan.")
    if output.is_dir():
        raise UsageError(f"{output} is a folder.", hint=f"Name a file: {output / model.path.name}.")
    known = names()
    for name in options.skip:
        if name not in known:
            raise UsageError(f"There is no pass '{name}'.", hint=f"Passes: {', '.join(known)}.")


class _Trim:
    """One run. ``undone``: names of passes that failed their proof, and why."""

    def __init__(
        self, model: LoadedModel, output: Path, target: Target, options: TrimOptions, folder: Path, progress: Progress
    ) -> None:
        self.model, self.output, self.target, self.options = model, output, target, options
        self.folder, self.progress = folder, progress
        self.store = Store(folder)
        self.native = Native(folder, options.limits)
        self.undone: dict[str, PassRecord] = {}
        self.spare_weights = self.strict = False
        self.inline = self.fold = self.declare = True
        self.failures: dict[str, str] = {}
        self.notes: list[str] = []
        self.said: list[str] = []

    def run(self) -> Plan:
        self.progress("Reading the model")
        lean = self.store.detach(self.model)
        if self.options.ir is not None and self.options.opset is None:
            self._state_ir(lean, self.options.ir)
        if not self.options.passes:
            return self._repack(lean)
        evidence = gather(
            self.model, lean, self.store, self.native, self.target, self.options.cases, self.options.shape,
            given=self.options.given, progress=self.progress,
        )  # fmt: skip
        self.notes += evidence.notes
        if evidence.prover is None and not self.options.unproven:
            raise ModelError(
                f"{self.model.path}: nothing can be proven, because nothing can be run. {evidence.reason}",
                hint="--unproven applies the passes that cannot change an answer, and says so in the plan.",
            )
        snapshots = self._prove_passes(lean, evidence)
        if self.options.ir is not None and self.options.opset is not None:
            self._state_ir(snapshots[-1].proto, self.options.ir)  # the opset that the model has now decides
        return self._finish(lean, snapshots, evidence)

    def _state_ir(self, lean: onnx.ModelProto, version: int) -> None:
        """Let the model state another IR version, where that can describe it. The number alone changes no answer."""
        least = _least_ir(lean)
        if version < least:
            raise UsageError(
                f"{self.model.path} needs IR version {least} or newer, for its opsets or its functions; not {version}.",
                hint=f"--ir {least}, or an older opset with --opset.",
            )
        if version != lean.ir_version:
            self.notes.append(f"The IR version was {lean.ir_version} and is {version}: the number alone is another.")
            lean.ir_version = version

    def _repack(self, lean: onnx.ModelProto) -> Plan:
        """Write the same graph with its weights stored otherwise. Nothing is run: the bytes of tensors are copied."""
        if self.options.shape != Shape() or self.options.opset is not None:
            raise UsageError("--no-passes leaves the graph as it is, so it excludes the options that change it.")
        self.notes.append("No pass was run: the graph is the same, and its weights are byte for byte.")
        only = Snapshot("the model", lean, lean)
        evidence = Evidence(None, False, "", (), False, "", ())
        return self._finish(lean, [only], evidence)

    def _passes(self, evidence: Evidence, lean: onnx.ModelProto) -> list[Snapshot]:
        work = Work(
            self.native, self.store, keep_metadata=self.options.keep_metadata,
            drop_metadata=self.options.drop_metadata, strict_folding=self.strict, spare_weights=self.spare_weights,
            most={name: high for name, (_, high) in self.options.shape.ranges.items()},
        )  # fmt: skip
        passing = Passing(
            work,
            skip=frozenset((*self.options.skip, *self.undone, *self._too_dear())),
            structural_only=evidence.prover is None,
            opset=self.options.opset,
            rounding=self.options.allow_rounding,
            seeds=evidence.seeded,
            int32=self.options.int32,
        )
        done = passing.run(evidence.start(lean))
        self.said = work.notes  # by the passes that are kept: those of an earlier try do not count
        self.failures |= work.failures
        return done

    def _too_dear(self) -> tuple[str, ...]:
        """Return the passes without which the file does not grow."""
        dear = {INLINE: self.inline, fold_constants.NAME: self.fold, DECLARE: self.declare}
        return tuple(name for name, wanted in dear.items() if not wanted)

    def _prove_passes(self, lean: onnx.ModelProto, evidence: Evidence) -> list[Snapshot]:
        """Run all passes, prove what each left, and begin again without the first that failed."""
        for _ in range(_MOST_UNDONE):
            self.progress("Running the passes")
            snapshots = self._passes(evidence, lean)
            if stored_bytes(snapshots[-1].proto) > stored_bytes(snapshots[0].proto) and self._thriftier():
                continue
            failed = self._judge(snapshots, evidence)
            if failed is None:
                return snapshots
            if failed.required:
                raise ParityError(
                    f"{self.model.path}: the pass '{failed.name}' changes the answers: {failed.reason}.",
                    hint="Nothing was written. Leave that option out, or give real inputs with --sample.",
                )
            self.undone[failed.name] = failed.record("undone")
            self._milder(failed.name)
        raise ParityError(
            f"{self.model.path}: too many passes change its answers: {', '.join(self.undone)}.",
            hint="Nothing was written. Please report this model.",
        )

    def _milder(self, name: str) -> None:
        """Let a pass that failed come again in a form that does less, where it has one."""
        if name in (fold_constants.NAME, no_ops.NAME) and not self.spare_weights:
            self.spare_weights = True
            self.undone[f"{name} of weights"] = replace(self.undone.pop(name), name=f"{name} of weights")
        else:
            self.undone.pop(f"{name} of weights", None)

    def _thriftier(self) -> bool:
        """Let the passes begin again in a way that cannot grow the file; False when there is none left."""
        if not self.strict:
            self.strict = True
            return True
        if self.inline:
            self.inline = False
            return True
        if self.fold:
            self.fold = False
            return True
        if self.declare:
            self.declare = False
            return True
        return False

    def _judge(self, snapshots: list[Snapshot], evidence: Evidence) -> Snapshot | None:
        """Judge every snapshot against the right answers; return the first that fails."""
        if evidence.prover is None:
            return None
        passes = len(snapshots) - 1
        self.progress(
            f"Proving {passes} {'pass' if passes == 1 else 'passes'}" if passes else "Proving the model as it is"
        )
        snapshots = [snapshot for snapshot in snapshots if not (snapshot.repairs and evidence.mended)]
        todo = [snapshot for snapshot in snapshots if snapshot.verdict is None]
        places = [snapshot.save(self.folder, number) for number, snapshot in enumerate(todo)]
        for snapshot, verdict in zip(todo, evidence.prover.judge(places), strict=True):
            snapshot.verdict = verdict
        for place in places:
            place.unlink()
        rounding = False
        worst = 0.0
        for snapshot in snapshots:
            rounding |= snapshot.may_round
            judged = snapshot.verdict
            if judged is None or not self._passes_proof(judged, snapshot, worst if rounding else 0.0):
                return snapshot
            worst = max(worst, judged.difference)
        return None

    def _passes_proof(self, verdict: Verdict, snapshot: Snapshot, allowed: float) -> bool:
        if verdict.error is not None or verdict.compared == 0:
            snapshot.reason = verdict.error or "nothing was compared"
            return False
        if verdict.difference <= allowed:
            return True
        if snapshot.may_round and verdict.difference <= _most_rounding(self.target):
            return True
        what = "is of another shape or dtype, or not finite" if verdict.difference == float("inf") else "differs"
        snapshot.reason = f"output {verdict.worst} {what} (by {figure(verdict.difference)} of its scale)"
        return False

    def _finish(self, lean: onnx.ModelProto, snapshots: list[Snapshot], evidence: Evidence) -> Plan:
        last = snapshots[-1]
        place = self.folder / "out"
        place.mkdir()
        external = self.options.packing.external
        if external is None:
            external = bool(self.model.external_files) or self.options.packing.file_bytes is not None
        packing.write(
            last.proto, self.store, place, self.output.name, external=external, most=self.options.packing.file_bytes
        )
        self._prove_file(place / self.output.name, last, evidence)
        written = packing.put(place, self.output)
        before = self.model.path.stat().st_size + sum(file.bytes for file in self.model.external_files)
        plan = Plan(
            model=str(self.model.path),
            model_sha256=files.sha256_file(self.model.path),
            files=written,
            nodes_before=sum(1 for _ in walk.all_nodes(lean)),
            nodes_after=sum(1 for _ in walk.all_nodes(last.proto)),
            bytes_before=before,
            bytes_after=sum(file.bytes for file in written),
            proof=_proof(last, evidence),
            difference=None if last.verdict is None else last.verdict.difference,
            runtime=evidence.runtime,
            passes=(*_records(snapshots, evidence), *self.undone.values(), *self._failed(last)),
            cases=tuple(ProofCase(case.id, case.origin, case.grade.weak) for case in evidence.cases),
            notes=tuple(dict.fromkeys((*self.notes, *self.said))),
        )
        write_atomic(_place_of_plan(self.output, self.options), files.json_bytes(plans.to_json(plan)))
        return plan

    def _failed(self, last: Snapshot) -> list[PassRecord]:
        """Return a row for each pass that could not be done; it left the model as it was."""
        row = last.record("failed")
        row = replace(row, nodes_before=row.nodes_after, bytes_before=row.bytes_after)
        return [replace(row, name=name, reason=reason) for name, reason in self.failures.items()]

    def _prove_file(self, path: Path, last: Snapshot, evidence: Evidence) -> None:
        """Prove the very file that is handed out. Random nodes have seeds in the proof alone, so there it is loaded."""
        if evidence.prover is None or evidence.seeded:
            return
        self.progress("Proving the file")
        verdict = evidence.prover.judge([path])[0]
        if last.verdict is None or verdict.error is not None or verdict.difference > last.verdict.difference:
            raise ParityError(
                f"{self.output}: the file as written does not answer as its last pass did: "
                f"{verdict.error or verdict.worst}.",
                hint="Nothing was written. Please report this model.",
            )


def _least_ir(proto: onnx.ModelProto) -> int:
    """The oldest IR version that has the model's opsets, constants outside of the inputs, and functions."""
    known = [o for o in proto.opset_import if o.domain in ("", walk.DEFAULT_DOMAIN, "ai.onnx.ml")]
    least = max(_CONSTANTS_IR, onnx.helper.find_min_ir_version_for(known, ignore_unknown=True))
    return max(least, _FUNCTIONS_IR) if proto.functions else least


def _most_rounding(target: Target) -> float:
    """Reordered float32 arithmetic moves outputs by much less than what a target forgives."""
    return target.tolerance["float32"].relative if "float32" in target.tolerance else _USUAL_ROUNDING


def _proof(last: Snapshot, evidence: Evidence) -> plans.Proof:
    if evidence.prover is None or last.verdict is None:
        return "structural"
    return "identical" if last.verdict.identical else "rounding"


def _records(snapshots: Sequence[Snapshot], evidence: Evidence) -> list[PassRecord]:
    records = []
    for snapshot in snapshots[1:]:
        verdict = snapshot.verdict
        proof: plans.Proof = "structural" if evidence.prover is None or verdict is None else "identical"
        if verdict is not None and not verdict.identical:
            proof = "rounding"
        records.append(replace(snapshot.record(proof), difference=None if verdict is None else verdict.difference))
    return records


def summary(plan: Plan) -> Mapping[str, int]:
    """Return how many passes ended each way."""
    counts: dict[str, int] = {}
    for record in plan.passes:
        counts[record.proof] = counts.get(record.proof, 0) + 1
    return counts
