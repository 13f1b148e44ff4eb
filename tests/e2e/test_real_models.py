"""Real models, out of the packages that carry them, all the way: build, serve, real browser, verdict.

What must come out stands in ``tests/models/real_models.toml``. A silently wrong runtime is a *failing verdict*, and
that verdict is the test.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models import real

from edgekit import compare
from edgekit.cli.main import run
from edgekit.records import store
from edgekit.records.store import SavedRun
from edgekit.records.verdict import Verdict

pytestmark = [pytest.mark.browser, pytest.mark.real_models]

Judged = tuple[int, dict[str, Any], Path]
# Built for the CPU with a runtime that is cut to them; the others with the published one, for half a minute less.
CUT = ("silero_vad", "magika", "ppocr_det")
# In every run of the tests, a few of each kind; the others are tried with all of them by `make sweep`.
ALWAYS = {"wasm": ("silero_vad", "logreg_iris"), "webgpu": ("silero_vad", "swift_f0")}


@pytest.fixture
def edgekit(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run a command with --json; return its exit code and what it wrote."""

    def command(*arguments: object) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = run([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert out, err
        return code, json.loads(out)

    return command


@pytest.fixture
def verify(edgekit: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path) -> Callable[..., Judged]:
    """Build a bundle and replay it in the browser: exit code, JSON, and the folder that keeps the run."""

    def command(model: Path, target: str, *options: object, cut: bool = False) -> Judged:
        bundle, kept = tmp_path / "bundle", tmp_path / "run"
        stock = () if cut else ("--no-trim-runtime",)
        code, built = edgekit("build", model, "--target", target, "-o", bundle, "--no-strength", *stock, *options)
        assert code == 0
        if cut:
            (runtime,) = built["runtimes"]
            assert (runtime["reason"], runtime["proven"]) == ("", [1, 4])
            assert runtime["bytes"] < runtime["stock_bytes"] / 2
        assert len(built["cases"]) >= 4
        assert any(not case["grade"]["weak"] for case in built["cases"]), "all golden cases are weak"
        code, result = edgekit("parity", bundle, "--repeats", 1, "-o", kept)
        return code, result, kept

    return command


def judged_again(kept: SavedRun, *, allow_fallback: bool) -> Verdict:
    assert kept.case_set is not None
    return compare.judge(kept.case_set, kept.record, title="", target=None, allow_fallback=allow_fallback)


def keys(target: str, expected: str) -> list[Any]:
    found = [key for key, model in real.table().items() if getattr(model, target) == expected]
    return [pytest.param(key, marks=() if key in ALWAYS[target] else pytest.mark.sweep) for key in found]


@pytest.mark.parametrize("key", keys("wasm", "right"))
def test_the_cpu_in_the_browser_gives_the_answers_of_the_desktop(key: str, verify: Callable[..., Judged]) -> None:
    code, result, kept = verify(real.path(key), "wasm", cut=key in CUT)
    verdict = result["verdict"]
    assert (code, verdict["status"]) == (0, "passed")
    assert verdict["compared"] == verdict["expected"] > 0
    assert verdict["environment"]["execution_provider"] == "wasm"
    record = store.load_run(kept).record
    assert record is not None and record.misses == ()


@pytest.mark.parametrize("key", keys("webgpu", "right"))
def test_webgpu_gives_the_answers_of_the_desktop(key: str, verify: Callable[..., Judged]) -> None:
    code, result, _ = verify(real.path(key), "webgpu")
    verdict = result["verdict"]
    assert (code, verdict["status"]) == (0, "passed")
    assert verdict["compared"] == verdict["expected"] > 0
    assert verdict["environment"]["execution_provider"] == "webgpu"
    assert verdict["environment"]["adapter"]["software"] is not None


@pytest.mark.parametrize("key", keys("webgpu", "wrong"))
def test_a_silently_wrong_webgpu_fails_and_the_outputs_are_named(key: str, verify: Callable[..., Judged]) -> None:
    code, result, _ = verify(real.path(key), "webgpu")
    verdict = result["verdict"]
    assert (code, verdict["status"]) == (6, "failed")
    # The page itself saw nothing wrong: a session was made, every case ran.
    assert [attempt["status"] for attempt in verdict["attempts"]] == ["created"]
    assert verdict["compared"] == verdict["expected"] > 0
    wrong = {output["output"] for output in verdict["outputs"] if output["status"] == "mismatch"}
    assert wrong == {"output", "stateN"}
    for name in wrong:
        worst = max(o["metrics"]["passing_relative"] for o in verdict["outputs"] if o["output"] == name)
        assert worst > 0.1, "the error is far from any rounding"
        assert any(name in reason and "largest error" in reason for reason in verdict["reasons"])


@pytest.mark.parametrize("key", keys("webgpu", "refused"))
def test_a_model_that_webgpu_refuses_falls_to_wasm_and_says_so(key: str, verify: Callable[..., Judged]) -> None:
    code, result, folder = verify(real.path(key), "webgpu")
    verdict = result["verdict"]
    assert (code, verdict["status"]) == (6, "refused")
    jspi, asyncify, wasm = verdict["attempts"]
    assert jspi["status"] == asyncify["status"] == "refused"
    assert jspi["reason"]
    assert wasm["status"] == "created"
    assert verdict["environment"]["execution_provider"] == "wasm"
    assert any(jspi["reason"] in reason for reason in verdict["reasons"])
    assert all(output["status"] in ("match", "not_comparable") for output in verdict["outputs"])
    kept = store.load_run(folder)
    assert judged_again(kept, allow_fallback=True).passed
    assert not judged_again(kept, allow_fallback=False).passed


def test_a_state_that_is_fed_back_stays_right_over_many_steps(verify: Callable[..., Judged]) -> None:
    model = real.table()["silero_vad"]
    (state, state_n), *_ = model.feed_back.items()
    loop = ("--feed-back", f"{state_n}={state}", "--steps", 8)
    code, result, folder = verify(real.path("silero_vad"), "wasm", *loop)
    assert (code, result["verdict"]["status"]) == (0, "passed")
    case_set = store.load_run(folder).case_set
    assert case_set is not None
    assert all(case.feed_back is not None and case.feed_back.steps == 8 for case in case_set.cases)
