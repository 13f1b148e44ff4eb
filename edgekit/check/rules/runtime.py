"""Rules that pass on what onnx's checker, shape inference and the desktop runtime say of the whole model."""

from collections.abc import Iterator

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Subject


@rule("onnx-checker", "warning")
def onnx_checker(subject: Subject) -> Iterator[Hit]:
    """onnx's checker refuses the model."""
    if said := subject.evidence.checker:
        yield Hit(
            f"onnx's checker refuses the model, though the desktop runtime loads it: {said}",
            fix="Other tools may refuse it too. Export it again with a newer exporter.",
        )


@rule("type-conflict", "warning")
def type_conflict(subject: Subject) -> Iterator[Hit]:
    """Types or shapes of the model contradict each other."""
    if said := subject.evidence.shapes_problem:
        yield Hit(
            f"onnx's shape inference objects: {' '.join(said.split())[:500]}",
            fix="Drop the shapes that the model declares between its nodes, or export it again.",
        )


@rule("runtime-refuses", "error")
def runtime_refuses(subject: Subject) -> Iterator[Hit]:
    """The desktop runtime refuses the model."""
    if said := (subject.evidence.refused or {}).get("disabled"):
        yield Hit(
            f"The desktop runtime, which gives the reference, creates no session: the model {said}",
            fix="Check the model with the tool that exported it.",
        )


@rule("optimizer-refuses", "error")
def optimizer_refuses(subject: Subject) -> Iterator[Hit]:
    """The model loads only with graph optimization off."""
    if said := (subject.evidence.refused or {}).get("all"):
        yield Hit(
            "The model loads with graph optimization off, and not with it on, which is how the page loads it: the "
            f"model {said}",
            fix="'edgekit trim MODEL -o OUT' removes what confuses the optimizer (Dropout and other nodes that do "
            "nothing).",
        )
