"""Compute nodes whose inputs are all constant, in the runtime itself, and keep the results that do not grow the file.

The runtime computes them, with optimization off: the same kernels give the same bits that they would give at run time.
Quantize and dequantize nodes stay: runtimes recognise what they stand around, and their results are four times larger.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from edgekit.passes.values import RANDOM, Known, is_standard, is_weight, nodes, put_constant, tensor_of
from edgekit.records.tensors import Array

NAME = "constant folding"

# A result of up to so many bytes may replace its node, which takes about as many.
SMALL_BYTES = 64
# A result that is known to be larger is not even computed.
MOST_BYTES = 1 << 28

_KEPT = RANDOM | {
    "Constant", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "If", "Loop", "Scan", "SequenceMap",
    "Optional", "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SplitToSequence", "Dropout",
    "ConcatFromSequence", "SequenceAt", "SequenceLength", "OptionalGetElement", "OptionalHasElement",
    "StringNormalizer",
}  # fmt: skip
_DTYPES = frozenset(
    getattr(ir.DataType, name)
    for name in (
        "FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32",
        "UINT64", "BOOL",
    )
)  # fmt: skip

# Nodes and the tensors they read, in; the values of the node outputs that could be computed, out.
Evaluate = Callable[[Sequence[onnx.NodeProto], Sequence[onnx.TensorProto], Sequence[str]], Mapping[str, Array]]


@dataclass
class _Candidates:
    """Nodes whose inputs are all constant, in an order in which they can run, and the values that they make."""

    nodes: list[ir.Node] = field(default_factory=list)
    values: set[ir.Value] = field(default_factory=set)
    tensors: dict[ir.Value, ir.TensorProtocol] = field(default_factory=dict)


def apply(
    model: ir.Model, known: Known, evaluate: Evaluate, *, strict: bool = False, spare_weights: bool = False
) -> bool:
    """Fold what is constant in the main graph and the graphs nested in it. Nodes must be sorted, names unique.

    ``strict``: keep no result that is larger than what it replaces, however small. ``spare_weights``: fold sizes
    and settings, no weights: a kernel may pack a weight once it is constant, and then adds up in another order.

    Returns whether anything changed.
    """
    found = _candidates(model, known)
    if not found.nodes:
        return False
    names = [output.name for node in found.nodes for output in node.outputs if output.name]
    inputs = []
    for value, tensor in found.tensors.items():
        proto = ir.serde.serialize_tensor(tensor)
        proto.name = value.name or ""
        inputs.append(proto)
    results = evaluate([ir.serde.serialize_node(node) for node in found.nodes], inputs, names)
    if spare_weights:
        results = {name: array for name, array in results.items() if not is_weight(ir.tensor(array))}
    return _settle(found, results, 0 if strict else SMALL_BYTES)


def _candidates(model: ir.Model, known: Known) -> _Candidates:
    found = _Candidates()
    inside_functions = {node for function in model.functions.values() for node in function.all_nodes()}
    local = set(model.functions)
    for node in nodes(model):
        if node in inside_functions or node.op_identifier() in local or not _can_fold(node, known):
            continue
        tensors = {value: tensor_of(value) for value in node.inputs if value is not None and value not in found.values}
        if all(tensor is not None and tensor.dtype in _DTYPES for tensor in tensors.values()):
            found.nodes.append(node)
            found.values.update(node.outputs)
            found.tensors |= {value: tensor for value, tensor in tensors.items() if tensor is not None}
    return found


def _can_fold(node: ir.Node, known: Known) -> bool:
    if not is_standard(node) or node.op_type in _KEPT or not node.outputs:
        return False
    graphs = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    if any(attribute.type in graphs for attribute in node.attributes.values()):
        return False
    for output in node.outputs:
        sizes, dtype = known.sizes(output), known.dtype(output)
        if sizes is not None and _bytes(sizes, dtype) > MOST_BYTES:
            return False
    return True


def _bytes(sizes: Sequence[int], dtype: ir.DataType | None) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count * int(dtype.itemsize if dtype is not None and dtype in _DTYPES else 4)


def _settle(found: _Candidates, results: Mapping[str, Array], small: int) -> bool:
    """Walk from the last node to the first: put a result in its node's place where that pays, else keep the node."""
    changed = False
    kept: set[ir.Node] = set()
    members = set(found.nodes)
    for node in reversed(found.nodes):
        needed = [output for output in node.outputs if _needed(output, members, kept)]
        if not needed:
            continue
        arrays = {output: results.get(output.name or "") for output in needed}
        if any(array is None for array in arrays.values()):
            kept.add(node)
            continue
        size = sum(array.nbytes for array in arrays.values() if array is not None)
        if size > small and size > _freed(node, members, kept):
            kept.add(node)
            continue
        done = [put_constant(output, array) for output, array in arrays.items() if array is not None]
        changed |= any(done)
        if not all(done):
            kept.add(node)
    return changed


def _needed(value: ir.Value, members: set[ir.Node], kept: set[ir.Node]) -> bool:
    """Whether something uses the value that will still be there."""
    return value.is_graph_output() or any(use.node not in members or use.node in kept for use in value.uses())


def _freed(node: ir.Node, members: set[ir.Node], kept: set[ir.Node]) -> int:
    """Return the bytes that go when this node goes: it, and all that only it needs."""
    gone, pending, total = {node}, [node], _node_bytes(node)
    tensors: set[ir.Value] = set()
    while pending:
        current = pending.pop()
        for value in current.inputs:
            if value is None or value in tensors or value.is_graph_output():
                continue
            users = {use.node for use in value.uses()}
            if not users <= gone:
                continue
            maker = value.producer()
            tensor = tensor_of(value)
            if tensor is not None:
                tensors.add(value)
                total += int(tensor.nbytes)
            elif maker in members - kept - gone and _used_by(maker) <= gone:
                gone.add(maker)
                pending.append(maker)
                total += _node_bytes(maker)
    return total


def _used_by(node: ir.Node) -> set[ir.Node]:
    return {use.node for output in node.outputs for use in output.uses()}


def _node_bytes(node: ir.Node) -> int:
    return int(ir.serde.serialize_node(node).ByteSize())
