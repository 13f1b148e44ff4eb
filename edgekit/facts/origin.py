"""Where a model came from, and what its exporter left behind that matters on the way to a device.

Each quirk is something that was seen in files of real exporters; none of them is an error.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import onnx

from edgekit.facts.graph import GraphFacts
from edgekit.facts.places import all_graphs, all_nodes, label
from edgekit.facts.types import ValueType, value_type
from edgekit.facts.weights import WeightFacts
from edgekit.model.walk import DEFAULT_DOMAIN, domain_name

# producer_name as the exporters write it. Sources: the exporters' own code, and the files of their releases.
_PRODUCERS = {
    "pytorch": "PyTorch",
    "tf2onnx": "TensorFlow (tf2onnx)",
    "keras2onnx": "Keras (keras2onnx)",
    "skl2onnx": "scikit-learn (skl2onnx)",
    "onnxmltools": "onnxmltools",
    "paddlepaddle": "PaddlePaddle",
    "paddle2onnx": "PaddlePaddle (Paddle2ONNX)",
    "onnx.quantize": "onnxruntime quantization",
    "onnxruntime.transformers": "onnxruntime transformers optimizer",
    "onnxruntime-genai": "onnxruntime-genai",
    "olive": "Olive",
    "cntk": "CNTK",
    "coremltools": "Core ML tools",
    "winmltools": "WinMLTools",
    "mxnet": "MXNet",
    "jax2onnx": "JAX (jax2onnx)",
    "matlab deep learning toolbox converter for onnx model format": "MATLAB",
    "backend-test": "ONNX backend tests",
}

# Some exporters only leave their mark in the graph's name.
_GRAPHS = {
    "model from paddlepaddle.": "PaddlePaddle (Paddle2ONNX)",
    "torch-jit-export": "PyTorch",
    "torch_jit": "PyTorch",
    "tf2onnx": "TensorFlow (tf2onnx)",
}

# Names that tools make up where nobody named the dimension.
_MADE_UP = re.compile(
    r"unk__\d+|.*DynamicDimension\.\d+|.*_dynamic_axes_\d+|[A-Z][A-Za-z]+_?\w*_dim_\d+|s\d+|dim_\d+|unknown\w*|\?+|-?\d+",
)
_TAKE_AXES = ("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2")
_OLD_OPSET = 11
_LEAST_TEXT_BYTES = 10_000


@dataclass(frozen=True)
class Quirk:
    """One thing that an exporter did. ``rule``: a short name that stays. ``fix``: what to do when it is in the way."""

    rule: str
    message: str
    fix: str | None = None


@dataclass(frozen=True)
class Origin:
    """``exporter``: what made the file, in words; None where the file does not say. ``text_bytes``: doc strings,
    metadata and names of source lines, which no runtime reads."""

    exporter: str | None
    quirks: tuple[Quirk, ...]
    text_bytes: int


@dataclass(frozen=True)
class _Seen:
    proto: onnx.ModelProto
    graph: GraphFacts
    weights: WeightFacts
    inputs: dict[str, ValueType]
    outputs: dict[str, ValueType]
    opsets: dict[str, int]
    text_bytes: int


def trace(proto: onnx.ModelProto, graph: GraphFacts, weights: WeightFacts, opsets: dict[str, int]) -> Origin:
    """Recognise the exporter and its quirks."""
    stored = set(weights.also_inputs)
    inputs = {info.name: value_type(info.type) for info in proto.graph.input if info.name not in stored}
    outputs = {info.name: value_type(info.type) for info in proto.graph.output}
    text = _text_bytes(proto)
    seen = _Seen(proto, graph, weights, inputs, outputs, opsets, text)
    return Origin(_exporter(proto), tuple(quirk for rule in _RULES for quirk in rule(seen)), text)


def _exporter(proto: onnx.ModelProto) -> str | None:
    name = proto.producer_name.strip()
    known = _PRODUCERS.get(name.lower())
    if known == "PyTorch":
        new = any(domain_name(f.domain).startswith("pkg.") for f in proto.functions) or any(
            entry.key.startswith("pkg.torch") for node in proto.graph.node[:50] for entry in node.metadata_props
        )
        known = "PyTorch (torch.export)" if new else "PyTorch"
    said = known or name or _GRAPHS.get(proto.graph.name.lower(), "")
    return " ".join(filter(None, (said, proto.producer_version))) or None


def _text_bytes(proto: onnx.ModelProto) -> int:
    total = len(proto.doc_string) + len(proto.graph.doc_string)
    for _, node in all_nodes(proto):
        total += len(node.doc_string) + sum(len(e.key) + len(e.value) for e in node.metadata_props)
    for _, graph in all_graphs(proto):
        for info in (*graph.input, *graph.output, *graph.value_info):
            total += len(info.doc_string) + sum(len(e.key) + len(e.value) for e in info.metadata_props)
    return total


def _frozen_batch(seen: _Seen) -> Iterator[Quirk]:
    first = {
        name: kind.shape[0] for name, kind in seen.inputs.items() if kind.shape is not None and len(kind.shape) > 1
    }
    sizes = set(first.values())
    if sizes == {1}:
        yield Quirk(
            "frozen-batch",
            "The batch is frozen at 1: every input's first dimension is 1.",
            "To run several at once, export with a dynamic batch.",
        )


def _dimension_names(seen: _Seen) -> Iterator[Quirk]:
    shapes = [kind.shape or () for kind in (*seen.inputs.values(), *seen.outputs.values())]
    names = dict.fromkeys(size for shape in shapes for size in shape if isinstance(size, str))
    made_up = [name for name in names if _MADE_UP.fullmatch(name)]
    if made_up:
        yield Quirk(
            "made-up-dimension",
            f"Dimensions have names that a tool made up from the sample it exported with: {_listed(made_up)}.",
            "Name them when exporting; equal names then mean equal sizes.",
        )


def _negative_size(seen: _Seen) -> Iterator[Quirk]:
    found = [
        f"{info.name}[{axis}]"
        for info in (*seen.proto.graph.input, *seen.proto.graph.output)
        for axis, dimension in enumerate(info.type.tensor_type.shape.dim)
        if dimension.HasField("dim_value") and dimension.dim_value < 0
    ]
    if found:
        yield Quirk("negative-dimension", f"An unknown size is stored as a negative number: {_listed(found)}.")


def _training(seen: _Seen) -> Iterator[Quirk]:
    nodes = [f"{at.op_type} {at.node}" for at in seen.graph.training]
    if nodes or seen.proto.training_info:
        yield Quirk(
            "training-mode",
            f"It was exported in training mode: {_listed(nodes) or 'it holds training information'}.",
            "Export it in evaluation mode (model.eval() in PyTorch).",
        )


def _opset(seen: _Seen) -> Iterator[Quirk]:
    opset = seen.opsets.get(DEFAULT_DOMAIN)
    if opset is not None and opset <= _OLD_OPSET and any(d.name == DEFAULT_DOMAIN for d in seen.graph.domains):
        yield Quirk(
            "old-opset",
            f"Opset {opset} is far older than needed: runtimes keep such operators, but optimize newer ones.",
            "Export with opset 17 or newer.",
        )


def _imports(seen: _Seen) -> Iterator[Quirk]:
    used = {domain.name for domain in seen.graph.domains}
    unused = sorted(set(seen.opsets) - used)
    if unused:
        yield Quirk("unused-opsets", f"Opsets are imported and not used: {_listed(unused)}.")
    imported = [domain_name(entry.domain) for entry in seen.proto.opset_import]
    if twice := sorted({name for name in imported if imported.count(name) > 1}):
        yield Quirk("opset-imported-twice", f"A domain's opset is imported twice: {_listed(twice)}.")


def _overridable(seen: _Seen) -> Iterator[Quirk]:
    if names := seen.weights.also_inputs:
        yield Quirk(
            "initializers-as-inputs",
            f"Initializers are also inputs ({len(names)}), so a runtime may not fold them: {_listed(names)}.",
        )


def _constants(seen: _Seen) -> Iterator[Quirk]:
    if seen.weights.constant_bytes > max(_LEAST_TEXT_BYTES, seen.weights.bytes // 2):
        yield Quirk(
            "weights-in-constant-nodes",
            f"{seen.weights.constant_nodes:,} Constant nodes hold {seen.weights.constant_bytes:,} bytes of weights.",
        )


def _names(seen: _Seen) -> Iterator[Quirk]:
    if seen.graph.nameless:
        yield Quirk("nameless-nodes", f"{_nodes(seen.graph.nameless)} without a name.")
    if seen.graph.shared_names:
        yield Quirk("shared-names", f"Several nodes share a name: {_listed(seen.graph.shared_names)}.")
    if seen.graph.unsorted:
        yield Quirk(
            "unsorted",
            f"Nodes stand before those whose outputs they read, in: {_listed(seen.graph.unsorted)}.",
            "The ONNX specification wants them sorted; some runtimes refuse the model.",
        )


def _outputs(seen: _Seen) -> Iterator[Quirk]:
    others = [f"{name} ({kind.type})" for name, kind in seen.outputs.items() if not kind.type.startswith("tensor(")]
    if others:
        zipmap = any(node.op_type == "ZipMap" for _, node in all_nodes(seen.proto))
        yield Quirk(
            "non-tensor-output",
            f"Outputs that are no tensors cannot be read in a browser: {_listed(others)}.",
            "Export with options={'zipmap': False}." if zipmap else None,
        )


def _text(seen: _Seen) -> Iterator[Quirk]:
    if seen.text_bytes >= _LEAST_TEXT_BYTES:
        yield Quirk(
            "texts", f"{seen.text_bytes:,} bytes are doc strings and metadata of nodes, which no runtime reads."
        )


def _left_over(seen: _Seen) -> Iterator[Quirk]:
    nodes = [node for _, node in all_nodes(seen.proto) if domain_name(node.domain) == DEFAULT_DOMAIN]
    idle = sum(node.op_type in ("Identity", "Dropout") for node in nodes)
    if idle:
        yield Quirk("idle-nodes", f"{_nodes(idle)} of Identity or Dropout, which do nothing in inference.")
    convolved = {name for node in nodes if node.op_type == "Conv" for name in node.output}
    unfused = sum(
        node.op_type == "BatchNormalization" and node.input[:1] and node.input[0] in convolved for node in nodes
    )
    if unfused:
        yield Quirk(
            "unfused-batch-normalization",
            f"{_nodes(unfused)} of BatchNormalization after a Conv that could take them in.",
        )


def _scalar_axes(seen: _Seen) -> Iterator[Quirk]:
    scalars = {t.name for _, graph in all_graphs(seen.proto) for t in graph.initializer if not t.dims}
    for _, node in all_nodes(seen.proto):
        if node.op_type == "Constant" and node.output:
            scalars.update(node.output[0] for each in node.attribute if each.name == "value" and not each.t.dims)
    found = [
        f"{node.op_type} {label(node)}"
        for _, node in all_nodes(seen.proto)
        if node.op_type in _TAKE_AXES and len(node.input) > 1 and node.input[1] in scalars
    ]
    if found:
        yield Quirk(
            "scalar-axes",
            f"Axes are stored as a scalar, where ONNX wants a list of one: {_listed(found)}.",
            "Some runtimes refuse it. Store the axes with shape [1].",
        )


def _optimized(seen: _Seen) -> Iterator[Quirk]:
    if layouts := [d.name for d in seen.graph.domains if d.name in ("com.microsoft.nchwc", "com.ms.internal.nhwc")]:
        yield Quirk(
            "optimized-for-one-machine",
            f"It was saved optimized for one kind of processor ({_listed(layouts)}), and runs on no other.",
            "Take the model from before that optimization, or save it at the level 'basic'.",
        )


_RULES: tuple[Callable[[_Seen], Iterator[Quirk]], ...] = (
    _training, _outputs, _names, _frozen_batch, _dimension_names, _negative_size, _opset, _imports, _overridable,
    _constants, _text, _left_over, _scalar_axes, _optimized,
)  # fmt: skip


def _nodes(count: int) -> str:
    return f"There {'is 1 node' if count == 1 else f'are {count:,} nodes'}"


def _listed(names: list[str] | tuple[str, ...], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
