"""The judge never passes by default: each way to pass has twins that must fail."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edgekit.compare import judge
from edgekit.errors import UsageError
from edgekit.records.cases import CaseSet, GoldenCase, Grade, Reference, Tolerance
from edgekit.records.run_record import Adapter, Attempt, CaseRun, Environment, Hashes, Miss, RunRecord, Timings
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of
from edgekit.records.validate import validated
from edgekit.records.verdict import OutputVerdict, Verdict, to_json

MODEL, OTHER = "a" * 64, "b" * 64
TOLERANCES = {"float16": Tolerance(1e-2, 1e-4), "bfloat16": Tolerance(4e-2, 1e-3), "float32": Tolerance(1e-3, 1e-6)}
ENVIRONMENT = Environment(
    "chromium", "onnxruntime-web", "1.30.0", "wasm", "wasm", "wasm", 2, True, None, "agent", "device"
)
F32 = np.array([[0.1, 0.7, 0.2]], np.float32)


def case_set(*cases: Sequence[Value], **changes: Any) -> CaseSet:
    made = tuple(GoldenCase(f"c{i}", "random", (), tuple(outputs)) for i, outputs in enumerate(cases))
    reference = Reference("desktop", "onnxruntime", "1.32.0", "disabled")
    return replace(CaseSet(MODEL, reference, TOLERANCES, {}, made), **changes)


def record(*cases: Sequence[Value], **changes: Any) -> RunRecord:
    runs = tuple(CaseRun(f"c{i}", "done", tuple(outputs)) for i, outputs in enumerate(cases))
    return replace(RunRecord("run", Hashes(OTHER, MODEL, None), ENVIRONMENT, (), Timings(), runs), **changes)


def verdict_of(golden: CaseSet, run: RunRecord | None, **options: Any) -> Verdict:
    verdict = judge(golden, run, title="model.onnx", target="wasm", **options)
    validated(json.loads(json.dumps(to_json(verdict), allow_nan=False)), "verdict", "verdict.json")
    return verdict


def judged(values: Array, reference: Array, **options: Any) -> tuple[Verdict, OutputVerdict]:
    verdict = verdict_of(case_set([value_of("y", reference)]), record([value_of("y", values)]), **options)
    assert verdict.passed == (verdict.outputs[0].status == "match")
    return verdict, verdict.outputs[0]


# Equal outputs pass, whatever they hold.


@pytest.mark.parametrize("dtype", sorted(NUMPY_DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
def test_equal_outputs_of_every_dtype_and_shape_match(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, NUMPY_DTYPES[dtype])
    verdict, output = judged(array.copy(), array)
    assert verdict.status == "passed" and verdict.reasons == () and verdict.compared == verdict.expected == 1
    assert output.metrics is not None
    assert (output.metrics.max_abs, output.metrics.snr_db, output.metrics.passing_relative) == (0.0, math.inf, 0.0)


@pytest.mark.parametrize("dtype", sorted(set(NUMPY_DTYPES) - {"bool"}))
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_a_shifted_output_of_every_dtype_is_a_mismatch_with_its_place(dtype: str, shape: tuple[int, ...]) -> None:
    reference = np.ones(shape, NUMPY_DTYPES[dtype])
    values = reference.copy()
    values[tuple(n - 1 for n in shape)] = 3
    verdict, output = judged(values, reference)
    assert verdict.status == "failed" and "'y' does not match" in verdict.reasons[0]
    assert output.metrics is not None and output.reason is not None
    assert output.metrics.worst_index == tuple(n - 1 for n in shape)
    assert (output.metrics.max_abs, output.metrics.worst_value, output.metrics.worst_reference) == (2.0, 3.0, 1.0)


unhurried = settings(deadline=None)
finite = hnp.arrays(
    st.sampled_from([np.float16, np.float32, np.float64]),
    hnp.array_shapes(min_dims=0, max_dims=3, max_side=4),
    elements=st.floats(-1e4, 1e4, width=16),
)
anything = hnp.arrays(st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint64, np.int64, np.bool_]), 5)


@unhurried
@given(anything)
def test_an_output_always_matches_itself(array: Array) -> None:
    assert judged(array.copy(), array)[1].status == "match"


@unhurried
@given(finite, st.sampled_from([-1.0, 1.0]))
def test_an_output_shifted_by_a_tenth_of_its_scale_never_matches(array: Array, sign: float) -> None:
    scale = float(np.abs(array).max())
    assume(scale > 0.1)
    shifted = (array.astype(np.float64) + sign * scale / 10).astype(array.dtype)
    assert judged(shifted, array)[1].status == "mismatch"


@unhurried
@given(finite, st.sampled_from([math.nan, math.inf, -math.inf]), st.randoms())
def test_a_nan_or_infinity_that_the_reference_does_not_hold_never_matches(
    array: Array, bad: float, random: Any
) -> None:
    values = np.array(array)
    place = random.randrange(array.size)
    values.reshape(-1)[place] = bad
    any_tolerance = {"y": Tolerance(1e300, 1e300)}
    for a, b in ((values, array), (array, values)):
        output = judged(a, b, tolerance=any_tolerance)[1]
        assert output.status == "mismatch" and output.metrics is not None
        assert output.metrics.first_nonfinite == place and output.metrics.passing_relative == math.inf


@unhurried
@given(finite, st.floats(1e-6, 1.0), st.sampled_from([0.0, 1e-6, 1e-2]))
def test_passing_relative_is_the_threshold_itself(array: Array, shift: float, absolute: float) -> None:
    values = (array.astype(np.float64) + shift).astype(array.dtype)
    metrics = judged(values, array, tolerance={"y": Tolerance(0.0, absolute)})[1].metrics
    assert metrics is not None
    threshold = metrics.passing_relative
    assume(0 < threshold < math.inf)
    assert judged(values, array, tolerance={"y": Tolerance(threshold, absolute)})[1].status == "match"
    below = Tolerance(math.nextafter(threshold, 0), absolute)
    assert judged(values, array, tolerance={"y": below})[1].status == "mismatch"
    # And it is the rule of the page: |a - b| <= absolute + relative * scale.
    assert metrics.max_abs == pytest.approx(absolute + threshold * metrics.scale, rel=1e-12)


@unhurried
@given(st.permutations(range(4)))
def test_the_order_of_the_cases_in_the_record_changes_nothing(order: list[int]) -> None:
    cases = case_set(*([value_of("y", F32 * i)] for i in range(4)))
    run = record(*([value_of("y", F32 * (i + (i == 2)))] for i in range(4)))
    shuffled = replace(run, cases=tuple(run.cases[i] for i in order))
    assert verdict_of(cases, shuffled) == verdict_of(cases, run)


# The arithmetic.


def test_metrics_of_a_small_example_are_those_computed_by_hand() -> None:
    metrics = judged(np.array([[1.0, 2.0, 6.0]], np.float32), np.array([[3.0, 2.0, 4.0]], np.float32))[1].metrics
    assert metrics is not None
    assert metrics.max_abs == 2 and metrics.scale == 4 and metrics.max_rel == 0.5
    assert metrics.rmse == pytest.approx(math.sqrt(8 / 3))
    assert metrics.cosine == pytest.approx(31 / math.sqrt(41 * 29))
    assert metrics.snr_db == pytest.approx(10 * math.log10(29 / 8))
    assert metrics.passing_relative == pytest.approx((2 - 1e-6) / 4)
    assert (metrics.top1_agrees, metrics.top1_margin) == (1.0, 0.25)


def test_an_error_is_judged_by_the_scale_of_the_output() -> None:
    reference = np.array([300.0, 0.0], np.float32)
    assert judged(np.array([300.0, 1e-4], np.float32), reference)[1].status == "match"
    assert judged(np.array([0.3, 1e-3], np.float32), np.array([0.3, 0.0], np.float32))[1].status == "mismatch"


def test_nan_meets_nan_and_infinity_the_same_infinity() -> None:
    reference = np.array([math.nan, math.inf, -math.inf, 1.0], np.float32)
    output = judged(reference.copy(), reference)[1]
    assert output.status == "match" and output.metrics is not None
    assert (output.metrics.nan_count, output.metrics.inf_count, output.metrics.scale) == (1, 2, 1.0)
    output = judged(np.array([math.nan, math.inf, math.inf, 1.0], np.float32), reference)[1]
    assert output.status == "mismatch" and output.metrics is not None and output.reason is not None
    assert output.metrics.first_nonfinite == 2 and "inf at [2], and must be -inf" in output.reason


def test_large_int64_are_compared_exactly() -> None:
    reference = np.array([2**62, -(2**63)], np.int64)
    assert judged(reference.copy(), reference)[1].status == "match"
    output = judged(reference + np.array([1, 0]), reference)[1]
    assert output.status == "mismatch" and output.metrics is not None and output.metrics.max_abs == 1.0
    assert output.reason is not None and f"{2**62 + 1} at [0], and must be {2**62}" in output.reason
    extremes = judged(np.array([2**63 - 1], np.int64), np.array([-(2**63)], np.int64))[1].metrics
    assert extremes is not None and extremes.max_abs == float(2**64 - 1)


def test_integers_are_exact_unless_a_tolerance_is_given_for_the_output() -> None:
    values, reference = np.array([100, 6], np.int8), np.array([100, 5], np.int8)
    exact = judged(values, reference)[1]
    assert exact.status == "mismatch" and exact.tolerance is None and "must be equal" in (exact.reason or "")
    assert judged(values, reference, tolerance={"y": Tolerance(0.0, 1.0)})[1].status == "match"
    assert judged(values, reference, tolerance={"y": Tolerance(0.0, 0.5)})[1].status == "mismatch"


def test_a_float_dtype_without_a_tolerance_must_be_exact() -> None:
    cases = case_set([value_of("y", F32)], tolerance={})
    assert verdict_of(cases, record([value_of("y", F32)])).passed
    assert not verdict_of(cases, record([value_of("y", np.nextafter(F32, np.float32(9)))])).passed


def test_a_tolerance_for_an_output_overrides_the_dtype_and_an_argument_overrides_both() -> None:
    run = record([value_of("y", F32 + np.float32(0.01))])
    assert not verdict_of(case_set([value_of("y", F32)]), run).passed
    loose = case_set([value_of("y", F32)], output_tolerance={"y": Tolerance(0.1, 0.0)})
    assert verdict_of(loose, run).passed
    assert not verdict_of(loose, run, tolerance={"y": Tolerance(1e-5, 0.0)}).passed


def test_values_at_the_ends_of_float64_are_judged_without_overflow() -> None:
    reference = np.array([1.7e308, -1.7e308])
    assert judged(reference.copy(), reference)[1].status == "match"
    output = judged(-reference, reference, tolerance={"y": Tolerance(1.0, 0.0)})[1]
    assert output.status == "mismatch" and output.metrics is not None
    assert output.metrics.max_abs == math.inf and output.metrics.cosine == pytest.approx(-1.0)


def test_an_output_against_a_reference_of_zeros_has_only_the_absolute_tolerance() -> None:
    zeros = np.zeros(3, np.float32)
    assert judged(zeros + np.float32(5e-7), zeros)[1].status == "match"
    output = judged(zeros + np.float32(5e-6), zeros)[1]
    assert output.status == "mismatch" and output.metrics is not None and output.metrics.passing_relative == math.inf


def test_the_top_label_is_compared_a_row_at_a_time() -> None:
    reference = np.array([[0.2, 0.8], [0.6, 0.4]], np.float32)
    metrics = judged(np.array([[0.2, 0.8], [0.4, 0.6]], np.float32), reference)[1].metrics
    assert metrics is not None and metrics.top1_agrees == 0.5 and metrics.top1_margin == pytest.approx(0.25)
    tie = np.array([[0.5, 0.5]], np.float32)
    metrics = judged(np.array([[0.5, 0.50001]], np.float32), tie)[1].metrics
    assert metrics is not None and metrics.top1_agrees == 1.0 and metrics.top1_margin == 0.0
    masked = np.array([[-math.inf, -math.inf], [-math.inf, 1.0]], np.float32)
    metrics = judged(masked.copy(), masked)[1].metrics
    assert metrics is not None and metrics.top1_agrees == 1.0 and metrics.top1_margin == 0.0
    assert judged(np.array([1.0], np.float32), np.array([1.0], np.float32))[1].metrics.top1_agrees is None  # type: ignore[union-attr]


def test_strings_are_exact_and_the_first_difference_is_shown() -> None:
    reference = np.array([["a", "b"], ["<script>", "d"]])
    assert judged(reference.copy(), reference)[1].status == "match"
    output = judged(np.array([["a", "b"], ["c\x1b" + "c" * 100, "e"]]), reference)[1]
    assert output.status == "mismatch" and output.metrics is None and output.reason is not None
    assert output.reason.startswith("The strings differ first at index 2: 'c\\x1b") and len(output.reason) < 200


# Failures of their own kind.


def test_no_record_is_not_run() -> None:
    verdict = verdict_of(case_set([value_of("y", F32)]), None)
    assert verdict.status == "not_run" and verdict.reasons == ("No run record came back.",)
    assert verdict.outputs[0].status == "missing"
    assert verdict_of(case_set([value_of("y", F32)]), None, no_record="the page hung").reasons == ("the page hung",)


def test_a_model_that_the_runtime_refused_with_nothing_to_fall_back_to_is_refused_and_says_why() -> None:
    attempts = (Attempt("wasm", "wasm", "refused", "no kernel for 'Loop'"),)
    environment = replace(ENVIRONMENT, variant=None, execution_provider=None)
    skipped = (CaseRun("c0", "skipped", error="no session"),)
    run = record(cases=skipped, attempts=attempts, environment=environment, error="No variant runs the model.")
    verdict = verdict_of(case_set([value_of("y", F32)]), run)
    assert verdict.status == "refused" and verdict.has_nothing
    said = " ".join(verdict.reasons)
    assert "No variant runs the model." in said and "wasm (wasm) refused: no kernel for 'Loop'." in said
    assert verdict.outputs[0].status == "case_failed" and "no session" in (verdict.outputs[0].reason or "")


def test_no_cases_and_no_comparable_output_are_not_run() -> None:
    assert verdict_of(case_set(), record()).status == "not_run"
    assert verdict_of(case_set([]), record([])).status == "not_run"
    sequence = Value("s", "seq(tensor(float))", None, "sequences are not read")
    verdict = verdict_of(case_set([sequence]), record([sequence]))
    assert verdict.status == "not_run" and "No output of these cases can be compared." in verdict.reasons


def test_an_output_that_is_no_tensor_is_left_out_with_a_warning() -> None:
    sequence = Value("s", "seq(tensor(float))", None, "sequences are not read")
    cases, y = case_set([sequence, value_of("y", F32)]), value_of("y", F32)
    verdict = verdict_of(cases, record([y, sequence]))
    assert verdict.passed and verdict.outputs[0].status == "not_comparable" and verdict.expected == 1
    assert verdict.warnings == ("Not compared, for they are not tensors: 's'.",)
    failed = verdict_of(cases, record(cases=(CaseRun("c0", "failed", error="boom"),)))
    assert [output.status for output in failed.outputs] == ["case_failed", "case_failed"]


Y, Z = value_of("y", F32), value_of("z", F32)
RIGHT = record([Y], [Z])


# What the standard leaves open is no fault, and no proof.


def left_open_case(mask: list[bool]) -> CaseSet:
    golden = case_set([value_of("y", np.array([1, -(2**31)], np.int32)), value_of("z", np.array([1], np.int32))])
    return replace(golden, cases=(replace(golden.cases[0], left_open={"y": np.array(mask)}),))


@pytest.mark.parametrize(("given", "passed"), [([1, 7], True), ([2, 7], False)])
def test_elements_that_are_left_open_are_not_compared_and_the_others_are(given: list[int], passed: bool) -> None:
    run = record([value_of("y", np.array(given, np.int32)), value_of("z", np.array([1], np.int32))])
    verdict = verdict_of(left_open_case([False, True]), run)
    assert (verdict.passed, verdict.compared, verdict.expected) == (passed, 2, 2)
    assert any("leaves open (1 of 2 in output 'y')" in warning for warning in verdict.warnings)


def test_an_output_that_is_left_open_as_a_whole_is_not_compared_and_alone_it_proves_nothing() -> None:
    run = record([value_of("y", np.array([2, 7], np.int32)), value_of("z", np.array([1], np.int32))])
    golden = left_open_case([True, True])
    verdict = verdict_of(golden, run)
    assert verdict.passed and (verdict.compared, verdict.expected) == (1, 1)
    alone = replace(golden, cases=(replace(golden.cases[0], outputs=golden.cases[0].outputs[:1]),))
    verdict = verdict_of(alone, record([value_of("y", np.array([2, 7], np.int32))]))
    assert verdict.status == "not_run" and "No output of these cases can be compared." in verdict.reasons


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (record([Y]), "Output 'z' is missing in 1 of 1 cases; case 'c1': The record does not hold this case."),
        (record([Y], []), "Output 'z' is missing in 1 of 1 cases; case 'c1': The record does not hold this output."),
        (record([Y], [Value("z", "float32", None, "lost")]), "The device gave no tensor: lost"),
        (record([Y], [value_of("z", F32[0])]), "has the wrong shape in 1 of 1 cases; case 'c1': It has shape [3]"),
        (record([Y], [value_of("z", F32.astype(np.float16))]), "It is float16, and must be float32."),
        (record([Y], [value_of("z", F32[0].astype(np.float64))]), "it also has shape [3], and must be [1, 3]."),
        (record([Y], [value_of("z", np.array([["a", "b", "c"]]))]), "It is string, and must be float32."),
        (record([Y], [Z, value_of("w", F32)]), "has outputs that the reference does not have, or twice: 'w'."),
        (record([Y], [Z, Z]), "has outputs that the reference does not have, or twice: 'z'."),
        (record([Y], [Z], [Y]), "The record holds cases that do not exist: 'c2'."),
        (replace(RIGHT, cases=RIGHT.cases * 2), "The record holds cases more than once: 'c0', 'c1'."),
        (replace(RIGHT, cases=(RIGHT.cases[0], CaseRun("c1", "failed", error="boom"))), "The case failed: boom"),
        (replace(RIGHT, cases=(RIGHT.cases[0], CaseRun("c1", "skipped"))), "The case was skipped: no reason given"),
        (replace(RIGHT, hashes=Hashes(OTHER, OTHER, None)), "The record is of another model: sha256 bbbbbbbbbbbbbbbb…"),
        (replace(RIGHT, error="the page crashed"), "The run ended in an error: the page crashed"),
    ],
)
def test_what_is_not_as_it_must_be_fails_in_words(run: RunRecord, said: str) -> None:
    cases = case_set([Y], [Z])
    assert verdict_of(cases, RIGHT).passed
    verdict = verdict_of(cases, run)
    assert verdict.status == "failed" and said in "\n".join(verdict.reasons)


def test_a_record_of_another_bundle_fails_when_the_bundle_is_known() -> None:
    cases = case_set([Y], [Z])
    assert verdict_of(cases, RIGHT, manifest_sha256=OTHER).passed
    assert "another bundle" in verdict_of(cases, RIGHT, manifest_sha256=MODEL).reasons[0]
    unnamed = replace(RIGHT, hashes=Hashes(None, MODEL, None))
    assert "it names no bundle" in verdict_of(cases, unnamed, manifest_sha256=MODEL).reasons[0]


def test_a_record_of_another_model_fails_even_when_nothing_ran() -> None:
    run = replace(RIGHT, hashes=Hashes(None, OTHER, None), cases=())
    assert verdict_of(case_set([Y], [Z]), run).status == "failed"


def test_a_record_of_the_model_before_it_was_trimmed_is_of_another_model_and_said_to_be() -> None:
    run = replace(RIGHT, hashes=Hashes(OTHER, OTHER, None))
    trimmed = replace(case_set([Y], [Z]), original_sha256=OTHER)
    verdict = verdict_of(trimmed, run)
    assert verdict.status == "failed" and "the model before it was trimmed" in verdict.reasons[0]
    assert "trimmed" not in verdict_of(case_set([Y], [Z]), run).reasons[0]
    assert verdict_of(trimmed, RIGHT).passed


def test_every_case_failed_is_failed_and_not_merely_not_run() -> None:
    run = record(cases=(CaseRun("c0", "failed", error="boom"),))
    verdict = verdict_of(case_set([Y]), run)
    assert verdict.status == "failed" and verdict.compared == 0


def test_the_sentence_of_a_mismatch_names_the_worst_case() -> None:
    cases = case_set([Y], [Y], [Y])
    run = record([value_of("y", F32 + np.float32(0.1))], [value_of("y", F32 + np.float32(0.87))], [Y])
    (reason,) = verdict_of(cases, run).reasons
    assert reason.startswith(
        "Output 'y' does not match in 2 of 3 cases; the worst, case 'c1': The largest error is 0.87,"
    )
    assert reason.endswith("allowed is 0.000701: 1.07 at [0, 2], and must be 0.2.")


# Which execution provider ran.


REFUSED = Attempt("jspi", "webgpu", "refused", "no kernel")
FELL_BACK = replace(
    RIGHT,
    environment=replace(ENVIRONMENT, execution_provider_asked="webgpu"),
    attempts=(REFUSED, Attempt("wasm", "wasm", "created")),
)


def test_a_fallback_is_refused_with_its_reason_unless_allowed() -> None:
    cases = case_set([Y], [Z])
    verdict = verdict_of(cases, FELL_BACK)
    assert verdict.status == "refused" and verdict.compared == verdict.expected == 2
    assert verdict.reasons == ("webgpu did not run the model; wasm did. jspi (webgpu) refused: no kernel.",)
    allowed = verdict_of(cases, FELL_BACK, allow_fallback=True)
    assert allowed.passed and "A fallback was allowed: webgpu did not run" in allowed.warnings[0]


def test_a_run_that_was_asked_for_another_provider_than_the_targets_first_is_of_its_variant_alone() -> None:
    cases = case_set([Y])
    forced = verdict_of(cases, record([Y]), execution_provider="webgpu")  # asked for wasm, and ran wasm
    assert forced.passed and forced.variant == "wasm"
    assert forced.warnings == (
        "wasm was asked for in place of webgpu, which the target tries first: webgpu was not tried.",
    )
    for known in ("wasm", None):
        plain = verdict_of(cases, record([Y]), execution_provider=known)
        assert plain.passed and plain.variant is None and plain.warnings == ()
    assert verdict_of(cases, record([Z]), execution_provider="webgpu").variant == "wasm"  # a failure is named so, too


def test_a_forced_variant_that_could_not_run_is_named_all_the_same() -> None:
    environment = replace(ENVIRONMENT, variant=None, execution_provider=None)
    tried = (Attempt("wasm", "wasm", "refused", "no memory"),)
    run = replace(record(), environment=environment, attempts=tried)
    verdict = verdict_of(case_set([Y]), run, execution_provider="webgpu")
    assert (verdict.status, verdict.variant) == ("refused", "wasm")


def test_a_fallback_is_a_verdict_of_its_variant_only_where_it_may_pass() -> None:
    cases = case_set([Y], [Z])
    assert verdict_of(cases, FELL_BACK, allow_fallback=True).variant == FELL_BACK.environment.variant != None  # noqa: E711
    assert verdict_of(cases, FELL_BACK, execution_provider="webgpu").variant is None


def test_a_fallback_that_also_gives_wrong_outputs_has_failed() -> None:
    cases = case_set([Y], [value_of("z", F32 * 2)])
    verdict = verdict_of(cases, FELL_BACK)
    assert verdict.status == "failed" and len(verdict.reasons) == 2
    assert verdict_of(cases, FELL_BACK, allow_fallback=True).status == "failed"


def test_a_record_that_does_not_say_what_ran_never_passes() -> None:
    run = replace(RIGHT, environment=replace(ENVIRONMENT, execution_provider=None))
    for allow in (False, True):
        assert verdict_of(case_set([Y], [Z]), run, allow_fallback=allow).status == "refused"


# Which cases are expected.


def test_only_the_cases_asked_for_are_expected() -> None:
    cases = case_set([Y], [Z])
    assert not verdict_of(cases, record([Y])).passed
    verdict = verdict_of(cases, record([Y]), cases=["c0", "c0"])
    assert verdict.passed and verdict.expected == 1
    assert verdict_of(cases, record([Y]), cases=["c1"]).status == "not_run"
    assert verdict_of(cases, RIGHT, cases=[]).status == "not_run"


def test_an_unknown_case_or_output_is_a_mistake_of_the_user_and_the_nearest_is_named() -> None:
    cases = case_set([value_of("probability", F32)])
    with pytest.raises(UsageError, match=r"no case 'c00'\. Did you mean 'c0'\?$"):
        verdict_of(cases, None, cases=["c00"])
    with pytest.raises(UsageError, match=r"not an output\. Did you mean 'probability'"):
        verdict_of(cases, None, tolerance={"probabilty": Tolerance(1, 1)})


# Warnings.


def test_warnings_say_what_the_verdict_does_not() -> None:
    weak = case_set([Y], [Z])
    weak = replace(weak, cases=tuple(replace(case, grade=Grade(weak=("constant",))) for case in weak.cases))
    adapter = Adapter("google", "swiftshader", "", "", True)
    environment = replace(
        ENVIRONMENT,
        adapter=adapter,
        cross_origin_isolated=False,
        execution_provider="webgpu",
        execution_provider_asked="webgpu",
    )
    said = verdict_of(weak, replace(RIGHT, environment=environment)).warnings
    assert len(said) == 3
    assert "Every case is weak" in said[0] and "--sample" in said[0]
    assert "software (swiftshader)" in said[1] and "not cross-origin isolated" in said[2]
    one_strong = replace(weak, cases=(weak.cases[0], replace(weak.cases[1], grade=Grade())))
    hardware = replace(environment, adapter=replace(adapter, software=False), cross_origin_isolated=True)
    assert verdict_of(one_strong, replace(RIGHT, environment=hardware)).warnings == ()


def test_what_a_trimmed_runtime_missed_is_warned_of_and_how_to_keep_it() -> None:
    value = value_of("y", np.ones(3, np.float32))
    miss = Miss("wasm", (7,), "run", "wasm", "trap", "unreachable")
    run = replace(record([value]), misses=(miss, replace(miss, functions=(), recovered_by=None)))
    warnings = verdict_of(case_set([value]), run).warnings
    assert any("missed group 7 of its functions (run, trap); the stock runtime 'wasm' took over" in w for w in warnings)
    assert any("missed something" in w and "nothing took over" in w and "--add-profile" in w for w in warnings)
    assert not any("missed" in w for w in verdict_of(case_set([value]), record([value])).warnings)
