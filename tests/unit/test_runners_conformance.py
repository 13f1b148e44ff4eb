"""The replay of conformance cases in a real Chromium: with runtimes that break on purpose, and against the tables."""

import dataclasses
import json
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from conformance_samples import relu, unknown

from edgekit import conformance_run
from edgekit.conformance import cases as conformance_cases
from edgekit.conformance import table as tables
from edgekit.conformance.cases import Case
from edgekit.conformance.judge import judge
from edgekit.errors import ParityError, UsageError
from edgekit.files import sha256_file
from edgekit.records.settings import DEFAULT, SessionSettings
from edgekit.runners import browsers, conformance
from edgekit.runtime import pins
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("conformance")]

FAKE = Variant("fake", "wasm", (), "api.mjs", "glue.mjs", "runtime.wasm")
# What a case makes this runtime do stands in the model's bytes.
SCRIPT = """
export const env = { versions: { common: 'fake', web: 'fake' }, wasm: {} };
export class Tensor { constructor(type, data, dims) { Object.assign(this, { type, data, dims }); } }
export const InferenceSession = { async create(bytes, options) {
  const model = new TextDecoder().decode(bytes);
  if (model === 'trap') throw new WebAssembly.RuntimeError('unreachable');
  if (model === 'echo') throw new Error(JSON.stringify(options));
  if (model === 'refuse') throw new Error('no kernel');
  if (model === 'hang') for (;;) {}
  return { inputNames: [], outputNames: ['y'], release: async () => {},
    run: async () => ({ y: new Tensor('float32', Float32Array.of(0, 2), [2]) }) };
} };
"""


def fake(tmp_path: Path, script: str = SCRIPT) -> RuntimeDist:
    contents = {FAKE.api: script.encode(), FAKE.mjs: b"", FAKE.wasm: b"\0asm\1\0\0\0"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return RuntimeDist(tmp_path, "fake", "0", {name: sha256_file(tmp_path / name) for name in contents}, False)


def says(*models: str) -> list[Case]:
    return [dataclasses.replace(relu(), model=model.encode(), inputs=()) for model in models]


def outcomes(tmp_path: Path, *models: str) -> list[tuple[str, str | None]]:
    done = conformance.replay(says(*models), FAKE, fake(tmp_path), silence_seconds=3)
    return [(reply.outcome, reply.error) for reply in done.replies]


def test_replies_come_back_with_what_the_browser_is(tmp_path: Path) -> None:
    done = conformance.replay(says("run", "refuse"), FAKE, fake(tmp_path))
    assert [reply.outcome for reply in done.replies] == ["done", "refused"]
    assert judge(relu(), done.replies[0]) == ("passes", None)
    assert done.browser_version.split(".")[0].isdigit()
    assert (done.runtime_version, done.adapter) == ("fake", None)


def test_after_a_trap_the_others_are_done_in_a_new_page(tmp_path: Path) -> None:
    trap = ("crashed", "RuntimeError: unreachable")
    assert outcomes(tmp_path, "run", "trap", "run", "trap") == [("done", None), trap, ("done", None), trap]


def test_a_case_that_never_ends_is_found_and_the_others_are_done(tmp_path: Path) -> None:
    assert outcomes(tmp_path, "run", "hang", "run") == [
        ("done", None),
        ("crashed", "no answer within 3 s"),
        ("done", None),
    ]


def test_a_stream_goes_on_until_nothing_is_fed_and_over_a_case_that_traps(tmp_path: Path) -> None:
    fed = [says("run", "trap", "run"), says("refuse"), []]
    heard: list[tuple[int, str]] = []
    done = conformance.stream(
        lambda: fed.pop(0), lambda index, reply: heard.append((index, reply.outcome)), FAKE, fake(tmp_path), chunk=2
    )
    assert heard == [(0, "done"), (1, "crashed"), (2, "done"), (3, "refused")]
    assert [reply.outcome for reply in done.replies] == [outcome for _, outcome in heard]
    assert fed == []


def test_a_page_that_waits_for_cases_is_not_taken_for_dead(tmp_path: Path) -> None:
    fed = [says("run"), says("run"), []]

    def slowly() -> list[Case]:
        time.sleep(2 if len(fed) == 2 else 0)
        return fed.pop(0)

    heard: list[str] = []
    conformance.stream(
        slowly, lambda index, reply: heard.append(reply.outcome), FAKE, fake(tmp_path), silence_seconds=0.8
    )
    assert heard == ["done", "done"]


@pytest.mark.sweep
def test_where_pages_only_wait_several_share_the_cases(tmp_path: Path) -> None:
    waiting = dataclasses.replace(FAKE, execution_provider="webgpu", needs=("webgpu",))
    models = ["run", "refuse"] * 30 + ["trap"] + ["run"] * 4
    done = conformance.replay(says(*models), waiting, fake(tmp_path), engine=browsers.FIREFOX)
    outcomes = {"run": "done", "refuse": "refused", "trap": "crashed"}
    assert [reply.outcome for reply in done.replies] == [outcomes[model] for model in models]


@pytest.mark.parametrize(("chunk", "is_told"), [(2, True), (4, False)])
def test_a_page_reports_so_many_replies_at_once(chunk: int, is_told: bool, tmp_path: Path) -> None:
    parts: list[float | None] = []
    done = conformance.replay(
        says("run", "refuse", "run", "run"), FAKE, fake(tmp_path), chunk=chunk,
        progress=lambda message, done=None: parts.append(done),
    )  # fmt: skip
    assert [reply.outcome for reply in done.replies] == ["done", "refused", "done", "done"]
    assert (0.5 in parts) == is_told


def test_a_page_that_does_not_start_is_an_error_and_not_the_fault_of_a_case(tmp_path: Path) -> None:
    with pytest.raises(ParityError, match=r"The conformance page broke: .*not a runtime"):
        conformance.replay(says("run"), FAKE, fake(tmp_path, "throw new Error('not a runtime');"))


def test_an_unknown_variant_is_an_error_that_lists_them() -> None:
    with pytest.raises(UsageError, match="no variant 'wsam'"):
        conformance_run.replay([relu()], "wsam")


@cache
def sample() -> tuple[Case, ...]:
    """Return about 60 standard cases: each 30th, and some that are known to be wrong or refused."""
    everything = [case for case in conformance_cases.standard() if case.run]
    known = {
        "test_maxunpool_export_with_output_shape",
        "test_resize_downsample_scales_cubic_align_corners",
        "test_add_int16",
        "test_cumsum_1d",
    }
    return tuple(case for index, case in enumerate(everything) if index % 30 == 0 or case.name in known)


def differences(table: tables.Table, cases: Sequence[Case], statuses: Sequence[str]) -> list[str]:
    """Say where what was measured now is not what the table says."""
    return [
        f"{case.name} is {status}, and the table says {table.cases[case.name][0]}"
        for case, status in zip(cases, statuses, strict=True)
        if table.cases[case.name][0] != status
    ]


@pytest.mark.parametrize("variant", conformance_run.variants())
def test_a_table_says_what_the_runtime_does_now(variant: str) -> None:
    cases = sample()
    done = conformance_run.replay(cases, variant, gpu="software")
    statuses = [judge(case, reply)[0] for case, reply in zip(cases, done.replies, strict=True)]
    table = tables.load(done.runtime.package, done.runtime.version, variant)
    assert len(cases) > 55
    assert differences(table, cases, statuses) == []
    assert done.runtime.wasm_sha256 == table.runtime.wasm_sha256


def test_the_twin_a_status_that_is_not_the_table_s_is_noticed() -> None:
    pinned = pins.load()
    table = tables.load(pinned.package, pinned.version, "wasm")
    cases = [case for case in sample() if case.name in ("test_add_int16", "test_maxunpool_export_with_output_shape")]
    assert differences(table, cases, [table.cases[case.name][0] for case in cases]) == []
    assert differences(table, cases, ["refused", "passes"]) == [
        "test_add_int16 is refused, and the table says passes",
        "test_maxunpool_export_with_output_shape is passes, and the table says wrong",
    ]


def test_where_nodes_are_put_is_seen_on_a_gpu() -> None:
    done = conformance_run.replay([relu(), unknown()], "jspi", gpu="software")
    assert done.replies[0].placement == ("WebGpuExecutionProvider",)
    assert done.replies[1].outcome == "refused"


@pytest.mark.parametrize("engine", [browsers.CHROMIUM, browsers.FIREFOX], ids=lambda engine: engine.id)
def test_settings_reach_the_session_in_each_engine(engine: browsers.Engine, tmp_path: Path) -> None:
    wanted = SessionSettings("disabled", "NCHW", ("a", "b"))
    cases = [
        dataclasses.replace(case, settings=one)
        for case, one in zip(says("echo", "echo"), (wanted, DEFAULT), strict=True)
    ]
    done = conformance.replay(
        cases, dataclasses.replace(FAKE, execution_provider="webgpu"), fake(tmp_path), engine=engine
    )
    given = [json.loads((reply.error or "").removeprefix("Error: ")) for reply in done.replies]
    provider = {"name": "webgpu", "preferredLayout": "NCHW", "forceCpuNodeNames": ["a", "b"]}
    assert given[0]["executionProviders"] == [provider]
    assert given[0]["graphOptimizationLevel"] == "disabled"
    assert (given[1]["executionProviders"], "graphOptimizationLevel" in given[1]) == (["webgpu"], False)


def test_an_engine_that_cannot_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="WebKit"):
        conformance.replay(says("run"), FAKE, fake(tmp_path), engine=browsers.WEBKIT)
