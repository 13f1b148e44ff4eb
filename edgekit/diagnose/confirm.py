"""Put a suspect on trial: alone, with the reference's inputs and with the engine's own, and against float64."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import onnx

from edgekit.conformance.suite import Reply
from edgekit.diagnose import facts
from edgekit.diagnose.lab import Error, arrays_of, as_dtype, case_of, worst
from edgekit.diagnose.left_open import left_open, settled
from edgekit.diagnose.result import Finding, Kind, NodeFacts, Side
from edgekit.diagnose.scene import Scene
from edgekit.diagnose.twins import Twins, twins_of
from edgekit.facts.casts import is_cast
from edgekit.isolate.cut import constants, part
from edgekit.isolate.reduce import Sample, fewer_nodes
from edgekit.records.tensors import Array, Value, value_of

_LONGEST_WINDOW = 8


@dataclass(frozen=True, eq=False)
class Confirmed:
    """A finding, and the model of it alone. ``sample`` None: it fails only where it stands."""

    finding: Finding
    nodes: tuple[str, ...]
    sample: Sample | None


@dataclass(frozen=True, eq=False)
class Cut:
    """Nodes of the line as a model of their own. ``expected``: what the desktop made of ``inputs``.

    ``own_inputs``: what the engine itself had there; None where that is not known. ``node``: the last of them.
    """

    node: onnx.NodeProto
    model: onnx.ModelProto
    inputs: tuple[Value, ...]
    own_inputs: tuple[Value, ...] | None
    expected: dict[str, Array]

    def exact(self, reply: Reply) -> dict[str, Array] | None:
        """Return the float64 evaluation's answers in the dtypes of ``expected``; None where it has none."""
        right = arrays_of(reply)
        if reply.outcome != "done" or any(name not in right for name in self.expected):
            return None
        right = {name: as_dtype(right[name], array) for name, array in self.expected.items()}
        same = all((right[name].dtype, right[name].shape) == (a.dtype, a.shape) for name, a in self.expected.items())
        return right if same else None

    def is_off(self, scene: Scene, reply: Reply) -> bool:
        """Whether the desktop's answers are not those of the float64 evaluation, where the standard has any."""
        right = self.exact(reply)
        return right is not None and _distance(scene, self.expected, right, self.left_open).wrong

    @cached_property
    def left_open(self) -> dict[str, Array]:
        """Where the standard leaves open what a node gives of ``inputs``; nothing where there are several nodes."""
        if len(self.model.graph.node) != 1 or not is_cast(self.model.graph.node[0]):
            return {}
        read = constants(self.model) | {value.name: _array(value) for value in self.inputs}
        return left_open(self.model.graph.node[0], read, self.expected)


def on_trial(scene: Scene, suspects: Sequence[onnx.NodeProto], *, windows: bool = True) -> tuple[Confirmed, ...]:
    """Return a finding for each suspect that adds an error when it runs alone.

    ``windows``: or together with what is before it, where the runtime fuses them.
    """
    scene.fetch([name for node in suspects for name in (*scene.reads(node), *node.output) if name])
    cuts = [cut for node in suspects if (cut := cut_out(scene, node)) is not None]
    with_own = [cut for cut in cuts if cut.own_inputs is not None]
    cases = [case_of(cut.model, cut.inputs, scene.settings) for cut in cuts]
    own = [case_of(cut.model, cut.own_inputs or (), scene.settings) for cut in with_own]
    replies = scene.lab.browser([*cases, *own])
    desktop_own = dict(zip([cut.node.name for cut in with_own], scene.lab.desktop(own), strict=True))
    browser_own = dict(zip([cut.node.name for cut in with_own], replies[len(cuts) :], strict=True))
    exacts = scene.lab.exact(cases)
    found = []
    for cut, reply, exact in zip(cuts, replies, exacts, strict=False):
        name = cut.node.name
        added = _off(scene, reply, cut.expected)
        added_own = None
        if name in desktop_own and desktop_own[name].outcome == "done":
            added_own = _off(scene, browser_own[name], arrays_of(desktop_own[name]))
        if added.wrong or (added_own is not None and added_own.wrong):
            found.append(finding_of(scene, cut, reply, exact, own=added_own))
        elif windows and (scene.masked or not _is_explained(scene, cut, desktop_own.get(name))):
            window = _window(scene, cut.node)
            found += [] if window is None else [window]
    return tuple(found)


def _is_explained(scene: Scene, cut: Cut, own: Reply | None) -> bool:
    """Whether the desktop gives what the engine gave in the whole model, given what the engine had there: then the
    inputs explain it, however small their errors are."""
    if own is None or own.outcome != "done":
        return False
    given = {name: scene.own.get(name) for name in cut.expected}
    return not any(scene.lab.error(given[name], array).wrong for name, array in arrays_of(own).items())


def cut_out(scene: Scene, node: onnx.NodeProto) -> Cut | None:
    """Return a node as a model of its own, with inputs of the reference and of the browser; None: it cannot be cut."""
    outputs = [name for name in node.output if name in scene.reference]
    made = part(scene.model, [node.name], scene.reference, outputs)
    if made is None or not outputs:
        return None
    model, inputs = made
    own = None
    if inputs and all(value.name in scene.own or value.name in _given(scene) for value in inputs):
        own = tuple(value_of(value.name, scene.own.get(value.name, _array(value))) for value in inputs)
    return Cut(node, model, inputs, own, {name: scene.reference[name] for name in outputs})


def _given(scene: Scene) -> set[str]:
    return {value.name for value in scene.inputs}


def _array(value: Value) -> Array:
    assert value.array is not None  # noqa: S101  part() takes tensors alone
    return value.array


def _off(
    scene: Scene, reply: Reply, expected: dict[str, Array], places: Mapping[str, Array] = MappingProxyType({})
) -> Error:
    """Return how far a reply is from what is expected, but for ``places``, where any answer will do."""
    if reply.outcome != "done":
        return Error(math.inf, wrong=True)
    return _distance(scene, arrays_of(reply), expected, places)


def _distance(scene: Scene, given: dict[str, Array], expected: dict[str, Array], places: Mapping[str, Array]) -> Error:
    right = settled(expected, given, places)
    return worst([scene.lab.error(given.get(name), array) for name, array in right.items()])


def _sides(scene: Scene, cut: Cut, reply: Reply, exact: Reply) -> tuple[Side, float | None, float | None]:
    """Say who is wrong, and how far the engine and the desktop are from the float64 evaluation.

    "open": they differ only where the standard leaves the result open, and then the evaluation is a third opinion.
    """
    places = cut.left_open
    if places and _off(scene, reply, cut.expected).wrong and not _off(scene, reply, cut.expected, places).wrong:
        return "open", None, None
    right = cut.exact(exact)
    if right is None:
        return "unknown", None, None
    desktop = _distance(scene, cut.expected, right, places)
    engine = _off(scene, reply, right, places)
    sides: dict[tuple[bool, bool], Side] = {
        (True, False): "engine", (False, True): "desktop", (True, True): "both", (False, False): "neither",
    }  # fmt: skip
    return sides[engine.wrong, desktop.wrong], engine.relative, desktop.relative


def _window(scene: Scene, node: onnx.NodeProto) -> Confirmed | None:
    """Return the fewest nodes that end with ``node`` and fail together: what the runtime fuses, or lays out anew."""
    before = scene.ancestors([name for name in node.output if name])[-_LONGEST_WINDOW:]
    names = [each.name for each in before]
    scene.fetch([name for each in before for name in (*scene.reads(each), *each.output) if name])

    def fails(samples: Sequence[Sample]) -> list[bool]:
        cases = [case_of(each.model, each.inputs, scene.settings) for each in samples]
        verdicts = []
        for sample, reply in zip(samples, scene.lab.browser(cases), strict=True):
            outputs = [info.name for info in sample.model.graph.output]
            verdicts.append(_off(scene, reply, {name: scene.reference[name] for name in outputs}).wrong)
        return verdicts

    found = fewer_nodes(scene.model, names, scene.reference, fails)
    if found is None:
        return None
    window, sample = found
    case = case_of(sample.model, sample.inputs, scene.settings)
    (reply,), (exact,) = scene.lab.browser([case]), scene.lab.exact([case])
    expected = {info.name: scene.reference[info.name] for info in sample.model.graph.output}
    cut = Cut(node, sample.model, sample.inputs, None, expected)
    return finding_of(scene, cut, reply, exact, nodes=[each for each in before if each.name in window])


def finding_of(
    scene: Scene,
    cut: Cut,
    reply: Reply,
    exact: Reply,
    *,
    own: Error | None = None,
    nodes: Sequence[onnx.NodeProto] = (),
) -> Confirmed:
    """Say what a cut shows, of which the browser gave ``reply``. ``nodes``: all that are in it, where not one alone."""
    several = nodes or [cut.node]
    side, engine_off, desktop_off = _sides(scene, cut, reply, exact)
    described = tuple(facts.facts_of(scene, node) for node in several)
    kind, note = _kind(reply, described, cut.expected)
    engine_fails = side != "desktop"
    twins = twins_of(scene, cut.node, cut.model, cut.inputs) if len(several) == 1 and engine_fails else Twins()
    finding = Finding(
        kind=kind,
        nodes=described,
        added=_off(scene, reply, cut.expected).relative,
        added_own=None if own is None else own.relative,
        side=side,
        engine_off=engine_off,
        desktop_off=desktop_off,
        gain=None,
        twins=twins.named,
        note=note,
        picture=facts.picture(scene, several),
        nameless_twins=twins.nameless,
    )
    return Confirmed(finding, tuple(node.name for node in several), Sample(cut.model, cut.inputs))


def _kind(reply: Reply, nodes: Sequence[NodeFacts], expected: dict[str, Array]) -> tuple[Kind, str]:
    if reply.outcome == "crashed":
        return "crashed", f"Alone it ends the runtime: {reply.error}"
    if reply.outcome != "done":
        return "refused", f"Alone it is refused: {reply.error}"
    if len(nodes) > 1:
        return "wrong", "Each node alone is right; together (fused, or in another layout) they are not."
    for name, array in arrays_of(reply).items():
        floats = array.dtype.name.startswith(("float", "bfloat")) and name in expected
        if floats and not_finite(array) > not_finite(expected[name]):
            return "nonfinite", f"NaN or infinity arises here: '{name}' has it, and what the node reads is finite."
    return "wrong", ""


def not_finite(array: Array) -> int:
    """Count NaN and infinities."""
    return int(np.size(array) - np.isfinite(array.astype(np.float64)).sum())


def amplifier(scene: Scene, suspects: Sequence[onnx.NodeProto]) -> Confirmed | None:
    """Return the suspect that enlarges errors of its inputs most, where none adds one of its own."""
    best: tuple[float, onnx.NodeProto] | None = None
    for node in suspects:
        before = worst([scene.errors[name] for name in scene.reads(node) if name in scene.errors]).relative
        after = worst([scene.errors[name] for name in node.output if name in scene.errors]).relative
        gain = after / before if before else math.inf
        if before and math.isfinite(before) and (best is None or gain > best[0]):
            best = gain, node
    if best is None:
        return None
    gain, node = best
    finding = Finding(
        kind="amplifies",
        nodes=(facts.facts_of(scene, node),),
        added=0.0,
        added_own=None,
        side="neither",
        engine_off=None,
        desktop_off=None,
        gain=gain,
        twins=(),
        note="Alone it is right: it enlarges small differences of rounding that come from before it.",
        picture=facts.picture(scene, [node]),
    )
    return Confirmed(finding, (node.name,), None)
