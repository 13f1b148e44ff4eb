"""Rules on operators: does the runtime have them, with these data types, and where do they run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import onnx.defs

from edgekit.check.providers import Provider
from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Kind, Placed, Subject
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


@rule("unknown-operator", "error")
def unknown_operator(subject: Subject) -> Iterator[Hit]:
    """An operator that its opset does not have."""
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


@rule("custom-operator", "error")
def custom_operator(subject: Subject) -> Iterator[Hit]:
    """An operator of a private domain."""
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


def _look(subject: Subject, provider: Provider, kind: Kind) -> Answer:
    opset = subject.opsets.get(kind.domain)
    if provider.measured is None or opset is None or kind.op_type in _CONTROL:
        return "unknown"
    return provider.measured.look(kind.domain, kind.op_type, opset, kind.inputs, kind.outputs)


def _answering(subject: Subject, provider: Provider, answer: Answer) -> Iterator[tuple[str, list[Placed]]]:
    """Yield each operator, with the dtypes of its inputs, for which the table has this answer, and its nodes."""
    groups: dict[str, list[Placed]] = {}
    for kind, nodes in subject.kinds.items():
        if _look(subject, provider, kind) == answer:
            groups.setdefault(str(kind), []).extend(nodes)
    yield from groups.items()


def _others(nodes: Sequence[Placed]) -> str:
    return f" ({len(nodes):,} such nodes)" if len(nodes) > 1 else ""


@rule("operator-refused", "error")
def operator_refused(subject: Subject) -> Iterator[Hit]:
    """An operator that the runtime does not run with these data types."""
    for provider in subject.providers:
        for typed, nodes in _answering(subject, provider, "refused"):
            yield Hit(
                f"{provider.runtime} on {provider.id} refuses {typed} at opset "
                f"{subject.opsets[nodes[0].domain]}: measured{provider.source}{_others(nodes)}.{provider.then}",
                nodes[0].name,
                fix="Export it with another operator or data type (float64 to float32, say)."
                + (" Or name a target that runs it." if provider.gpu and not provider.fallbacks else ""),
                severity=provider.refusal,
            )


@rule("operator-wrong", "warning")
def operator_wrong(subject: Subject) -> Iterator[Hit]:
    """An operator whose answers were measured to be wrong."""
    for provider in subject.providers:
        for typed, nodes in _answering(subject, provider, "wrong"):
            yield Hit(
                f"{provider.runtime} on {provider.id} gives wrong answers for {typed} in every standard case that was "
                f"measured{provider.source}{_others(nodes)}.",
                nodes[0].name,
                fix="'edgekit build' and 'edgekit parity' show whether it matters here.",
            )


@rule("operator-unmeasured", "note")
def operator_unmeasured(subject: Subject) -> Iterator[Hit]:
    """Operators of which nothing was measured."""
    for provider in subject.providers:
        if provider.measured is None:
            yield Hit(f"Nothing was measured of {provider.runtime} on {provider.id}: its operators are not checked.")
            continue
        if provider.stand_in:
            yield _not_on_a_device(provider)
        found = [
            placed
            for kind, nodes in subject.kinds.items()
            if kind.op_type not in _CONTROL and _look(subject, provider, kind) == "unknown"
            for placed in nodes
        ]
        if found:
            listed = list(dict.fromkeys(placed.operator for placed in found))
            more = f" and {len(listed) - 12} more" if len(listed) > 12 else ""
            yield Hit(
                f"Nothing certain was measured of {provider.stand_in or provider.runtime} on {provider.id} for these "
                f"opsets and data types of {', '.join(listed[:12])}{more}.",
                found[0].name,
                fix="'edgekit build' and 'edgekit parity' find out for this model.",
            )


def _not_on_a_device(provider: Provider) -> Hit:
    others = " and ".join(variant for variant in provider.variants if variant != provider.id)
    own = f" Kernels of {others} itself were not measured." if others else ""
    return Hit(
        f"{provider.runtime} itself was not measured. Its operators were looked up among those{provider.source}.{own}",
        fix="'edgekit parity' on a device finds out for this model.",
    )


def _on_cpu(subject: Subject, provider: Provider) -> dict[Kind, list[Placed]]:
    found = {}
    for kind, nodes in subject.kinds.items():
        opset = subject.opsets.get(kind.domain)
        if provider.measured is None or opset is None or kind.op_type in {"Constant", *_CONTROL}:
            continue
        if provider.measured.place(kind.domain, kind.op_type, opset, kind.inputs, kind.outputs) == "cpu":
            found[kind] = nodes
    return found


@rule("cpu-fallback", "warning")
def cpu_fallback(subject: Subject) -> Iterator[Hit]:
    """Nodes that a GPU session leaves to the CPU."""
    for provider in subject.providers:
        kinds = _on_cpu(subject, provider) if provider.gpu else {}
        if not kinds:
            continue
        cpu = [placed for nodes in kinds.values() for placed in nodes]
        copies = _copies(subject, cpu)
        counts: Counter[str] = Counter()
        for kind, nodes in kinds.items():
            counts[str(kind)] += len(nodes)
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


@rule("random-operator", "warning")
def random_operator(subject: Subject) -> Iterator[Hit]:
    """An operator whose answers are random."""
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
    tensor = subject.constants.get(placed.node.input[2])
    return tensor is None or any(tensor.int32_data) or any(tensor.raw_data)
