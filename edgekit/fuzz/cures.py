"""Measure what makes a finding right: one thing changed at a time, in cases of its cause."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from edgekit.conformance.cases import Case
from edgekit.conformance.judge import judge
from edgekit.fuzz.cluster import Cluster
from edgekit.fuzz.trials import Bench, case_of
from edgekit.known.entries import Cure, Kind
from edgekit.records import settings as session_settings
from edgekit.records.settings import SessionSettings
from edgekit.runtime import pins
from edgekit.runtime.pins import Variant

# How many cases of a cause a change is tried on: it must cure them all.
CASES = 3


@dataclass(frozen=True, eq=False)
class Cured:
    """What was measured of one cluster. ``again``: its cases were wrong again without a change."""

    cures: tuple[Cure, ...]
    again: bool


def measure(bench: Bench, clusters: Sequence[Cluster]) -> list[Cured]:
    """Try each change on the smallest cases of every cluster: a page for this build, a page for each other one."""
    cases = [[case_of(trial) for trial in cluster.failures[:CASES]] for cluster in clusters]
    found: list[list[Cure]] = [[] for _ in clusters]
    changes = _changes(bench)
    flat = [case for each in cases for case in each]
    changed = [replace(case, settings=_settings(change, case)) for change in changes for case in flat]
    asked = [*flat, *changed]
    passed = iter([judge(case, reply)[0] for case, reply in zip(asked, bench.replay(asked), strict=True)])
    again = [{next(passed) for _ in each} == {"wrong"} for each in cases]
    for kind, value in changes:
        for place, each in enumerate(cases):
            right = [next(passed) == "passes" for _ in each]
            found[place].append(Cure(kind, value, all(right), len(right)))
    for variant in _others(bench):
        answers = iter(bench.replay([case for each in cases for case in each], variant))
        for place, each in enumerate(cases):
            right = [judge(case, next(answers))[0] == "passes" for case in each]
            found[place].append(Cure("variant", variant.id, all(right), len(right)))
    return [Cured(tuple(cures), wrong) for cures, wrong in zip(found, again, strict=True)]


def _others(bench: Bench) -> list[Variant]:
    return [
        variant
        for variant in pins.load().variants
        if variant.id != bench.variant.id and all(name in bench.dist.files for name in variant.files)
    ]


def _changes(bench: Bench) -> list[tuple[Kind, str]]:
    optimization: list[tuple[Kind, str]] = [("optimization", "basic"), ("optimization", "disabled")]
    if not bench.variant.needs:  # it has the CPU alone
        return optimization
    return [("layout", "NCHW"), ("cpu_nodes", "all"), *optimization]


def _settings(change: tuple[Kind, str], case: Case) -> SessionSettings:
    names = [node.name for node in onnx.load_from_string(case.model).graph.node if node.name]
    return Cure(*change, True, 1).settings(names) or session_settings.DEFAULT
