"""The type and shape of every value, by onnx's shape inference in a child process.

Weights are not handed over, so a model of any size will do. With ``dims``, sizes take the places of symbolic
dimensions first.
"""

import difflib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from edgekit.child import process as child
from edgekit.child.process import ChildFailedError, ChildLimits
from edgekit.errors import LimitError, ModelError, UsageError
from edgekit.facts import strip
from edgekit.facts.types import ValueType, value_type
from edgekit.files import disk_errors
from edgekit.model import walk
from edgekit.model.io import LoadedModel

# Which graph a value is of: () is the main one, ("y", "then_branch") the branch in the node whose first output is y,
# and so on inwards.
Scope = tuple[str, ...]

# A model of 20,000 nodes (0.5 MB without weights) takes about 2 s and 0.2 GB.
LIMITS = ChildLimits(seconds=30.0)
_LEAST_CPU_SECONDS, _CPU_SECONDS_PER_MB = 6.0, 6.0
_LEAST_MEMORY_BYTES, _MEMORY_PER_BYTE = 512 << 20, 150

_MOST_NODES = 50_000  # functions that call each other twice a level unfold without end


@dataclass(frozen=True, eq=False)
class ShapeTable:
    """What is known of every value: inputs, outputs, initializers and what nodes compute.

    ``scopes``: by graph, then by name. Values inside local functions are not in it: their types differ from call to
    call. A symbolic dimension that inference made up has a name that begins with "unk__"; equal names are equal sizes.
    ``inlined``: the model with its local functions inlined, every known type in its value infos, and without weights
    (see ``edgekit.facts.strip``). ``problem``: what strict inference objects to, as onnx says it.
    """

    scopes: Mapping[Scope, Mapping[str, ValueType]]
    inlined: onnx.ModelProto
    dims: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None

    @property
    def values(self) -> Mapping[str, ValueType]:
        """The values of the main graph, by name."""
        return self.scopes[()]

    def look(self, name: str, scope: Scope = ()) -> ValueType | None:
        """Find a value as a node in ``scope`` sees it: there, or in the graphs around it."""
        for end in range(len(scope), -1, -2):
            if (found := self.scopes.get(scope[:end], {}).get(name)) is not None:
                return found
        return None


def infer(model: LoadedModel, dims: Mapping[str, int] | None = None, *, limits: ChildLimits = LIMITS) -> ShapeTable:
    """Infer the types and shapes of all values, with ``dims`` for symbolic dimensions (or ``input[axis]``).

    Raises UsageError when the model has no such dimension, ModelError when onnx refuses the model as a whole or
    crashes on it, LimitError when it takes too long or too much memory.
    """
    sizes = dict(dims or {})
    bare = strip.without_weights(model)
    _check_calls(model)
    substitute(bare, sizes)
    with tempfile.TemporaryDirectory(prefix="edgekit-shapes-") as name:
        inferred, problem = _run(bare, Path(name), model.path, limits)
    return ShapeTable(dict(scopes(inferred.graph, ())), inferred, sizes, problem)


def _run(bare: onnx.ModelProto, folder: Path, path: Path, limits: ChildLimits) -> tuple[onnx.ModelProto, str | None]:
    data = bare.SerializeToString()
    with disk_errors(folder):
        (folder / "model.onnx").write_bytes(data)
    limits = replace(
        limits,
        cpu_seconds=_LEAST_CPU_SECONDS + _CPU_SECONDS_PER_MB * len(data) / 1e6,
        memory_bytes=min(limits.memory_bytes, _LEAST_MEMORY_BYTES + _MEMORY_PER_BYTE * len(data)),
    )
    try:
        child.run_module(
            "edgekit.facts.shapes_child", folder, limits=limits, what=f"inferring the shapes of {path.name}"
        )
        inferred = onnx.ModelProto.FromString((folder / "inferred.onnx").read_bytes())
    except (ChildFailedError, DecodeError) as error:
        reason = error.reason if isinstance(error, ChildFailedError) else str(error)
        raise ModelError(
            f"{path}: onnx cannot infer its shapes: {reason[:500]}",
            hint="The model is damaged or its exporter is broken. onnx.checker.check_model may say more.",
        ) from error
    problem = folder / "problem.txt"
    return inferred, problem.read_text(encoding="utf-8") if problem.is_file() else None


def substitute(proto: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Put sizes in the places of symbolic dimensions, in every graph; ``input[axis]`` names one without a name.

    Raises UsageError when no input has such a dimension.
    """
    left = set(dims)
    for info in proto.graph.input:
        for axis, dimension in enumerate(info.type.tensor_type.shape.dim):
            key = dimension.dim_param or f"{info.name}[{axis}]"
            if not (dimension.HasField("dim_value") and dimension.dim_value >= 0):
                for name in (key, f"{info.name}[{axis}]"):
                    if name in dims:
                        left.discard(name)
                        dimension.dim_value = dims[name]
    for graph in walk.all_graphs(proto):
        for info in (*graph.input, *graph.output, *graph.value_info):
            for dimension in info.type.tensor_type.shape.dim:
                if dimension.dim_param in dims:
                    left.discard(dimension.dim_param)
                    dimension.dim_value = dims[dimension.dim_param]
    if left:
        known = free_dimensions(proto)
        key = min(left)
        raise unknown_dimension(key, known)


def unknown_dimension(key: str, known: Sequence[str]) -> UsageError:
    """Return the refusal of a dimension that the model's inputs do not have."""
    nearest = difflib.get_close_matches(key, known, n=1)
    return UsageError(
        f"The model has no free dimension '{key}'{f'; did you mean {nearest[0]!r}?' if nearest else ''}.",
        hint=f"Free dimensions of its inputs: {', '.join(known) or 'none'}.",
    )


def free_dimensions(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Name the dimensions of the inputs that have no size: by their symbol, or ``input[axis]``."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    found: dict[str, None] = {}
    for info in proto.graph.input:
        shape = value_type(info.type).shape or ()
        for axis, size in enumerate(shape):
            if info.name not in stored and not isinstance(size, int):
                found[size or f"{info.name}[{axis}]"] = None
    return tuple(found)


def nested(nodes: Iterable[onnx.NodeProto], scope: Scope) -> Iterator[tuple[onnx.NodeProto, Scope, onnx.GraphProto]]:
    """Yield the graphs that nodes of ``scope`` hold, each with its node and its own scope; not those nested deeper."""
    for node in nodes:
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else []
            for place, graph in enumerate((*inner, *attribute.graphs)):
                name = attribute.name if inner else f"{attribute.name}[{place}]"
                yield node, (*scope, node.output[0] if node.output else node.name, name), graph


def scopes(graph: onnx.GraphProto, scope: Scope = ()) -> Iterator[tuple[Scope, Mapping[str, ValueType]]]:
    """Yield the types that a graph declares, by name, then those of every graph in it."""
    found = {
        tensor.name: value_type(onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims)))
        for tensor in graph.initializer
    }
    for info in (*graph.value_info, *graph.input, *graph.output):
        found[info.name] = value_type(info.type)
    yield scope, found
    for _, inner, subgraph in nested(graph.node, scope):
        yield from scopes(subgraph, inner)


def _check_calls(model: LoadedModel) -> None:
    """Raise ModelError when local functions call themselves, LimitError when they unfold to too many nodes."""
    functions = {(walk.domain_name(f.domain), f.name, f.overload): f for f in model.proto.functions}
    sizes: dict[tuple[str, str, str], int] = {}
    open_calls: set[tuple[str, str, str]] = set()

    def unfolded(nodes: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes:
            key = (walk.domain_name(node.domain), node.op_type, node.overload)
            total += 1 + (call(key) if key in functions else 0)
            total += sum(unfolded(graph.node) for graph in walk.subgraphs(node))
        return total

    def call(key: tuple[str, str, str]) -> int:
        if key in open_calls or len(open_calls) > 100:
            raise ModelError(
                f"{model.path}: the local function '{key[1]}' calls itself.",
                hint="ONNX does not allow that. Export the model again.",
            )
        if key not in sizes:
            open_calls.add(key)
            sizes[key] = unfolded(functions[key].node)
            open_calls.discard(key)
        return sizes[key]

    if functions and unfolded(model.proto.graph.node) > _MOST_NODES:
        raise LimitError(
            f"{model.path}: its local functions unfold to more than {_MOST_NODES:,} nodes.",
            hint="Export the model with fewer functions that call each other.",
        )


__all__ = ["LIMITS", "Scope", "ShapeTable", "free_dimensions", "infer", "nested", "substitute"]
