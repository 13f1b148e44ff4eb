"""Drop what is said about a graph and does not change what it computes: doc strings, metadata, recorded shapes."""

import onnx_ir as ir

from edgekit.passes.values import bodies

NOTES, SHAPES = "metadata and doc strings", "recorded shapes"


def drop_notes(model: ir.Model, *, of_model: bool = False) -> bool:
    """Drop the doc strings and metadata of nodes, values, nested graphs and functions.

    What describes the model itself (its metadata, doc string, and those of its graph, inputs and outputs) is what
    applications read, and stays; ``of_model`` drops that too. Returns whether anything was dropped.
    """
    changed = False
    interface = {*model.graph.inputs, *model.graph.outputs}
    for body in bodies(model):
        if body is not model.graph:
            changed |= _clear(body)
        initializers = list(body.initializers.values()) if isinstance(body, ir.Graph) else []
        for value in (*body.inputs, *body.outputs, *initializers):
            if value not in interface:
                changed |= _clear(value)
            changed |= _clear_tensor(value)
        for node in body:
            changed |= _clear(node)
            for value in node.outputs:
                if value not in interface:
                    changed |= _clear(value)
    if of_model:
        for thing in (model, model.graph, *interface):
            changed |= _clear(thing)
    return changed


def _clear_tensor(value: ir.Value) -> bool:
    tensor = value.const_value
    if tensor is None or not (tensor.doc_string or tensor.metadata_props):
        return False
    if isinstance(tensor, ir.ExternalTensor):
        return _clear(tensor)
    proto = ir.serde.serialize_tensor(tensor)  # what was read from a message cannot be changed in place
    proto.ClearField("doc_string")
    proto.ClearField("metadata_props")
    value.const_value = ir.serde.deserialize_tensor(proto)
    return True


def _clear(thing: object) -> bool:
    had = bool(getattr(thing, "doc_string", None) or getattr(thing, "metadata_props", None))
    if had:
        thing.doc_string = None  # type: ignore[attr-defined]
        thing.metadata_props.clear()  # type: ignore[attr-defined]
    return had


def drop_shapes(model: ir.Model) -> bool:
    """Forget the types and shapes recorded for values inside: every runtime infers them. Returns whether there were.

    A value that a node of a foreign domain makes keeps its own: nothing else can say what it is.
    """
    changed = False
    outputs = {value for body in bodies(model) for value in body.outputs}
    local = set(model.functions)
    for body in bodies(model):
        for node in body:
            if node.domain not in ("", "ai.onnx.ml", "com.microsoft") and node.op_identifier() not in local:
                continue
            for value in node.outputs:
                if value not in outputs and (value.type is not None or value.shape is not None):
                    value.type, value.shape = None, None
                    changed = True
    return changed
