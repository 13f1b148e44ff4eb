"""Give every value a name of its own in the whole model, and every named node one in its graph.

onnx-ir has such a pass, but it also names what is left out on purpose: an optional output without a name is not
computed, and a BatchNormalization that gets a name for one is in training mode.
"""

from collections.abc import Container

import onnx_ir as ir

from edgekit.passes.values import bodies

NAME = "names made unique"


def apply(model: ir.Model) -> bool:
    """Rename what shares a name. Inputs and outputs of the model keep theirs. Returns whether anything changed."""
    values = _rename_values(model)
    return _rename_nodes(model) or values


def _rename_values(model: ir.Model) -> bool:
    taken: dict[str, ir.Value] = {}
    changed = False
    kept = {*model.graph.inputs, *model.graph.outputs}
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.name:
            taken.setdefault(value.name, value)
    for body in bodies(model):
        initializers = list(body.initializers.values()) if isinstance(body, ir.Graph) else []
        made = [output for node in body for output in node.outputs]
        for value in (*body.inputs, *initializers, *made):
            if not value.name or value in kept:
                continue
            if taken.setdefault(value.name, value) is not value:
                value.name = _fresh(value.name, taken)
                taken[value.name] = value
                changed = True
    return changed


def _rename_nodes(model: ir.Model) -> bool:
    changed = False
    for body in bodies(model):
        taken: dict[str, ir.Node] = {}
        for node in body:
            if not node.name:
                continue
            if taken.setdefault(node.name, node) is not node:
                node.name = _fresh(node.name, taken)
                taken[node.name] = node
                changed = True
    return changed


def _fresh(name: str, taken: Container[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
