"""The matrix: a row for each combination, whatever becomes of it. Real browsers run it end to end elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import tiny_bundle

from edgekit import matrix, parity
from edgekit.errors import MissingToolError, ParityError, UsageError
from edgekit.matrix import Combination, MatrixRow
from edgekit.parity import ParityOptions
from edgekit.records import store
from edgekit.records.run_record import Adapter, Attempt, Miss, Placed, PlacedNode, RunRecord
from edgekit.report import text
from edgekit.runners.page import Ask

ADAPTER = Adapter("google", "swiftshader", "", "", True)


class Answers:
    """A runner that answers from a table: by variant, a record or an error."""

    BROWSER = "Firefox"

    def __init__(self, answers: dict[str | None, Any]) -> None:
        self.answers = answers
        self.asked: list[Ask] = []

    def run(self, bundle: Any, ask: Ask, **_: Any) -> RunRecord:
        self.asked.append(ask)
        answer = self.answers[ask.variant]
        if isinstance(answer, Exception):
            raise answer
        return tiny_bundle.record(bundle, **answer)


def environment(**changes: Any) -> dict[str, Any]:
    right = {
        "runner": "page", "runtime": "none", "runtime_version": "0", "variant": "jspi",
        "execution_provider_asked": "webgpu", "execution_provider": "webgpu", "threads": 1,
        "cross_origin_isolated": True, "adapter": ADAPTER, "user_agent": None, "device": None,
    }  # fmt: skip
    return {**right, **changes}


def verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: Answers, chosen: tuple[Combination, ...]
) -> tuple[MatrixRow, ...]:
    load = parity.load_runner
    monkeypatch.setattr(parity, "load_runner", lambda name: runner if name == "firefox" else load(name))
    bundle = tiny_bundle.make(tmp_path / "bundle", target="webgpu", variants=("jspi", "wasm"))
    return matrix.verify(bundle.folder, chosen, ParityOptions(output=tmp_path / "runs"))


def test_combinations_are_a_product_in_the_order_given_each_once() -> None:
    made = matrix.combinations(("firefox", "webkit"), ("jspi", "wasm", "jspi"), (1, 2))
    assert len(made) == 8 and made[0] == Combination("firefox", "jspi", 1) and made[-1].label == "webkit wasm 2"
    assert matrix.combinations((), (), ()) == (Combination(None, None, None),)
    assert matrix.combinations((), ("wasm",), (2,))[0].folder == "wasm-2"


def test_every_combination_has_a_row_and_a_folder_whatever_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = ParityError("The browser, or its tab, ended before the page answered.\n[log] x", hint="try again")
    runner = Answers({"wasm": {}, "jspi": died})
    rows = verify(tmp_path, monkeypatch, runner, matrix.combinations(("firefox",), ("jspi", "wasm"), (1, 2)))
    assert [row.result.verdict.status for row in rows] == ["not_run", "not_run", "passed", "passed"]
    assert rows[0].note == "The browser, or its tab, ended before the page answered." and rows[0].hint == "try again"
    assert [(ask.variant, ask.threads) for ask in runner.asked] == [("jspi", 1), ("jspi", 2), ("wasm", 1), ("wasm", 2)]
    for row in rows:
        assert row.folder is not None
        kept = store.load_run(row.folder)
        assert (kept.record is None) == (row.result.record is None)
        assert kept.conditions is not None and kept.conditions.title == f"tiny · {row.combination.label}"
    # The desktop is timed once for all.
    assert rows[2].result.desktop is rows[3].result.desktop is not None


def test_a_variant_that_the_bundle_lacks_is_not_run_and_one_that_no_runtime_has_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = verify(
        tmp_path, monkeypatch, Answers({"wasm": {}}), matrix.combinations(("firefox",), ("asyncify", "wasm"), ())
    )
    assert [row.result.verdict.status for row in rows] == ["not_run", "passed"]
    assert rows[0].note == "The bundle has no variant 'asyncify'." and "It has jspi, wasm" in (rows[0].hint or "")
    with pytest.raises(UsageError, match=r"no variant 'wasn'\. Did you mean 'wasm'"):
        verify(tmp_path, monkeypatch, Answers({}), matrix.combinations(("firefox",), ("wasn", "wasm"), ()))
    with pytest.raises(UsageError, match="no browser 'netscape'"):
        verify(tmp_path, monkeypatch, Answers({}), matrix.combinations(("netscape", "firefox"), (), ()))


def test_a_missing_browser_is_not_run_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = MissingToolError("There is no Firefox on this machine.", hint="apt-get install -y firefox-esr")
    rows = verify(tmp_path, monkeypatch, Answers({None: missing}), matrix.combinations(("firefox",), (), (1, 2)))
    assert {row.result.verdict.status for row in rows} == {"not_run"}
    said = "\n".join(text.matrix_notes(rows))
    assert "Not run: firefox 1, firefox 2: There is no Firefox on this machine." in said
    assert "hint: apt-get install -y firefox-esr" in said and "✗ 0 of 2 combinations passed, 2 not run." in said


def test_a_browser_without_an_adapter_is_not_run_and_firefox_is_told_where_one_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = tiny_bundle.record(tiny_bundle.make(tmp_path / "other")).environment.__class__
    reason = "The browser gave no GPU adapter."
    record = {
        "environment": nothing(**environment(execution_provider=None, variant=None, adapter=None)),
        "attempts": (Attempt("jspi", "webgpu", "unavailable", reason),),
        "cases": (),
        "error": "No variant of the runtime ran this model.",
    }
    rows = verify(
        tmp_path, monkeypatch, Answers({"jspi": record}), matrix.combinations(("firefox",), ("jspi",), (1, 2))
    )
    assert [row.result.verdict.status for row in rows] == ["not_run", "not_run"]
    assert rows[0].note == reason and "mesa-vulkan-drivers" in (rows[0].hint or "")


def test_the_table_names_the_worst_output_its_share_of_the_tolerance_and_marks_software_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tiny_bundle.record(tiny_bundle.make(tmp_path / "other"))
    software = {
        "environment": made.environment.__class__(**environment()),
        "timings": made.timings.__class__(create_ms=12.0, first_run_ms=34.0, later_run_ms=(5.0, 7.0)),
    }
    plain = {"timings": software["timings"]}
    rows = verify(
        tmp_path,
        monkeypatch,
        Answers({"jspi": software, "wasm": plain}),
        matrix.combinations(("firefox",), ("jspi", "wasm"), ()),
    )
    table = text.matrix_table(rows)
    assert table.title == "tiny: combinations"
    assert table.rows[0] == ("firefox jspi", "✓ passed", "y", "0 %", "12 ms†", "34 ms†", "6.00 ms†")
    assert table.rows[1] == ("firefox wasm", "✓ passed", "y", "0 %", "12 ms", "34 ms", "6.00 ms")
    said = "\n".join(text.matrix_notes(rows))
    assert "† on the CPU (swiftshader, software)" in said and "✓ 2 of 2 combinations passed." in said
    assert "†" not in "\n".join(text.matrix_notes(rows[1:]))


def test_what_a_trimmed_runtime_missed_is_marked_and_told_below_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = {"misses": (Miss("wasm", (53,), "create", "wasm", "trap", "unreachable"),)}
    chosen = matrix.combinations(("firefox",), ("wasm",), (1, 4))
    rows = verify(tmp_path, monkeypatch, Answers({"wasm": missed}), chosen)
    assert [row[1] for row in text.matrix_table(rows).rows] == ["✓ passed, missed"] * 2
    (said,) = [line for line in text.matrix_notes(rows) if line.startswith("warning: ")]
    assert said.startswith("warning: firefox wasm 1, firefox wasm 4: The trimmed runtime wasm missed group 53")
    plain = verify(tmp_path / "plain", monkeypatch, Answers({"wasm": {}}), chosen)
    assert not any("missed" in line for line in text.matrix_notes(plain))


def test_below_the_table_stands_where_nodes_ran_and_where_that_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tiny_bundle.record(tiny_bundle.make(tmp_path / "other")).environment.__class__
    gpu, det = Placed("WebGpuExecutionProvider", 2, 2), PlacedNode("", "Det")
    mixed = {
        "environment": made(**environment()),
        "placement": (gpu, Placed("CPUExecutionProvider", 1, 0, (det,))),
    }
    chosen = matrix.combinations(("firefox",), ("jspi", "wasm"), (1, 2))
    notes = text.matrix_notes(verify(tmp_path, monkeypatch, Answers({"jspi": mixed, "wasm": {}}), chosen))
    told = "2 of 3 nodes of the optimized graph on WebGPU; on the CPU: Det ×1; 2 copies"
    assert f"firefox jspi 1, firefox jspi 2: {told}" in notes
    assert "firefox wasm 1, firefox wasm 2: placement unknown" in notes


def test_a_failed_combination_says_why_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "cases": (
            tiny_bundle.CaseRun(
                "only", "done", (tiny_bundle.Value("y", "float32", tiny_bundle.np.array([1, -3], "f4")),)
            ),
        )
    }
    rows = verify(tmp_path, monkeypatch, Answers({"wasm": wrong}), matrix.combinations(("firefox",), ("wasm",), (1, 2)))
    assert {row.result.verdict.status for row in rows} == {"failed"}
    assert "Output 'y' does not match" in (rows[0].note or "") and "\n" not in (rows[0].note or "")
    assert text.matrix_table(rows).rows[0][1:4] == ("✗ failed", "y", "500×")
