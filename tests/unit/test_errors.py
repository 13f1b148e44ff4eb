"""Exit codes are part of the command line's contract: scripts read them."""

import inspect

import pytest

from edgekit import errors
from edgekit.errors import EdgekitError

CODES = {
    "EdgekitError": 1,
    "UsageError": 2,
    "BundleError": 2,
    "ModelError": 3,
    "MissingToolError": 4,
    "LimitError": 5,
    "ParityError": 6,
}


def test_every_error_has_its_exit_code() -> None:
    classes = dict(inspect.getmembers(errors, inspect.isclass))
    found = {name: kind.exit_code for name, kind in classes.items() if issubclass(kind, EdgekitError)}
    assert found == CODES


def test_an_error_keeps_its_message_and_hint() -> None:
    problem = errors.ModelError("bad.onnx is empty.", hint="Export it again.")
    assert (problem.message, problem.hint, str(problem)) == (
        "bad.onnx is empty.",
        "Export it again.",
        "bad.onnx is empty.",
    )


def test_a_hint_must_be_named() -> None:
    with pytest.raises(TypeError):
        EdgekitError("message", "hint")  # type: ignore[misc]


def test_a_name_that_is_near_a_known_one_is_guessed_and_another_is_not() -> None:
    assert errors.did_you_mean("webgpo", ["wasm", "webgpu"]) == " Did you mean 'webgpu'?"
    assert errors.did_you_mean("phone", ["wasm", "webgpu"]) == ""
