"""Everything that can be told of a model: the survey, with shapes, dtypes and work, for sizes that are given."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx

from edgekit.child.process import ChildLimits
from edgekit.errors import LimitError, ModelError
from edgekit.facts import shapes
from edgekit.facts.operators import operators
from edgekit.facts.shapes import ShapeTable
from edgekit.facts.survey import Facts, survey
from edgekit.facts.types import value_type
from edgekit.facts.work import estimate
from edgekit.model.io import LoadedModel

_LENGTH = re.compile(r"seq|len|time|frame|sample|token", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Study:
    """The facts of a model, and the shapes that they rest on; None where shape inference failed."""

    facts: Facts
    table: ShapeTable | None


def study(model: LoadedModel, dims: Mapping[str, int] | None = None, *, limits: ChildLimits = shapes.LIMITS) -> Study:
    """Survey a model with shape inference. A leading dimension that is not given is taken as 1 (it is the batch).

    A model whose shapes cannot be inferred is surveyed without them; ``shape_problem`` says why. Raises UsageError
    when the model has no dimension of a name in ``dims``, ModelError where a stored tensor has an impossible shape.
    """
    given = dict(dims or {})
    free = shapes.free_dimensions(model.proto)
    assumed = tuple(name for name in _leading(model.proto) if name not in given)
    missing = tuple(name for name in free if name not in given and name not in assumed)
    plain = survey(model)
    try:
        table = shapes.infer(model, given | dict.fromkeys(assumed, 1), limits=limits)
    except (ModelError, LimitError) as error:
        return Study(replace(plain, shape_problem=error.message), None)
    facts = replace(
        plain,
        operators=operators(model.proto, plain.opsets, table),
        shape_problem=table.problem,
        work=estimate(table, assumed=assumed, missing=missing),
    )
    return Study(facts, table)


def _leading(proto: onnx.ModelProto) -> list[str]:
    """The free dimensions that stand first in an input of more than one axis, and are not named for a length."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    found: dict[str, None] = {}
    for info in proto.graph.input:
        shape = value_type(info.type).shape or ()
        if info.name not in stored and len(shape) > 1 and not isinstance(shape[0], int):
            name = shape[0] or f"{info.name}[0]"
            if not _LENGTH.search(name):
                found[name] = None
    return list(found)
