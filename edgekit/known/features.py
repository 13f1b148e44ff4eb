"""What can be said of a node in words that do not name it: what a pattern of wrong answers is made of.

The same facts are read from a drawn case and from a user's model, so that a pattern that was learned of the one is
looked for in the other. A feature is a number, a text or a truth; what is not known has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekit.known.windows import window_features

Scalar = int | float | str | bool
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...]
# Lists of whole numbers that stand for a whole (a permutation, an equation), and are not looked into.
_WHOLE = frozenset({"perm"})
_MOST_RANK = 6


@dataclass(frozen=True)
class Given:
    """What is known of a value: None where it is not. ``values``: of a small constant of whole numbers."""

    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    constant: bool = False
    values: tuple[int, ...] | None = None


@dataclass(frozen=True)
class NodeFacts:
    """A node: its operator as a person writes it, its attributes with their defaults, and what it is given.

    ``inputs``: by the name that the operator's schema gives them; None where left out. ``then``: operators that take
    what it gives, up to four nodes on.
    """

    name: str
    operator: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    inputs: tuple[tuple[str, Given | None], ...] = ()
    outputs: tuple[Given, ...] = ()
    then: frozenset[str] = frozenset()


def features(node: NodeFacts) -> dict[str, Scalar]:
    """Return the features of a node, by name."""
    found: dict[str, Scalar] = {}
    for name, value in node.attributes.items():
        _attribute(found, name, value)
    for name, given in node.inputs:
        found[f"{name} given"] = given is not None
        if given is not None:
            _value(found, name, given)
    if node.outputs:
        _value(found, "output", node.outputs[0])
    found |= window_features(node.operator, node.attributes, dict(node.inputs), node.outputs)
    return found


def _attribute(found: dict[str, Scalar], name: str, value: Attribute) -> None:
    if not isinstance(value, tuple):
        found[name] = value
        return
    if name in _WHOLE:
        found[name] = " ".join(map(str, value))
        found[f"{name} keeps order"] = list(value) == sorted(value)
        return
    _list(found, name, value)


def _list(found: dict[str, Scalar], name: str, value: tuple[int, ...] | tuple[float, ...]) -> None:
    found[f"{name} count"] = len(value)
    if value:
        found[f"{name} greatest"], found[f"{name} least"] = max(value), min(value)
        found[f"{name} all alike"] = len(set(value)) == 1
        found[f"{name} first"], found[f"{name} last"] = value[0], value[-1]
    if name == "pads" and value:
        half = len(value) // 2
        found["padded before"], found["padded behind"] = any(value[:half]), any(value[half:])


def _value(found: dict[str, Scalar], name: str, given: Given) -> None:
    if given.dtype is not None:
        found[f"{name} dtype"] = given.dtype
    found[f"{name} constant"] = given.constant
    if given.values is not None:
        _list(found, name, given.values)
    if given.shape is None:
        return
    found[f"{name} rank"] = len(given.shape)
    if len(given.shape) <= _MOST_RANK:
        for axis, size in enumerate(given.shape):
            if size is not None:
                found[f"{name} axis {axis}"] = size
        for axis in (-1, -2):
            if len(given.shape) >= -axis and given.shape[axis] is not None:
                found[f"{name} axis {axis}"] = given.shape[axis] or 0
    sizes = [size for size in given.shape if size is not None]
    if len(sizes) == len(given.shape):
        count = 1
        for size in sizes:
            count *= size
        found[f"{name} elements"] = count
