"""Make a model that fails smaller while it still fails: less around it, fewer and smaller dimensions, plain values.

What is tried may be no model any more. Whoever judges says so by "it does not fail"; nothing here knows operators.
Candidates are judged many at once, because starting what judges them costs more than one more of them.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import onnx
from onnx import numpy_helper

from edgekit.isolate.cut import declared, part
from edgekit.records.tensors import Array, Value, value_of

_SIZES = (1, 2, 3, 4, 5, 6, 8, 9, 16)
_MOST_CANDIDATES = 96
_MOST_ROUNDS = 6
_FEW = 8  # elements of an integer constant that may be a shape


@dataclass(frozen=True, eq=False)
class Sample:
    """A model whose inputs and outputs are declared, and what it is run on."""

    model: onnx.ModelProto
    inputs: tuple[Value, ...]

    @property
    def elements(self) -> int:
        """How many numbers the model and its inputs hold."""
        weights = sum(int(np.prod(tensor.dims)) for tensor in self.model.graph.initializer)
        return weights + sum(value.array.size for value in self.inputs if value.array is not None)


Fails = Callable[[Sequence[Sample]], Sequence[bool]]


def fewer_nodes(
    line: onnx.ModelProto, nodes: Sequence[str], values: Mapping[str, Array], fails: Fails
) -> tuple[tuple[str, ...], Sample] | None:
    """Return the shortest run of ``nodes`` that fails with the inputs that ``values`` hold, and its model.

    ``nodes``: in the order of the straight line ``line``. None: not even all of them fail.
    """
    windows = [tuple(nodes[i:j]) for i in range(len(nodes)) for j in range(i + 1, len(nodes) + 1)]
    if len(windows) > _MOST_CANDIDATES:  # all that end last, and all that begin first
        windows = [tuple(nodes[i:]) for i in range(len(nodes))] + [tuple(nodes[:j]) for j in range(1, len(nodes))]
        windows = [*sorted(windows, key=len)[:_MOST_CANDIDATES], tuple(nodes)]
    windows.sort(key=len)
    cut = [(window, part(line, window, values)) for window in windows]
    found = [(window, Sample(*made)) for window, made in cut if made is not None]
    for (window, sample), failed in zip(found, fails([sample for _, sample in found]), strict=True):
        if failed:
            return window, sample
    return None


def reduce(sample: Sample, fails: Fails, *, plainer: bool = True) -> Sample:
    """Return the smallest sample found that still ``fails``; ``sample`` itself where none does.

    ``plainer``: leave out attributes and inputs too, where it then still fails: it may be for another reason.
    """
    if plainer:
        sample = _best(sample, list(_plainer(sample)), fails)
    for _ in range(_MOST_ROUNDS):
        smaller = _shrunk(sample, fails)
        if smaller is sample:
            break
        sample = smaller
    return _first(sample, list(_plain_values(sample)), fails)


def _first(sample: Sample, candidates: Sequence[Sample], fails: Fails) -> Sample:
    """Return the first candidate that fails; they come best first."""
    verdicts = fails(candidates) if candidates else ()
    return next((each for each, failed in zip(candidates, verdicts, strict=True) if failed), sample)


def _best(sample: Sample, steps: Sequence[Callable[[Sample], Sample]], fails: Fails) -> Sample:
    """Take all steps together where that fails, else each that fails alone and still does after those before it."""
    if not steps:
        return sample
    alone = [step(sample) for step in steps]
    verdicts = fails(alone)
    good = [step for step, failed in zip(steps, verdicts, strict=True) if failed]
    prefixes = [sample]
    for step in good:
        prefixes.append(step(prefixes[-1]))
    return _first(sample, prefixes[:0:-1], fails)


def _plainer(sample: Sample) -> Iterator[Callable[[Sample], Sample]]:
    """Yield what leaves out one attribute, or one input at the end, of one node."""
    for index, node in enumerate(sample.model.graph.node):
        if node.op_type == "Constant":
            continue
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                yield partial(_without_attribute, index=index, name=attribute.name)
        if len(node.input) > 1:
            yield partial(_with_inputs, index=index, count=len(node.input) - 1)


def _without_attribute(sample: Sample, index: int, name: str) -> Sample:
    model = copy.deepcopy(sample.model)
    node = model.graph.node[index]
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(copy.deepcopy(kept))
    return replace(sample, model=model)


def _with_inputs(sample: Sample, index: int, count: int) -> Sample:
    model = copy.deepcopy(sample.model)
    del model.graph.node[index].input[count:]
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in read]:
        model.graph.initializer.remove(tensor)
    for info in [info for info in model.graph.input if info.name not in read]:
        model.graph.input.remove(info)
    return Sample(model, tuple(value for value in sample.inputs if value.name in read))


@dataclass(frozen=True)
class _Axes:
    """Axes that get one smaller size together. ``whole``: those of all tensors, and what names the size elsewhere."""

    size: int
    places: tuple[tuple[str, int], ...]
    whole: bool


def _arrays(sample: Sample) -> dict[str, Array]:
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in sample.model.graph.initializer}
    return found | {value.name: value.array for value in sample.inputs if value.array is not None}


def _groups(arrays: Mapping[str, Array]) -> list[_Axes]:
    axes = [(name, axis, size) for name, array in arrays.items() for axis, size in enumerate(array.shape) if size > 1]
    groups = []
    for size in sorted({size for _, _, size in axes}, reverse=True):
        same = tuple((name, axis) for name, axis, other in axes if other == size)
        groups.append(_Axes(size, same, True))
        if len(same) > 1:
            groups += [_Axes(size, (place,), False) for place in same]
            groups += [_Axes(size, pair, False) for pair in pairwise(same) if len(same) > 2]
    return groups


def _shrunk(sample: Sample, fails: Fails) -> Sample:
    """Return ``sample`` with each group of axes as small as it fails with, all at once where that fails too."""
    tries = [(group, size) for group in _groups(_arrays(sample)) for size in _sizes(group.size)][:_MOST_CANDIDATES]
    made = [_resized(sample, group, size) for group, size in tries]
    if not made:
        return sample
    failed = [index for index, verdict in enumerate(fails(made)) if verdict]
    best: dict[_Axes, int] = {}
    for index in failed:
        group, size = tries[index]
        best[group] = min(size, best.get(group, size))
    if not best:
        return sample
    together = sample
    steps = [sample]
    for group, size in sorted(best.items(), key=lambda item: (not item[0].whole, -item[0].size)):
        arrays = _arrays(together)
        if all(name in arrays and arrays[name].shape[axis] == group.size for name, axis in group.places):
            together = _resized(together, group, size)
            steps.append(together)
    singles = sorted((made[index] for index in failed), key=lambda each: each.elements)
    candidates = sorted([*steps[2:], *singles[:4]], key=lambda each: each.elements)
    return _first(sample, candidates, fails)


def _sizes(size: int) -> list[int]:
    return sorted({each for each in (*_SIZES, size // 2, size - 1) if 0 < each < size})


def _resized(sample: Sample, group: _Axes, size: int) -> Sample:
    """Cut tensors to their first elements along the axes of ``group``."""
    arrays = _arrays(sample)
    for name, axis in group.places:
        arrays[name] = np.take(arrays[name], np.arange(size), axis=axis)
    if group.whole:
        for name, array in arrays.items():
            if array.dtype == np.int64 and array.size <= _FEW:
                arrays[name] = np.where(array == group.size, np.int64(size), array)
    made = _with_arrays(sample, arrays)
    if group.whole:
        for node in made.model.graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.INT and attribute.i == group.size:
                    attribute.i = size
    return made


def _with_arrays(sample: Sample, arrays: Mapping[str, Array]) -> Sample:
    model = copy.deepcopy(sample.model)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(arrays[tensor.name]), tensor.name))
    inputs = tuple(value_of(value.name, np.ascontiguousarray(arrays[value.name])) for value in sample.inputs)
    for info, value in zip(model.graph.input, inputs, strict=True):
        if value.array is not None:
            info.CopyFrom(declared(info.name, value.array))
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    return Sample(model, inputs)


def _plain_values(sample: Sample) -> Iterator[Sample]:
    """Yield the sample with plainer numbers, plainest first."""
    arrays = _arrays(sample)
    random = np.random.default_rng(0)
    small = {name: random.integers(-2, 3, array.shape) for name, array in sorted(arrays.items())}
    for plain in (
        lambda name, array: np.ones_like(array),
        lambda name, array: small[name],
        lambda name, array: np.rint(array * 8) / 8,
    ):
        changed = {
            name: plain(name, array).astype(array.dtype) if array.dtype.name.startswith("float") else array
            for name, array in arrays.items()
        }
        yield _with_arrays(sample, changed)
