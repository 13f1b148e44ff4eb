"""Which opset and IR versions a runtime loads, found out with models of one Identity."""

from collections.abc import Sequence

from onnx import TensorProto, helper

from edgekit.conformance.cases import Case
from edgekit.conformance.suite import Reply

_IR_VERSIONS = range(3, 20)
_OPSETS = {"": range(7, 40), "ai.onnx.ml": range(1, 12), "ai.onnx.preview": range(1, 5)}
_OLD_OPSET = 9
_PREFIX = "limit"


def probes() -> tuple[Case, ...]:
    """Return models that differ in nothing but their IR version or one opset import."""
    found = [_probe(f"{_PREFIX} ir {version}", ir=version, opsets={"": _OLD_OPSET}) for version in _IR_VERSIONS]
    for domain, versions in _OPSETS.items():
        for version in versions:
            opsets = {"": _OLD_OPSET} | {domain: version}
            found.append(_probe(f"{_PREFIX} {domain or 'ai.onnx'} {version}", ir=4, opsets=opsets, domain=domain))
    return tuple(found)


def _probe(name: str, *, ir: int, opsets: dict[str, int], domain: str = "") -> Case:
    types = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1]) for value in "xy"]
    # An import that no node uses is not looked at by every runtime.
    node = helper.make_node("Identity", ["x"], ["y"])
    if domain == "ai.onnx.ml":
        node = helper.make_node("Binarizer", ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "limit", types[:1], types[1:])
    imports = [helper.make_opsetid(*entry) for entry in opsets.items()]
    model = helper.make_model(graph, ir_version=ir, opset_imports=imports)
    return Case(name, "generated", model.SerializeToString(deterministic=True), (), (), None, run=False)


def highest(cases: Sequence[Case], replies: Sequence[Reply]) -> tuple[int, dict[str, int]]:
    """Return the highest IR version and, by domain, the highest opset that loads (domains without one left out)."""
    loaded: dict[str, int] = {}
    for case, reply in zip(cases, replies, strict=True):
        kind, _, rest = case.name.partition(" ")
        if kind == _PREFIX and reply.outcome == "loaded":
            what, _, version = rest.rpartition(" ")
            loaded[what] = max(int(version), loaded.get(what, 0))
    ir_version = loaded.pop("ir", 0)
    return ir_version, {"" if domain == "ai.onnx" else domain: version for domain, version in loaded.items()}
