"""The rule of tolerance on a table of samples, to which the page's preview is held too (web/test/tolerance.test.js)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgekit.compare import judge
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.run_record import CaseRun, Environment, Hashes, RunRecord, Timings
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of

SAMPLES = json.loads((Path(__file__).parents[1] / "models" / "tolerance_samples.json").read_text(encoding="utf-8"))
MODEL = "0" * 64


def array_of(elements: list[Any], dtype: str) -> Array:
    """Return elements, of which those that JSON cannot say are text."""
    if dtype == "string":
        return np.array(elements, dtype=object)
    if dtype.startswith("int"):
        return np.array([int(element) for element in elements], dtype=dtype)
    return np.array([float(element) for element in elements], dtype=np.float64).astype(NUMPY_DTYPES[dtype])


def outputs(elements: list[Any] | None, dtype: str) -> tuple[Value, ...]:
    return () if elements is None else (value_of("y", array_of(elements, dtype)),)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_a_sample_is_judged_as_the_table_says(sample: dict[str, Any]) -> None:
    dtype = sample["dtype"]
    left_open = {"y": np.array(sample["left_open"])} if "left_open" in sample else {}
    case_set = CaseSet(
        model_sha256=MODEL,
        reference=Reference("by hand", "none", "0", "disabled"),
        tolerance={},
        # null: no tolerance is given, so nothing but equality passes.
        output_tolerance={} if sample["relative"] is None else {"y": Tolerance(sample["relative"], sample["absolute"])},
        cases=(GoldenCase("only", "by hand", (), outputs(sample["reference"], dtype), left_open=left_open),),
    )
    record = RunRecord(
        run="",
        hashes=Hashes(None, MODEL, None),
        environment=Environment("page", "none", "0", "wasm", "wasm", "wasm", 1, None, None, None, None),
        attempts=(),
        timings=Timings(),
        cases=(CaseRun("only", "done", outputs(sample["value"], sample.get("value_dtype", dtype))),),
    )
    (output,) = judge(case_set, record, title="it", target=None).outputs
    assert (output.status == "match") is sample["match"], output
