"""What a reply to a conformance case shows."""

import numpy as np
import pytest
from conformance_samples import floats, relu, values

from edgekit.conformance.judge import difference, judge
from edgekit.conformance.suite import Reply
from edgekit.records.tensors import Array, value_of


def done(**outputs: Array) -> Reply:
    return Reply("done", values(outputs))


def test_right_outputs_pass_and_wrong_ones_say_where() -> None:
    assert judge(relu(), done(y=floats(0, 2))) == ("passes", None)
    assert judge(relu(), done(y=floats(0, 2.0005))) == ("passes", None)
    assert judge(relu(), done(y=floats(0, 2.1))) == ("wrong", "y: 2.1 at [1] and must be 2.0 at [1]")
    assert judge(relu(), done(y=floats(0, float("nan"))))[0] == "wrong"


def test_a_missing_output_another_dtype_and_another_shape_are_wrong() -> None:
    assert judge(relu(), done(z=floats(0, 2))) == ("wrong", "y: it is missing")
    assert judge(relu(), done(y=floats(0, 2).astype(np.float64))) == ("wrong", "y: it is float64, and must be float32")
    assert judge(relu(), done(y=floats(0, 2, 0))) == ("wrong", "y: it has shape [3], and must have [2]")


@pytest.mark.parametrize("outcome", ["refused", "failed", "crashed"])
def test_what_did_not_run_keeps_its_reason(outcome: str) -> None:
    assert judge(relu(), Reply(outcome, error="no kernel")) == (outcome, "no kernel")  # type: ignore[arg-type]


def test_what_nobody_knows_the_answer_of_only_loads() -> None:
    assert judge(relu(), Reply("loaded")) == ("loads", None)
    assert judge(relu(expected=()), done(y=floats(1)))[0] == "wrong"


def test_float16_on_an_adapter_without_it_says_nothing_of_the_operator() -> None:
    said = "GenerateSourceCode Program Max requires f16 but the device does not support it."
    assert judge(relu(), Reply("failed", error=said)) == ("loads", None)


def test_integers_and_strings_must_be_equal() -> None:
    big = value_of("y", np.array([2**53, 2**53 + 1]))
    assert difference(big, big, 1e-3, 1e-7) is None
    assert difference(value_of("y", np.array([2**53, 2**53])), big, 1e-3, 1e-7) is not None
    words = value_of("y", np.array(["a", "b"]))
    assert difference(words, words, 0, 0) is None
    assert difference(value_of("y", np.array(["a", "c"])), words, 0, 0) == "its strings differ"


def test_narrow_floats_may_be_off_by_rounding() -> None:
    half = np.array([1.0], dtype=np.float16)
    assert difference(value_of("y", half + np.float16(2**-9)), value_of("y", half), 1e-3, 1e-7) is None
    assert difference(value_of("y", half + np.float16(2**-7)), value_of("y", half), 1e-3, 1e-7) is not None


def test_nans_that_signal_are_wrong_and_equal_ones_pass_without_a_warning() -> None:
    signalling = np.array([0x7FA00000], np.uint32).view(np.float32)  # as in memory that nobody wrote
    with np.errstate(invalid="raise"):
        assert difference(value_of("y", signalling), value_of("y", floats(1)), 1e-3, 1e-7) == (
            "nan at [0] and must be 1.0 at [0]"
        )
        assert difference(value_of("y", signalling), value_of("y", signalling), 1e-3, 1e-7) is None
