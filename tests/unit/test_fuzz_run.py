"""A run's journal, who is wrong, drawing near a model, and runs in a real Chromium."""

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from models_text import parse

from edgekit.conformance import desktop
from edgekit.conformance.suite import Reply
from edgekit.errors import ModelError, UsageError
from edgekit.fuzz import arbiter, find, generators, journal, look, near
from edgekit.fuzz.find import FuzzOptions
from edgekit.fuzz.look import Work
from edgekit.fuzz.trials import Bench, Trial, confirmed
from edgekit.records.tensors import value_of
from edgekit.runtime import locate, pins

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 6, 100] x, float[4, 6, 3] w) => (float[N] y) {
  c = Conv <pads = [1, 1]> (x, w) r = Relu (c) flat = Constant <value = int64[1] {-1}> () y = Reshape (r, flat) }"""


def write_model(folder: Path, text: str = MODEL) -> Path:
    path = folder / "model.onnx"
    onnx.save(parse(text), path)
    return path


def test_a_journal_goes_on_where_it_was_left(tmp_path: Path) -> None:
    begun = journal.open_journal(tmp_path / "run", {"seed": 1})
    begun.outcomes, begun.problems = "..W", {"2": {"generator": "Conv", "problem": "y", "side": "browser"}}
    journal.keep(begun, tmp_path / "run")
    again = journal.open_journal(tmp_path / "run", {"seed": 1})
    assert (again.outcomes, again.problems) == (begun.outcomes, begun.problems)
    assert (again.numbers("wrong"), again.compared) == ([2], 3)


def test_the_journal_of_another_run_is_not_continued(tmp_path: Path) -> None:
    journal.keep(journal.open_journal(tmp_path / "run", {"seed": 1}), tmp_path / "run")
    with pytest.raises(UsageError, match="its seed is "):
        journal.open_journal(tmp_path / "run", {"seed": 2})
    (tmp_path / "run" / journal.NAME).write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        journal.open_journal(tmp_path / "run", {"seed": 1})


@pytest.mark.parametrize(
    "changes",
    [
        {"asked": 5}, {"outcomes": 7}, {"outcomes": "..?"}, {"seconds": "1"}, {"seconds": math.nan}, {"problems": []},
        {"problems": {"9": {"generator": "Conv", "problem": "y", "side": "browser"}}}, {"problems": {"2": {}}},
        {"evidence": [5]}, {"evidence": None}, {"unconfirmed": [1]}, {"unconfirmed": ["2"]},
    ],
)  # fmt: skip
def test_a_journal_of_other_contents_is_damaged(tmp_path: Path, changes: dict[str, object]) -> None:
    problems = {"2": {"generator": "Conv", "problem": "y", "side": "browser"}}
    journal.keep(journal.Journal({"seed": 1}, "..W", problems, 1.5, [], [2]), tmp_path)
    assert journal.open_journal(tmp_path, {"seed": 1}).unconfirmed == [2]
    path = tmp_path / journal.NAME
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        journal.open_journal(tmp_path, {"seed": 1})


@pytest.mark.parametrize("text", ["[]", "7", "[" * 100_000, "{}"])
def test_a_journal_that_is_none_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / journal.NAME).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        journal.open_journal(tmp_path, {"seed": 1})


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="something else"):
        journal.open_journal(tmp_path, {})


@pytest.mark.parametrize("shifted", ["browser", "desktop", "both"])
def test_the_evaluator_says_which_side_is_wrong(shifted: str) -> None:
    case = generators.redraw(generators.families()["Conv"], {"channels": 3, "size.0": 4, "size.1": 4}).case
    assert case is not None
    (right,) = desktop.replay([case])
    wrong = Reply("done", tuple(value_of(v.name, np.asarray(v.array) + 1) for v in right.outputs))
    sides = [wrong if shifted in (side, "both") else right for side in ("desktop", "browser")]
    assert arbiter.side(case, *sides) == shifted


@pytest.mark.parametrize("name", ["Conv+BatchNormalization", "BatchNormalization"])
def test_the_evaluator_normalizes_by_what_the_model_holds(name: str) -> None:
    case = generators.redraw(generators.every()[name], {"size.0": 4, "seed": 1}).case
    assert case is not None
    (right,) = desktop.replay([case])
    wrong = Reply("done", tuple(value_of(v.name, np.asarray(v.array) + 1) for v in right.outputs))
    assert arbiter.side(case, right, wrong) == "browser"


def test_nobody_knows_where_the_evaluator_has_no_answer() -> None:
    case = generators.redraw(generators.families()["Relu"], {}).case
    assert case is not None
    assert arbiter.side(replace(case, inputs=()), Reply("done"), Reply("done")) == "unknown"


def test_cases_are_drawn_near_a_models_nodes(tmp_path: Path) -> None:
    among = near.around(write_model(tmp_path))
    assert sorted(name.split()[0] for name in among) == ["Conv", "Relu", "Reshape"]
    drawn = [generators.draw(1, number, among) for number in range(60)]
    replies = desktop.replay([one.case for one in drawn if one.case is not None])
    assert sum(reply.outcome == "done" for reply in replies) > 45
    shapes = {v.shape for one in drawn if one.case and "Conv" in one.generator for v in one.case.inputs}
    assert (1, 6, 40) in shapes  # 100 made small, with the same rests by 2, 3, 4 and 6
    assert len(shapes) > 5


def test_a_model_without_such_nodes_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no node"):
        near.around(write_model(tmp_path), ["Slice"])


def test_a_browser_without_a_page_is_refused() -> None:
    with pytest.raises(UsageError, match="webkit"):
        find.fuzz(FuzzOptions("webkit", "wasm"))


@pytest.mark.browser
def test_a_run_on_the_cpu_finds_nothing_and_goes_on(tmp_path: Path) -> None:
    options = FuzzOptions("chromium", "wasm", ops=("Conv", "Slice"), most=40, seed=3, output=tmp_path / "run")
    report, known = find.fuzz(options)
    assert (report.cases, report.entries, report.unclear, known.entries) == (40, (), (), ())
    assert report.compared > 30
    more, _ = find.fuzz(replace(options, most=60))
    assert more.cases == 60
    kept = json.loads((tmp_path / "run" / journal.NAME).read_text(encoding="utf-8"))
    assert kept["outcomes"][:40].count(".") >= report.compared


@pytest.mark.browser
def test_a_run_that_is_ended_keeps_what_it_found_and_goes_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (variant,) = pins.load().chosen(["jspi"], "the test")
    bench = Bench(variant, locate.locate(None), gpu="software")
    folder, hear = tmp_path / "run", look._Page.hear
    work = Work({"Conv": generators.families()["Conv"]}, 1, folder)

    def interrupted(page: look._Page, index: int, reply: Reply) -> None:
        hear(page, index, reply)
        if page.wrong:  # Ctrl-C, as soon as something is wrong, and before it is asked again
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(look._Page, "hear", interrupted)
    with pytest.raises(KeyboardInterrupt):
        look.look(bench, work, journal.open_journal(folder, {}), 600)
    kept = journal.open_journal(folder, {})
    numbers = kept.numbers("wrong")
    assert numbers and kept.unconfirmed == numbers
    monkeypatch.setattr(look._Page, "hear", hear)
    told: list[str] = []
    look.look(bench, replace(work, most=len(kept.outcomes)), kept, 600, tell=told.append)
    again = journal.open_journal(folder, {})
    assert (again.outcomes, again.unconfirmed) == (kept.outcomes, [])
    # They were asked about again, and are findings.
    assert {again.problems[str(number)]["side"] for number in numbers} == {"browser"}
    assert told[0].startswith(f"Wrong: Conv (case {numbers[0]}): ") and len(told) == 1


@pytest.mark.browser
def test_a_known_wrong_answer_is_wrong_twice_and_its_twin_is_right() -> None:
    (variant,) = pins.load().chosen(["jspi"], "the test")
    bench = Bench(variant, locate.locate(None), gpu="software")
    conv = generators.families()["Conv"]
    base = {"kernel.0": 1, "pads": 1, "size.0": 4, "size.1": 4}
    channels = [{"channels": 4, "outputs": 3}, {"channels": 5, "outputs": 3}]  # 6 to 4, 8 to 4
    drawn = [generators.redraw(conv, base | each) for each in channels]
    first = bench.finish(bench.prepare(drawn))
    wrong, right = confirmed(first, bench.finish(first[:1]))
    assert (wrong.status, wrong.side) == ("wrong", "browser")
    assert right.status == "right"


@pytest.mark.browser
def test_a_chain_whose_first_operator_fails_alone_has_its_cause() -> None:
    (variant,) = pins.load().chosen(["jspi"], "the test")
    bench = Bench(variant, locate.locate(None), gpu="software")
    among = {name: generators.families()[name] for name in ("Conv", "Conv+activation")}
    behind = {
        "activation": 3,
        "bias": 1,
        "pads": 2,
        "seed": 1,
    }  # kernel 1, padded behind alone: wrong without LeakyRelu
    failed = [Trial(generators.redraw(among["Conv+activation"], each), "wrong") for each in (behind, {"activation": 3})]
    told: list[Trial] = []
    found = find._leads(bench, failed, among, told.extend)
    assert [(one.drawn.generator, one.status) for one in told] == [("Conv", "wrong"), ("Conv", "right")]
    assert found == [told[0], failed[1]]
