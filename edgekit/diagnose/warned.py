"""What the rules of ``check`` say of a failing model's nodes: which are random, which are known to go wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from edgekit.check import providers
from edgekit.check.rule import Rule
from edgekit.check.rules import gpu, known, operators, wrong_answers
from edgekit.check.subject import Evidence, Subject
from edgekit.diagnose.result import NodeFacts
from edgekit.errors import EdgekitError
from edgekit.facts import shapes
from edgekit.model.io import LoadedModel
from edgekit.targets.load import Target

RANDOM = operators.random_operator
# Those that tell of answers which are wrong without an error.
_WRONG: tuple[Rule, ...] = (
    gpu.conv_channels_of_three, gpu.conv_padding_behind, known.resize_nearest_floor, known.resize_align_corners,
    operators.operator_wrong, wrong_answers.known_wrong_answer,
)  # fmt: skip
_NAMED = 5


@dataclass(frozen=True)
class Warned:
    """What a rule says of a node, which is called as findings call it: by its name, else by its first output."""

    rule: str
    node: str
    operator: str
    message: str


def warnings(model: LoadedModel, target: Target, variant: str) -> tuple[Warned, ...]:
    """Return what the rules find in ``model`` for one variant of a target's runtime; nothing where they cannot say."""
    alone = replace(target, runtime=replace(target.runtime, variants=(variant,)))
    try:
        subject = Subject(model, alone, providers.of(alone), Evidence(shapes=shapes.infer(model)))
    except EdgekitError:  # a help, and no need: what fails is diagnosed without it
        return ()
    operator = {placed.name: placed.operator for placed in subject.nodes}
    return tuple(
        Warned(rule.id, hit.node, operator.get(hit.node, ""), hit.message)
        for rule in (RANDOM, *_WRONG)
        for hit in dict.fromkeys(rule.find(subject))
        if hit.node is not None
    )


def random(found: Iterable[Warned]) -> list[str]:
    """Say which nodes draw random numbers, and what that means for golden cases; empty where none does."""
    drawn = [each for each in found if each.rule == RANDOM.id]
    if not drawn:
        return []
    named = ", ".join(f"'{each.node}' ({each.operator})" for each in drawn[:_NAMED])
    more = f" and {len(drawn) - _NAMED} more" if len(drawn) > _NAMED else ""
    one = len(drawn) == 1
    said = (
        f"{'Node' if one else 'Nodes'} {named}{more} {'draws' if one else 'draw'} random numbers: golden cases prove "
        f"nothing after {'it' if one else 'them'}, for two runs give different answers."
    )
    return [
        said,
        "Make the random numbers an input of the model, and build again.",
    ]


def draws(found: Iterable[Warned], node: NodeFacts) -> bool:
    """Whether a node draws random numbers."""
    return any(each.rule == RANDOM.id and each.node == _key(node) for each in found)


def of_node(found: Iterable[Warned], node: NodeFacts) -> tuple[Warned, ...]:
    """Return what is known to go wrong at a node."""
    return tuple(each for each in found if each.rule != RANDOM.id and each.node == _key(node))


def others(found: Iterable[Warned], nodes: Sequence[NodeFacts], twins: Sequence[str]) -> str:
    """Name the nodes beside ``nodes`` and ``twins`` that are known to go wrong; empty where there are none."""
    told = {_key(node) for node in nodes} | {twin.removeprefix("→ ") for twin in twins}
    rules: dict[str, str] = {}
    for each in found:
        if each.rule != RANDOM.id and each.node not in told:
            rules.setdefault(each.node, each.rule)
    named = [f"'{node}' ({rule})" for node, rule in list(rules.items())[:_NAMED]]
    more = f" and {len(rules) - _NAMED} more" if len(rules) > _NAMED else ""
    return f"{', '.join(named)}{more}" if named else ""


def _key(node: NodeFacts) -> str:
    """Name a node as findings do: a node without a name by its first output."""
    return node.name or node.node.removeprefix("→ ")
