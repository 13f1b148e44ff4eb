"""Branches of functions: where they lie, that all may be cut alone, and that what is entered is recorded."""

import json
from pathlib import Path
from typing import Any

import pytest
from wasm_modules import FIXTURES, RUNTIMES, node, refusals, runtime

from edgekit.wasm.binary import EditError
from edgekit.wasm.branches import Branch, branches, outermost
from edgekit.wasm.code import bodies, instructions
from edgekit.wasm.edits import cut, record
from edgekit.wasm.layout import flag_base
from edgekit.wasm.module import Module, parse

CHOOSE, AFTER, CAUGHT, DEEP = range(4)
MISS = 16

_RUN = """
import { readFileSync } from 'node:fs';
const [path, calls, base, count] = [process.argv[1], ...process.argv.slice(2).map(JSON.parse)];
const module = await WebAssembly.compile(readFileSync(path));
const said = calls.map(([name, ...given]) => {
  const { exports } = new WebAssembly.Instance(module);
  let result;
  try { result = exports[name](...given) } catch (error) { result = String(error) }
  const flags = new Uint8Array(exports.memory.buffer, base, count);
  const missed = new DataView(exports.memory.buffer).getUint32(16, true);
  return [result, [...flags.keys()].filter((at) => flags[at]), missed];
});
console.log(JSON.stringify(said));
"""


def ran(module: Module, folder: Path, calls: list[list[Any]], count: int = 0) -> list[tuple[Any, list[int], int]]:
    """For each call, in an instance of its own: the result, the flags that are set, and what was missed."""
    path = folder / "module.wasm"
    path.write_bytes(module.to_bytes())
    base = 0 if count == 0 else flag_base(module, flags=count)
    return [tuple(one) for one in node(_RUN, path, json.dumps(calls), str(base), str(count))]


@pytest.fixture
def module() -> Module:
    return parse(FIXTURES["branches"])


def of(module: Module, k: int, shortest: int = 1) -> tuple[Branch, ...]:
    return branches(bodies(module)[k], shortest)


def starts_and_stops(module: Module, k: int) -> list[tuple[str, str]]:
    """By name: the first instruction of each branch, and what ends its block."""
    body = bodies(module)[k]
    names = {one.offset - body.offset: one.name for one in instructions(body)}
    return [(names[one.start], names[one.stop]) for one in branches(body)]


def test_a_branch_begins_where_control_may_not_arrive_and_ends_with_its_block(module: Module) -> None:
    assert starts_and_stops(module, CHOOSE) == [("local.get", "else"), ("block", "end"), ("drop", "end")]
    assert starts_and_stops(module, AFTER) == [("i32.const", "end"), ("i32.const", "end")]
    assert starts_and_stops(module, DEEP) == [("local.get", "end")]
    assert ("i32.const", "catch_all") in starts_and_stops(module, CAUGHT)


def test_short_branches_can_be_passed_over(module: Module) -> None:
    lengths = sorted(one.stop - one.start for one in of(module, CHOOSE))
    assert len(of(module, CHOOSE, lengths[-1])) == 1
    assert of(module, CHOOSE, lengths[-1] + 1) == ()


def test_outermost_leaves_those_that_lie_in_no_other() -> None:
    a, in_a, also, b = Branch(2, 20), Branch(3, 20), Branch(5, 9), Branch(20, 22)
    assert outermost([b, also, in_a, a]) == (a, b)


CALLS = [["choose", 1], ["choose", 0], ["choose", -1], ["after", 0], ["after", 1], ["caught", 0], ["caught", 1],
         ["caught", 2], ["deep", 3]]  # fmt: skip
RESULTS = [100001, 7, 100000, 101000, 5, 3, 100011, 3, 6]


def test_what_is_entered_is_recorded_and_nothing_else(module: Module, tmp_path: Path) -> None:
    every = {k: of(module, k) for k in range(4)}
    count = 4 + sum(map(len, every.values()))
    recorded = record(module, flag_base(module, flags=count), every)
    said = ran(recorded, tmp_path, CALLS, count)
    assert [result for result, _, _ in said] == RESULTS
    positive, zero, negative, skipped, went_on, *_ = [set(flags) for _, flags, _ in said]
    assert (positive, zero, negative) == ({CHOOSE, 4}, {CHOOSE, 5}, {CHOOSE, 5, 6})
    assert (skipped, went_on) == ({AFTER, 8}, {AFTER, 7})


def test_any_branch_may_be_cut_and_the_others_give_what_they_gave(module: Module, tmp_path: Path) -> None:
    every = [(k, one) for k in range(4) for one in of(module, k)]
    expected = ran(module, tmp_path, CALLS)
    full = record(module, flag_base(module, flags=4 + len(every)), {k: of(module, k) for k in range(4)})
    entered = [set(flags) for _, flags, _ in ran(full, tmp_path, CALLS, 4 + len(every))]
    for number, (k, one) in enumerate(every, start=4):
        said = ran(cut(module, range(4), MISS, None, {k: [one]}), tmp_path, CALLS)
        for flags, before, (result, _, missed) in zip(entered, expected, said, strict=True):
            if number in flags:
                assert (result, missed) == ("RuntimeError: unreachable", k + 1)
            else:
                assert (result, missed) == (before[0], 0)


def test_branches_of_a_function_that_is_cut_matter_no_more(module: Module) -> None:
    dead = {CHOOSE: outermost(of(module, CHOOSE))}
    assert cut(module, [AFTER], MISS, None, dead).to_bytes() == cut(module, [AFTER], MISS).to_bytes()


@pytest.mark.parametrize("dead", [[Branch(5, 9), Branch(8, 12)], [Branch(4, 4)], [Branch(3, 500)], [Branch(-1, 3)]])
def test_branches_that_overlap_or_lie_outside_are_refused(module: Module, dead: list[Branch]) -> None:
    with pytest.raises(EditError, match="overlap, or lie outside"):
        cut(module, range(4), MISS, None, {CHOOSE: dead})


@pytest.mark.sweep
@pytest.mark.parametrize("name", RUNTIMES)
def test_every_branch_of_the_real_runtimes_can_be_recorded_and_cut(name: str, tmp_path: Path) -> None:
    module = parse(runtime(name))
    # Every ninth function, so that the test is not slow: decoding is what takes long.
    some = {k: branches(body, 24) for k, body in enumerate(bodies(module)) if k % 9 == 0}
    recorded = record(module, flag_base(module, flags=len(bodies(module)) + sum(map(len, some.values()))), some)
    dead = {k: outermost(one) for k, one in some.items()}
    cut_down = cut(module, range(len(bodies(module))), MISS, dict.fromkeys(range(len(bodies(module))), 1), dead)
    assert len(cut_down.to_bytes()) < len(module.to_bytes())
    assert refusals([recorded.to_bytes(), cut_down.to_bytes()], tmp_path) == [None, None]
