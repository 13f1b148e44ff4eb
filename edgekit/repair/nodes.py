"""Find few nodes that, left to the CPU, cure a model on WebGPU."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import onnx

from edgekit.model import walk

# The names go to the runtime as one text with line ends between them, which it takes up to this size.
_MOST_BYTES = 8192
# What computes most is wrong most often, and is tried first.
_HEAVY = {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "Resize", "LayerNormalization", "Softmax"}
_AT_ONCE = 4

# Whether a model is right with these nodes on the CPU, for each of several sets.
Test = Callable[[Sequence[tuple[str, ...]]], Sequence[bool]]


def by_operator(proto: onnx.ModelProto, placed: frozenset[str] | None) -> dict[str, tuple[str, ...]]:
    """Return the names of the model's nodes by operator, in nested graphs too.

    ``placed``: the operators of the nodes that WebGPU got; None: that is not known, and all of them count. Nodes
    without a name cannot be told apart, and are left out.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for graph in walk.graphs(proto.graph):
        for node in graph.node:
            if node.name and "\n" not in node.name and (placed is None or node.op_type in placed):
                found[node.op_type].append(node.name)
    return {op_type: tuple(dict.fromkeys(names)) for op_type, names in found.items()}


def fewest(groups: Mapping[str, tuple[str, ...]], test: Test) -> tuple[str, ...] | None:
    """Return nodes that cure it, of which none can be left out (alone); None where no such are found.

    One operator after another is tried, what computes most first, and all at last; what is too long for the runtime is
    not. What cures is then halved for as long as that goes (delta debugging: A. Zeller, R. Hildebrandt, Simplifying and
    Isolating Failure-Inducing Input, 2002).
    """
    kinds = sorted(groups, key=lambda kind: (kind not in _HEAVY, len(groups[kind])))
    single = [groups[kind] for kind in kinds if fits(groups[kind])]
    for start in range(0, len(single), _AT_ONCE):
        some = single[start : start + _AT_ONCE]
        for names, cured in zip(some, test(some), strict=True):
            if cured:
                return reduced(names, test)
    everything = _of(groups, kinds)
    if len(kinds) < 2 or not fits(everything) or not test([everything])[0]:
        return None
    needed = reduced(tuple(kinds), lambda chosen: test([_of(groups, some) for some in chosen]))
    return reduced(_of(groups, needed), test)


def fits(names: Sequence[str]) -> bool:
    """Whether the runtime takes so many names."""
    return len("\n".join(names).encode()) < _MOST_BYTES


def _of(groups: Mapping[str, tuple[str, ...]], kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for kind in kinds for name in groups[kind])


def reduced(items: tuple[str, ...], test: Test) -> tuple[str, ...]:
    """Return a part of ``items``, which cures, of which no single one can be left out."""
    parts = 2
    while len(items) > 1:
        size = -(-len(items) // parts)
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        rests = [tuple(item for item in items if item not in chunk) for chunk in chunks] if len(chunks) > 2 else []
        # One at a time: each is a session on a GPU that may be software, and half of them are not needed.
        cured = next((some for some in (*chunks, *rests) if test([some])[0]), None)
        if cured is not None:
            parts = 2 if cured in chunks else max(parts - 1, 2)
            items = cured
        elif parts < len(items):
            parts = min(2 * parts, len(items))
        else:
            break
    return items
