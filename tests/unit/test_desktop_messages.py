import time

import pytest

from edgekit.desktop.messages import explained, readable

FAIL = "[ONNXRuntimeError] : 1 : FAIL : "
NODE = "Non-zero status code returned while running {} node. Name:'{}' Status Message: "
SOURCE = "/onnxruntime_src/onnxruntime/core/"

MESSAGES = {
    f"{FAIL}{NODE.format('Add', '<b>')}{SOURCE}providers/cpu/math/element_wise_ops.h:563 void onnxruntime::Broadcast"
    "Iterator::Init(ptrdiff_t, ptrdiff_t) axis == 1 || axis == largest was false. Cannot broadcast. 2 by 3\n": (
        "Add node '<b>': Cannot broadcast. 2 by 3"
    ),
    f"{FAIL}{NODE.format('Div', '')}element_wise_ops.cc:703 Compute Integer division by zero": (
        "Div node without a name: Integer division by zero"
    ),
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x\n index: 1 Got: 3\n Fix it.": (
        "Got invalid dimensions for input: x index: 1 Got: 3 Fix it."
    ),
    f"{FAIL}Load model from /m (1)/m.onnx failed:{SOURCE}model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&, "
    "const std::list<int (*)(char)>*, const onnxruntime::ModelOptions&) Unsupported model IR version: 16\n": (
        "Unsupported model IR version: 16"
    ),
    f"{SOURCE}ortvalue.cc:460 onnxruntime::python::add(pybind11::module&)::<lambda(const OrtValue*)> "
    "ml_value->IsTensor() was false. Only tensors are convertible": "Only tensors are convertible",
    "ERROR_CODE: 9, ERROR_MESSAGE: Reading data is not supported.": "Reading data is not supported.",
    "Nothing to clean (here), a.b:3 c": "Nothing to clean (here), a.b:3 c",
    "": "",
}


@pytest.mark.parametrize(("text", "expected"), MESSAGES.items())
def test_codes_paths_and_signatures_are_removed(text: str, expected: str) -> None:
    assert readable(text, model="/m (1)/m.onnx") == expected


def test_long_messages_are_cut() -> None:
    assert len(readable("word " * 1000)) == 500


@pytest.mark.parametrize(
    ("reason", "clause"),
    [
        (
            "Fatal error: my.company:Frobnicate(-1) is not a registered function/op",
            "uses the operator 'my.company::Frobnicate', which onnxruntime does not have",
        ),
        ("Unsupported model IR version: 16, max supported IR version: 14", "has IR version 16"),
        ("Error No Op registered for Gelu with domain_version of 17", "operator 'Gelu', which opset 17 does not have"),
        (
            "Could not find an implementation for ReduceSum(13) node with name 'sum it'",
            "uses ReduceSum node 'sum it' (opset 13) with data types for which onnxruntime has no CPU kernel",
        ),
        (
            "Opset 99 is under development. Current official support for domain ai.onnx is till opset 28.",
            "uses opset 99 of ai.onnx; the desktop onnxruntime has up to 28",
        ),
    ],
)
def test_known_refusals_are_explained_with_a_hint(reason: str, clause: str) -> None:
    text, hint = explained(reason)

    assert clause in text
    assert hint


def test_unknown_refusals_are_passed_on() -> None:
    assert explained("Something else.") == ("cannot be loaded by the desktop onnxruntime: Something else.", None)


def test_a_name_of_a_million_characters_is_shortened_in_no_time() -> None:
    """The patterns look for what may begin at any character: two hours for this one."""
    started = time.process_time()
    for filler in ("n" * 1_000_000, "n " * 500_000, "a/b.c" * 200_000):
        said = readable(f"[ONNXRuntimeError] : 1 : FAIL : Node {filler} is broken: /src/graph.cc:12 end of it")
        assert said.startswith("Node ")
        assert "…" in said
        assert len(said) <= 500
    assert time.process_time() - started < 5
