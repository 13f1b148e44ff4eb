"""What a model takes and gives: a part cut out, sizes frozen, defaults made constants, maps made tensors."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.errors import UsageError
from edgekit.passes.values import Known, bodies, insert, is_standard, nodes

DEFAULTS, FREEZE, CUT, TENSORS = "initializers out of the inputs", "frozen dimensions", "cut", "maps to tensors"


def constants_from_defaults(model: ir.Model) -> tuple[str, ...]:
    """Take initializers out of the graph inputs: they are constants then. Returns the names of those that were."""
    taken = []
    for body in bodies(model):
        if isinstance(body, ir.Graph):
            stay = [value for value in body.inputs if not value.is_initializer()]
            taken += [value.name or "" for value in body.inputs if value.is_initializer()]
            if len(stay) < len(body.inputs):
                body.inputs.clear()
                body.inputs.extend(stay)
    return tuple(taken)


def freeze(model: ir.Model, sizes: Mapping[str, int]) -> bool:
    """Give symbolic dimensions of inputs and outputs a size; unnamed ones are called ``input[axis]``."""
    changed = False
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.shape is None:
            continue
        dims: list[int | ir.SymbolicDim] = []
        for axis, size in enumerate(value.shape):
            name = size.value if isinstance(size, ir.SymbolicDim) else None
            wanted = None if isinstance(size, int) else sizes.get(f"{value.name}[{axis}]", sizes.get(name or ""))
            dims.append(size if wanted is None else wanted)
            changed |= wanted is not None
        value.shape = ir.Shape(dims)
    if changed:
        _forget_shapes(model)
    return changed


def _forget_shapes(model: ir.Model) -> None:
    """What was recorded between inputs and outputs still has the old dimensions."""
    outputs = set(model.graph.outputs)
    for node in nodes(model):
        for value in node.outputs:
            if value not in outputs:
                value.shape = None


def declare_outputs(model: ir.Model, known: Known) -> bool:
    """State the sizes of outputs that are known and were not declared; names of dimensions stay."""
    changed = False
    for value in model.graph.outputs:
        found = known.shape(value)
        if found is None or (value.shape is not None and len(value.shape) != len(found)):
            continue
        dtype = known.dtype(value)
        if value.type is None and dtype is not None:
            value.type = ir.TensorType(dtype)
            changed = True
        declared = list(value.shape) if value.shape is not None else [ir.SymbolicDim(None)] * len(found)
        dims = [b if isinstance(b, int) and not isinstance(a, int) else a for a, b in zip(declared, found, strict=True)]
        if value.shape is None or dims != declared:
            value.shape = ir.Shape(dims)
            changed = True
    return changed


def cut(model: ir.Model, inputs: Sequence[str] | None, outputs: Sequence[str] | None, known: Known) -> bool:
    """Let the model end at the values named ``outputs``, and begin at those named ``inputs``.

    Raises UsageError for a name that the main graph does not have, and when an input is left that is not among
    ``inputs`` and that the outputs need.
    """
    values = _values(model.graph)
    for name in (*(inputs or ()), *(outputs or ())):
        if name not in values:
            raise UsageError(f"The model has no value '{name}' to cut at.", hint=_nearest(name, values))
    if outputs is not None:
        chosen = [values[name] for name in outputs]
        for value in chosen:
            if value.is_graph_input() and value not in model.graph.outputs:
                raise UsageError(
                    f"'{value.name}' is an input of the model: nothing computes it.", hint="Name other --outputs."
                )
        for value in chosen:
            _declare(value, known)
        model.graph.outputs.clear()
        model.graph.outputs.extend(chosen)
    if inputs is not None:
        _begin_at(model, [values[name] for name in inputs], known)
    common.RemoveUnusedNodesPass()(model)  # what came before the cut reads inputs that are no more
    return True


def _begin_at(model: ir.Model, starts: Sequence[ir.Value], known: Known) -> None:
    new = []
    for value in starts:
        if value.is_graph_input() and not value.is_initializer():
            new.append(value)
            continue
        _declare(value, known)
        if value.type is None:
            raise UsageError(f"The type of '{value.name}' is not known, so it cannot be an input.")
        fresh = ir.Value(name=value.name, type=value.type, shape=value.shape)
        if value.is_graph_output():
            raise UsageError(f"'{value.name}' cannot be an input and an output.", hint="Leave one of them out.")
        value.replace_all_uses_with(fresh)
        value.name = f"{value.name}__cut"
        new.append(fresh)
    needed = _needed_inputs(model)
    missing = [value.name for value in model.graph.inputs if value in needed and value not in new]
    if missing:
        raise UsageError(
            f"The outputs also need the input{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}.",
            hint="Name these with --inputs as well, or other places to cut at.",
        )
    model.graph.inputs.clear()
    model.graph.inputs.extend(new)


def _needed_inputs(model: ir.Model) -> set[ir.Value]:
    seen: set[ir.Value] = set()
    pending: list[ir.Value] = list(model.graph.outputs)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        maker = value.producer()
        if maker is not None:
            pending += _reads(maker)
    return seen


def _reads(node: ir.Node) -> list[ir.Value]:
    """What a node and the graphs nested in it read."""
    found = [value for value in node.inputs if value is not None]
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        graphs: Iterable[ir.Graph] = ()
        if attribute.type == ir.AttributeType.GRAPH:
            graphs = (attribute.as_graph(),)
        elif attribute.type == ir.AttributeType.GRAPHS:
            graphs = attribute.as_graphs()
        for graph in graphs:
            found += graph.outputs
            for inner in graph:
                found += _reads(inner)
    return found


def _declare(value: ir.Value, known: Known) -> None:
    dtype, dims = known.dtype(value), known.shape(value)
    if value.type is None and dtype is not None:
        value.type = ir.TensorType(dtype)
    if value.shape is None and dims is not None:
        value.shape = ir.Shape([size if isinstance(size, int) else None for size in dims])


def _values(graph: ir.Graph) -> dict[str, ir.Value]:
    made = [value for node in graph for value in node.outputs]
    return {value.name: value for value in (*graph.initializers.values(), *graph.inputs, *made) if value.name}


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(known), n=3)
    return f"Near it: {', '.join(near)}." if near else "'edgekit inspect' lists the inputs and outputs."


def maps_to_tensors(model: ir.Model) -> tuple[str, ...]:
    """Remove each ZipMap that makes an output: the output is then the tensor of scores, under the same name.

    Returns the names of the outputs that changed. Columns are in the order of the ZipMap's class list.
    """
    done = []
    for node in list(model.graph):
        if node.domain != "ai.onnx.ml" or node.op_type != "ZipMap" or not node.inputs:
            continue
        output, source = node.outputs[0], node.inputs[0]
        if not output.is_graph_output() or output.uses() or source is None:
            continue
        copy = ir.node("Identity", [source], outputs=[ir.Value(type=ir.TensorType(ir.DataType.FLOAT))])
        insert(node, copy)
        place = list(model.graph.outputs).index(output)
        name = output.name
        output.name = f"{name}__map"
        copy.outputs[0].name = name
        model.graph.outputs[place] = copy.outputs[0]
        model.graph.remove(node, safe=True)
        done.append(name or "")
    return tuple(done)


def standard_axes(model: ir.Model) -> bool:
    """Write axes of Squeeze, Unsqueeze and reductions that are stored as a 0-d tensor as the list that ONNX wants."""
    changed = False
    for node in nodes(model):
        if not is_standard(node, "Squeeze", "Unsqueeze", *_REDUCTIONS) or len(node.inputs) < 2 or node.graph is None:
            continue
        axes = node.inputs[1]
        tensor = None if axes is None else axes.const_value
        maker = None if axes is None else axes.producer()
        if tensor is None and maker is not None and is_standard(maker, "Constant") and "value" in maker.attributes:
            tensor = maker.attributes["value"].as_tensor()
        if axes is None or tensor is None or len(tensor.shape) != 0 or axes.is_graph_input():
            continue
        array = np.asarray(tensor.numpy()).reshape(1)
        constant = ir.node("Constant", [], {"value": ir.tensor(array)})
        constant.outputs[0].name = f"{node.outputs[0].name}__axes"
        insert(node, constant)
        node.replace_input_with(1, constant.outputs[0])
        changed = True
    return changed


_REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
