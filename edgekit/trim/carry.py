"""Models to onnx-ir and back, with what onnx-ir does not hold carried across.

onnx-ir (1.1) drops sparse initializers without a word, refuses sparse attributes, map types and strings that are not
UTF-8, and reads the domain "ai.onnx" as another than "". Each of these is put aside under a mark, and put back.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import Message

from edgekit.errors import ModelError
from edgekit.model import walk

# Its warnings about models are for the author of a converter, and Python would write them to the terminal.
logging.getLogger("onnx_ir").addHandler(logging.NullHandler())

# A domain that no model has: passes leave its nodes alone, and remove those that nothing uses.
DOMAIN = "edgekit.carried"
_SPARSE, _CONSTANT, _INDEX = "SparseInitializer", "SparseConstant", "index"
# Axes, pads, permutations: no pass reads a longer list.
_MOST_LISTED = 4096

_FIELDS = (
    ("f", "FLOAT"), ("i", "INT"), ("s", "STRING"), ("t", "TENSOR"), ("g", "GRAPH"), ("sparse_tensor", "SPARSE_TENSOR"),
    ("tp", "TYPE_PROTO"),
)  # fmt: skip
_LISTS = (("floats", "FLOATS"), ("ints", "INTS"), ("strings", "STRINGS"), ("tensors", "TENSORS"), ("graphs", "GRAPHS"))


class Carried:
    """A model in onnx-ir, and what was put aside. ``outputs``: the type of each output, which some passes lose."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.sparse: list[onnx.SparseTensorProto] = []
        self.attributes: list[onnx.AttributeProto] = []
        self.types: dict[str, onnx.TypeProto] = {}
        self.outputs: dict[str, onnx.TypeProto] = {}


def to_ir(proto: onnx.ModelProto, folder: Path) -> Carried:
    """Turn a model into onnx-ir. External data lies in ``folder``.

    Raises ModelError for a graph that makes no sense: a value made twice, an attribute without a type.
    """
    plain = _without_lists(proto)
    plain.ClearField("training_info")
    carried = Carried(ir.Model(ir.Graph([], [], nodes=[]), ir_version=plain.ir_version))
    _plain_domains(plain)
    _put_types_aside(plain, carried)
    bodies = (*walk.all_graphs(plain), *plain.functions)
    for body, own in zip(bodies, (*walk.all_graphs(proto), *proto.functions), strict=True):
        _put_aside(body, own, carried)
    carried.outputs = {info.name: info.type for info in plain.graph.output if info.HasField("type")}
    try:
        carried.model = ir.from_proto(plain)
        for graph in (carried.model.graph, *(function.graph for function in carried.model.functions.values())):
            ir.external_data.set_base_dir(graph, folder)
    except Exception as error:  # onnx-ir raises what it meets
        raise _senseless(error) from error
    return carried


def _without_lists(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model without the long lists of the main graph's nodes, of each of which one entry stays."""
    copy = onnx.ModelProto()
    if not any(_is_long(node, attribute) for node in proto.graph.node for attribute in node.attribute):
        copy.CopyFrom(proto)
        return copy
    _copy_fields(proto, copy, "graph")
    _copy_fields(proto.graph, copy.graph, "node")
    for node in proto.graph.node:
        own = copy.graph.node.add()
        _copy_fields(node, own, "attribute")
        for attribute in node.attribute:
            if not _is_long(node, attribute):
                own.attribute.add().CopyFrom(attribute)
                continue
            cut = own.attribute.add(name=attribute.name, type=attribute.type)
            for name, _ in _LISTS[:3]:
                getattr(cut, name).extend(getattr(attribute, name)[:1])
    return copy


def _copy_fields(source: Message, copy: Message, without: str) -> None:
    for field, value in source.ListFields():
        if field.name == without:
            continue
        if field.is_repeated:
            getattr(copy, field.name).extend(value)
        elif field.message_type is not None:
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)


def _senseless(error: Exception) -> ModelError:
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    reason = next(iter(str(root).splitlines()), type(root).__name__)[:300]
    return ModelError(
        f"The model's graph makes no sense: {reason}", hint="Export it again, or mend it with the tool that made it."
    )


def to_proto(carried: Carried) -> onnx.ModelProto:
    """Undo ``to_ir``. Raises ModelError for what onnx-ir cannot write, such as an attribute of no type."""
    try:
        proto: onnx.ModelProto = ir.to_proto(carried.model)
    except Exception as error:  # onnx-ir looks at some things only now
        raise _senseless(error) from error
    for body in (*walk.all_graphs(proto), *proto.functions):
        _put_back(body, carried)
    for graph in walk.all_graphs(proto):
        stored = {tensor.name for tensor in graph.initializer}
        infos = [info for info in graph.value_info if info.name not in stored]
        if len(infos) < len(graph.value_info):  # onnx-ir records the type of every initializer a second time
            del graph.value_info[:]
            graph.value_info.extend(infos)
    for info in (*proto.graph.input, *proto.graph.output):
        if info.name in carried.types:
            info.type.CopyFrom(carried.types[info.name])
    for info in proto.graph.output:
        if not info.HasField("type") and info.name in carried.outputs:
            info.type.CopyFrom(carried.outputs[info.name])
    for opset in proto.opset_import:
        if not opset.domain:
            opset.ClearField("domain")
    if any(opset.domain == DOMAIN for opset in proto.opset_import):
        kept = [opset for opset in proto.opset_import if opset.domain != DOMAIN]
        del proto.opset_import[:]
        proto.opset_import.extend(kept)
    return proto


def _plain_domains(proto: onnx.ModelProto) -> None:
    """Spell the default domain "" everywhere; of two imports of it the newer one counts."""
    for node in walk.all_nodes(proto):
        node.domain = "" if node.domain == walk.DEFAULT_DOMAIN else node.domain
    for owner in (proto, *proto.functions):
        versions: dict[str, int] = {}
        for opset in owner.opset_import:
            domain = "" if opset.domain == walk.DEFAULT_DOMAIN else opset.domain
            versions[domain] = max(opset.version, versions.get(domain, 0))
        if owner is proto and not versions:
            versions[""] = 1  # before IR version 3 models did not say
        del owner.opset_import[:]
        owner.opset_import.extend(onnx.OperatorSetIdProto(domain=d, version=v) for d, v in versions.items())


def _put_types_aside(proto: onnx.ModelProto, carried: Carried) -> None:
    for graph in walk.all_graphs(proto):
        for info in (*graph.input, *graph.output):
            if _has_map(info.type):
                if graph is proto.graph:
                    carried.types[info.name] = onnx.TypeProto.FromString(info.type.SerializeToString())
                info.ClearField("type")
        kept = [info for info in graph.value_info if info.name and not _has_map(info.type)]
        if len(kept) < len(graph.value_info):
            del graph.value_info[:]
            graph.value_info.extend(kept)


def _has_map(kind: onnx.TypeProto) -> bool:
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        return not kind.sequence_type.HasField("elem_type") or _has_map(kind.sequence_type.elem_type)
    if which == "optional_type":
        return not kind.optional_type.HasField("elem_type") or _has_map(kind.optional_type.elem_type)
    return which in ("map_type", "opaque_type")


def _put_aside(
    body: onnx.GraphProto | onnx.FunctionProto, own: onnx.GraphProto | onnx.FunctionProto, carried: Carried
) -> None:
    """Put aside what onnx-ir cannot hold, or should not. ``own``: the same graph in the model that was given."""
    for node, own_node in zip(body.node, own.node, strict=True):
        for attribute, own_attribute in zip(node.attribute, own_node.attribute, strict=True):
            _state_type(attribute)
            long = _is_long(own_node, own_attribute)
            if long or _is_foreign(attribute):
                kept = own_attribute  # a long list is not copied once more
                if not long:
                    kept = onnx.AttributeProto()
                    kept.CopyFrom(attribute)
                carried.attributes.append(kept)
                name = attribute.name
                attribute.Clear()
                attribute.name, attribute.type = f"{DOMAIN}/{name}", onnx.AttributeProto.INT
                attribute.i = len(carried.attributes) - 1
                if node.op_type == "Constant" and not node.domain:
                    node.op_type, node.domain = _CONSTANT, DOMAIN
    if isinstance(body, onnx.GraphProto) and body.sparse_initializer:
        nodes = []
        for sparse in body.sparse_initializer:
            kept_sparse = onnx.SparseTensorProto()
            kept_sparse.CopyFrom(sparse)
            carried.sparse.append(kept_sparse)
            index = onnx.AttributeProto(name=_INDEX, type=onnx.AttributeProto.INT, i=len(carried.sparse) - 1)
            nodes.append(onnx.NodeProto(op_type=_SPARSE, domain=DOMAIN, output=[sparse.values.name], attribute=[index]))
        nodes += body.node
        del body.sparse_initializer[:]
        del body.node[:]
        body.node.extend(nodes)


def _state_type(attribute: onnx.AttributeProto) -> None:
    """Give the type to an attribute of IR version 1, which is known by the field that is set."""
    if attribute.type != onnx.AttributeProto.UNDEFINED or attribute.ref_attr_name:
        return
    for name, kind in _FIELDS:
        if attribute.HasField(name):
            attribute.type = onnx.AttributeProto.AttributeType.Value(kind)
    for name, kind in _LISTS:
        if len(getattr(attribute, name)):
            attribute.type = onnx.AttributeProto.AttributeType.Value(kind)


def _is_foreign(attribute: onnx.AttributeProto) -> bool:
    if attribute.type in (onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS):
        return True
    if attribute.type == onnx.AttributeProto.TYPE_PROTO:
        return _has_map(attribute.tp)
    return any(not _is_text(text) for text in (*attribute.strings, attribute.s))


def _is_long(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> bool:
    """Whether a list is longer than any pass looks at: the tables of a decision tree would be copied at every step."""
    return (
        node.op_type != "Constant"
        and max(len(attribute.ints), len(attribute.floats), len(attribute.strings)) > _MOST_LISTED
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _put_back(body: onnx.GraphProto | onnx.FunctionProto, carried: Carried) -> None:
    stored: list[onnx.NodeProto] = []
    for node in body.node:
        if node.domain == DOMAIN and node.op_type == _SPARSE:
            stored.append(node)
            continue
        for attribute in _marked(node):
            attribute.CopyFrom(carried.attributes[attribute.i])
            _state_type(attribute)
        if node.domain == DOMAIN and node.op_type == _CONSTANT:
            node.op_type, node.domain = "Constant", ""
    if stored and isinstance(body, onnx.GraphProto):
        for node in stored:
            sparse = body.sparse_initializer.add()
            sparse.CopyFrom(carried.sparse[next(a.i for a in node.attribute if a.name == _INDEX)])
            sparse.values.name = node.output[0]
        kept = [node for node in body.node if not (node.domain == DOMAIN and node.op_type == _SPARSE)]
        del body.node[:]
        body.node.extend(kept)


def _marked(node: onnx.NodeProto) -> Iterator[onnx.AttributeProto]:
    return (attribute for attribute in node.attribute if attribute.name.startswith(f"{DOMAIN}/"))
