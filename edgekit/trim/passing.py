"""Run the passes over a model, and keep what each left: a snapshot small enough to keep many."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from edgekit.errors import EdgekitError, ModelError
from edgekit.model import walk
from edgekit.passes.values import RANDOM
from edgekit.trim import carry, steps
from edgekit.trim.native import NativeFailedError
from edgekit.trim.plan import PassRecord, Proof
from edgekit.trim.prove import Verdict
from edgekit.trim.steps import Step, Work
from edgekit.trim.weights import stored_bytes

_MOST_ROUNDS = 6


class Snapshot:
    """A model as a pass left it. ``required``: the user asked for it, so it cannot be undone.

    ``repairs``: it, or what follows, is what makes the runtime take the model at all. ``seeds``: give random nodes
    seeds for the proof. ``reason``: why the proof failed.
    """

    def __init__(
        self,
        name: str,
        proto: onnx.ModelProto,
        before: onnx.ModelProto,
        *,
        may_round: bool = False,
        required: bool = False,
        seeds: bool = False,
    ) -> None:
        self.name = name
        self.proto = proto
        self.nodes_before = _nodes(before)
        self.bytes_before = stored_bytes(before)
        self.may_round = may_round
        self.required = required
        self.seeds = seeds
        self.repairs = False
        self.reason: str | None = None
        self.verdict: Verdict | None = None

    def save(self, folder: Path, number: int) -> Path:
        """Write the model beside its weights, with seeds where it is random."""
        path = folder / f"snapshot-{number}.onnx"
        path.write_bytes((seeded(self.proto) if self.seeds else self.proto).SerializeToString())
        return path

    def record(self, proof: Proof) -> PassRecord:
        """Return the row of the plan."""
        return PassRecord(
            name=self.name,
            nodes_before=self.nodes_before,
            nodes_after=_nodes(self.proto),
            bytes_before=self.bytes_before,
            bytes_after=stored_bytes(self.proto),
            proof=proof,
            reason=self.reason,
        )


def seeded(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which each random node has a seed, told by the name of what it makes: answers repeat."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for node in walk.all_nodes(copy):
        if node.op_type in RANDOM and not node.domain and not any(a.name == "seed" for a in node.attribute):
            number = zlib.crc32(node.output[0].encode()) % 65521 + 1 if node.output else 1
            node.attribute.append(onnx.AttributeProto(name="seed", type=onnx.AttributeProto.FLOAT, f=float(number)))
    return copy


@dataclass(frozen=True)
class Passing:
    """How to run the passes. ``skip``: those to leave out. ``structural_only``: those that prove themselves alone."""

    work: Work
    skip: frozenset[str]
    structural_only: bool
    opset: int | None
    rounding: bool
    seeds: bool
    int32: bool = False

    def run(self, start: list[tuple[str, onnx.ModelProto]]) -> list[Snapshot]:
        """Run all passes. ``start``: the model, then what the user asked to make of it, each with its name."""
        first = start[0][1]
        done = [Snapshot(start[0][0], first, first, seeds=self.seeds)]
        for name, proto in start[1:]:
            self._add(done, name, proto, required=True)
        carried = self._each(done, steps.REPAIR, None)
        for snapshot in done[:-1]:
            snapshot.repairs = True
        if self.opset is not None:
            self._step(done, steps.convert(self.opset), required=True)
            carried = None
        carried = self._rounds(done, self._each(done, steps.FIRST, carried))
        if self.int32 and self._step(done, steps.NARROW)[1]:
            self.work.forget()
            carried = self._rounds(done, None)
        carried = self._each(done, steps.LIFT, carried)
        if self.rounding:
            self._step(done, steps.ROUNDING, may_round=True)
            carried = self._each(done, steps.LIFT, self._rounds(done, None))
        self._each(done, steps.LAST, carried)
        return done

    def _each(
        self, done: list[Snapshot], passes: Sequence[Step], carried: carry.Carried | None
    ) -> carry.Carried | None:
        """Run passes; one conversion serves until a pass changes something. Returns what the next pass may take."""
        for step in passes:
            carried, changed = self._step(done, step, carried=carried)
            if changed:
                carried = None
        return carried

    def _rounds(self, done: list[Snapshot], carried: carry.Carried | None) -> carry.Carried | None:
        for _ in range(_MOST_ROUNDS):
            changed = False
            # One conversion and one inference serve a whole round: what passes add is known in the next.
            for step in steps.ROUND:
                carried, this = self._step(done, step, carried=carried)
                changed |= this
            self.work.forget()
            if not changed:
                return carried
            carried = None
        return None

    def _step(
        self,
        done: list[Snapshot],
        step: Step,
        *,
        carried: carry.Carried | None = None,
        may_round: bool = False,
        required: bool = False,
    ) -> tuple[carry.Carried | None, bool]:
        """Run one pass on the last model, and add what it left. Returns the model to go on with, and if it changed."""
        if step.name in self.skip or (self.structural_only and not step.structural):
            return carried, False
        before = done[-1].proto
        try:
            carried = carried or carry.to_ir(before, self.work.store.folder)
            if not step.apply(self.work, carried):
                return carried, False
            after = carry.to_proto(carried)
        except EdgekitError:
            raise
        except Exception as error:  # onnx-ir raises what it meets; one pass less is no reason to give up
            reason = str(error) if isinstance(error, NativeFailedError) else f"{type(error).__name__}: {error}"[:300]
            if required:
                raise ModelError(f"The pass '{step.name}' cannot be done: {reason}") from error
            self.work.failures.setdefault(step.name, reason)
            return None, False
        self.work.store.settle(after)
        self._add(done, step.name, after, may_round=may_round, required=required)
        return carried, True

    def _add(
        self,
        done: list[Snapshot],
        name: str,
        proto: onnx.ModelProto,
        *,
        may_round: bool = False,
        required: bool = False,
    ) -> None:
        before = done[-1].proto
        done.append(Snapshot(name, proto, before, may_round=may_round, required=required, seeds=self.seeds))


def _nodes(proto: onnx.ModelProto) -> int:
    return sum(1 for _ in walk.all_nodes(proto))
