"""Cures that were measured before, for what the runtime is known to answer wrongly and the model has."""

from collections.abc import Iterator, Sequence

from edgekit.errors import LimitError, ModelError
from edgekit.facts import shapes
from edgekit.known import match, survey
from edgekit.known.match import Match
from edgekit.model.io import LoadedModel
from edgekit.records.settings import SessionSettings
from edgekit.runtime.dist import RuntimeDist
from edgekit.runtime.pins import Variant


def settings(model: LoadedModel, runtime: RuntimeDist, failing: Sequence[Variant]) -> tuple[SessionSettings, ...]:
    """Return the settings of sessions that cure every node of ``model`` which one of ``failing`` is known to get wrong.

    Empty where nothing is known, or no shapes are.
    """
    try:
        table = shapes.infer(model)
    except (ModelError, LimitError):
        return ()
    facts = tuple(survey.nodes(model, table))
    found: dict[SessionSettings, None] = {}
    for variant in failing:
        matched = match.matches(facts, runtime.package, runtime.version, variant.id)
        found |= dict.fromkeys(curing_all(matched))
    return tuple(found)


def curing_all(matched: Sequence[Match]) -> Iterator[SessionSettings]:
    """Yield the settings that were measured to cure each of the matches; nodes left to the CPU are those that match."""
    by_match = [{(cure.kind, cure.value): cure for cure in one.cures} for one in matched]
    names = tuple(dict.fromkeys(one.node.name for one in matched))
    for key, cure in by_match[0].items() if by_match else ():
        if all(key in cures for cures in by_match):
            made = cure.settings(names)
            if made is not None:
                yield made
