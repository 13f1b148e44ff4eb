"""Models written by hand as ONNX text, with inputs: cases of several nodes, or of operators without a template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser, shape_inference
from onnxruntime.capi import onnxruntime_pybind11_state as native

from edgekit.conformance.cases import Case, Operator, operator_of
from edgekit.conformance.schemas import DTYPE_OF, DTYPES, UNUSED
from edgekit.records.tensors import Array, value_of

OPSET = 21
MICROSOFT = "com.microsoft"
ML = "ai.onnx.ml"
_VERSIONS = {MICROSOFT: 1, ML: 3}


def floats(*shape: int, scale: float = 0.5) -> Array:
    """Return float32 numbers around zero, always the same of one shape."""
    return (np.random.default_rng(shape).standard_normal(shape) * scale).astype(np.float32)


def integers(*shape: int, low: int = 0, high: int = 10, dtype: str = "int64") -> Array:
    """Return whole numbers from ``low`` up to, without, ``high``, always the same of one shape."""
    return np.random.default_rng(shape).integers(low, high, shape).astype(dtype)


@dataclass(frozen=True)
class _Output:
    name: str
    dtype: str
    rank: int | None

    @staticmethod
    def of(text: str) -> "_Output":
        name, dtype, rank, *_ = [*text.strip().split(":"), "", "", ""]
        return _Output(name, dtype or "float32", int(rank) if rank else None)


def used(text: str, known: Mapping[str, Array]) -> dict[str, Array]:
    """Return those of ``known`` that the nodes of ``text`` take."""
    for mark in "(),":
        text = text.replace(mark, " ")
    words = set(text.split())
    return {name: array for name, array in known.items() if name in words}


def nodes(text: str) -> list[NodeProto]:
    """Parse lines of ONNX text, a node each. Raises onnx.parser.ParseError."""
    return list(parser.parse_graph(f"g () => () {{ {text} }}").node)


def model(
    text: str,
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array] | None = None,
    *,
    outputs: str = "y",
    opset: int = OPSET,
    versions: Mapping[str, int] | None = None,
    shapes: Mapping[str, list[int | str | None]] | None = None,
    tensors: Sequence[TensorProto] = (),
) -> ModelProto:
    """Return the model of ``text``.

    ``inputs``, ``weights``: graph inputs and initializers by name, with their dtypes and shapes; ``shapes``: what the
    graph states of an input instead of its own shape. ``outputs``: names with a comma between, each with its dtype
    after a colon where it is not float32, and then its rank where the onnx package does not know it, and it is not
    that of the first input. ``versions``: opsets of further domains, or other ones.
    ``tensors``: initializers of dtypes that numpy does not have.
    """
    made = nodes(text)
    stated = dict(shapes or {})
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), stated.get(name, array.shape))
        for name, array in inputs.items()
    ]
    held = [*(_tensor(name, array) for name, array in (weights or {}).items()), *tensors]
    entries = [_Output.of(text) for text in outputs.split(",")]
    got = [helper.make_tensor_value_info(e.name, DTYPES[e.dtype], None) for e in entries]
    graph = helper.make_graph(made, "case", given, got, held)
    domains = _domains(made) - {""}
    known = {"": opset} | {domain: _VERSIONS.get(domain, 1) for domain in sorted(domains)} | dict(versions or {})
    imports = [helper.make_opsetid(*entry) for entry in known.items()]
    result = helper.make_model(graph, opset_imports=imports)
    _state_ranks(result, entries)
    result.ir_version = max(4, helper.find_min_ir_version_for([e for e in imports if e.domain in ("", ML)]))
    return result


def case(
    name: str,
    text: str,
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array] | None = None,
    *,
    outputs: str = "y",
    opset: int = OPSET,
    versions: Mapping[str, int] | None = None,
    shapes: Mapping[str, list[int | str | None]] | None = None,
) -> Case:
    """Return the case of ``model(...)``: to be run, without right outputs."""
    made = model(text, inputs, weights, outputs=outputs, opset=opset, versions=versions, shapes=shapes)
    return of_model(name, made, inputs)


def of_model(name: str, made: ModelProto, inputs: Mapping[str, Array], *, run: bool = True) -> Case:
    """Return the case of a model that is made already."""
    values = tuple(value_of(key, array) for key, array in inputs.items())
    data = made.SerializeToString(deterministic=True)
    return Case(name, "generated", data, values, (), operator_of(made) or _own_operator(made), run=run)


def _own_operator(made: ModelProto) -> Operator | None:
    """Return what a model of one node tries, if the runtime alone has its schema."""
    if len(made.graph.node) != 1:
        return None
    node = made.graph.node[0]
    schema = _own_schemas().get((node.domain, node.op_type))
    if schema is None:
        return None
    dtypes = {i.name: i.type.tensor_type.elem_type for i in (*made.graph.input, *made.graph.output)}
    dtypes |= {tensor.name: tensor.data_type for tensor in made.graph.initializer}
    found: dict[str, str] = {}
    for formal, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for parameter, name in zip(formal, names, strict=False):
            if name in dtypes:
                found.setdefault(parameter.typeStr, DTYPE_OF.get(dtypes[name], UNUSED))
    variables = [constraint.type_param_str for constraint in schema.type_constraints]
    bound = tuple(found.get(variable, UNUSED) for variable in variables)
    return Operator(node.domain, node.op_type, schema.since_version, bound)


@cache
def _own_schemas() -> dict[tuple[str, str], Any]:
    return {(s.domain, s.name): s for s in native.get_all_operator_schema() if s.domain == MICROSOFT}


def _state_ranks(made: ModelProto, entries: Sequence[_Output]) -> None:
    """State the rank of each output: the checker wants one, and only shape inference knows it in general."""
    inferred = {info.name: info.type for info in shape_inference.infer_shapes(made, data_prop=True).graph.output}
    usual = len(made.graph.input[0].type.tensor_type.shape.dim) if made.graph.input else 1
    for info, entry in zip(made.graph.output, entries, strict=True):
        known = inferred[entry.name].tensor_type
        rank = len(known.shape.dim) if known.HasField("shape") else usual
        shape = [None] * (rank if entry.rank is None else entry.rank)
        info.CopyFrom(helper.make_tensor_value_info(entry.name, DTYPES[entry.dtype], shape))


def _tensor(name: str, array: Array) -> TensorProto:
    if array.dtype.kind == "O":
        texts: list[Any] = [str(x).encode() for x in array.ravel()]
        return helper.make_tensor(name, TensorProto.STRING, array.shape, texts)
    return numpy_helper.from_array(array, name)


def _domains(made: list[NodeProto]) -> set[str]:
    found = {node.domain for node in made}
    for node in made:
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                found |= _domains(list(graph.node))
    return found
