"""The cases that are made to enter a runtime's functions: all valid, all run."""

import dataclasses
from collections import Counter

import onnx
import pytest

from edgekit.conformance import contrib, coverage, desktop, generate
from edgekit.conformance.cases import Case
from edgekit.desktop.run import Optimization


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    return coverage.cases()


def test_every_case_is_a_valid_model_with_a_name_of_its_own(cases: tuple[Case, ...]) -> None:
    for case in cases:
        onnx.checker.check_model(onnx.load_from_string(case.model))
    assert [name for name, count in Counter(case.name for case in cases).items() if count > 1] == []


@pytest.mark.parametrize("optimization", ["disabled", "all"])
def test_every_case_runs_on_the_desktop(cases: tuple[Case, ...], optimization: Optimization) -> None:
    replies = desktop.replay(cases, optimization=optimization)
    wanted = {True: "done", False: "loaded"}
    wrong = {c.name: r.error or "" for c, r in zip(cases, replies, strict=True) if r.outcome != wanted[c.run]}
    # onnxruntime packs MatMulFpQ4 for processors with AVX-512 alone.
    assert {name: error for name, error in wrong.items() if "not yet supported on this hardware" not in error} == {}
    assert all("MatMulFpQ4" in name for name in wrong)


def test_a_case_with_an_input_left_out_does_not_run(cases: tuple[Case, ...]) -> None:
    whole = next(case for case in cases if case.name.startswith("fusion conv Relu"))
    (reply,) = desktop.replay([dataclasses.replace(whole, inputs=())])
    assert reply.outcome == "failed"


def test_what_can_be_run_is_run(cases: tuple[Case, ...]) -> None:
    loaded = {onnx.load_from_string(c.model).graph.node[-1].op_type for c in cases if not c.run}
    assert loaded == {"ZipMap", "DictVectorizer", "CastMap"}


def test_making_them_twice_gives_the_same(cases: tuple[Case, ...]) -> None:
    again = coverage.cases()
    assert [(case.name, case.model) for case in again] == [(case.name, case.model) for case in cases]
    assert [[v.name for v in case.inputs] for case in again] == [[v.name for v in case.inputs] for case in cases]


def test_the_names_are_none_of_the_tables(cases: tuple[Case, ...]) -> None:
    names = {case.name for case in contrib.contrib()} | {case.name for case in generate.generated(())}
    assert names.isdisjoint(case.name for case in cases)
