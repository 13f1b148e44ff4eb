"""Values that a graph compares its scalar inputs with: the settings that mean something to it.

silero VAD takes a sampling rate as a 0-d int64 and compares it with 16000; swift-f0 takes a lowest and a highest
pitch as 0-d floats and compares them with its table of pitches from 46.9 to 2093.8 Hz. A random number there runs a
branch or a mask that no user ever meets.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from edgekit.facts.survey import Argument
from edgekit.model.io import LoadedModel, to_array
from edgekit.records.tensors import Array

_SAMPLING_RATES = {"sr", "sample_rate", "samplerate", "sampling_rate", "rate"}
_PASS_THROUGH = {"Cast", "CastLike", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand"}
_EQUAL = {"Equal"}
_ORDER = {"Less": "<", "LessOrEqual": "<", "Greater": ">", "GreaterOrEqual": ">"}
_MOST_SETTINGS = 3


def settings(model: LoadedModel, inputs: Sequence[Argument]) -> dict[str, tuple[float, ...]]:
    """Return, for each scalar input (rank 0, or one element) that has any, its settings, the most useful one first."""
    found: dict[str, list[float]] = {argument.name: [] for argument in inputs if _is_scalar(argument)}
    origin = {name: name for name in found}
    _walk(model, model.proto.graph, origin, {}, found)
    for argument in inputs:
        if argument.name in found and argument.name.lower() in _SAMPLING_RATES:
            found[argument.name] += [16000.0, 8000.0]
    return {name: tuple(dict.fromkeys(values))[:_MOST_SETTINGS] for name, values in found.items() if values}


def _is_scalar(argument: Argument) -> bool:
    numeric = argument.dtype not in (None, "bool", "string")
    return numeric and argument.shape is not None and all(n == 1 for n in argument.shape)


def _walk(
    model: LoadedModel,
    graph: onnx.GraphProto,
    outer_origin: Mapping[str, str],
    outer_constants: Mapping[str, onnx.TensorProto],
    found: dict[str, list[float]],
) -> None:
    """Follow scalar inputs through casts and reshapes to the comparisons they meet, in subgraphs too."""
    origin = dict(outer_origin)
    constants = dict(outer_constants) | {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            constants.update((node.output[0], a.t) for a in node.attribute if a.HasField("t"))
        if node.op_type in _PASS_THROUGH and node.input and node.output:
            if node.input[0] in origin:
                origin[node.output[0]] = origin[node.input[0]]
            if node.input[0] in constants:
                constants[node.output[0]] = constants[node.input[0]]
        if len(node.input) == 2 and (node.op_type in _EQUAL or node.op_type in _ORDER):
            left, right = node.input
            if left in origin and right in constants:
                found[origin[left]] += _values(node.op_type, to_array(model, constants[right]), scalar_left=True)
            elif right in origin and left in constants:
                found[origin[right]] += _values(node.op_type, to_array(model, constants[left]), scalar_left=False)
        for attribute in node.attribute:
            for subgraph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                _walk(model, subgraph, origin, constants, found)


def _values(operator: str, table: Array, *, scalar_left: bool) -> list[float]:
    """Return what an input compared with ``table`` should be: first the value for which the comparison holds most."""
    if table.size == 0 or not np.issubdtype(table.dtype, np.number):
        return []
    if operator in _EQUAL:
        return [float(x) for x in np.unique(table)[:_MOST_SETTINGS]]
    holds_when_low = (_ORDER[operator] == "<") == scalar_left
    # A second setting for which the comparison holds for about three quarters of the table.
    return [float(np.quantile(table, q)) for q in ((0.0, 0.25) if holds_when_low else (1.0, 0.75))]
