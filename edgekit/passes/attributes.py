"""Drop attributes that say what is so without them: the defaults of the ONNX specification."""

import onnx
import onnx.defs
import onnx_ir as ir

from edgekit.passes.values import bodies

NAME = "default attributes"

# The specification gives these defaults in words: "if not present, defaults to 1 along each axis", or 0.
_WINDOWS = frozenset({"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool"})
_IN_WORDS = {"strides": 1, "dilations": 1, "pads": 0}


def apply(model: ir.Model) -> bool:
    """Drop defaults in every graph and function. Returns whether any was there."""
    changed = False
    main = model.graph.opset_imports
    functions = {function.graph: function.opset_imports for function in model.functions.values()}
    for body in bodies(model):
        imports = functions.get(body.graph, main) if isinstance(body, ir.Function) else main
        for node in body:
            for name in _defaults(node, imports.get(node.domain, 0)):
                node.attributes.pop(name)
                changed = True
    return changed


def _defaults(node: ir.Node, version: int) -> list[str]:
    if node.domain not in ("", "ai.onnx.ml") or not onnx.defs.has(node.op_type, domain=node.domain):
        return []
    try:
        schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=version, domain=node.domain)
    except onnx.defs.SchemaError:
        return []
    found = []
    for name, attribute in node.attributes.items():
        known = schema.attributes.get(name)
        if known is None or attribute.is_ref() or attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            continue
        if _in_words(node, name, attribute) or _same(attribute, known.default_value):
            found.append(name)
    return found


def _in_words(node: ir.Node, name: str, attribute: ir.Attr) -> bool:
    number = _IN_WORDS.get(name)
    if number is None or node.op_type not in _WINDOWS or node.domain:
        return False
    return attribute.type == ir.AttributeType.INTS and all(int(each) == number for each in attribute.as_ints())


def _same(attribute: ir.Attr, default: onnx.AttributeProto) -> bool:
    if default.type == onnx.AttributeProto.UNDEFINED:
        return False
    stated = ir.serde.serialize_attribute(attribute)
    stated.ClearField("doc_string")
    plain = onnx.AttributeProto()
    plain.CopyFrom(default)
    plain.ClearField("doc_string")
    plain.name = stated.name
    return bool(stated.SerializeToString(deterministic=True) == plain.SerializeToString(deterministic=True))
