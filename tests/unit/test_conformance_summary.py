"""The page about the tables."""

import dataclasses

from edgekit.conformance import summary
from edgekit.conformance.table import OperatorSupport, Runtime, Table

RELU = OperatorSupport("", "Relu", 14, ("T",), passes=frozenset({("float32",), ("float16",)}))
WASM = Table(
    Runtime("onnxruntime-web", "1", "wasm", "wasm", "0" * 64, "Chromium 1"),
    "1.23.2",
    13,
    {"": 26},
    {("", "Relu", 14): RELU},
    {
        "test_a": ("passes", None),
        "test_b": ("wrong", "y: 1 | <b> at [0]"),
        "test_c": ("passes", None),
        "Add 7": ("wrong", "x"),
    },
)
GPU = dataclasses.replace(
    WASM,
    runtime=Runtime("onnxruntime-web", "1", "jspi", "webgpu", "0" * 64, "Chromium 1", "google swiftshader"),
    operators={
        ("", "Relu", 14): dataclasses.replace(
            RELU, passes=frozenset({("float32",)}), refused=frozenset({("float16",)}), on_cpu=frozenset({("float32",)})
        )
    },
    cases={"test_a": ("passes", None), "test_b": ("wrong", "y"), "test_c": ("refused", "no kernel")},
)


def test_each_runtime_has_a_column_and_each_operator_a_row() -> None:
    page = summary.page([WASM, GPU])
    assert "| operator | since | wasm | jspi |" in page
    assert "| `Relu` | 14 | 2 | 1/0/0/1, cpu 1 |" in page


def test_an_operator_that_one_table_lacks_is_a_gap() -> None:
    assert "| `Relu` | 14 | 2 | – |" in summary.page([WASM, dataclasses.replace(GPU, operators={})])


def test_standard_cases_are_counted_and_made_ones_are_not() -> None:
    page = summary.page([WASM, GPU])
    assert "| passes | 2 | 1 |" in page
    assert "| wrong | 1 | 1 |" in page
    assert "| refused | 0 | 1 |" in page


def test_wrong_answers_are_named_once_with_their_places_and_escaped() -> None:
    page = summary.page([GPU, WASM])
    assert "| `test_b` | jspi, wasm | y: 1 \\| &lt;b> at \\[0] |" in page


def test_what_passes_on_wasm_alone_is_listed_with_its_reason() -> None:
    page = summary.page([WASM, GPU])
    assert "| `test_c` | refused | no kernel |" in page
    assert "| `test_a` | refused" not in page
    assert "Lost on WebGPU" not in summary.page([WASM])
