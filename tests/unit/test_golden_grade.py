"""What a case can prove, from outputs alone."""

import json
import math

import numpy as np
import pytest

from edgekit.golden.grade import Graded, Judge, grade, shift
from edgekit.records.cases import Tolerance
from edgekit.records.tensors import Value, value_of

JUDGE = Judge({"float32": Tolerance(1e-3, 1e-6)}, {"loose": Tolerance(1.0, 0.0)})
GOOD = np.array([0.5, -2.0, 4.0], dtype=np.float32)


def outputs(array: object, name: str = "y") -> tuple[Value, ...]:
    return (value_of(name, np.asarray(array)),)


def graded(
    reference: object,
    *,
    ulp: object = None,
    threads: object = None,
    disturbed: object = None,
    others: tuple[object, ...] = (),
) -> Graded:
    return grade(
        outputs(reference),
        rounded={"one ulp": None if ulp is None else outputs(ulp)}
        | ({"2 threads": outputs(threads)} if threads is not None else {}),
        disturbed=None if disturbed is None else outputs(disturbed),
        others=[outputs(other) for other in others],
        judge=JUDGE,
    )


def test_a_case_that_sees_a_wrong_weight_and_not_rounding_is_strong() -> None:
    found = graded(GOOD, ulp=GOOD * (1 + 1e-6), disturbed=GOOD * 1.01, others=(GOOD[::-1].copy(),))
    assert found.grade.strong
    assert found.calm
    assert found.grade.weight_shift == pytest.approx(0.01, rel=1e-3)
    assert found.grade.ulp_shift == pytest.approx(1e-6, rel=0.2)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (np.zeros(3, np.float32), "zero everywhere"),
        (np.full(3, 2e-6, np.float32), "nearly zero everywhere"),
        (np.full(3, 7.0, np.float32), "the same everywhere"),
        (np.array([0, 1, 1e-8], np.float32), "saturated at 0 and 1"),
        (np.full(3, np.nan, np.float32), "NaN or infinite everywhere"),
        (np.zeros((0, 3), np.float32), "no elements"),
    ],
)
def test_degenerate_outputs_are_weak(reference: object, reason: str) -> None:
    assert reason in " ".join(graded(reference).grade.weak)


@pytest.mark.parametrize(
    "reference", [np.float32(0.3), np.array([2], np.int64), np.array(["cat"]), np.array([0.0, 1.0, 0.4], np.float32)]
)
def test_one_number_one_label_or_one_text_is_not_degenerate(reference: object) -> None:
    assert graded(reference).grade.strong


def test_one_good_output_is_enough() -> None:
    both = (*outputs(np.zeros(3, np.float32)), *outputs(GOOD, "z"))
    assert grade(both, rounded={}, disturbed=None, others=[], judge=JUDGE).grade.strong


def test_outputs_that_are_no_tensors_prove_nothing() -> None:
    found = grade(
        (Value("y", "seq(tensor(float))", None, "a sequence"),), rounded={}, disturbed=None, others=[], judge=JUDGE
    )
    assert "not comparable" in found.grade.weak[0]


def test_a_case_that_passes_with_wrong_weights_is_weak() -> None:
    assert "insensitive" in graded(GOOD, disturbed=GOOD * (1 + 1e-4)).grade.weak[0]


def test_a_case_that_rounding_fails_is_chaotic() -> None:
    found = graded(GOOD, ulp=GOOD * 1.01, disturbed=GOOD * 2)
    assert found.chaotic
    assert "chaotic" in found.grade.weak[0]


def test_a_tolerance_below_rounding_is_said_to_be_that() -> None:
    strict = Judge({"float32": Tolerance(1e-9, 0.0)}, {})
    ulp = {"one ulp": outputs(GOOD * np.float32(1 + 2e-7))}
    (reason,) = grade(outputs(GOOD), rounded=ulp, disturbed=None, others=[], judge=strict).grade.weak
    assert reason.startswith("the tolerance is below what one ulp moves: one ulp moved an output by")
    assert graded(GOOD, ulp=GOOD * 1.01).grade.weak[0].startswith("chaotic:")


def test_a_case_that_another_thread_fails_is_chaotic_though_one_ulp_moves_nothing() -> None:
    labels = np.array([1, 2, 2], np.int64)
    found = graded(labels, ulp=labels, threads=labels[::-1].copy(), disturbed=labels + 1)
    assert found.chaotic
    assert found.grade.ulp_shift
    assert "chaotic: 2 threads moved" in found.grade.weak[0]
    assert graded(labels, ulp=labels, threads=labels, disturbed=labels + 1).grade.strong


def test_a_case_that_rounding_nearly_fails_is_strong_but_not_calm() -> None:
    found = graded(GOOD, ulp=GOOD * (1 + 5e-4), disturbed=GOOD * 2)
    assert found.grade.strong
    assert not found.calm


def test_inputs_that_make_no_difference_are_blind() -> None:
    assert "blind" in graded(GOOD, disturbed=GOOD * 2, others=(GOOD, GOOD)).grade.weak[0]
    assert graded(GOOD, disturbed=GOOD * 2, others=(GOOD, GOOD * 3)).grade.strong


def test_the_tolerance_of_an_output_goes_before_that_of_its_dtype() -> None:
    assert shift(outputs(GOOD, "loose"), outputs(GOOD * 1.5, "loose"), JUDGE).in_tolerances < 1  # type: ignore[union-attr]
    assert shift(outputs(GOOD), outputs(GOOD * 1.5), JUDGE).in_tolerances > 1  # type: ignore[union-attr]


def test_integers_and_texts_are_exact() -> None:
    assert shift(outputs([1, 2]), outputs([1, 3]), JUDGE).in_tolerances == math.inf  # type: ignore[union-attr]
    assert shift(outputs(["a"]), outputs(["b"]), JUDGE).in_tolerances == math.inf  # type: ignore[union-attr]
    assert shift(outputs(["a"]), outputs(["a"]), JUDGE).in_tolerances == 0  # type: ignore[union-attr]


def test_another_shape_is_not_measured() -> None:
    assert shift(outputs(GOOD), outputs(GOOD[:2]), JUDGE) is None


def test_a_new_nan_or_a_value_from_zero_is_a_shift_that_json_can_hold() -> None:
    for moved in ([np.nan, -2, 4], [1e30, 0, 0]):
        for reference in (GOOD, np.zeros(3, np.float32)):
            found = shift(outputs(reference), outputs(np.array(moved, np.float32)), JUDGE)
            assert found is not None
            assert found.in_tolerances > 1
            json.dumps(found.relative, allow_nan=False)
