"""Which functions of a runtime a model needs: from the profile of the runtime, and from a recording of the model."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass

from edgekit.conformance import schemas
from edgekit.facts.operators import Operator, OperatorDtypes
from edgekit.model.walk import DEFAULT_DOMAIN
from edgekit.runtime.profile import OperatorFunctions, Profile

# A function that sessions with so many different operators enter belongs to no operator. A recording of the model
# tells most of that, failures on purpose included; without one, more is kept: leaving any one conformance case out of
# the profile, the rest then lacks a function of it in under 2 cases of 100.
SHARED_WITH_RECORDING = 100
SHARED_ALONE = 5
# How the last source is called in ``Keep.added``.
REPORTED = "reported misses"


@dataclass(frozen=True)
class Keep:
    """The functions to keep, and how many each source gave that those before it had not."""

    functions: frozenset[int]
    added: tuple[tuple[str, int], ...]


def choose(
    profile: Profile,
    operators: Sequence[Operator],
    *,
    recorded: Collection[int] | None,
    whole: bool = True,
    elsewhere: Collection[int] = (),
    reported: Collection[int] = (),
    optimized: Iterable[tuple[str, str]] = (),
) -> Keep:
    """Return what a model with ``operators`` needs of the runtime.

    ``recorded``: the functions that the model entered on a recording runtime; None: it was not recorded, and the
    profile alone must do. ``whole``: whether the recording came to the end of each golden case; if not, the profile
    gives as much as where it is alone. ``elsewhere``: functions that the model enters on other GPUs. ``reported``:
    functions that a device missed. ``optimized``: (domain, op_type) of the nodes that the graph has after optimization,
    which fuses some.
    """
    alone = recorded is None or not whole
    common = shared(profile.operators, SHARED_ALONE if alone else SHARED_WITH_RECORDING)
    failures = profile.failures if alone else frozenset()
    parts: list[tuple[str, Set[int]]] = [
        ("start-up and sessions", profile.start | profile.threads | failures | common),
        ("the model's operators", _of_operators(profile, operators, whole=alone)),
        ("fused operators", _fused(profile, operators, optimized) if alone else frozenset()),
        ("the model, recorded", frozenset(recorded or ())),
        ("other GPUs", frozenset(elsewhere)),
        (REPORTED, frozenset(reported)),
    ]
    functions: set[int] = set()
    added = []
    for name, some in parts:
        new = some - functions
        functions |= new
        if new:
            added.append((name, len(new)))
    return Keep(frozenset(functions), tuple(added))


def every(profile: Profile, domain: str) -> Keep:
    """Return what every operator of one domain needs ("" is ai.onnx), in each dtype and version that was measured."""
    functions = set(profile.start | profile.threads | profile.failures)
    for one in profile.operators:
        if one.domain == domain:
            functions |= one.functions
    return Keep(frozenset(functions), (("every operator", len(functions)),))


def shared(operators: Sequence[OperatorFunctions], least: int) -> frozenset[int]:
    """Return the functions that sessions with ``least`` or more different operators enter, beyond start-up."""
    entering: dict[tuple[str, str], set[int]] = {}
    for one in operators:
        entering.setdefault((one.domain, one.op_type), set()).update(one.functions)
    counts = Counter(k for functions in entering.values() for k in functions)
    return frozenset(k for k, count in counts.items() if count >= least)


def _of_operators(profile: Profile, operators: Sequence[Operator], *, whole: bool) -> frozenset[int]:
    """Return what the operators need: what was measured in the model's versions and dtypes, or in all (``whole``)."""
    found: set[int] = set()
    for operator in operators:
        domain = _profile_domain(operator.domain)
        measured = [one for one in profile.operators if (one.domain, one.op_type) == (domain, operator.op_type)]
        exact = [] if whole else [one for one in measured if _agrees(one, operator)]
        for one in exact or measured:
            found |= one.functions
    return frozenset(found)


def _profile_domain(domain: str) -> str:
    return "" if domain == DEFAULT_DOMAIN else domain


def _agrees(one: OperatorFunctions, operator: Operator) -> bool:
    """Whether something was measured with the version and the dtypes of some of an operator's nodes."""
    if operator.since is not None and operator.since != one.since:
        return False
    return not operator.dtypes or any(_fits(one, dtypes) for dtypes in operator.dtypes)


def _fits(one: OperatorFunctions, node: OperatorDtypes) -> bool:
    schema = schemas.schema(one.domain, one.op_type, one.since)
    known = [[None if dtype == "unknown" else dtype for dtype in some] for some in (node.inputs, node.outputs)]
    bound = None if schema is None else schemas.bind(schema, *known)
    if bound is None:
        return True
    return all(
        wanted is None or dtype in (wanted, schemas.UNUSED) for dtype, wanted in zip(one.dtypes, bound, strict=False)
    )


def _fused(profile: Profile, operators: Sequence[Operator], optimized: Iterable[tuple[str, str]]) -> frozenset[int]:
    """Return what the optimized graph may need: its operators, and what measured models of such operators entered."""
    after = {(_profile_domain(domain), op_type) for domain, op_type in optimized}
    before = {(_profile_domain(operator.domain), operator.op_type) for operator in operators}
    found: set[int] = set()
    for one in profile.operators:
        if (one.domain, one.op_type) in after:
            found |= one.functions
    for model in profile.models:
        if model.operators <= before | after:
            found |= model.functions
    return frozenset(found)
