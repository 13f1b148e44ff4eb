"""What there is to say of a node, and a picture of what is around it."""

from collections.abc import Sequence

import onnx

from edgekit.diagnose.result import NodeFacts, ValueFacts
from edgekit.diagnose.scene import Scene
from edgekit.facts import places
from edgekit.facts.attributes import attribute_text
from edgekit.figures import figure
from edgekit.isolate import names as naming
from edgekit.isolate.straight import Origin

_MOST_BRANCHES = 4
_LONGEST = 60


def facts_of(scene: Scene, node: onnx.NodeProto) -> NodeFacts:
    """Describe a node of the line."""
    origin = scene.line.origins[node.name]
    return NodeFacts(
        name=origin.name,
        line_name=node.name,
        op_type=node.op_type,
        domain=node.domain,
        graph=origin.graph,
        turn=origin.turn,
        attributes=tuple((each.name, attribute_text(each)) for each in node.attribute),
        inputs=tuple(_value(scene, name) for name in dict.fromkeys(naming.reads(node))),
        outputs=tuple(_value(scene, name) for name in node.output if name),
        node=called(origin),
    )


def called(origin: Origin) -> str:
    """Name a node as ``check`` does: by its name, or by what it gives in the model that it is in."""
    return places.label(onnx.NodeProto(name=origin.name, output=[origin.output]))


def _value(scene: Scene, name: str) -> ValueFacts:
    array = scene.weights.get(name, scene.reference.get(name))
    error = scene.errors.get(name)
    return ValueFacts(
        name=name,
        dtype="?" if array is None else "string" if array.dtype.kind in "OUST" else array.dtype.name,
        shape=() if array is None else tuple(int(size) for size in array.shape),
        constant=name in scene.weights,
        error=None if error is None else error.relative,
        wrong=error is not None and error.wrong,
    )


def picture(scene: Scene, nodes: Sequence[onnx.NodeProto]) -> str:
    """Draw what the nodes read, themselves, and what reads them, from top to bottom, in ASCII."""
    made_by = scene.made_by()
    chosen = {node.name for node in nodes}
    read = dict.fromkeys(name for node in nodes for name in scene.reads(node))
    before = [name for name in read if name not in made_by or made_by[name].name not in chosen]
    given = {name for node in nodes for name in node.output if name}
    after = [each for each in scene.nodes if each.name not in chosen and given.intersection(naming.reads(each))]
    lines = []
    for name in before[:_MOST_BRANCHES]:
        source = made_by.get(name)
        above = "input" if source is None else _label(scene, source)
        lines.append(f"  {above}  {_shape(scene, name)}  {_mark(scene, name)}")
    lines += _more(len(before))
    for node in nodes:
        lines += ["    |", "    v"]
        weights = [f"{_short(name)} {_shape(scene, name)}" for name in naming.reads(node) if name in scene.weights]
        lines.append(f"> {_label(scene, node)}" + (f"  (weights: {', '.join(weights[:3])})" if weights else ""))
        lines += [f"    {_short(name)}  {_shape(scene, name)}  {_mark(scene, name)}" for name in node.output if name]
    if after:
        lines += ["    |", "    v"]
    for each in after[:_MOST_BRANCHES]:
        marks = [_mark(scene, name) for name in each.output if name]
        lines.append(f"  {_label(scene, each)}  {marks[0] if marks else ''}".rstrip())
    lines += _more(len(after))
    return "\n".join(line.rstrip() for line in lines)


def _more(count: int) -> list[str]:
    return [f"  ... and {count - _MOST_BRANCHES} more"] if count > _MOST_BRANCHES else []


def _label(scene: Scene, node: onnx.NodeProto) -> str:
    origin = scene.line.origins[node.name]
    turn = "" if origin.turn is None else f" (turn {origin.turn})"
    return f"{node.op_type} {_short(called(origin))}{turn}"


def _short(name: str) -> str:
    """Return a name on one line, its end where it is long."""
    text = " ".join(name.split())
    return text if len(text) <= _LONGEST else f"...{text[-_LONGEST:]}"


def _shape(scene: Scene, name: str) -> str:
    value = _value(scene, name)
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def _mark(scene: Scene, name: str) -> str:
    if name not in scene.errors:
        return ""
    error = scene.errors[name]
    return f"[wrong: {figure(error.relative, 2)}]" if error.wrong else "[right]"
