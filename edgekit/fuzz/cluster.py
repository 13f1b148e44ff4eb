"""Sort failing cases by cause: the operator, and the pattern that all failures of a cause share and no pass has."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from edgekit.conformance.cases import Case
from edgekit.fuzz import learn, shrink
from edgekit.fuzz.learn import Row
from edgekit.fuzz.trials import Trial
from edgekit.known import match, patterns, read
from edgekit.known.features import NodeFacts, features
from edgekit.known.patterns import Condition


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cause. ``failures``: the trials that have it, the smallest first.

    ``passes``: how many cases of the operator are right. ``conditions``: empty where every case of it fails.
    ``distinct`` False: no condition parts these failures from the passes: they are told, and not made knowledge.
    """

    operators: tuple[str, ...]
    conditions: tuple[Condition, ...]
    failures: tuple[Trial, ...]
    passes: int
    distinct: bool = True

    @property
    def text(self) -> str:
        """The cause in one line."""
        what = patterns.text(self.conditions) if self.distinct else "no pattern was found"
        return f"{' + '.join(self.operators)}: {what}"


def clusters(trials: Sequence[Trial]) -> tuple[Cluster, ...]:
    """Return the causes of the trials that are wrong, single operators first.

    A failure of a chain that holds a node with the pattern of a single operator has that cause.
    """
    groups: dict[tuple[str, ...], list[tuple[Trial, NodeFacts, tuple[NodeFacts, ...]]]] = defaultdict(list)
    # A case that was tried twice says no more than once.
    for trial in {(shrink.key(trial.drawn), trial.status): trial for trial in trials}.values():
        if trial.drawn.case is not None and trial.status in ("right", "wrong", "desktop"):
            lead, operators, nodes = subject(trial.drawn.case)
            groups[operators].append((trial, lead, nodes))
    found: list[Cluster] = []
    for operators in sorted(groups, key=lambda each: (len(each), each)):
        members = groups[operators]
        if not any(trial.status == "wrong" for trial, _, _ in members):
            continue
        if len(operators) > 1:
            members = [one for one in members if one[0].status != "wrong" or not _explained(one[2], found)]
        found += _of_operator(operators, members)
    return tuple(found)


def _of_operator(
    operators: tuple[str, ...], members: Sequence[tuple[Trial, NodeFacts, tuple[NodeFacts, ...]]]
) -> list[Cluster]:
    rows = [Row(features(lead), trial.status == "wrong", shrink.cost(trial.drawn)[0]) for trial, lead, _ in members]
    passes = sum(not row.failed for row in rows)
    trials = [trial for trial, _, _ in members]
    taken: set[int] = set()
    found = []
    for rule in learn.needed([rule for rule in learn.rules(rows) if learn.is_telling(rule)]):
        failures = [trials[place] for place in rule.covered]
        taken |= set(rule.covered)
        found.append(Cluster(operators, rule.conditions, _smallest_first(failures), passes))
    left = [trials[place] for place, row in enumerate(rows) if row.failed and place not in taken]
    if left:
        found.append(Cluster(operators, (), _smallest_first(left), passes, distinct=False))
    return found


def _smallest_first(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    return tuple(sorted(trials, key=lambda trial: shrink.cost(trial.drawn)))


def _explained(nodes: Sequence[NodeFacts], found: Sequence[Cluster]) -> bool:
    single = [cluster for cluster in found if len(cluster.operators) == 1 and cluster.distinct]
    return any(
        match.fits(node, cluster.operators) and patterns.holds(cluster.conditions, features(node))
        for node in nodes
        for cluster in single
    )


def subject(case: Case) -> tuple[NodeFacts, tuple[str, ...], tuple[NodeFacts, ...]]:
    """Return the node that a case is about, the operators that make its cause, and all nodes."""
    nodes = read.model_nodes(onnx.load_from_string(case.model))
    name = case.name
    wanted = re.split(r"[+ ]", name)[0]
    lead = next((node for node in nodes if node.operator in (name, wanted)), nodes[0])
    if lead.operator == name:
        return lead, (name,), nodes
    others = dict.fromkeys(node.operator for node in nodes if node is not lead and node.operator != "Constant")
    return lead, (lead.operator, *(other for other in others if other in lead.then)), nodes
