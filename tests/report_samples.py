"""Verdicts for the tests of reports: real judgements of small records, one of each conclusion."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from edgekit.compare import judge
from edgekit.records.cases import CaseSet, GoldenCase, Grade, Reference, Tolerance
from edgekit.records.run_record import Adapter, Attempt, CaseRun, Environment, Hashes, RunRecord, Timings
from edgekit.records.tensors import Array, value_of
from edgekit.report.entry import Entry

MODEL = "3f9a" * 16
HOSTILE = "<script>alert(1)</script> \"q\" 'x' & a/b\\c\n\x1b[31m\x00\ufffe\u202e ]]> é 日本語"
COMMAND = ("edgekit", "parity", "my bundle", "--repeats", "5")
_REFERENCE = Reference("desktop", "onnxruntime", "1.32.0", "disabled")
_ADAPTER = Adapter("google", "swiftshader", "", "SwiftShader", True, ("subgroups",))
_WEB = Environment(
    "chromium", "onnxruntime-web", "1.30.0", "jspi", "webgpu", "webgpu", 2, True, _ADAPTER, "agent", None
)
_DESKTOP = Environment("local", "onnxruntime", "1.32.0", None, "cpu", "cpu", 2, None, None, None, None)
DESKTOP = RunRecord(
    "d", Hashes(None, MODEL, None), _DESKTOP, (), Timings(create_ms=31.0, first_run_ms=1.5, later_run_ms=(0.5,)), ()
)


def sample(
    names: tuple[str, ...] = ("scores",), cases: int = 2, shift: Callable[[int, str], float] = lambda i, name: 0.0
) -> tuple[CaseSet, RunRecord]:
    """Return golden cases of 1×4 float32 outputs, the first case weak, and a record that is off by ``shift``."""

    def array(i: int) -> Array:
        return np.array([[0.1, 0.2, 0.3, 0.4]], np.float32) * np.float32(i + 1)

    golden = tuple(
        GoldenCase(
            f"case-{i}",
            "random",
            (),
            tuple(value_of(name, array(i)) for name in names),
            Grade(1e-7, 0.5, ("outputs are constant",) if i == 0 else ()),
        )
        for i in range(cases)
    )
    runs = tuple(
        CaseRun(f"case-{i}", "done", tuple(value_of(n, array(i) + np.float32(shift(i, n))) for n in names))
        for i in range(cases)
    )
    case_set = CaseSet(MODEL, _REFERENCE, {"float32": Tolerance(1e-3, 1e-6)}, {}, golden, ("zeros: refused",))
    timings = Timings(4.0, 180.0, 93.0, 24.0, (8.0, 8.0, 9.0))
    created = (Attempt("jspi", "webgpu", "created"),)
    return case_set, RunRecord("r", Hashes("77c1" * 16, MODEL, "0be2" * 16), _WEB, created, timings, runs)


def entry(case_set: CaseSet, record: RunRecord | None, title: str = "model.onnx", target: str = "webgpu") -> Entry:
    return Entry(judge(case_set, record, title=title, target=target), record, DESKTOP, case_set, COMMAND)


def passed() -> Entry:
    return entry(*sample())


def failed() -> Entry:
    """Outputs that are off by 0.87, as a voice detector's once were."""
    return entry(*sample(("output", "stateN"), 3, lambda i, name: 0.87 if name == "output" else 0.0))


def refused() -> Entry:
    case_set, record = sample()
    environment = replace(_WEB, variant="wasm", execution_provider="wasm")
    attempts = (Attempt("jspi", "webgpu", "refused", "no kernel for CumSum(14)"), Attempt("wasm", "wasm", "created"))
    return entry(case_set, replace(record, environment=environment, attempts=attempts))


def not_run() -> Entry:
    return entry(sample()[0], None)


def nothing_ran() -> Entry:
    case_set, record = sample()
    skipped = tuple(CaseRun(run.id, "skipped", error="no session") for run in record.cases)
    environment = replace(_WEB, variant=None, execution_provider=None)
    attempts = (Attempt("jspi", "webgpu", "unavailable", "no adapter"), Attempt("wasm", "wasm", "refused", "no memory"))
    return entry(
        case_set, replace(record, cases=skipped, environment=environment, attempts=attempts, timings=Timings())
    )


def many() -> Entry:
    """Forty cases of three outputs; one of them wrong in two cases."""
    shift = {("mask", 7): 0.01, ("mask", 9): 0.02}
    return entry(*sample(("boxes", "scores", "mask"), 40, lambda i, name: shift.get((name, i), 0.0)))


def hostile() -> Entry:
    case_set, record = sample((HOSTILE, "ok"), 2, lambda i, name: 0.0 if name == "ok" else 0.5)
    cases = tuple(replace(case, origin=HOSTILE, grade=Grade(weak=(HOSTILE,))) for case in case_set.cases)
    environment = replace(_WEB, runner=HOSTILE, user_agent=HOSTILE, device=HOSTILE)
    attempts = (Attempt(HOSTILE, HOSTILE, "created", HOSTILE),)
    made = entry(
        replace(case_set, cases=cases, left_out=(HOSTILE,)),
        replace(record, environment=environment, attempts=attempts, error=HOSTILE),
        HOSTILE,
        HOSTILE,
    )
    return replace(made, command=("edgekit", "parity", HOSTILE))


EVERY: dict[str, Callable[[], Entry]] = {
    maker.__name__: maker for maker in (passed, failed, refused, not_run, nothing_ran, many, hostile)
}
