"""Replies to cases, judged, as a table."""

import re
from collections import defaultdict
from collections.abc import Sequence

import onnx

from edgekit.conformance import limits, schemas
from edgekit.conformance.cases import Case, Operator
from edgekit.conformance.judge import Status, judge
from edgekit.conformance.suite import Reply
from edgekit.conformance.table import Kind, OperatorSupport, Runtime, Table
from edgekit.desktop.messages import readable

_CPU = "CPUExecutionProvider"
_REASON_CHARACTERS = 160
# What onnxruntime says where it has no kernel for an operator with these dtypes. The last one is that of the web's GPU
# builds, where neither the GPU's execution provider nor the CPU's took a node.
_NO_KERNEL = re.compile(
    r"Could not find an implementation|Failed to find kernel|is not a registered function/op|No Op registered"
    r"|Type Error|MLDataType for|Provider type for .* is not set"
)
_REFUSED_BY_KERNEL = re.compile(r"Exception during initialization(?!.*Provider type for)", re.S)
_PREAMBLE = re.compile(r"^(Can't create a session\.|failed to call OrtRun\(\)\.) ERROR_CODE: \d+, ERROR_MESSAGE: ")
# Addresses and names of temporary things would make the table another one each time.
_FLEETING = re.compile(r"0x[0-9a-f]+|(?<![.\d])\d{8,}(?![.\d])")


def tabulate(runtime: Runtime, cases: Sequence[Case], replies: Sequence[Reply]) -> Table:
    """Return the table of what a runtime replied to ``cases`` (with the probes of ``limits`` among them)."""
    ir_version, opsets = limits.highest(cases, replies)
    judged = [_judged(case, reply) for case, reply in zip(cases, replies, strict=True)]
    standard = {
        case.name: (status, reason(why))
        for case, (status, why) in zip(cases, judged, strict=True)
        if case.source == "standard" or (status in ("wrong", "crashed") and case.operator is not None)
    }
    groups: dict[Operator, list[int]] = defaultdict(list)
    for index, case in enumerate(cases):
        if case.operator is not None and _tells(case, replies[index]):
            groups[case.operator].append(index)
    kinds = {operator: _kind([judged[index][0] for index in found]) for operator, found in groups.items()}
    on_cpu = {operator for operator, found in groups.items() if _on_cpu([replies[index] for index in found])}
    named: dict[tuple[str, str, int], dict[str, str]] = defaultdict(dict)
    for operator, found in groups.items():
        for name in (cases[index].name for index in found):
            if standard.get(name, ("passes",))[0] not in ("passes", "loads"):
                named[_key(operator)][name] = f"{standard[name][0]}: {standard[name][1]}"
    return Table(runtime, onnx.__version__, ir_version, opsets, _supports(kinds, on_cpu, named), standard)


def _judged(case: Case, reply: Reply) -> tuple[Status, str | None]:
    """Judge, and count a kernel that was found, and only dislikes made-up attributes, as one that loads."""
    loads_only = case.source == "generated" and not case.run
    if loads_only and reply.outcome == "refused" and _REFUSED_BY_KERNEL.search(reply.error or ""):
        return "loads", None
    status, why = judge(case, reply)
    # The Casts of the frame may be what differs.
    return ("loads", None) if status == "wrong" and case.frame else (status, why)


def _supports(
    kinds: dict[Operator, Kind], on_cpu: set[Operator], named: dict[tuple[str, str, int], dict[str, str]]
) -> dict[tuple[str, str, int], OperatorSupport]:
    by_key: dict[tuple[str, str, int], list[Operator]] = defaultdict(list)
    for operator in kinds:
        by_key[_key(operator)].append(operator)
    found = {}
    for key, operators in by_key.items():
        schema = schemas.schema(*key)

        def of(kind: Kind, operators: Sequence[Operator] = operators) -> frozenset[tuple[str, ...]]:
            return frozenset(operator.dtypes for operator in operators if kinds[operator] == kind)

        found[key] = OperatorSupport(
            *key,
            schemas.variables(schema) if schema is not None else operators[0].variables,
            () if schema is not None else operators[0].signature,
            passes=of("passes"),
            wrong=of("wrong"),
            loads=of("loads"),
            refused=of("refused"),
            on_cpu=frozenset(operator.dtypes for operator in operators if operator in on_cpu),
            cases=named.get(key, {}),
        )
    return found


def _key(operator: Operator) -> tuple[str, str, int]:
    return operator.domain, operator.op_type, operator.since_version


def _kind(statuses: Sequence[Status]) -> Kind:
    """Return the best that was seen: one right answer shows that a combination works."""
    for status in ("passes", "wrong", "loads"):
        if status in statuses:
            return status
    return "refused"


def _on_cpu(replies: Sequence[Reply]) -> bool:
    placed = [reply.placement for reply in replies if reply.placement and reply.outcome in ("done", "loaded")]
    return bool(placed) and all(placement == (_CPU,) for placement in placed)


def _tells(case: Case, reply: Reply) -> bool:
    """Whether a reply says something of the case's operator.

    A generated model may be refused for what is wrong with the model, or for the Casts around its operator. Only a
    reason that is about kernels counts, or a run that throws although there is a right answer.
    """
    if case.source == "standard" or reply.error is None or reply.outcome == "crashed":
        return True
    if case.frame and case.frame in reply.error:
        return False
    if _REFUSED_BY_KERNEL.search(reply.error) and not case.run:
        return True
    return bool(_NO_KERNEL.search(reply.error)) or (reply.outcome == "failed" and bool(case.outputs))


def reason(text: str | None) -> str | None:
    """Return why a case does not pass, short, and the same each time; None where there is no reason."""
    if text is None:
        return None
    short = _FLEETING.sub("…", readable(_PREAMBLE.sub("", text)))
    return short if len(short) <= _REASON_CHARACTERS else short[: _REASON_CHARACTERS - 1] + "…"
