"""The conformance cases of the onnx package: small models, most of one node, with inputs and right outputs."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from edgekit.conformance import schemas
from edgekit.conformance.schemas import DTYPE_OF
from edgekit.records import settings
from edgekit.records.settings import SessionSettings
from edgekit.records.tensors import NUMPY_DTYPES, Value, value_of

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


@dataclass(frozen=True)
class Operator:
    """What a model of one node tries: an operator, the schema version, and the dtype of each of its type variables.

    ``dtypes`` is in the order of the schema's type variables; "-" stands for a variable that the node does not use.
    ``variables`` and ``signature``, where the onnx package has no schema: the names of the type variables, and the one
    of each input (or its dtype).
    """

    domain: str
    op_type: str
    since_version: int
    dtypes: tuple[str, ...]
    signature: tuple[str, ...] = field(default=(), compare=False)
    variables: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False)
class Case:
    """One model to replay.

    ``inputs``: by graph input; ``outputs``: what is right, empty where nobody knows. ``run`` False: the model can only
    be loaded, because an input or output is no plain tensor. ``operator`` None: the model has several nodes.
    ``frame``: the name of the nodes around the operator that is tried, where there are any. ``settings``: of the
    session that a browser creates; the desktop's has none.
    ``rtol``, ``atol``: an element passes within ``atol + rtol * |reference|``, the rule of the onnx package's runner.
    """

    name: str
    source: Literal["standard", "generated"]
    model: bytes
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    operator: Operator | None
    run: bool = True
    rtol: float = 1e-3
    atol: float = 1e-7
    frame: str = ""
    settings: SessionSettings = settings.DEFAULT


def standard() -> tuple[Case, ...]:
    """Return every node case of the onnx package, by name. Those without plain tensors can only be loaded.

    Takes about ten seconds: the package computes inputs and outputs anew (from fixed seeds).
    """
    # Imported here: it takes seconds, and only those who measure need it.
    state = np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package overflows on purpose while it makes its cases
            from onnx.backend.test.case.node import collect_testcases

            found = collect_testcases(None)
    finally:
        np.random.set_state(state)
    return tuple(sorted((_case(case) for case in found), key=lambda case: case.name))


def _case(case: Any) -> Case:
    model: ModelProto = case.model
    # Some state a newer IR version than they need, and would be refused for that alone.
    model.ir_version = min(model.ir_version, helper.find_min_ir_version_for(model.opset_import))
    data = case.data_sets[0]
    inputs = _values(model.graph.input, data[0])
    outputs = _values(model.graph.output, data[1])
    plain = inputs is not None and outputs is not None
    known = plain and not _is_random(case.name, model)
    return Case(
        name=case.name,
        source="standard",
        model=model.SerializeToString(deterministic=True),
        inputs=inputs if plain and inputs else (),
        outputs=outputs if known and outputs else (),
        operator=operator_of(model),
        run=plain,
        rtol=case.rtol,
        atol=case.atol,
    )


def _is_random(name: str, model: ModelProto) -> bool:
    """Whether the answer depends on a generator that the standard does not define."""
    operators = {node.op_type for node in model.graph.node}
    return bool(operators & RANDOM) or (name.startswith("test_training_dropout") and "zero_ratio" not in name)


def _values(declared: Any, arrays: Any) -> tuple[Value, ...] | None:
    """Return values named and typed as declared; None where one is no tensor of a dtype that devices return."""
    found = []
    for info, data in zip(declared, arrays, strict=True):
        dtype = _dtype(info)
        if dtype is None or (dtype != "string" and dtype not in NUMPY_DTYPES):
            return None
        array = numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)
        value = value_of(info.name, array if dtype == "string" else array.astype(NUMPY_DTYPES[dtype], copy=False))
        found.append(value)
    return tuple(found)


def _dtype(info: ValueInfoProto) -> str | None:
    return DTYPE_OF.get(info.type.tensor_type.elem_type) if info.type.HasField("tensor_type") else None


def operator_of(model: ModelProto) -> Operator | None:
    """Return what the one node of a model tries; None where there are several nodes, or no schema."""
    if len(model.graph.node) != 1:
        return None
    node = model.graph.node[0]
    opset = next((entry.version for entry in model.opset_import if entry.domain == node.domain), 0)
    schema = schemas.schema(node.domain, node.op_type, opset)
    if schema is None:
        return None
    known = {info.name: _dtype(info) for info in (*model.graph.input, *model.graph.output)}
    bound = schemas.bind(schema, [known.get(name) for name in node.input], [known.get(name) for name in node.output])
    if bound is None:
        return None
    return Operator(node.domain, node.op_type, schema.since_version, tuple(dtype or schemas.UNUSED for dtype in bound))


def plain(cases: tuple[Case, ...]) -> Iterator[Case]:
    """Yield the cases that can be run and judged: plain tensors in and out."""
    return (case for case in cases if case.run and case.outputs)
