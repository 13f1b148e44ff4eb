"""Find inputs that no golden case can see: another value of theirs leaves every output as it was."""

from collections.abc import Sequence

from edgekit.desktop.run import Feed
from edgekit.errors import LimitError, ModelError
from edgekit.golden.probe import Run
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import same_bits

_MOST_CASES = 6
_MOST_INPUTS = 16  # a language model's cache has dozens, and a run each would take long


def inert(cases: Sequence[GoldenCase], run: Run) -> list[str]:
    """Return the names of inputs that change no output, of a model with two to sixteen inputs.

    In up to six cases each input takes the value that it has in another case. What is fed back is not tried.
    ``run`` runs feeds on the model.
    """
    names = list(dict.fromkeys(value.name for case in cases for value in case.inputs))
    if not 2 <= len(names) <= _MOST_INPUTS:
        return []
    tries = [(name, case, feed) for name in names for case, feed in _swapped(name, cases)]
    try:
        results = run([feed for _, _, feed in tries], "Looking for inputs that change nothing") if tries else ()
    except (ModelError, LimitError):  # mixed inputs may be too much for the model, whose cases are all right
        return []
    ran = [(name, case, r.outputs) for (name, case, _), r in zip(tries, results, strict=True) if r.outputs is not None]
    telling = {
        name
        for name, case, outputs in ran
        if not all(same_bits(old, new) for old, new in zip(case.outputs, outputs, strict=True))
    }
    tried = {name for name, _, _ in ran}
    return [name for name in names if name in tried and name not in telling]


def _swapped(name: str, cases: Sequence[GoldenCase]) -> list[tuple[GoldenCase, Feed]]:
    """Return cases with the value that the input has in another one of the same shape."""
    found: list[tuple[GoldenCase, Feed]] = []
    every = [value for case in cases for value in case.inputs if value.name == name and value.array is not None]
    for case in cases:
        own = next((value for value in case.inputs if value.name == name and value.array is not None), None)
        if own is None or own.array is None or (case.feed_back and name in case.feed_back.links):
            continue
        for other in every:
            if other.array is not None and other.array.shape == own.array.shape and not same_bits(own, other):
                inputs = tuple(other if value.name == name else value for value in case.inputs)
                found.append((case, Feed(inputs, case.feed_back)))
                break
        if len(found) == _MOST_CASES:
            break
    return found
