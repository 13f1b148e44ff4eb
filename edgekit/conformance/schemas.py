"""What ONNX operator schemas say of data types: which version is meant, and which dtype each type variable has."""

import re
from collections.abc import Sequence
from functools import lru_cache

import onnx.defs
from onnx import TensorProto
from onnx.defs import OpSchema

_TENSOR = re.compile(r"tensor\((\w+)\)")
# ONNX type texts say float, double and float16; edgekit says float32, float64 and float16, as numpy does.
_TEXTS = {"float": "float32", "double": "float64"}
_NAMES = {"FLOAT": "float32", "DOUBLE": "float64"}

DTYPES: dict[str, int] = {
    _NAMES.get(name, name.lower()): number for name, number in TensorProto.DataType.items() if name != "UNDEFINED"
}
DTYPE_OF: dict[int, str] = {number: name for name, number in DTYPES.items()}
UNUSED = "-"


def dtype_of_text(text: str) -> str | None:
    """Return the dtype of a type text such as ``tensor(double)``; None where it is no tensor."""
    found = _TENSOR.fullmatch(text)
    return _TEXTS.get(found[1], found[1]) if found else None


@lru_cache(maxsize=4096)
def schema(domain: str, op_type: str, opset: int) -> OpSchema | None:
    """Return the schema in force at ``opset`` (the newest whose since_version is not above it); None: there is none."""
    try:
        found = onnx.defs.get_schema(op_type, opset, "" if domain == "ai.onnx" else domain)
    except (onnx.defs.SchemaError, TypeError, OverflowError):  # unknown, or a number beyond what onnx takes
        return None
    return None if found.deprecated else found


def variables(of: OpSchema) -> tuple[str, ...]:
    """Return the schema's type variables, in its own order."""
    return tuple(constraint.type_param_str for constraint in of.type_constraints)


def allowed(of: OpSchema, variable: str) -> tuple[str, ...]:
    """Return the tensor dtypes that a type variable may take."""
    texts = next(c.allowed_type_strs for c in of.type_constraints if c.type_param_str == variable)
    return tuple(sorted({dtype for text in texts if (dtype := dtype_of_text(text)) is not None}))


def parameters(formal: Sequence[OpSchema.FormalParameter], count: int) -> list[OpSchema.FormalParameter]:
    """Return the formal parameter of each of ``count`` arguments; the last one repeats where it is variadic."""
    if not formal or count <= len(formal):
        return list(formal[:count])
    last = formal[-1]
    variadic = last.option == OpSchema.FormalParameterOption.Variadic
    return list(formal) + [last] * (count - len(formal) if variadic else 0)


def bind(
    of: OpSchema, inputs: Sequence[str | None], outputs: Sequence[str | None] = ()
) -> tuple[str | None, ...] | None:
    """Return the dtype of each type variable, in the schema's order; None for one that nothing tells.

    ``inputs``, ``outputs``: dtypes in the node's order; None or "" where left out or unknown. Returns None when two
    arguments of one variable disagree, or there are more arguments than the operator takes.
    """
    names = variables(of)
    found: dict[str, str] = {}
    for formal, dtypes in ((of.inputs, inputs), (of.outputs, outputs)):
        taken = parameters(formal, len(dtypes))
        if len(taken) < len(dtypes):
            return None
        for parameter, dtype in zip(taken, dtypes, strict=True):
            if not dtype or parameter.type_str not in names or not parameter.is_homogeneous:
                continue
            if found.setdefault(parameter.type_str, dtype) != dtype:
                return None
    return tuple(found.get(name) for name in names)


def operators() -> frozenset[str]:
    """Return every operator that has a schema, as ``DOMAIN.TYPE`` where the domain is not ONNX's."""
    found = onnx.defs.get_all_schemas()
    return frozenset(f"{each.domain}.{each.name}" if each.domain else each.name for each in found)
