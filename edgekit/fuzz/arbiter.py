"""Say which side of a disagreement is wrong: the onnx reference evaluator, in float64 where it can, is asked."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from edgekit.conformance.cases import Case
from edgekit.conformance.judge import judge
from edgekit.conformance.suite import Reply
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of

Side = Literal["browser", "desktop", "both", "unknown"]

# The last version by which the evaluator trains a BatchNormalization.
_TRAINS = 13


def side(case: Case, desktop: Reply, browser: Reply) -> Side:
    """Return which side is wrong: "unknown" where the evaluator has no answer.

    Both replies are "done" and disagree. The evaluator is Python, and the models are edgekit's own.
    """
    truth = answers(case)
    if not truth:
        return "unknown"
    settled = replace(case, outputs=truth)
    right = tuple(judge(settled, reply)[0] == "passes" for reply in (desktop, browser))
    sides: dict[tuple[bool, ...], Side] = {(True, False): "browser", (False, True): "desktop", (False, False): "both"}
    return sides.get(right, "unknown")


def answers(case: Case) -> tuple[Value, ...]:
    """Return what the evaluator gives, in the dtypes that the model declares; nothing where it fails.

    Floats of 32 bits are computed in 64 where every operator of the model takes them.
    """
    model = onnx.load_from_string(case.model)
    if not _can_judge(model):
        return ()
    feeds = {value.name: value.array for value in case.inputs if value.array is not None}
    wide = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in feeds.items()}
    for attempt, given in ((_widened(model), wide), (model, feeds)):
        outputs = _run(attempt, given)
        if outputs is not None:
            return _declared(model, outputs)
    return ()


def _can_judge(model: ModelProto) -> bool:
    """Whether the evaluator normalizes as the model says; raises the model's opset to one by which it does.

    Before version 14 it normalizes by the batch's own statistics, as in training.
    """
    version = next((entry for entry in model.opset_import if not entry.domain), None)
    normalizes = any(node.op_type == "BatchNormalization" for node in model.graph.node)
    if version is None or not normalizes or version.version > _TRAINS:
        return True
    if version.version < _TRAINS:
        return False
    version.version = _TRAINS + 2  # the operators of these took more dtypes, and mean the same
    return True


def _run(model: ModelProto, feeds: dict[str, Array]) -> Sequence[Array] | None:
    from onnx.reference import ReferenceEvaluator  # takes a second to import, and only a disagreement needs it

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(output) for output in ReferenceEvaluator(model).run(None, feeds)]
        except Exception:  # it raises whatever the operator's Python raises
            return None


def _widened(model: ModelProto) -> ModelProto:
    """Return the model with every float of 32 bits in its interface and weights as one of 64."""
    wide = ModelProto()
    wide.CopyFrom(model)
    for info in (*wide.graph.input, *wide.graph.output):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = TensorProto.DOUBLE
    held = [*wide.graph.initializer, *(a.t for node in wide.graph.node for a in node.attribute if a.HasField("t"))]
    for tensor in held:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    return wide


def _declared(model: ModelProto, outputs: Sequence[Array]) -> tuple[Value, ...]:
    found = []
    for info, output in zip(model.graph.output, outputs, strict=True):
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if dtype == np.dtype(object) or output.dtype.kind in "OUST":
            found.append(value_of(info.name, output))
            continue
        if dtype.name not in NUMPY_DTYPES or (output.dtype.kind == "f") != (dtype.kind == "f"):
            return ()
        with np.errstate(all="ignore"):
            found.append(value_of(info.name, output.astype(dtype)))
    return tuple(found)
