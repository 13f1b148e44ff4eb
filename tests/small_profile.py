"""A profile of a runtime that does not exist, small enough to know by heart."""

from typing import Any

from edgekit.runtime.kernels import Kernels
from edgekit.runtime.profile import ModelFunctions, OperatorFunctions, Profile, TextPlace
from edgekit.wasm.branches import Branch

START, FAILURES, THREADS = frozenset({0, 1, 2}), frozenset({3}), frozenset({4})


def functions(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


ADD_FLOAT = OperatorFunctions("", "Add", 14, ("float32",), functions(10, 11, 12))
ADD_INT = OperatorFunctions("", "Add", 14, ("int64",), functions(10, 11, 13))
ADD_OLD = OperatorFunctions("", "Add", 7, ("float32",), functions(10, 14))
CAST = OperatorFunctions("", "Cast", 13, ("float32", "int64"), functions(20, 21))
CAST_BACK = OperatorFunctions("", "Cast", 13, ("int64", "float32"), functions(20, 22))
RELU = OperatorFunctions("", "Relu", 14, ("float32",), functions(30, 700))
GELU = OperatorFunctions("com.microsoft", "Gelu", 1, ("float32",), functions(40, 41))
FUSED = ModelFunctions(frozenset({("", "Add"), ("", "Relu")}), functions(10, 50, 51))
OTHER = ModelFunctions(frozenset({("", "Add"), ("", "Conv")}), functions(60, 61))


def profile(**changes: Any) -> Profile:
    """Return it, with ``changes``."""
    arguments: dict[str, Any] = {
        "package": "onnxruntime-web",
        "version": "0.0.1",
        "variant": "wasm",
        "wasm_sha256": "ab" * 32,
        "count": 1000,
        "start": START,
        "failures": FAILURES,
        "threads": THREADS,
        "operators": (ADD_FLOAT, ADD_INT, ADD_OLD, CAST, CAST_BACK, RELU, GELU),
        "models": (FUSED, OTHER),
        "kernels": Kernels(5, {6: functions(12), 7: functions(13, 30)}),
        "texts": (
            TextPlace(1025, 9, functions(0, 999), functions(0), False),
            TextPlace(1040, 12, functions(), functions(), True),
        ),
        "branches": {0: (Branch(5, 30), Branch(40, 70)), 2: (Branch(3, 90),)},
    }
    return Profile(**{**arguments, **changes})
