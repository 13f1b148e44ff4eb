"""Cases beyond the onnx package's own: each operator under each schema version of opsets 7 to 26, with each dtype.

A standard case is the template: its node and inputs are kept, its dtypes are changed, and inputs that an older version
of the operator takes as attributes become attributes. Operators without a standard case of plain tensors have none.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.defs import OpSchema

from edgekit.conformance import schemas
from edgekit.conformance.cases import Case, Operator
from edgekit.conformance.schemas import DTYPES, UNUSED
from edgekit.records.tensors import NUMPY_DTYPES, Array, Value, value_of

OPSETS: dict[str, tuple[int, int]] = {"": (7, 26), "ai.onnx.ml": (1, 5)}

FRAME = "edgekit_frame"
_MOST_COMBINATIONS = 600
_MOST_TEMPLATES = 12
_RTOL, _ATOL = 1e-3, 1e-6
# bfloat16 is a dtype of records, and none that JavaScript gives to a session.
_TRAVELS = frozenset({*NUMPY_DTYPES, "string"} - {"bfloat16"})
_NARROW = frozenset(DTYPES) - _TRAVELS - {"bfloat16", UNUSED}
_BESIDE_NARROW = frozenset({"float32", "float16", "bfloat16", "int8", "uint8", "int32"})
_NEVER = frozenset({"complex64", "complex128"})


@dataclass(frozen=True, eq=False)
class Template:
    """A standard case taken apart.

    ``values``, ``infos``: by the position of the node's input; None where it is left out. ``ranks``: of its outputs.
    """

    node: NodeProto
    values: tuple[Value | None, ...]
    infos: tuple[ValueInfoProto | None, ...]
    ranks: dict[str, int]


def generated(standard: Sequence[Case]) -> tuple[Case, ...]:
    """Return cases for every operator that ``standard`` has a template of, sorted, without right outputs."""
    found = []
    for (domain, op_type), candidates in sorted(templates(standard).items()):
        for schema, opset in versions(domain, op_type):
            found += list(_of_version(schema, opset, candidates))
    return tuple(found)


def again(standard: Sequence[Case], operators: Collection[str]) -> tuple[Case, ...]:
    """Return a second case for each that ``generated`` gives of ``operators``, names of ai.onnx: another template.

    Where there is no other template, it is the same one with its first input's numbers in reverse.
    """
    found = []
    for (domain, op_type), candidates in sorted(templates(standard).items()):
        if domain == "" and op_type in operators:
            for schema, opset in versions(domain, op_type):
                found += list(_second(schema, opset, candidates))
    return tuple(found)


def templates(standard: Sequence[Case]) -> dict[tuple[str, str], list[Template]]:
    """Return the templates of each operator, the smallest first."""
    templates: dict[tuple[str, str], list[Template]] = defaultdict(list)
    for case in sorted(standard, key=lambda case: (len(case.model), case.name)):
        if case.operator is not None and case.run and case.operator.domain in OPSETS:
            template = _template(case)
            if _is_simple(template):
                templates[case.operator.domain, case.operator.op_type].append(template)
    return templates


def _template(case: Case) -> Template:
    model = onnx.load_from_string(case.model)
    node = model.graph.node[0]
    values = {value.name: value for value in case.inputs}
    infos = {info.name: info for info in model.graph.input}
    return Template(
        node,
        tuple(values.get(name) for name in node.input),
        tuple(infos.get(name) for name in node.input),
        {info.name: len(info.type.tensor_type.shape.dim) for info in model.graph.output},
    )


def _is_simple(template: Template) -> bool:
    """Whether a template has elements in its first input, which an answer can be wrong about, and no subgraph."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    first = template.values[0] if template.values else None
    empty = first is not None and first.array is not None and not first.array.size
    return not empty and all(attribute.type not in graphs for attribute in template.node.attribute)


def versions(domain: str, op_type: str) -> Iterator[tuple[OpSchema, int]]:
    """Yield each schema in force in the domain's opsets, with the highest opset that has it."""
    last: dict[int, tuple[OpSchema, int]] = {}
    for opset in range(OPSETS[domain][0], OPSETS[domain][1] + 1):
        schema = schemas.schema(domain, op_type, opset)
        if schema is not None:
            last[schema.since_version] = (schema, opset)
    yield from last.values()


def _of_version(schema: OpSchema, opset: int, candidates: Sequence[Template]) -> Iterator[Case]:
    """Yield a case for each combination of dtypes, from the first template that makes a valid model of it."""
    for dtypes in combinations(schema, candidates):
        for template in candidates[:_MOST_TEMPLATES]:
            case = case_of(schema, opset, template, dtypes)
            if case is not None:
                yield case
                break


def _second(schema: OpSchema, opset: int, candidates: Sequence[Template]) -> Iterator[Case]:
    for dtypes in combinations(schema, candidates):
        made = (case_of(schema, opset, template, dtypes) for template in candidates[:_MOST_TEMPLATES])
        found = list(itertools.islice((case for case in made if case is not None), 2))
        if found:
            second = found[1] if len(found) > 1 else _reversed(found[0])
            yield replace(second, name=f"{second.name} again")


def _reversed(case: Case) -> Case:
    """Return the case with the elements of its first input in reverse."""
    first, *others = case.inputs
    if first.array is None:
        return case
    array = first.array.ravel()[::-1].reshape(first.array.shape)
    return replace(case, inputs=(value_of(first.name, np.ascontiguousarray(array).reshape(array.shape)), *others))


def combinations(schema: OpSchema, candidates: Sequence[Template]) -> list[tuple[str, ...]]:
    """Return the dtypes to try: all combinations, or, where they are too many, one variable at a time changed."""
    names = schemas.variables(schema)
    choices = [tuple(d for d in schemas.allowed(schema, name) if d not in _NEVER) for name in names]
    found: set[tuple[str, ...]] = set()
    for used in {_used(schema, template) for template in candidates} - {None}:
        lists = [choice if name in (used or ()) else (UNUSED,) for name, choice in zip(names, choices, strict=True)]
        if math.prod(map(len, lists)) <= _MOST_COMBINATIONS:
            found |= set(itertools.product(*lists))
            continue
        base = tuple("float32" if "float32" in some else some[0] for some in lists)
        for position, some in enumerate(lists):
            found |= {(*base[:position], dtype, *base[position + 1 :]) for dtype in some}
    return sorted(dtypes for dtypes in found if not _is_rare(schema, dtypes))


def _is_rare(schema: OpSchema, dtypes: tuple[str, ...]) -> bool:
    """Whether a combination with a narrow dtype is in no model that anyone has. They would be half of all cases."""
    narrow = {dtype for dtype in dtypes if dtype in _NARROW}
    others = {dtype for dtype in dtypes if dtype not in _NARROW}
    return len(narrow) > 1 or (bool(narrow) and schema.name.startswith("Cast") and not others <= _BESIDE_NARROW)


def _used(schema: OpSchema, template: Template) -> frozenset[str] | None:
    """Return the type variables that a template's node uses under ``schema``; None when it cannot be adapted."""
    adapted = _adapt(schema, template)
    if adapted is None:
        return None
    node, values = adapted
    inputs = schemas.parameters(schema.inputs, len(values))
    outputs = schemas.parameters(schema.outputs, len(node.output))
    used = [p.type_str for p, value in zip(inputs, values, strict=True) if value is not None]
    return frozenset([*used, *(p.type_str for p, name in zip(outputs, node.output, strict=True) if name)])


def _adapt(schema: OpSchema, template: Template) -> tuple[NodeProto, list[Value | None]] | None:
    """Return the node and its inputs' values as ``schema`` has them; None where that is not possible."""
    newest = schemas.schema(schema.domain, schema.name, 10_000)
    node, values = NodeProto(), list(template.values)
    node.CopyFrom(template.node)
    if newest is None or len(node.output) > schema.max_output:
        return None
    named = [p.name for p in schemas.parameters(newest.inputs, len(values))]
    known = {p.name for p in schema.inputs}
    while len(values) > schema.max_input or (values and named[len(values) - 1] not in known):
        value, name = values.pop(), named[len(values)]
        if value is None or value.array is None:
            continue
        attribute = schema.attributes.get(name) or schema.attributes.get(name.lower())
        if attribute is None:
            return None
        made = _attribute(attribute, value.array)
        if made is None:
            return None
        node.attribute.append(made)
    del node.input[len(values) :]
    return (node, values) if all(a.name in schema.attributes for a in node.attribute) else None


def _attribute(of: OpSchema.Attribute, array: Array) -> AttributeProto | None:
    """Return what was an input as an attribute; None where its type does not fit."""
    kinds = OpSchema.AttrType
    flat = array.ravel().tolist()
    if of.type == kinds.INTS and array.dtype.kind in "iu":
        return helper.make_attribute(of.name, flat, attr_type=AttributeProto.INTS)
    if of.type == kinds.FLOATS and array.dtype.kind == "f":
        return helper.make_attribute(of.name, flat, attr_type=AttributeProto.FLOATS)
    if len(flat) == 1 and of.type == kinds.INT and array.dtype.kind in "iub":
        return helper.make_attribute(of.name, int(flat[0]))
    if len(flat) == 1 and of.type == kinds.FLOAT and array.dtype.kind in "fiu":
        return helper.make_attribute(of.name, float(flat[0]))
    return None


def case_of(schema: OpSchema, opset: int, template: Template, dtypes: tuple[str, ...]) -> Case | None:
    """Return the case of one combination of dtypes; None where the template does not make a valid model of it."""
    adapted = _adapt(schema, template)
    if adapted is None:
        return None
    node, values = adapted
    by_variable = dict(zip(schemas.variables(schema), dtypes, strict=True))
    if _used(schema, template) != frozenset(p for p in by_variable if by_variable[p] != UNUSED) | _fixed(schema, node):
        return None
    _state_dtypes(schema, node, by_variable)
    frame = _Frame(schema, node, by_variable, template.ranks)
    for position, (value, info) in enumerate(zip(values, template.infos, strict=False)):
        if value is not None and info is not None and value.array is not None and not frame.add(position, value, info):
            return None
    model = frame.model(opset)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    operator = Operator(schema.domain, schema.name, schema.since_version, dtypes)
    name = " ".join([schema.domain, schema.name, str(schema.since_version), *dtypes]).strip()
    data = model.SerializeToString(deterministic=True)
    inputs = tuple(frame.values)
    return Case(name, "generated", data, inputs, (), operator, rtol=_RTOL, atol=_ATOL, frame=frame.name)


def _fixed(schema: OpSchema, node: NodeProto) -> frozenset[str]:
    """Return the concrete types among the parameters of a node, which are no variables."""
    taken = schemas.parameters(schema.inputs, len(node.input)) + schemas.parameters(schema.outputs, len(node.output))
    return frozenset(p.type_str for p in taken) - frozenset(schemas.variables(schema))


def _state_dtypes(schema: OpSchema, node: NodeProto, by_variable: dict[str, str]) -> None:
    """Set the attributes that decide the dtype of an output, or that a dtype needs."""
    if schema.name == "Mod" and by_variable["T"] in ("float16", "float32", "float64", "bfloat16"):
        _replace(node, helper.make_attribute("fmod", 1))
    outputs = schemas.parameters(schema.outputs, len(node.output))
    inputs = {p.type_str for p in schemas.parameters(schema.inputs, len(node.input))}
    alone = [p.type_str for p in outputs if p.type_str in by_variable and p.type_str not in inputs]
    if not alone or by_variable[alone[0]] == UNUSED:
        return
    dtype = by_variable[alone[0]]
    for name in ("to", "dtype", "output_dtype"):
        if name in schema.attributes:
            _replace(node, helper.make_attribute(name, DTYPES[dtype]))
            return
    value = next((a for a in node.attribute if a.name == "value" and a.type == AttributeProto.TENSOR), None)
    if value is not None and dtype in NUMPY_DTYPES:
        array = convert(numpy_helper.to_array(value.t), dtype)
        _replace(node, helper.make_attribute("value", numpy_helper.from_array(array)))


def _replace(node: NodeProto, attribute: AttributeProto) -> None:
    kept = [a for a in node.attribute if a.name != attribute.name]
    del node.attribute[:]
    node.attribute.extend([*kept, attribute])


class _Frame:
    """The model around one node. Dtypes that do not travel go through a Cast before and after it."""

    def __init__(self, schema: OpSchema, node: NodeProto, by_variable: dict[str, str], ranks: dict[str, int]) -> None:
        self.ranks = ranks
        self.schema = schema
        self.node = node
        self.by_variable = by_variable
        self.values: list[Value] = []
        self._inputs: dict[str, ValueInfoProto] = {}
        self._before: dict[str, NodeProto] = {}

    def add(self, position: int, value: Value, info: ValueInfoProto) -> bool:
        """Add an input of the node; False when its data cannot be of the dtype that is wanted."""
        parameter = schemas.parameters(self.schema.inputs, position + 1)[position]
        dtype = self._dtype(parameter, value.dtype)
        if dtype is None or value.array is None or value.name in self._inputs:
            return dtype is not None and value.name in self._inputs
        given = dtype if dtype in _TRAVELS else "float32"
        name = value.name
        if given != dtype:
            name = f"{value.name}_before"
            cast = helper.make_node("Cast", [name], [value.name], name=f"{FRAME}_{name}", to=DTYPES[dtype])
            self._before[value.name] = cast
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        self._inputs[value.name] = helper.make_tensor_value_info(name, DTYPES[given], shape)
        array = value.array
        if array.dtype.kind == "f" and self.node.op_type not in ("IsNaN", "IsInf"):
            array = np.nan_to_num(array, nan=1, posinf=7, neginf=7)  # what they become as integers is not defined
        self.values.append(value_of(name, convert(array, given)))
        return True

    def _dtype(self, parameter: OpSchema.FormalParameter, now: str) -> str | None:
        if parameter.type_str not in self.by_variable:
            return schemas.dtype_of_text(parameter.type_str)
        if not parameter.is_homogeneous:
            return now
        dtype = self.by_variable[parameter.type_str]
        return None if dtype == UNUSED else dtype

    @property
    def name(self) -> str:
        """The mark in the names of the Casts around the node; empty where there are none."""
        travelling = all(dtype in _TRAVELS or dtype == UNUSED for dtype in self.by_variable.values())
        return "" if travelling else FRAME

    def model(self, opset: int) -> ModelProto:
        outputs, after = [], []
        taken = schemas.parameters(self.schema.outputs, len(self.node.output))
        for parameter, name in zip(taken, self.node.output, strict=True):
            dtype = self._dtype(parameter, "float32") if name else None
            if dtype is None:
                continue
            given, shown = dtype, name
            if dtype not in _TRAVELS:
                given, shown = "float32", f"{name}_after"
                after.append(helper.make_node("Cast", [name], [shown], name=f"{FRAME}_{shown}", to=TensorProto.FLOAT))
            outputs.append(helper.make_tensor_value_info(shown, DTYPES[given], [None] * self.ranks[name]))
        nodes = [*self._before.values(), self.node, *after]
        graph = helper.make_graph(nodes, "case", list(self._inputs.values()), outputs)
        imports = [helper.make_opsetid("", opset if self.schema.domain == "" else OPSETS[""][1])]
        if self.schema.domain:
            imports.append(helper.make_opsetid(self.schema.domain, opset))
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = max(4, helper.find_min_ir_version_for(imports))
        return model


def convert(array: Array, dtype: str) -> Array:
    """Return an array with about the same values in another dtype: whole numbers, none of them zero, for fractions.

    Zeros would be divided by, and a fraction that becomes a whole number is mostly 0.
    """
    if dtype == "string":
        return np.array([str(x) for x in array.ravel()], dtype=object).reshape(array.shape)
    target = NUMPY_DTYPES[dtype]
    if array.dtype.kind in "OUST":
        array = np.arange(1, array.size + 1, dtype=np.float32).reshape(array.shape)
    if array.dtype == target:
        return array
    if dtype == "bool":
        return np.asarray(array.astype(np.float64) > 0)
    if target.kind in "iu":
        limits = np.iinfo(target)
        if array.dtype.kind not in "iub":
            with np.errstate(all="ignore"):
                array = np.nan_to_num(np.round(array.astype(np.float64) * 3), nan=1, posinf=7, neginf=-7)
            array = np.where(array == 0, 1, array)
        array = np.abs(array) if target.kind == "u" and array.dtype.kind in "if" else array
        array = np.asarray(np.clip(array.astype(np.float64), max(limits.min, -(2**53)), min(limits.max, 2**53)))
        return array.astype(target)
    with np.errstate(all="ignore"):
        return array.astype(np.float64).astype(target)
