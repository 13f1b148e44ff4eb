"""What passes are proven with: golden cases of the model as it came, and the model that gives the right answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import onnx

from edgekit.errors import ModelError, UsageError
from edgekit.facts import survey
from edgekit.golden import make as golden
from edgekit.golden.make import CaseOptions
from edgekit.model import external_data, walk
from edgekit.model.external_data import ExternalFile
from edgekit.model.io import LoadedModel
from edgekit.passes import interface, unique_names
from edgekit.passes.values import RANDOM, Known
from edgekit.progress import Progress
from edgekit.records.cases import GoldenCase
from edgekit.targets.load import Target
from edgekit.trim import carry, request, steps
from edgekit.trim.native import Native, NativeFailedError
from edgekit.trim.passing import seeded
from edgekit.trim.prove import Prover
from edgekit.trim.request import Shape
from edgekit.trim.steps import Work
from edgekit.trim.weights import Store


@dataclass(frozen=True)
class Evidence:
    """``prover`` None: nothing can be run, for ``reason``. ``changes``: what the user asked to make of the model.

    ``mended``: the runtime refuses the model as it came; the right answers are those of a copy, sorted and named.
    """

    prover: Prover | None
    mended: bool
    reason: str
    cases: tuple[GoldenCase, ...]
    seeded: bool
    runtime: str
    changes: tuple[tuple[str, onnx.ModelProto], ...]
    notes: tuple[str, ...] = field(default=())

    def start(self, lean: onnx.ModelProto) -> list[tuple[str, onnx.ModelProto]]:
        """Return the model, then each thing that was asked for, with what it left."""
        return [("the model", lean), *self.changes]


def gather(
    model: LoadedModel,
    lean: onnx.ModelProto,
    store: Store,
    native: Native,
    target: Target,
    options: CaseOptions,
    shape: Shape,
    *,
    given: tuple[GoldenCase, ...] = (),
    progress: Progress,
) -> Evidence:
    """Make golden cases of the model, and of the part of it that is wanted; or take those that are ``given``.

    The cases are made of a copy: its random nodes have seeds, and it ends where the part that is wanted does. A model
    whose nodes are out of order, or share names, is mended first where the runtime refuses it as it is.
    """
    facts = survey.survey(model)
    sizes = request.frozen(shape, facts)
    work = Work(native, store)
    changes, names, base = _requested(lean, work, shape, sizes)
    random = any(node.op_type in RANDOM and not node.domain for node in walk.all_nodes(lean))
    notes = []
    if random:
        notes.append("The model draws random numbers. For the proof they have seeds, in the output they have not.")
    notes += _offers(facts, shape)
    cases: tuple[GoldenCase, ...] = ()
    reason = runtime = ""
    path = store.folder / "reference.onnx"
    mended = False
    for mended in (False, True):
        right = _mended(base, work) if mended else base
        right = seeded(right) if random else right
        path.write_bytes(right.SerializeToString())
        try:
            cases, runtime = (
                (given, f"desktop onnxruntime {version('onnxruntime')}")
                if given
                else _cases(
                    LoadedModel(path, right, _files(right, store.folder)), target, options, sizes, shape, progress
                )
            )
        except ModelError as error:
            reason = reason or error.message.replace(str(path), model.path.name)
            continue
        if mended:
            notes.append("The runtime refuses the model as it is; the proof is against a copy, sorted and named.")
        break
    if not cases:
        return Evidence(None, False, reason, (), random, "", changes, tuple(notes))
    prover = Prover(path, cases, names, options.limits)
    stable = prover.stable()
    if not stable.identical:
        why = stable.error or f"its own answers differ from run to run (output {stable.worst})"
        return Evidence(None, mended, f"The model was run, and {why}.", (), random, runtime, changes, tuple(notes))
    return Evidence(prover, mended, "", cases, random, runtime, changes, tuple(notes))


def _requested(
    lean: onnx.ModelProto, work: Work, shape: Shape, sizes: dict[str, int]
) -> tuple[tuple[tuple[str, onnx.ModelProto], ...], tuple[str, ...], onnx.ModelProto]:
    """Do what was asked for. Returns each change with what it left, the outputs, and the model of right answers."""
    changes: list[tuple[str, onnx.ModelProto]] = []
    current = base = lean
    if shape.tensors:
        carried = carry.to_ir(current, work.store.folder)
        if interface.maps_to_tensors(carried.model):
            for name in [n for n in carried.types if n in {v.name for v in carried.model.graph.outputs}]:
                del carried.types[name]
            current = carry.to_proto(carried)
            changes.append((interface.TENSORS, current))
    if shape.inputs is not None or shape.outputs is not None:
        base = _ends_at(current if changes else lean, work, shape)
        carried = carry.to_ir(current, work.store.folder)
        steps.sort(work, carried)
        interface.cut(carried.model, shape.inputs, shape.outputs, _known(work, carried))
        current = carry.to_proto(carried)
        changes.append((interface.CUT, current))
    if sizes:
        carried = carry.to_ir(current, work.store.folder)
        if interface.freeze(carried.model, sizes):
            current = carry.to_proto(carried)
            changes.append((interface.FREEZE, current))
    names = tuple(info.name for info in current.graph.output)
    return tuple(changes), names, base


def _ends_at(proto: onnx.ModelProto, work: Work, shape: Shape) -> onnx.ModelProto:
    """The model of right answers for a part: it has the part's outputs, and gives the values of its inputs too."""
    carried = carry.to_ir(proto, work.store.folder)
    graph = carried.model.graph
    steps.sort(work, carried)
    wanted = list(shape.outputs if shape.outputs is not None else [value.name or "" for value in graph.outputs])
    given = {value.name for value in graph.inputs}
    wanted += [name for name in shape.inputs or () if name not in given and name not in wanted]
    interface.cut(carried.model, None, wanted, _known(work, carried))
    return carry.to_proto(carried)


def _known(work: Work, carried: carry.Carried) -> Known:
    try:
        return work.known(carried)
    except NativeFailedError as error:
        raise UsageError(f"The types inside the model cannot be found, so it cannot be cut: {error}.") from error


def _offers(facts: survey.Facts, shape: Shape) -> list[str]:
    """Say what could be asked for as well."""
    maps = [repr(output.name) for output in facts.outputs if "map(" in output.type]
    if maps and not shape.tensors:
        return [f"Output {', '.join(maps)} is a map, which browsers cannot read: --tensor-outputs makes it a tensor."]
    return []


def _mended(proto: onnx.ModelProto, work: Work) -> onnx.ModelProto:
    carried = carry.to_ir(proto, work.store.folder)
    steps.sort(work, carried)
    unique_names.apply(carried.model)
    interface.standard_axes(carried.model)
    return carry.to_proto(carried)


def _cases(
    loaded: LoadedModel,
    target: Target,
    options: CaseOptions,
    sizes: dict[str, int],
    shape: Shape,
    progress: Progress,
) -> tuple[tuple[GoldenCase, ...], str]:
    """Make cases at the frozen sizes; where a range is recorded, at both its ends."""
    facts = survey.survey(loaded)
    found: list[GoldenCase] = []
    runtime = ""
    for dims in _ends(sizes, shape):
        asked = replace(options, dims={**options.dims, **dims})
        made = golden.make(loaded, facts, target, asked, progress=progress)
        taken = {case.id for case in found}
        found += [replace(c, id=_fresh(c.id, taken)) for c in made.cases]
        runtime = f"{made.reference.name} {made.reference.runtime_version}"
    return tuple(found), runtime


def _ends(sizes: dict[str, int], shape: Shape) -> Sequence[dict[str, int]]:
    if not shape.ranges:
        return [sizes]
    low = {name: ends[0] for name, ends in shape.ranges.items()}
    high = {name: ends[1] for name, ends in shape.ranges.items()}
    return [sizes | low, sizes | high] if low != high else [sizes | low]


def _fresh(name: str, taken: set[str]) -> str:
    number = 2
    fresh = name
    while fresh in taken:
        fresh, number = f"{name}-{number}", number + 1
    taken.add(fresh)
    return fresh


def _files(proto: onnx.ModelProto, folder: Path) -> tuple[ExternalFile, ...]:
    names = dict.fromkeys(
        external_data.span(tensor).location for tensor in walk.all_tensors(proto) if external_data.is_external(tensor)
    )
    return tuple(ExternalFile(name, folder / name, (folder / name).stat().st_size) for name in names)
