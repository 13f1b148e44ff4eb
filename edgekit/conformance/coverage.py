"""Cases beyond those of the operator tables, for one purpose: to enter the functions of a runtime that models enter.

The standard and the generated cases are models of one node. Recorded on a recording runtime, they leave out what takes
several nodes (fused operators, graph optimizers, layouts), constant weights (prepacking, blocked kernels) or real
inputs (operators that are otherwise only loaded). These cases are models of that kind. They have no right outputs:
nobody judges them, and the tables of what a runtime supports are made without them.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache

from onnxruntime.capi import onnxruntime_pybind11_state as native

from edgekit.conformance import (
    attributes,
    contrib_attention,
    contrib_runs,
    fusions_conv,
    fusions_dense,
    fusions_graph,
    fusions_quantized,
    generate,
    long_models,
    machinery,
    ml,
    schemas,
)
from edgekit.conformance import cases as conformance_cases
from edgekit.conformance.cases import Case, Operator

# The last version of a kernel that has none; such a kernel is for its first version alone.
_OPEN = 2**31 - 1
_MODULES = (
    attributes,
    fusions_conv,
    fusions_dense,
    fusions_graph,
    fusions_quantized,
    contrib_runs,
    contrib_attention,
    ml,
    long_models,
    machinery,
)
# Operators with functions of their own for a dtype, which one generated case alone enters.
_AGAIN = frozenset({
    "AffineGrid", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Celu", "Einsum",
    "GroupNormalization", "IsInf", "IsNaN", "Max", "Min", "RMSNormalization", "Relu", "ReverseSequence", "RoiAlign",
    "Sum", "TopK", "Unique",
})  # fmt: skip


def cases(standard: Sequence[Case] | None = None) -> tuple[Case, ...]:
    """Return all of them, by name. Each is a valid model.

    ``standard``: the standard cases, templates of some of these; None makes them anew, which takes ten seconds more.
    Desktop onnxruntime runs each.
    """
    templates = conformance_cases.standard() if standard is None else standard
    found = [case for module in _MODULES for case in module.cases()]
    second = (case for case in generate.again(templates, _AGAIN) if case.operator and _has_kernel(case.operator))
    return tuple(sorted((*found, *second), key=lambda case: case.name))


def _has_kernel(operator: Operator) -> bool:
    """Whether desktop onnxruntime has a kernel for an operator of ai.onnx under these dtypes."""
    schema = schemas.schema(operator.domain, operator.op_type, operator.since_version)
    if schema is None:
        return False
    dtypes = dict(zip(schemas.variables(schema), operator.dtypes, strict=True))
    return any(
        (first == operator.since_version or first < operator.since_version <= last != _OPEN)
        and all(dtypes[name] in allowed for name, allowed in constraints.items() if name in dtypes)
        for first, last, constraints in _kernels().get(operator.op_type, ())
    )


@cache
def _kernels() -> dict[str, list[tuple[int, int, dict[str, set[str | None]]]]]:
    """Return, by operator of ai.onnx, the first and last version of each CPU kernel, and the dtypes that it takes."""
    found = defaultdict(list)
    for kernel in native.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain == "":
            taken = {n: {schemas.dtype_of_text(t) for t in texts} for n, texts in kernel.type_constraints.items()}
            found[kernel.op_name].append((*kernel.version_range, taken))
    return found
