"""Cases beyond those of the operator tables, for one purpose: to enter the functions of a runtime that models enter.

The standard and the generated cases are models of one node. Recorded on a recording runtime, they leave out what takes
several nodes (fused operators, graph optimizers, layouts), constant weights (prepacking, blocked kernels) or real
inputs (operators that are otherwise only loaded). These cases are models of that kind. They have no right outputs:
nobody judges them, and the tables of what a runtime supports are made without them.
"""

from collections.abc import Sequence

from edgekit.conformance import (
    contrib_attention,
    contrib_runs,
    fusions_conv,
    fusions_dense,
    fusions_graph,
    fusions_quantized,
    machinery,
    ml,
)
from edgekit.conformance.cases import Case

_MODULES = (
    fusions_conv,
    fusions_dense,
    fusions_graph,
    fusions_quantized,
    contrib_runs,
    contrib_attention,
    ml,
    machinery,
)


def cases() -> tuple[Case, ...]:
    """Return all of them, by name. Each is a valid model that desktop onnxruntime runs. Takes about two seconds."""
    found: Sequence[Case] = [case for module in _MODULES for case in module.cases()]
    return tuple(sorted(found, key=lambda case: case.name))
