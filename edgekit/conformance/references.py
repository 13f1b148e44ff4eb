"""Right answers for generated cases: the onnx package's reference evaluator, and desktop onnxruntime beside it."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx

from edgekit.conformance.cases import RANDOM, Case
from edgekit.conformance.judge import judge
from edgekit.conformance.suite import Reply
from edgekit.progress import Progress, silent
from edgekit.records.tensors import NUMPY_DTYPES, Value, value_of


def by_evaluator(cases: Sequence[Case], *, progress: Progress = silent) -> tuple[Case, ...]:
    """Give each generated case without outputs those of the onnx package's reference evaluator, where it has any.

    The evaluator is Python, so this runs in this process; the models are edgekit's own. Takes about a minute.
    """
    found = []
    for index, case in enumerate(cases):
        if index % 200 == 0:
            progress("Asking the reference evaluator", index / len(cases))
        found.append(replace(case, outputs=_evaluate(case)) if _wants(case) else case)
    return tuple(found)


def agreed(cases: Sequence[Case], replies: Sequence[Reply]) -> tuple[Case, ...]:
    """Keep a generated case's outputs where desktop onnxruntime agrees with the evaluator, or refuses the model.

    Where the two disagree (integers that overflow, say, or how a number is written), nobody knows what is right.
    """
    return tuple(
        replace(case, outputs=()) if case.source == "generated" and judge(case, reply)[0] == "wrong" else case
        for case, reply in zip(cases, replies, strict=True)
    )


def with_desktop(cases: Sequence[Case], replies: Sequence[Reply]) -> tuple[Case, ...]:
    """Give generated cases the outputs of desktop onnxruntime where the evaluator has none: for devices to agree with.

    ``cases``: not yet ``agreed``. Those on which the two disagree get no outputs.
    """
    return tuple(
        replace(case, outputs=reply.outputs)
        if case.source == "generated" and not case.outputs and reply.outcome == "done" and not _is_random(case)
        else settled
        for case, settled, reply in zip(cases, agreed(cases, replies), replies, strict=True)
    )


def _wants(case: Case) -> bool:
    return case.source == "generated" and case.run and not case.outputs and not _is_random(case)


def _is_random(case: Case) -> bool:
    if case.operator is None:
        return False
    trained = case.operator.op_type == "Dropout" and any(v.dtype == "bool" for v in case.inputs)
    return trained or case.operator.op_type in RANDOM


def _evaluate(case: Case) -> tuple[Value, ...]:
    """Return what the reference evaluator gives; nothing where it fails, or its dtypes are not the declared ones."""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_from_string(case.model)
    feeds = {value.name: value.array for value in case.inputs}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            outputs = ReferenceEvaluator(model).run(None, feeds)
        except Exception:
            return ()
    found = []
    for info, output in zip(model.graph.output, outputs, strict=True):
        array = np.asarray(output)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if array.dtype != dtype and not (array.dtype.kind in "OUST" and dtype == np.dtype(object)):
            return ()
        if array.dtype.kind not in "OUST" and array.dtype.name not in NUMPY_DTYPES:
            return ()
        found.append(value_of(info.name, array))
    return tuple(found)
