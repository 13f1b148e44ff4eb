"""The replay in desktop onnxruntime."""

import sys

import pytest
from conformance_samples import crash, relu, unknown

from edgekit.child.process import ChildLimits
from edgekit.conformance import desktop
from edgekit.conformance.cases import Case
from edgekit.conformance.judge import judge


def statuses(cases: list[Case], **options: object) -> list[str]:
    replies = desktop.replay(cases, **options)  # type: ignore[arg-type]
    return [judge(case, reply)[0] for case, reply in zip(cases, replies, strict=True)]


def test_cases_pass_are_wrong_or_refused() -> None:
    assert statuses([relu(), relu(expected=(1, 2)), unknown(), relu()]) == ["passes", "wrong", "refused", "passes"]


@pytest.mark.skipif(sys.platform != "linux", reason="the crash is one of x86 on Linux")
def test_a_case_that_ends_the_process_is_crashed_and_the_others_are_done() -> None:
    cases = [relu(), crash(), relu(), crash(), relu()]
    replies = desktop.replay(cases)
    assert [reply.outcome for reply in replies] == ["done", "crashed", "done", "crashed", "done"]
    assert replies[1].error == "onnxruntime crashed (SIGFPE)"


def test_no_cases_give_no_replies() -> None:
    assert desktop.replay([]) == ()


def test_progress_is_told() -> None:
    heard: list[str] = []
    desktop.replay([relu()] * 300, limits=ChildLimits(60), progress=lambda message, done=None: heard.append(message))
    assert set(heard) <= {"Replaying in desktop onnxruntime"}
