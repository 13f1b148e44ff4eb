"""Write the model of a drawn case: nodes, what it is given, what it holds, and the types that ONNX infers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper, shape_inference

from edgekit.conformance.cases import Case, operator_of
from edgekit.fuzz.draw import Draw
from edgekit.records.tensors import NUMPY_DTYPES, Array, value_of

OPSET = 21
RTOL, ATOL = 1e-3, 1e-4
_IR_VERSION = 8


@dataclass(frozen=True)
class Generator:
    """Draws cases of one operator or chain. ``make`` returns None where a draw makes no sense.

    ``weight``: how often it is drawn beside others: operators with many attributes deserve more cases. ``stamp``: what
    it draws from, where its name does not tell.
    """

    name: str
    make: Callable[[Draw], Case | None]
    weight: int = 1
    stamp: str = ""


class Graph:
    """A model in the making. What it is given are graph inputs or, by a choice of the draw, initializers."""

    def __init__(self, draw: Draw, opset: int = OPSET, **versions: int) -> None:
        self.draw = draw
        self._imports = {"": opset} | {name.replace("_", "."): version for name, version in versions.items()}
        self._nodes: list[NodeProto] = []
        self._given: dict[str, Array] = {}
        self._held: list[TensorProto] = []
        self._made = 0

    def give(self, name: str, array: Array) -> str:
        """Add a graph input."""
        self._given[name] = array
        return name

    def hold(self, name: str, array: Array) -> str:
        """Add an initializer."""
        self._held.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def weight(self, name: str, array: Array) -> str:
        """Add what models most often hold, and may be given."""
        return self.give(name, array) if self.draw.flag(f"{name} given") else self.hold(name, array)

    def ints(self, name: str, values: Sequence[int], dtype: str = "int64") -> str:
        """Hold a list of whole numbers: axes, sizes, shapes."""
        return self.hold(name, np.asarray(values, dtype=NUMPY_DTYPES[dtype]))

    def node(
        self, op_type: str, inputs: Sequence[str], outputs: Any = None, domain: Any = "", **attributes: Any
    ) -> Any:
        """Add a node; attributes that are None are left out. Returns its output's name, or a list of ``outputs``."""
        names = [f"v{self._made + place}" for place in range(1 if outputs is None else outputs)]
        self._made += len(names)
        stated = {key: value for key, value in attributes.items() if value is not None}
        self._nodes.append(
            helper.make_node(op_type, _trimmed(inputs), names, name=f"n{len(self._nodes)}", domain=domain, **stated)
        )
        return names[0] if outputs is None else names

    def case(self, *outputs: str, rtol: float = RTOL, atol: float = ATOL) -> Case | None:
        """Return the case; None where ONNX itself knows that it is not valid, or no output's type."""
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self._given.items()
        ]
        graph = helper.make_graph(self._nodes, "g", given, [onnx.ValueInfoProto(name=n) for n in outputs], self._held)
        imports = [helper.make_opsetid(*entry) for entry in self._imports.items()]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = max(_IR_VERSION, helper.find_min_ir_version_for(imports, ignore_unknown=True))
        return finished(model, self._given, rtol=rtol, atol=atol)


def finished(model: onnx.ModelProto, given: dict[str, Array], *, rtol: float = RTOL, atol: float = ATOL) -> Case | None:
    """Return the case of a model whose outputs have names alone; None where their types cannot be inferred."""
    try:
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return None
    types = {info.name: info.type.tensor_type for info in inferred.graph.output}
    for info in model.graph.output:
        kind = types[info.name]
        if not kind.elem_type and len(model.graph.node) == 1:  # a function, of which only its body tells the type
            kind = model.graph.input[0].type.tensor_type
        if not kind.elem_type or any(d.HasField("dim_value") and d.dim_value < 1 for d in kind.shape.dim):
            return None
        shape = [None] * len(kind.shape.dim) if kind.HasField("shape") else None
        info.CopyFrom(helper.make_tensor_value_info(info.name, kind.elem_type, shape))
    values = tuple(value_of(name, array) for name, array in given.items())
    data = model.SerializeToString(deterministic=True)
    return Case("", "generated", data, values, (), operator_of(model), rtol=rtol, atol=atol)


def _trimmed(inputs: Sequence[str]) -> list[str]:
    """Leave out the empty names at the end."""
    found = list(inputs)
    while found and not found[-1]:
        found.pop()
    return found
