"""The model again with one thing changed at a time: which changes cure it says what is at fault."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from edgekit.check.providers import GPU
from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply
from edgekit.diagnose.lab import Error, Lab, Place, arrays_of, case_of, error_of, with_threads, worst
from edgekit.diagnose.result import Trial
from edgekit.errors import EdgekitError
from edgekit.isolate.promote import promote, promoted
from edgekit.isolate.straight import inlined
from edgekit.model import walk
from edgekit.records.cases import Tolerance
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value
from edgekit.runners.browsers import CHROMIUM, FIREFOX
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

_NAMED = 4


@dataclass(frozen=True, eq=False)
class Failing:
    """Inputs on which the model fails, and what is right. ``tolerances``: by output name."""

    case: str
    step: int
    inputs: tuple[Value, ...]
    expected: tuple[Value, ...]
    tolerances: dict[str, Tolerance]

    def error(self, reply: Reply) -> Error:
        """Return the largest error of a reply's outputs."""
        given = arrays_of(reply)
        return worst([
            error_of(_cast(given.get(value.name), value), value.array, self.tolerances[value.name])
            for value in self.expected
            if value.array is not None
        ])  # fmt: skip


def _cast(array: Array | None, like: Value) -> Array | None:
    """Return what a model in another precision gave in the dtype that is right."""
    if array is None or "float" not in array.dtype.name or "float" not in like.dtype:
        return array
    return array.astype(NUMPY_DTYPES[like.dtype])


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was: ``settings`` of the session, ``place``, or the model's precision."""

    name: str
    settings: SessionSettings
    place: Place | None = None
    promote: bool = False
    inline: bool = False


@dataclass(frozen=True, eq=False)
class Options:
    """What else there is to change to: variants, other versions of the runtime.

    ``elsewhere``: change the variant, the threads and the engine too, each of which takes a page of its own.
    """

    variants: Sequence[Variant]
    runtimes: Sequence[RuntimeDist] = ()
    elsewhere: bool = True


def changes(
    lab: Lab, model: onnx.ModelProto, base: SessionSettings, names: Sequence[str], options: Options
) -> list[Change]:
    """Return what is to be tried. ``names``: the nodes that seem to be at fault."""
    place = lab.place
    found = [
        Change("graph optimization off", replace(base, optimization="disabled")),
        Change("graph optimization basic", replace(base, optimization="basic")),
    ]
    if place.variant.execution_provider == GPU:
        found += [Change(f"layout {layout}", replace(base, layout=layout)) for layout in ("NCHW", "NHWC")]
        if names:
            listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
            settings = replace(base, cpu_nodes=(*base.cpu_nodes, *names))
            found.append(Change(f"on the CPU: {listed}", settings))
            if model.functions:
                found.append(Change(f"functions inlined, on the CPU: {listed}", settings, inline=True))
    if _has(model, onnx.TensorProto.FLOAT16):
        found.append(Change("float32 instead of float16", base, promote=True))
    if options.elsewhere:
        found += _elsewhere(place, base, options.variants)
    for dist in options.runtimes:
        found.append(Change(f"runtime {dist.version}", base, replace(place, dist=dist)))
    return found


def _elsewhere(place: Place, base: SessionSettings, variants: Sequence[Variant]) -> list[Change]:
    found = [
        Change(f"variant {variant.id}", base, replace(place, variant=variant))
        for variant in variants
        if variant.id != place.variant.id and all(name in place.dist.files for name in variant.files)
    ]
    threads = 2 if place.threads == 1 else 1
    found.append(Change(f"{threads} thread{'s' if threads > 1 else ''}", base, with_threads(place, threads)))
    other = FIREFOX if place.engine is CHROMIUM else CHROMIUM
    return [*found, Change(f"engine {other.id}", base, replace(place, engine=other))]


def _has(model: onnx.ModelProto, data_type: int) -> bool:
    """Whether a model has values of a dtype: inputs, weights, or what it casts to."""
    return (
        any(info.type.tensor_type.elem_type == data_type for info in model.graph.input)
        or any(tensor.data_type == data_type for tensor in walk.all_tensors(model))
        or any(each.name == "to" and each.i == data_type for node in walk.all_nodes(model) for each in node.attribute)
    )


def rerun(lab: Lab, model: onnx.ModelProto, failing: Sequence[Failing], asked: Sequence[Change]) -> tuple[Trial, ...]:
    """Return what came of each change on the first of the failing cases; what cures that is tried on the others too."""
    first = _rerun(lab, model, failing[:1], asked)
    cures = [change for change, trial in zip(asked, first, strict=True) if trial.cures]
    if len(failing) == 1 or not cures:
        return first
    again = dict(zip([change.name for change in cures], _rerun(lab, model, failing[1:], cures), strict=True))
    return tuple(again.get(trial.change, trial) for trial in first)


def _rerun(lab: Lab, model: onnx.ModelProto, failing: Sequence[Failing], asked: Sequence[Change]) -> tuple[Trial, ...]:
    """All that need one place are tried in one page."""
    data = model.SerializeToString(deterministic=True)
    places: dict[str, list[Change]] = {}
    for change in asked:
        key = "" if change.place is None else f"{change.place.label} {change.place.dist.folder}"
        places.setdefault(key, []).append(change)
    found: dict[str, Trial] = {}
    for several in places.values():
        place = several[0].place
        cases = [case for change in several for case in _cases(data, model, failing, change)]
        try:
            replies = lab.browser(cases, place)
        except EdgekitError as error:
            found |= {each.name: Trial(each.name, "not run", None, None, error.message) for each in several}
            continue
        for number, change in enumerate(several):
            own = replies[number * len(failing) : (number + 1) * len(failing)]
            found[change.name] = _trial(change, failing, own)
    return tuple(found[change.name] for change in asked)


def _cases(data: bytes, model: onnx.ModelProto, failing: Sequence[Failing], change: Change) -> list[Case]:
    if change.inline:
        data = inlined(model).SerializeToString(deterministic=True)
    if not change.promote:
        return [case_of(data, each.inputs, change.settings) for each in failing]
    wide = promote(model, ("float16",), "float32")
    return [case_of(wide, promoted(each.inputs, ("float16",), "float32"), change.settings) for each in failing]


def _trial(change: Change, failing: Sequence[Failing], replies: Sequence[Reply]) -> Trial:
    bad = next((reply for reply in replies if reply.outcome != "done"), None)
    settings = None if change.place or change.promote or change.inline else change.settings
    if bad is not None:
        return Trial(change.name, bad.outcome, None, False, bad.error or "", settings)
    error = worst([each.error(reply) for each, reply in zip(failing, replies, strict=True)])
    return Trial(change.name, "done", error.relative, not error.wrong, "", settings)
