"""The base generator: an operator without one of its own is drawn from its conformance cases.

Case, schema version and dtypes are drawn, and what it is given is shuffled where it is numbers. Operators that have no
case of plain tensors (sequences, optional values, control flow) are drawn from the models that hold them.
"""

from collections import defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import onnx
from onnx.defs import OpSchema

from edgekit.conformance import attributes, forms, machinery, ml
from edgekit.conformance import cases as conformance_cases
from edgekit.conformance import table as tables
from edgekit.conformance.cases import RANDOM, Case
from edgekit.conformance.forms import Forms
from edgekit.conformance.table import Table
from edgekit.fuzz.author import ATOL, RTOL, Generator
from edgekit.fuzz.draw import Draw
from edgekit.model import walk
from edgekit.records.tensors import Value, value_of

_DOMAINS = ("", "ai.onnx.ml")
# Dropout is random where a case trains.
_LEFT_OUT = RANDOM | {"Dropout"}
# Inputs of these are places or lengths, not data: any order of them need not be valid.
_KEPT_ORDER = frozenset({"int64", "bool", "string"})


def operators() -> tuple[str, ...]:
    """Return every operator of the conformance list, as a person writes it, without those whose answers are random."""
    found = {
        f"{domain}::{op}" if domain else op
        for table in tables.available()
        for domain, op, _ in tables.load(*table).operators
        if domain in _DOMAINS and op not in _LEFT_OUT
    }
    return tuple(sorted(found))


def generator(name: str) -> Generator:
    """Return the generator of any operator of ``operators()``."""
    domain, _, op_type = name.rpartition("::")

    def make(draw: Draw) -> Case | None:
        known = _forms(domain, op_type)
        if len(known):
            found = known.draw(draw.pick("form", range(len(known))), lambda count: draw.pick("template", range(count)))
        else:
            held = _holding().get((domain, op_type), ())
            found = held[draw.pick("held", range(len(held)))] if held else None
        return None if found is None or not _is_defined(op_type, found) else _shuffled(draw, found)

    return Generator(name, make)


@cache
def _standard() -> tuple[Case, ...]:
    return conformance_cases.standard()


@cache
def _forms(domain: str, op_type: str) -> Forms:
    return forms.forms(_standard(), domain, op_type, _desktop_runs)


def _desktop_runs(schema: OpSchema, dtypes: tuple[str, ...]) -> bool:
    """Whether desktop onnxruntime, which gives the answers, was measured to run an operator with these dtypes."""
    support = _desktop().operators.get((schema.domain, schema.name, schema.since_version))
    return support is None or dtypes in support.passes or dtypes in support.loads


@cache
def _desktop() -> Table:
    return tables.load(*next(key for key in tables.available() if key[2] == "cpu"))


@cache
def _holding() -> dict[tuple[str, str], list[Case]]:
    """Return the cases that can be run, by each operator that they hold."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    made = (*(case for case in _standard() if case.run), *attributes.cases(), *machinery.cases(), *ml.cases())
    for case in made:
        model = onnx.load_from_string(case.model)
        for key in {("" if n.domain == "ai.onnx" else n.domain, n.op_type) for n in walk.all_nodes(model)}:
            found[key].append(case)
    return found


def _shuffled(draw: Draw, case: Case) -> Case:
    """Return the case with its floats and small integers in another order, where the draw says so."""
    inputs = case.inputs
    if draw.flag("shuffled"):
        inputs = tuple(_one(draw, value) if place == 0 else value for place, value in enumerate(inputs))
    return replace(case, name="", source="generated", inputs=inputs, outputs=(), rtol=RTOL, atol=ATOL)


def _is_defined(op_type: str, case: Case) -> bool:
    """Whether ONNX says what a CastLike gives: of a float that the integers asked for do not hold, it does not."""
    arrays = [value.array for value in case.inputs]
    if op_type != "CastLike" or len(arrays) != 2 or arrays[0] is None or arrays[1] is None:
        return True
    given, dtype = arrays[0], arrays[1].dtype
    if dtype.kind not in "iu" or given.dtype.kind in "iubOUST":
        return True
    wide = given.astype(np.float64)
    limits = np.iinfo(dtype)
    return bool(np.isfinite(wide).all() and (wide >= limits.min).all() and (wide <= limits.max).all())


def _one(draw: Draw, value: Value) -> Value:
    if value.array is None or value.dtype in _KEPT_ORDER or value.array.size < 2:
        return value
    rng = np.random.default_rng(draw.pick("order", range(8)))
    flat = rng.permutation(value.array.ravel()).reshape(value.array.shape)
    return value_of(value.name, flat)
