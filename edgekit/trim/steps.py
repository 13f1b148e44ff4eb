"""The passes, in their order: functions of the work and a model. ``structural`` ones cannot change an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.errors import ModelError
from edgekit.passes import (
    attributes,
    batch_norm,
    branches,
    chains,
    fold_constants,
    interface,
    labels,
    narrow,
    no_ops,
    shape_values,
    share,
    unique_names,
    values,
)
from edgekit.passes.values import Known
from edgekit.records.tensors import Array
from edgekit.trim import carry
from edgekit.trim.carry import Carried
from edgekit.trim.native import Native, axis_symbol
from edgekit.trim.weights import Store, stored_bytes

# What onnxruntime adds to any graph: opset imports, and attributes with their defaults.
_ROOM_BYTES = 1024
DECLARE = "known output sizes"
INLINE = "functions inlined"

# Nodes after inlining, at most: a function called in many places is smaller as a function.
_MOST_INLINED = 4


class Work:
    """What the steps share.

    ``strict_folding``, ``spare_weights``: see ``edgekit.passes.fold_constants``. ``most``: the largest size of a free
    dimension, by its name, where the user gives one. ``failures``: passes that could not be done, and why.
    """

    def __init__(
        self,
        native: Native,
        store: Store,
        *,
        keep_metadata: bool = False,
        drop_metadata: bool = False,
        strict_folding: bool = False,
        spare_weights: bool = False,
        most: Mapping[str, int] | None = None,
    ) -> None:
        self.native = native
        self.store = store
        self.keep_metadata = keep_metadata
        self.drop_metadata = drop_metadata
        self.strict_folding = strict_folding
        self.spare_weights = spare_weights
        self.most = most or {}
        self.notes: list[str] = []
        self.failures: dict[str, str] = {}
        self._known: tuple[Carried, Known] | None = None

    def known(self, carried: Carried) -> Known:
        """Return the shapes of the model at hand, inferred when first asked for."""
        if self._known is None or self._known[0] is not carried:
            self._known = carried, self.native.infer(carried)
        return self._known[1]

    def forget(self) -> None:
        """Forget what was inferred: passes have changed the model since."""
        self._known = None


@dataclass(frozen=True)
class Step:
    """One pass: its name in plans and for ``--skip``, and what it does to a model; it says whether it changed it."""

    name: str
    apply: Callable[[Work, Carried], bool]
    structural: bool = False


def sort(_work: Work, carried: Carried) -> bool:
    """Sort nodes so that each comes after what it reads, in nested graphs too. Raises ModelError for a cycle."""
    before = [node for body in values.bodies(carried.model) for node in body]
    try:
        common.TopologicalSortPass()(carried.model)
    except ValueError as error:
        raise ModelError(
            f"The nodes of the graph cannot be sorted: {error}",
            hint="Some node needs its own result. Export the model again.",
        ) from error
    # The pass sorts nested graphs as well, but does not say so.
    return before != [node for body in values.bodies(carried.model) for node in body]


def _unique_names(_work: Work, carried: Carried) -> bool:
    return unique_names.apply(carried.model)


def _axes(_work: Work, carried: Carried) -> bool:
    return interface.standard_axes(carried.model)


def _defaults(work: Work, carried: Carried) -> bool:
    taken = interface.constants_from_defaults(carried.model)
    model = carried.model
    if taken and model.ir_version >= 4:
        names = ", ".join(repr(name) for name in taken[:5]) + (" and others" if len(taken) > 5 else "")
        note = f"These inputs had default values and are constants now: {names}."
        if note not in work.notes:
            work.notes.append(note)
    if model.ir_version < 4:
        model.ir_version = 8  # the first that allows constants outside of the inputs is 4; 8 is read everywhere
        return True
    return bool(taken)


def _inline(_work: Work, carried: Carried) -> bool:
    model = carried.model
    if not model.functions:
        return False
    stored = sum(1 for _ in values.nodes(model))
    if _inlined_nodes(model) > _MOST_INLINED * stored:
        return False
    return bool(common.InlinePass()(model).modified)


def _inlined_nodes(model: ir.Model) -> int:
    """Count the nodes after inlining. A cycle of functions counts as endless."""
    counts: dict[ir.OperatorIdentifier, int] = {}

    def count(nodes: Sequence[ir.Node], stack: tuple[ir.OperatorIdentifier, ...]) -> int:
        total = 0
        for node in nodes:
            key = node.op_identifier()
            if key not in model.functions:
                total += 1
            elif key in stack:
                return 1 << 40
            else:
                if key not in counts:
                    counts[key] = count(list(model.functions[key].all_nodes()), (*stack, key))
                total += counts[key]
        return total

    return count(list(model.graph.all_nodes()), ())


def _no_ops(work: Work, carried: Carried) -> bool:
    return no_ops.apply(carried.model, work.known(carried), spare_weights=work.spare_weights)


def _chains(work: Work, carried: Carried) -> bool:
    return chains.apply(carried.model, work.known(carried))


def _shape_values(work: Work, carried: Carried) -> bool:
    return shape_values.apply(carried.model, work.known(carried))


def _evaluator(work: Work, model: ir.Model) -> fold_constants.Evaluate:
    def evaluate(
        nodes: Sequence[onnx.NodeProto], tensors: Sequence[onnx.TensorProto], names: Sequence[str]
    ) -> Mapping[str, Array]:
        imports = [onnx.OperatorSetIdProto(domain=d, version=v) for d, v in model.graph.opset_imports.items()]
        return work.native.evaluate(nodes, tensors, names, imports, model.ir_version)

    return evaluate


def _normalizations(work: Work, carried: Carried) -> bool:
    return batch_norm.apply(carried.model, _evaluator(work, carried.model))


def _fold(work: Work, carried: Carried) -> bool:
    model = carried.model
    evaluate = _evaluator(work, model)
    return fold_constants.apply(
        model, work.known(carried), evaluate, strict=work.strict_folding, spare_weights=work.spare_weights
    )


def _narrow(work: Work, carried: Carried) -> bool:
    most = {}
    for number, value in enumerate(carried.model.graph.inputs):
        for axis, dim in enumerate(value.shape or ()):
            name = dim.value if isinstance(dim, ir.SymbolicDim) else None
            size = work.most.get(f"{value.name}[{axis}]", work.most.get(name or ""))
            if size is not None:
                most[axis_symbol(number, axis)] = size
    done = narrow.apply(carried.model, work.known(carried), most)
    if done is None:
        return False
    given = f"; of free dimensions as you say, {', '.join(map(str, work.most))}" if work.most else ""
    work.notes.append(
        f"{done.nodes} nodes left int64, {done.casts} casts came in. Proven by interval arithmetic: every number there "
        f"lies between {done.range[0]:,} and {done.range[1]:,} (sizes below 2^31{given})."
    )
    return True


def _branches(_work: Work, carried: Carried) -> bool:
    return branches.apply(carried.model)


def _unused(_work: Work, carried: Carried) -> bool:
    """Remove nodes and initializers that nothing uses, in nested graphs too, and functions that nothing calls."""
    model = carried.model
    changed = bool(common.RemoveUnusedNodesPass()(model).modified)
    for body in values.bodies(model):
        if not isinstance(body, ir.Graph):
            continue
        for name, value in list(body.initializers.items()):
            if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                body.initializers.pop(name)
                changed = True
    functions = len(model.functions)
    common.RemoveUnusedFunctionsPass()(model)  # type: ignore[no-untyped-call]
    return changed or len(model.functions) < functions


def _opsets(_work: Work, carried: Carried) -> bool:
    return bool(common.RemoveUnusedOpsetsPass()(carried.model).modified)


def _expressions(_work: Work, carried: Carried) -> bool:
    return share.expressions(carried.model)


def _lift(_work: Work, carried: Carried) -> bool:
    """Make Constant nodes initializers, and initializers of nested graphs those of the main graph."""
    changed = bool(
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(carried.model).modified
    )
    if common.LiftSubgraphInitializersToMainGraphPass()(carried.model).modified:
        changed = True
    return unique_names.apply(carried.model) or changed


def _share(work: Work, carried: Carried) -> bool:
    return share.initializers(carried.model, work.store.digest)


def _optimize(work: Work, carried: Carried) -> bool:
    """onnxruntime's own basic optimizations: batch normalization into convolutions, MatMul and Add into Gemm, ..."""
    before = carry.to_proto(carried)
    after = work.native.optimize(before)
    if after.SerializeToString() == before.SerializeToString():
        return False
    work.store.settle(after)
    if stored_bytes(after) > stored_bytes(before) * 1.02 + _ROOM_BYTES:
        return False  # it folds whatever is constant, however large
    again = carry.to_ir(after, work.store.folder)
    again.types |= carried.types
    carried.model, carried.sparse, carried.attributes = again.model, again.sparse, again.attributes
    return True


def _attributes(_work: Work, carried: Carried) -> bool:
    return attributes.apply(carried.model)


def _notes(work: Work, carried: Carried) -> bool:
    return False if work.keep_metadata else labels.drop_notes(carried.model, of_model=work.drop_metadata)


def _shapes(work: Work, carried: Carried) -> bool:
    return False if work.keep_metadata else labels.drop_shapes(carried.model)


def _declare(work: Work, carried: Carried) -> bool:
    return interface.declare_outputs(carried.model, work.known(carried))


def convert(opset: int) -> Step:
    """The step that converts to another opset."""

    def apply(work: Work, carried: Carried) -> bool:
        found = carried.model.graph.opset_imports.get("", 0)
        if found == opset:
            return False
        again = carry.to_ir(work.native.convert(carry.to_proto(carried), opset), work.store.folder)
        again.types |= carried.types
        carried.model, carried.sparse, carried.attributes = again.model, again.sparse, again.attributes
        return True

    return Step(f"opset {opset}", apply)


REPAIR = (
    Step("sorted nodes", sort, structural=True),
    Step(unique_names.NAME, _unique_names, structural=True),
    Step("axes as lists", _axes),
)
FIRST = (
    Step("unused parts", _unused, structural=True),
    Step(interface.DEFAULTS, _defaults, structural=True),
    Step(INLINE, _inline, structural=True),
)
ROUND = (
    Step(no_ops.NAME, _no_ops),
    Step(chains.NAME, _chains),
    Step(shape_values.NAME, _shape_values),
    Step(fold_constants.NAME, _fold),
    Step(branches.NAME, _branches),
    Step("unused parts", _unused, structural=True),
)
ROUNDING = Step("runtime's basic optimizations", _optimize)
NARROW = Step(narrow.NAME, _narrow)
LIFT = (
    Step(share.EXPRESSIONS, _expressions),
    Step("constants lifted", _lift, structural=True),
)
LAST = (
    Step(batch_norm.NAME, _normalizations),
    Step(share.INITIALIZERS, _share, structural=True),
    Step("unused parts", _unused, structural=True),
    Step(attributes.NAME, _attributes),
    Step(labels.NOTES, _notes, structural=True),
    Step(DECLARE, _declare),
    Step(labels.SHAPES, _shapes, structural=True),
    Step("unused opsets", _opsets, structural=True),
)


def names() -> tuple[str, ...]:
    """Return the names of all passes, as ``--skip`` takes them."""
    every = (*REPAIR, *FIRST, *ROUND, NARROW, ROUNDING, *LIFT, *LAST)
    return tuple(dict.fromkeys(step.name for step in every))
