"""What of a model's outputs the standard leaves open, so that no device can be said to be wrong there.

A Cast of a float to an integer type that cannot hold it has no defined result (``edgekit.facts.casts``), and nothing
that is computed from such a result is defined either. So the model is run again with other results in those places
alone: where an output is not the same each time, it hangs on what nobody defines.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgekit.desktop.run import Feed
from edgekit.errors import LimitError, ModelError
from edgekit.facts import shapes
from edgekit.golden.open_casts import casts_floats, may_be_open, open_casts
from edgekit.golden.trial import Bench, Outputs
from edgekit.model import io as models
from edgekit.model.detach import detached
from edgekit.model.io import LoadedModel
from edgekit.records.cases import GoldenCase
from edgekit.records.tensors import Array, Value

# No engine makes just this of NaN or of 300; as an index it may be too large, which tells as well.
_UNLIKELY = 77
_DOING = "Looking for what the standard leaves open"


def marked(model: LoadedModel, cases: Sequence[GoldenCase], bench: Bench) -> tuple[GoldenCase, ...]:
    """Return the cases, each with what of its outputs is left open (``GoldenCase.left_open``).

    The outputs of the cases must be the bench's own. Nothing is marked where the runtime does not take the changed
    model, nor what differs from run to run by itself.
    """
    if not cases or not may_be_open(model.proto):
        return tuple(cases)
    folder = bench.room("left-open")
    path = folder / "model.onnx"
    try:
        table = shapes.infer(model)
        if not casts_floats(model.proto, table):
            return tuple(cases)
        proto = detached(model, folder)
        fill = open_casts(proto, table)
        models.save(proto, path)
        first = bench.measured(path, [_feed(case, fill, _UNLIKELY) for case in cases], _DOING)
        found = [at for at, outputs in enumerate(first) if outputs is None or _different(cases[at].outputs, [outputs])]
        feeds = [_feed(cases[at], fill, number) for at in found for number in (0, 1, 0)]
        again = bench.measured(path, feeds, _DOING)
    except (ModelError, LimitError):  # the model itself ran, within its limits
        return tuple(cases)
    given = list(cases)
    for place, at in enumerate(found):
        zeros, ones, zeros_again = again[3 * place : 3 * place + 3]
        if zeros is None or zeros_again is None:  # whether it is restless is not known
            continue
        others = [outputs for outputs in (first[at], zeros, ones) if outputs is not None]
        masks = _without(_different(cases[at].outputs, others), _different(zeros, [zeros_again]))
        given[at] = replace(given[at], left_open=masks)
    return tuple(given)


def _feed(case: GoldenCase, fill: str, number: int) -> Feed:
    return Feed((*case.inputs, Value(fill, "int64", np.array(number, dtype=np.int64))), case.feed_back)


def _different(reference: Outputs, others: Sequence[Outputs]) -> dict[str, Array]:
    """Return, by output, where not all have the same element; all of the reference's where the shapes differ."""
    found: dict[str, Array] = {}
    for outputs in others:
        for value, other in zip(reference, outputs, strict=True):
            if value.array is not None and other.array is not None:
                mask = _unlike(value.array, other.array)
                found[value.name] = found.get(value.name, False) | mask
    return {name: mask for name, mask in found.items() if mask.any()}


def _unlike(one: Array, other: Array) -> Array:
    if one.shape != other.shape:
        return np.ones(one.shape, dtype=np.bool_)
    unlike = np.asarray(one != other, dtype=np.bool_)
    return unlike if one.dtype.kind in "OiubT" else unlike & ~(np.isnan(one) & np.isnan(other))


def _without(masks: dict[str, Array], others: dict[str, Array]) -> dict[str, Array]:
    left = {name: mask & ~others[name] if name in others else mask for name, mask in masks.items()}
    return {name: mask for name, mask in left.items() if mask.any()}
