"""Whether a device says the same twice: figures, warnings, and what fails."""

from dataclasses import replace

import numpy as np

from edgekit.compare import judge
from edgekit.records import run_record
from edgekit.records.cases import CaseSet, GoldenCase, Reference, Tolerance
from edgekit.records.run_record import AgainRun, CaseRun, Environment, Hashes, MemorySample, RunRecord, SoakRun, Timings
from edgekit.records.tensors import Value, same_bits
from edgekit.records.verdict import Verdict
from edgekit.report import words


def value(*numbers: float) -> tuple[Value, ...]:
    return (Value("y", "float32", np.array(numbers, np.float32)),)


CASES = CaseSet(
    "0" * 64,
    Reference("r", "onnxruntime", "1", "disabled"),
    {"float32": Tolerance(1e-3, 0.0)},
    {},
    (GoldenCase("a", "by hand", (), value(1, 2)),),
)
ENVIRONMENT = Environment("page", "none", "0", "wasm", "wasm", "wasm", 1, True, None, None, None)
RECORD = RunRecord(
    "r", Hashes(None, "0" * 64, None), ENVIRONMENT, (), Timings(), (CaseRun("a", "done", value(1, 2), run_ms=1.0),)
)
SOAK = SoakRun(
    "a",
    asked=8,
    different=0,
    first_different=None,
    run_ms=(4.0, 4.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.0),
    memory=(MemorySample(1, 1_000_000, 10), MemorySample(4, 2_000_000, None), MemorySample(8, 2_000_000, 20)),
)


def verdict(*again: AgainRun, soak: SoakRun | None = None) -> Verdict:
    return judge(CASES, replace(RECORD, again=again, soak=soak), title="t", target=None)


def test_the_same_bits_pass_without_a_word() -> None:
    found = verdict(AgainRun("a", "same", True), AgainRun("a", "new", True))
    assert found.passed
    assert found.warnings == ()
    assert found.steadiness is not None
    assert words.steadiness(found.steadiness) == [
        "run again, the same bits: 1 of 1 cases in the same session, 1 of 1 in a new one"
    ]


def test_a_new_session_that_was_not_opened_is_told() -> None:
    found = verdict(AgainRun("a", "same", True)).steadiness
    assert found is not None
    assert "a new session was not tried" in words.steadiness(found)[0]


def test_other_bits_within_the_tolerance_pass_with_a_warning_that_says_how_far() -> None:
    found = verdict(AgainRun("a", "new", False, value(1, 2.0001)))
    assert found.passed
    assert any("by up to 5e-05 of scale" in warning for warning in found.warnings)


def test_the_twin_other_answers_fail() -> None:
    found = verdict(AgainRun("a", "same", False, value(1, 3)))
    assert found.status == "failed"
    assert "matched, and did not when it was run again in the same session" in found.reasons[0]


def test_a_case_that_fails_when_it_runs_again_fails_the_verdict() -> None:
    found = verdict(AgainRun("a", "new", False, error="out of memory"))
    assert found.status == "failed"
    assert "out of memory" in found.reasons[0]


def test_what_was_wrong_from_the_start_is_not_said_twice() -> None:
    wrong = replace(
        RECORD, cases=(CaseRun("a", "done", value(9, 9)),), again=(AgainRun("a", "same", False, value(8, 8)),)
    )
    assert len(judge(CASES, wrong, title="t", target=None).reasons) == 1


def test_many_runs_are_told_with_their_times_and_the_memory() -> None:
    found = verdict(soak=SOAK)
    assert found.passed
    assert found.steadiness is not None
    soak = found.steadiness.soak
    assert soak is not None
    assert (soak.early_ms, soak.late_ms, soak.early_bytes, soak.late_bytes, soak.grew) == (
        4,
        2,
        2_000_000,
        2_000_000,
        False,
    )
    assert any("8 runs of case 'a': the same bits each time" in line for line in words.worth(found))


def test_memory_that_grows_and_answers_that_drift_are_warned_of() -> None:
    grown = replace(SOAK, memory=(MemorySample(1, 1_000_000, None), MemorySample(8, 3_000_000, None)))
    assert verdict(soak=grown).warnings == ()  # all of it came before the first quarter was over
    late = replace(SOAK, memory=(MemorySample(2, 1_000_000, None), MemorySample(8, 3_000_000, None)))
    assert any("grew from 1,000,000 to 3,000,000 bytes" in warning for warning in verdict(soak=late).warnings)
    drifting = replace(SOAK, different=5, first_different=3, outputs=value(1, 2.0001))
    assert any("5 of 8 runs" in warning for warning in verdict(soak=drifting).warnings)
    assert verdict(soak=drifting).passed
    assert verdict(soak=replace(drifting, outputs=value(1, 9))).status == "failed"


def test_repetitions_survive_their_files() -> None:
    again = (AgainRun("a", "same", False, value(1, 3)), AgainRun("a", "new", True))
    given = replace(RECORD, again=again, soak=replace(SOAK, different=1, first_different=2, outputs=value(5, 6)))
    read = run_record.from_files(*run_record.to_files(given))
    assert [(one.session, one.equal) for one in read.again] == [("same", False), ("new", True)]
    assert same_bits(read.again[0].outputs[0], value(1, 3)[0])
    assert read.soak is not None
    assert same_bits(read.soak.outputs[0], value(5, 6)[0])
    assert (read.soak.run_ms, read.soak.memory, read.soak.first_different) == (SOAK.run_ms, SOAK.memory, 2)


def test_a_record_of_another_runtime_version_fails() -> None:
    right = judge(CASES, RECORD, title="t", target=None, runtime_version="0")
    assert right.passed
    wrong = judge(CASES, RECORD, title="t", target=None, runtime_version="1.30.0")
    assert "of another runtime: version 0, and must be 1.30.0" in wrong.reasons[0]
