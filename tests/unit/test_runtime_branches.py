"""Which branches no session took: told from flags, but for what depends on other threads."""

import pytest
from wasm_modules import FIXTURES

from edgekit.runtime import branches
from edgekit.wasm import branches as wasm_branches
from edgekit.wasm.branches import Branch
from edgekit.wasm.code import bodies
from edgekit.wasm.module import Module, parse

CHOOSE, AFTER, CAUGHT, DEEP = range(4)  # code indices of the fixture "branches"
WAITS, CALLS, PLAIN = range(3)  # and of "waiting"
SOME = {2: (Branch(5, 30), Branch(40, 70)), 7: (Branch(3, 90),)}


@pytest.fixture
def module() -> Module:
    return parse(FIXTURES["branches"])


@pytest.fixture
def every(module: Module) -> dict[int, tuple[Branch, ...]]:
    return {k: wasm_branches.branches(body) for k, body in enumerate(bodies(module))}


def test_only_branches_that_are_worth_a_stub_are_listed(module: Module, every: dict[int, tuple[Branch, ...]]) -> None:
    listed = branches.listed(module)
    assert all(one.stop - one.start >= branches.SHORTEST for some in listed.values() for one in some)
    assert sum(map(len, listed.values())) < sum(map(len, every.values()))


def test_what_was_entered_lives_and_of_the_rest_the_outermost_are_dead(
    module: Module, every: dict[int, tuple[Branch, ...]]
) -> None:
    nothing = branches.never_entered(module, every, (), range(4), ())
    assert nothing == {k: wasm_branches.outermost(some) for k, some in every.items()}
    first, second, third = every[CHOOSE]
    assert second.start < third.start < third.stop < second.stop
    flags = {branch: number for number, branch in enumerate(branches.flagged(every))}
    entered = {flags[CHOOSE, first], flags[CHOOSE, second]}
    assert branches.never_entered(module, every, entered, [CHOOSE], ()) == {CHOOSE: (third,)}


def test_functions_that_only_some_sessions_enter_stay_whole(
    module: Module, every: dict[int, tuple[Branch, ...]]
) -> None:
    assert branches.never_entered(module, every, (), [DEEP], ()).keys() == {DEEP}


def test_functions_that_several_threads_enter_stay_whole(module: Module, every: dict[int, tuple[Branch, ...]]) -> None:
    assert DEEP in branches.never_entered(module, every, (), range(4), ())
    assert DEEP not in branches.never_entered(module, every, (), range(4), [DEEP])


def test_a_function_that_waits_for_another_thread_stays_whole_and_so_does_a_branch_that_calls_one() -> None:
    module = parse(FIXTURES["waiting"])
    every = {k: wasm_branches.branches(body) for k, body in enumerate(bodies(module))}
    assert [len(some) for some in every.values()] == [1, 2, 1]
    assert branches.never_entered(module, every, (), range(3), ()) == {CALLS: every[CALLS][1:], PLAIN: every[PLAIN]}


def test_flags_are_numbered_by_function_and_place() -> None:
    assert list(branches.flagged(SOME)) == [(2, Branch(5, 30)), (2, Branch(40, 70)), (7, Branch(3, 90))]
    assert branches.left(SOME, entered=[1], whole=[7]) == {2: [Branch(5, 30)]}
    assert branches.left(SOME, entered=[2], whole=[]) == {2: [*SOME[2]]}
    assert branches.left(SOME, entered=[], whole=[2]) == {7: [*SOME[7]]}


def test_they_survive_the_file_of_a_profile() -> None:
    assert branches.from_json(branches.to_json(SOME)) == SOME
    assert branches.from_json(branches.to_json({})) == {}
    with pytest.raises(ValueError, match="shorter"):
        branches.from_json([[1, 5, 3, 9]])
