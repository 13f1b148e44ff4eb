"""Find the nodes at which a browser's values leave the desktop's, beyond what their inputs explain."""

from collections.abc import Sequence

import onnx

from edgekit.diagnose.lab import arrays_of, case_of
from edgekit.diagnose.scene import MOST_BYTES, Scene
from edgekit.isolate.cut import exposed

_MOST_SUSPECTS = 8
_PREFIXES = 24


def suspects(scene: Scene) -> list[onnx.NodeProto]:
    """Return the first nodes in the line that give something wrong though all that they read is right.

    All values of a small model are looked at, the parts between wrong and right ones of a large one. Empty: giving
    values away hides the fault, or the line does not fail at all.
    """
    names = scene.values()
    scene.weigh(names)
    while sum(scene.sizes[name] for name in names) > MOST_BYTES:
        narrower = _narrowed(scene, names)
        if len(narrower) >= len(names):
            break
        names = narrower
    scene.look(names)
    return _frontier(scene)


def _narrowed(scene: Scene, names: Sequence[str]) -> list[str]:
    """Look at some of the values, far apart, and return those between the first wrong one and the right ones."""
    total = sum(scene.sizes[name] for name in names)
    scene.look(names[:: max(2, -(-2 * total // MOST_BYTES))])
    wrong = next((name for name in names if scene.is_wrong(name)), None)
    ends = [name for name in scene.results if scene.is_wrong(name)] if wrong is None else [wrong]
    right = {name for name, error in scene.errors.items() if not error.wrong}
    before = {name for node in scene.ancestors(right) for name in node.output if name}
    between = {name for node in scene.ancestors(ends) for name in node.output if name}
    return [name for name in names if name in between and name not in before]


def _frontier(scene: Scene) -> list[onnx.NodeProto]:
    """Return the nodes that give something wrong of what is right, in the order of the line."""
    made_by = scene.made_by()
    found = []
    for node in scene.nodes:
        if not any(scene.is_wrong(name) for name in node.output):
            continue
        if not any(scene.is_wrong(name) for name in _seen_inputs(scene, node, made_by)):
            found.append(node)
    return found[:_MOST_SUSPECTS]


def _seen_inputs(scene: Scene, node: onnx.NodeProto, made_by: dict[str, onnx.NodeProto]) -> list[str]:
    """Return what a node reads; in place of what could not be looked at, what that was made of."""
    found, waiting, seen = [], scene.reads(node), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in scene.errors or name not in made_by:
            found.append(name)
        else:
            waiting += scene.reads(made_by[name])
    return found


def hidden_suspect(scene: Scene) -> onnx.NodeProto | None:
    """Return the node that ends the shortest beginning of the line whose last value is wrong, with nothing else given.

    This leaves fused nodes fused, where looking at values between them would not.
    """
    wrong = [name for name in scene.results if scene.is_wrong(name)] or scene.results
    names = [name for node in scene.ancestors(wrong) for name in node.output if name in set(scene.values())]
    while names:
        step = max(1, -(-len(names) // _PREFIXES))
        tried = sorted({*range(step - 1, len(names), step), len(names) - 1})
        scene.fetch([names[index] for index in tried])
        found = _first_wrong(scene, [names[index] for index in tried])
        if found is None:
            return None
        if step == 1:
            return scene.made_by()[names[tried[found]]]
        names = names[(tried[found - 1] + 1 if found else 0) : tried[found] + 1]
    return None


def _first_wrong(scene: Scene, names: Sequence[str]) -> int | None:
    cases = [case_of(exposed(scene.model, [name], only=True), scene.inputs, scene.settings) for name in names]
    for index, (name, reply) in enumerate(zip(names, scene.lab.browser(cases), strict=True)):
        expected = scene.reference.get(name)
        if reply.outcome != "done" or expected is None:
            continue
        error = scene.lab.error(arrays_of(reply).get(name), expected)
        if error.wrong:
            scene.errors.setdefault(name, error)
            return index
    return None
