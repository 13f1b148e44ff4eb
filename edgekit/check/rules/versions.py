"""Rules on IR versions and opsets."""

from collections import Counter
from collections.abc import Iterator

from onnx import helper

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Subject
from edgekit.model import walk

_FUNCTIONS_IR = 8


@rule("ir-version", "error")
def ir_version(subject: Subject) -> Iterator[Hit]:
    """The IR version is newer than the target's runtime reads."""
    found, highest = subject.proto.ir_version, subject.target.limits.ir_version
    if found > highest:
        yield Hit(
            f"The model has IR version {found}; target '{subject.target.id}' reads at most IR version {highest}.",
            fix=f"Where its operators are old enough, lowering the number will do: 'edgekit trim MODEL -o OUT --ir "
            f"{highest}'. Else export it with an older onnx package.",
        )


@rule("opset-version", "error")
def opset_version(subject: Subject) -> Iterator[Hit]:
    """An opset is newer than the target's runtime has."""
    for domain, found in subject.opsets.items():
        highest = subject.target.limits.opset if domain == walk.DEFAULT_DOMAIN else None
        measured = [p.measured.opsets.get(domain) for p in subject.providers if p.measured is not None]
        known = [each for each in measured if each is not None]
        if domain != walk.DEFAULT_DOMAIN and known and len(known) == len(subject.providers):
            highest = max(known)
        if highest is not None and found > highest and _used(subject, domain):
            yield Hit(
                f"The model uses opset {found} of {domain}; target '{subject.target.id}' has at most opset {highest}.",
                fix=f"Convert it: 'edgekit trim MODEL -o OUT --opset {highest}', or export it again with that opset."
                if domain == walk.DEFAULT_DOMAIN
                else "Export it again with an older opset.",
            )


def _used(subject: Subject, domain: str) -> bool:
    return domain == walk.DEFAULT_DOMAIN or any(
        walk.domain_name(node.domain) == domain for node in walk.all_nodes(subject.proto)
    )


@rule("opset-missing", "error")
def opset_missing(subject: Subject) -> Iterator[Hit]:
    """Operators of a domain whose opset the model does not say."""
    told = set(subject.opsets)
    in_graphs = (node for graph in walk.graphs(subject.proto.graph) for node in graph.node)
    for domain in dict.fromkeys(walk.domain_name(node.domain) for node in in_graphs):
        if domain not in told:
            yield Hit(
                f"The model uses operators of the domain '{domain}' and does not say which opset of it.",
                fix="Add the domain to the model's opset_import, or export the model again.",
            )


@rule("opset-twice", "note")
def opset_twice(subject: Subject) -> Iterator[Hit]:
    """A domain's opset is said twice."""
    counts = Counter(walk.domain_name(entry.domain) for entry in subject.proto.opset_import)
    for domain, count in counts.items():
        if count > 1:
            versions = sorted(e.version for e in subject.proto.opset_import if walk.domain_name(e.domain) == domain)
            yield Hit(
                f"The model imports {domain} {count} times, as opset {', '.join(map(str, versions))}: runtimes take "
                "one of them, tools may take another.",
                fix="'edgekit trim MODEL -o OUT' keeps the one that is used.",
            )


@rule("ir-opset", "warning")
def ir_opset(subject: Subject) -> Iterator[Hit]:
    """The IR version is too old for what the model uses."""
    ir, opset = subject.proto.ir_version, subject.opsets.get(walk.DEFAULT_DOMAIN, 0)
    needed = helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", opset), 0)
    if needed > ir:
        yield Hit(
            f"Opset {opset} came with IR version {needed}, and the model says IR version {ir}: some tools refuse the "
            "combination.",
            fix=f"Set it: m.ir_version = {needed}.",
        )
    if subject.proto.functions and ir < _FUNCTIONS_IR:
        yield Hit(
            f"The model defines functions, which IR version {_FUNCTIONS_IR} brought, and says IR version {ir}.",
            fix=f"Set it: m.ir_version = {_FUNCTIONS_IR}.",
        )
