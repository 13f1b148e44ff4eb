"""Operators of which there are few or no standard cases: whether they load, by dtype.

These are onnxruntime's own, which ONNX does not have, and those of classical machine learning.

The schemas are those that desktop onnxruntime itself reports. A model here is one node with required inputs of no known
shape; where that is not enough for the operator, its refusal says nothing, and is left out of the tables.
"""

from collections.abc import Iterator
from typing import Any

from onnx import AttributeProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as native

from edgekit.conformance import schemas
from edgekit.conformance.cases import Case, Operator
from edgekit.conformance.schemas import DTYPES, UNUSED

DOMAINS = ("ai.onnx.ml", "com.microsoft")
_OPSET = 21
_TRIED = ("float32", "float16", "float64", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "string")
_KINDS = {
    "FLOAT": (AttributeProto.FLOAT, 1.0),
    "INT": (AttributeProto.INT, 1),
    "STRING": (AttributeProto.STRING, ""),
    "FLOATS": (AttributeProto.FLOATS, [1.0]),
    "INTS": (AttributeProto.INTS, [1]),
    "STRINGS": (AttributeProto.STRINGS, [""]),
}


def contrib() -> tuple[Case, ...]:
    """Return models to load, for each version of each operator of those domains, by dtype of one type variable."""
    found = {
        (schema.domain, schema.name, schema.since_version): schema
        for schema in native.get_all_operator_schema()
        if schema.domain in DOMAINS and not schema.deprecated
    }
    return tuple(case for key in sorted(found) for case in _cases(found[key]))


def _cases(schema: Any) -> Iterator[Case]:
    inputs = [p for p in schema.inputs if p.option.name != "Optional"]
    outputs = [p for p in schema.outputs if p.option.name != "Optional"]
    choices = {c.type_param_str: _dtypes(c.allowed_type_strs) for c in schema.type_constraints}
    used = {p.typeStr for p in (*inputs, *outputs)}
    if any(not choices[name] for name in used & set(choices)):
        return  # sequences and maps
    base = {name: some[0] if name in used else UNUSED for name, some in choices.items()}
    tried = {tuple(base.values())}
    for name in used & set(choices):
        tried |= {tuple((base | {name: dtype}).values()) for dtype in choices[name]}
    for dtypes in sorted(tried):
        case = _case(schema, inputs, outputs, dict(zip(choices, dtypes, strict=True)))
        if case is not None:
            yield case


def _dtypes(texts: list[str]) -> list[str]:
    found = {schemas.dtype_of_text(text) for text in texts}
    return [dtype for dtype in _TRIED if dtype in found]


def _case(schema: Any, inputs: list[Any], outputs: list[Any], by_variable: dict[str, str]) -> Case | None:
    def info(parameter: Any) -> Any:
        dtype = by_variable.get(parameter.typeStr) or schemas.dtype_of_text(parameter.typeStr)
        return None if dtype is None else helper.make_tensor_value_info(parameter.name, DTYPES[dtype], None)

    given, got = [info(p) for p in inputs], [info(p) for p in outputs]
    attributes = {name: _KINDS.get(a.type.name) for name, a in schema.attributes.items() if a.required}
    names = [p.name for p in (*inputs, *outputs)]
    if None in (*given, *got) or None in attributes.values() or len(set(names)) != len(names):
        return None
    node = helper.make_node(schema.name, [p.name for p in inputs], [p.name for p in outputs], domain=schema.domain)
    for name, (kind, value) in ((n, made) for n, made in sorted(attributes.items()) if made is not None):
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    graph = helper.make_graph([node], "case", given, got)
    imports = [helper.make_opsetid("", _OPSET), helper.make_opsetid(schema.domain, schema.since_version)]
    model = helper.make_model(graph, ir_version=helper.find_min_ir_version_for(imports[:1]), opset_imports=imports)
    dtypes = tuple(by_variable.values())
    return Case(
        " ".join([schema.domain, schema.name, str(schema.since_version), "loads", *dtypes]),
        "generated",
        model.SerializeToString(deterministic=True),
        (),
        (),
        Operator(schema.domain, schema.name, schema.since_version, dtypes, _signature(schema), tuple(by_variable)),
        run=False,
    )


def _signature(schema: Any) -> tuple[str, ...]:
    """Return the type of each formal input: a type variable, or a dtype."""
    return tuple(schemas.dtype_of_text(p.typeStr) or p.typeStr for p in schema.inputs)
