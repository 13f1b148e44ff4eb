"""Put the branch that runs in the place of an If whose condition is constant."""

import onnx_ir as ir

from edgekit.passes.values import insert, is_standard, nodes, numbers_of, operand, release

NAME = "constant conditions"


def apply(model: ir.Model) -> bool:
    """Replace every If with a constant condition. Names must be unique in the whole model. Returns whether any was."""
    changed = False
    functions = {function.graph for function in model.functions.values()}
    for node in nodes(model):
        if is_standard(node, "If") and node.graph is not None:
            condition = numbers_of(operand(node, 0))
            if condition is not None and condition.size == 1:
                name = "then_branch" if bool(condition.ravel()[0]) else "else_branch"
                changed |= _replace(node, name, initializers=node.graph not in functions)
    return changed


def _replace(node: ir.Node, name: str, *, initializers: bool) -> bool:
    attribute, outer = node.attributes.get(name), node.graph
    if attribute is None or outer is None or attribute.type != ir.AttributeType.GRAPH or attribute.value is None:
        return False
    branch = attribute.as_graph()
    if branch.inputs or len(branch.outputs) != len(node.outputs):
        return False
    if branch.initializers and not initializers:
        return False  # a function has no initializers
    results = list(branch.outputs)
    _adopt_initializers(branch, outer)
    moved = list(branch)
    for inner in moved:
        branch.remove(inner)
    branch.outputs.clear()
    for inner in moved:
        outer.insert_before(node, inner)
    for old, new in zip(list(node.outputs), results, strict=True):
        _stand_in(node, old, new)
    _drop(node, kept=branch)
    return True


def _adopt_initializers(branch: ir.Graph, outer: ir.Graph) -> None:
    for name, value in list(branch.initializers.items()):
        branch.initializers.pop(name)
        outer.register_initializer(value)


def _stand_in(node: ir.Node, old: ir.Value, new: ir.Value) -> None:
    """Let the branch's result stand for the If's; an Identity keeps the name of a graph's output."""
    if not old.is_graph_output():
        old.replace_all_uses_with(new)
        return
    name = old.name
    copy = ir.node("Identity", [new], outputs=[ir.Value(type=old.type, shape=old.shape)])
    insert(node, copy)
    copy.outputs[0].doc_string = old.doc_string
    old.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
    old.name = f"{name}__if"
    copy.outputs[0].name = name


def _drop(node: ir.Node, kept: ir.Graph) -> None:
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and attribute.as_graph() is not kept:
            for inner in list(attribute.as_graph()):
                release(inner)
    if node.graph is not None:
        node.graph.remove(node, safe=True)
