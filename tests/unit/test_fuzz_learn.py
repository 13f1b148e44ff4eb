"""What failures share and passes lack is found, and nothing is made up where there is no pattern."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import onnx
import pytest

from edgekit.fuzz import cluster, find, generators, learn, probe, shrink
from edgekit.fuzz.cluster import Cluster
from edgekit.fuzz.generators import Drawn
from edgekit.fuzz.learn import Row, Rule
from edgekit.fuzz.trials import Bench, Trial
from edgekit.known import patterns, read
from edgekit.known.features import Given, NodeFacts, Scalar, features
from edgekit.known.patterns import Condition


def of_three(of: Mapping[str, Scalar]) -> bool:
    channels, outputs = of["input channels"], of["output channels"]
    assert isinstance(channels, int) and isinstance(outputs, int)
    thirds = channels > 3 and channels % 3 == 0 and channels % 4 != 0
    return of["group"] == 1 and thirds and outputs % 4 == 0 and not of.get("one matrix product")


def conv_features(drawn: Drawn) -> dict[str, Scalar]:
    assert drawn.case is not None
    nodes = read.model_nodes(onnx.load_from_string(drawn.case.model))
    return features(next(node for node in nodes if node.operator == "Conv"))


def drawn(seed: int, count: int) -> list[Drawn]:
    among = {"Conv": generators.families()["Conv"]}
    found = (generators.draw(seed, number, among) for number in range(count))
    return [one for one in found if one.case is not None]


def test_a_planted_cause_is_found_and_foretells_other_cases() -> None:
    trials = [Trial(one, "wrong" if of_three(conv_features(one)) else "right") for one in drawn(1, 900)]
    found = [each for each in cluster.clusters(trials) if each.distinct]
    assert 1 <= len(found) <= 3
    fresh = [conv_features(one) for one in drawn(2, 400)]
    told = [any(patterns.holds(each.conditions, one) for each in found) for one in fresh]
    right = sum(guess == of_three(one) for guess, one in zip(told, fresh, strict=True))
    assert right >= 0.98 * len(fresh)


class Planted(Bench):
    """A bench whose browser is wrong by a planted cause, and never started."""

    def __init__(self) -> None:
        self.cases_per_second = 2.0

    def prepare(self, drawn: Sequence[Drawn]) -> list[Trial]:
        return [Trial(one, "right") for one in drawn]

    def finish(self, prepared: Sequence[Trial]) -> list[Trial]:
        return [Trial(t.drawn, "wrong" if of_three(conv_features(t.drawn)) else "right") for t in prepared]


def test_the_neighbours_of_one_failure_tell_a_multiple_from_a_number() -> None:
    among, bench, evidence = {"Conv": generators.families()["Conv"]}, Planted(), list[Trial]()
    base = {"kernel.0": 1, "channels": 4, "outputs": 3, "size.0": 4, "size.1": 4}  # 6 to 4
    (one,) = bench.finish([Trial(generators.redraw(among["Conv"], base), "right")])
    assert one.status == "wrong"
    shrink.neighbours(bench, [one], among, evidence.extend, 50)
    (found,) = (each for each in cluster.clusters([one, *evidence]) if each.distinct)
    assert {"input channels of a group multiple of 3", "output channels of a group multiple of 4"} <= {
        f"{each.feature} {each.test} {each.value}" for each in found.conditions
    }


def test_a_right_answer_that_alone_keeps_a_pattern_to_sizes_is_tried_with_other_numbers() -> None:
    among = {"ReduceL2": generators.families()["ReduceL2"]}
    right = Trial(generators.redraw(among["ReduceL2"], {"noop": 1, "shape rank": 1, "shape.0": 0}), "right")
    noop, large = Condition("noop_with_empty_axes", "above", 0), Condition("output elements", "above", 1)
    sized, whole = (Cluster(("ReduceL2",), each, (right,), 1) for each in ((noop, large), (noop,)))
    others = probe.doubted([sized], [right], among)
    assert {one.choices["seed"] for one in others} == {1, 2}
    assert probe.doubted([whole], [right], among) == []


def test_many_conditions_that_few_failures_have_tell_nothing() -> None:
    three = tuple(Condition(name, "is", True) for name in ("a", "b", "c"))
    assert learn.is_telling(Rule(three, tuple(range(9))))
    assert not learn.is_telling(Rule(three, tuple(range(8))))


def test_large_failures_are_made_small_too() -> None:
    conv = generators.families()["Conv"]
    failed = [Trial(generators.redraw(conv, {"channels": place}), "wrong") for place in range(9)]
    some = find._some([*failed, Trial(generators.redraw(generators.families()["Relu"], {}), "wrong")])
    assert [one.drawn.generator for one in some[:3]] == ["Relu", "Conv", "Conv"]
    assert len(some) == 5
    assert max(one.drawn.choices.get("channels", 0) for one in some) > 4


@pytest.mark.parametrize(
    ("start", "step", "expected"), [(4, -1, False), (9, -1, False), (3, -1, True), (-2, -2, True), (0, 2, False)]
)
def test_a_slice_that_is_turned_round_from_within_is_told(start: int, step: int, expected: bool) -> None:
    given = {"starts": (start,), "ends": (-9,), "axes": (-1,), "steps": (step,)}
    inputs = [("data", Given("float32", (2, 5))), *((name, Given("int64", (1,), True, v)) for name, v in given.items())]
    found = features(NodeFacts("n", "Slice", {}, tuple(inputs)))
    assert (found["turned round"], found["turned round from within"]) == (step < 0, expected)


def test_a_rule_that_adds_one_case_to_another_is_left_out() -> None:
    wide, fitted, other = (Rule((), covered) for covered in ((0, 1, 2, 3), (1, 2, 3, 4), (4, 5, 6)))
    assert learn.needed([fitted, wide, other]) == [wide, other]
    assert learn.needed([wide, other]) == [wide, other]


def test_a_case_that_was_tried_twice_counts_once() -> None:
    base = {"kernel.0": 1, "channels": 4, "outputs": 3, "size.0": 4, "size.1": 4}
    trial = Trial(generators.redraw(generators.families()["Conv"], base), "wrong")
    (found,) = cluster.clusters([trial] * 5)
    assert (len(found.failures), found.distinct) == (1, False)


@pytest.mark.parametrize("fails", [lambda n: n % 4 == 0, lambda n: n > 20, lambda n: n == 7])
def test_one_condition_is_enough_where_one_parts_them(fails: Callable[[int], bool]) -> None:
    rows = [Row({"n": n, "other": n % 5}, fails(n)) for n in range(1, 40)]
    (rule,) = learn.rules(rows)
    assert len(rule.conditions) == 1
    assert all(patterns.holds(rule.conditions, row.features) == row.failed for row in rows)


def test_a_pass_that_is_like_a_failure_in_all_but_its_numbers_is_an_accident() -> None:
    (rule,) = learn.rules([Row({"n": 1}, True), Row({"n": 1}, False), Row({"n": 2}, False)])
    assert [str(condition) for condition in rule.conditions] == ["n below 2"]


def test_no_pattern_is_made_up_where_no_condition_parts_them() -> None:
    assert learn.rules([Row({"a": True}, True), Row({"a": True, "b": 1}, False)]) == ()


def test_an_operator_that_always_fails_needs_no_condition() -> None:
    (rule,) = learn.rules([Row({"n": n}, True) for n in range(4)])
    assert (rule.conditions, rule.covered) == ((), (0, 1, 2, 3))


def test_a_right_answer_of_few_numbers_says_nothing_against_a_cause() -> None:
    """Where memory that nobody wrote is read, a byte of 0 is right by accident."""
    pad, trials = generators.families()["Pad"], list[Trial]()
    for size, before, dtype, mode in product(range(4), range(4), range(6), (0, 2, 3)):
        choices = {"shape rank": 1, "shape.0": size, "pad.0": before, "dtype": dtype, "mode": mode}
        one = generators.redraw(pad, choices)
        assert one.case is not None
        found = features(cluster.subject(one.case)[0])
        beyond = found["padded before by more than the axis holds"] is True and found.get("mode") == "wrap"
        lucky = found["output dtype"] in ("bool", "uint8") and found["output elements"] == 3
        trials.append(Trial(one, "wrong" if beyond and not lucky else "right"))
    (cause,) = cluster.clusters(trials)
    assert [str(one) for one in cause.conditions] == ["mode wrap", "padded before by more than the axis holds"]


def test_one_right_answer_beside_fifty_wrong_ones_is_an_accident_and_beside_twenty_it_is_not() -> None:
    def learned(failures: int) -> tuple[Rule, ...]:
        wrong = [Row({"mode": "wrap", "size": size}, True) for size in range(failures)]
        right = [Row({"mode": "edge", "size": size}, False) for size in range(failures)]
        return learn.rules([*wrong, *right, Row({"mode": "wrap", "size": 7.5}, False)])

    assert [str(one) for rule in learned(60) for one in rule.conditions] == ["mode wrap"]
    assert all(len(rule.conditions) > 1 for rule in learned(20))
