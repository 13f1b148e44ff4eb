"""Rules on operators: does the runtime have them, with these data types, and where do they run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import onnx.defs

from edgekit.check.providers import Provider
from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Placed, Subject
from edgekit.conformance import schemas
from edgekit.conformance.table import Answer
from edgekit.model import walk

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
_STANDARD = {"ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training"}
# What onnxruntime itself adds; which of these a build has, the measured tables say.
_CONTRIB = {"com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"}
_CONTROL = {"If", "Loop", "Scan", "SequenceMap"}


@cache
def _has_name(domain: str, op_type: str) -> bool:
    return onnx.defs.has(op_type, "" if domain == walk.DEFAULT_DOMAIN else domain)


@rule("unknown-operator", "error", "An operator that its opset does not have")
def unknown_operator(subject: Subject) -> Iterator[Hit]:
    for domain, op_type, placed in _kinds(subject):
        opset = subject.opsets.get(domain)
        local = any((walk.domain_name(f.domain), f.name) == (domain, op_type) for f in subject.proto.functions)
        if domain not in _STANDARD or opset is None or local or schemas.schema(domain, op_type, opset) is not None:
            continue
        known = _has_name(domain, op_type)
        yield Hit(
            f"Opset {opset} of {domain} has no operator '{op_type}'"
            + ("; another opset has it." if known else ", nor has any other opset that is known here."),
            placed.name,
            fix="Export the model again with an opset that has it." if known else "Export it without this operator.",
        )


def _kinds(subject: Subject) -> list[tuple[str, str, Placed]]:
    """Every operator once, with the first node of it."""
    found: dict[tuple[str, str], Placed] = {}
    for placed in subject.nodes:
        found.setdefault((placed.domain, placed.node.op_type), placed)
    return [(domain, op_type, placed) for (domain, op_type), placed in found.items()]


@rule("custom-operator", "error", "An operator of a private domain")
def custom_operator(subject: Subject) -> Iterator[Hit]:
    local = {(walk.domain_name(f.domain), f.name) for f in subject.proto.functions}
    for domain, op_type, placed in _kinds(subject):
        if domain in _STANDARD or domain in _CONTRIB or (domain, op_type) in local:
            continue
        yield Hit(
            f"The operator '{domain}::{op_type}' is of no domain that onnxruntime has: the model cannot run without "
            "the code that defines it.",
            placed.name,
            fix="Export the model without custom operators, or express this one as a local function of standard ones.",
        )


def _look(subject: Subject, provider: Provider, placed: Placed) -> Answer:
    opset = subject.opsets.get(placed.domain)
    if provider.measured is None or opset is None or placed.is_standard(*_CONTROL):
        return "unknown"
    inputs = subject.dtypes(list(placed.node.input), placed)
    outputs = subject.dtypes(list(placed.node.output), placed)
    return provider.measured.look(placed.domain, placed.node.op_type, opset, inputs, outputs)


def _typed(subject: Subject, placed: Placed) -> str:
    """The operator with the types it runs on: "CumSum (float64, int32)"."""
    dtypes = [dtype for dtype in subject.dtypes(list(placed.node.input), placed) if dtype]
    return f"{placed.operator} ({', '.join(dtypes)})" if dtypes else placed.operator


def _grouped(subject: Subject, found: Sequence[Placed]) -> Iterator[tuple[str, list[Placed]]]:
    groups: dict[str, list[Placed]] = {}
    for placed in found:
        groups.setdefault(_typed(subject, placed), []).append(placed)
    yield from groups.items()


def _others(nodes: Sequence[Placed]) -> str:
    return f" ({len(nodes):,} such nodes)" if len(nodes) > 1 else ""


@rule("operator-refused", "error", "An operator that the runtime does not run with these data types")
def operator_refused(subject: Subject) -> Iterator[Hit]:
    for provider in subject.providers:
        found = [placed for placed in subject.nodes if _look(subject, provider, placed) == "refused"]
        for typed, nodes in _grouped(subject, found):
            yield Hit(
                f"{provider.runtime} on {provider.id} refuses {typed} at opset "
                f"{subject.opsets[nodes[0].domain]}: measured{_others(nodes)}.{provider.then}",
                nodes[0].name,
                fix="Export it with another operator or data type (float64 to float32, say)."
                + (" Or name a target that runs it." if provider.fallbacks == () and provider.gpu else ""),
                severity=provider.refusal,
            )


@rule("operator-wrong", "warning", "An operator whose answers were measured to be wrong")
def operator_wrong(subject: Subject) -> Iterator[Hit]:
    for provider in subject.providers:
        found = [placed for placed in subject.nodes if _look(subject, provider, placed) == "wrong"]
        for typed, nodes in _grouped(subject, found):
            yield Hit(
                f"{provider.runtime} on {provider.id} gives wrong answers for {typed} in every standard case that was "
                f"measured{_others(nodes)}.",
                nodes[0].name,
                fix="'edgekit build' and 'edgekit parity' show whether it matters here.",
            )


@rule("operator-unmeasured", "note", "Operators of which nothing was measured")
def operator_unmeasured(subject: Subject) -> Iterator[Hit]:
    for provider in subject.providers:
        if provider.measured is None:
            yield Hit(
                f"Nothing was measured of {provider.runtime} on {provider.id}, so its operators are not checked.",
            )
            continue
        found = [
            placed
            for placed in subject.nodes
            if not placed.is_standard(*_CONTROL) and _look(subject, provider, placed) == "unknown"
        ]
        if found:
            listed = ", ".join(dict.fromkeys(typed for typed, _ in _grouped(subject, found)))
            yield Hit(
                f"Nothing certain was measured of {provider.runtime} on {provider.id} for: {listed[:400]}.",
                found[0].name,
                fix="'edgekit build' and 'edgekit parity' find out for this model.",
            )


def _on_cpu(subject: Subject, provider: Provider) -> list[Placed]:
    found = []
    for placed in subject.nodes:
        opset = subject.opsets.get(placed.domain)
        if provider.measured is None or opset is None or placed.is_standard("Constant", *_CONTROL):
            continue
        inputs = subject.dtypes(list(placed.node.input), placed)
        outputs = subject.dtypes(list(placed.node.output), placed)
        if provider.measured.place(placed.domain, placed.node.op_type, opset, inputs, outputs) == "cpu":
            found.append(placed)
    return found


@rule("cpu-fallback", "warning", "Nodes that a GPU session leaves to the CPU")
def cpu_fallback(subject: Subject) -> Iterator[Hit]:
    for provider in subject.providers:
        if not provider.gpu:
            continue
        cpu = _on_cpu(subject, provider)
        if not cpu:
            continue
        copies = _copies(subject, cpu)
        counts = Counter(_typed(subject, placed) for placed in cpu)
        listed = ", ".join(f"{typed} ×{count}" for typed, count in counts.most_common(8))
        yield Hit(
            f"On {provider.id}, {len(cpu):,} of {len(subject.nodes):,} nodes run on the CPU (as measured, operator by "
            f"operator), and about {copies:,} values are copied between it and the GPU in each run: {listed}.",
            cpu[0].name,
            fix="Where it is slow, the CPU alone may be faster: compare both targets with 'edgekit parity'.",
            severity="warning" if copies > 2 else "note",
        )


def _copies(subject: Subject, cpu: Sequence[Placed]) -> int:
    """How many values cross: made on one side and taken on the other. Weights are placed once, and are not counted."""
    there = {id(placed.node) for placed in cpu}
    side: dict[str, bool] = {}
    for placed in subject.nodes:
        side |= {output: id(placed.node) in there for output in placed.node.output if output}
    crossing = {
        name
        for placed in subject.nodes
        for name in placed.node.input
        if name in side and side[name] != (id(placed.node) in there) and not placed.is_standard(*_CONTROL)
    }
    constants = {output for placed in subject.nodes if placed.is_standard("Constant") for output in placed.node.output}
    return len(crossing - constants)


@rule("random-operator", "warning", "An operator whose answers are random")
def random_operator(subject: Subject) -> Iterator[Hit]:
    for placed in subject.nodes:
        random = placed.is_standard(*_RANDOM) or (placed.is_standard("Dropout") and _trains(subject, placed))
        if random:
            yield Hit(
                f"{placed.node.op_type} draws random numbers: two runs, and two devices, give different answers, so "
                "golden cases cannot prove what depends on it.",
                placed.name,
                fix="Make the random numbers an input of the model.",
            )


def _trains(subject: Subject, placed: Placed) -> bool:
    """Whether a Dropout node is in training mode, or may be."""
    if len(placed.node.input) < 3 or not placed.node.input[2]:
        return False
    name = placed.node.input[2]
    tensor = subject.initializers.get(name)
    if tensor is not None:
        return any(tensor.int32_data) or any(tensor.raw_data)
    return not any(
        each.is_standard("Constant") and name in each.node.output and not any(_bytes_of(each)) for each in subject.nodes
    )


def _bytes_of(constant: Placed) -> list[int]:
    attribute = next((a for a in constant.node.attribute if a.name == "value"), None)
    return [] if attribute is None else [*attribute.t.raw_data, *attribute.t.int32_data]
