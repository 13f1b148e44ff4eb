"""Rules on what JavaScript can give a model and take from it."""

from collections.abc import Iterator

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Subject
from edgekit.facts.types import type_text
from edgekit.targets.options import WEB


@rule("non-tensor-input", "error")
def non_tensor_input(subject: Subject) -> Iterator[Hit]:
    """An input that a browser cannot give."""
    if subject.target.kind != WEB:
        return
    for info in subject.proto.graph.input:
        which = info.type.WhichOneof("value")
        if which not in ("tensor_type", None):
            yield Hit(
                f"The input is {type_text(info.type)}; onnxruntime-web takes tensors alone.",
                tensor=info.name,
                fix="Make each of its tensors an input of its own.",
            )


@rule("non-tensor-output", "warning")
def non_tensor_output(subject: Subject) -> Iterator[Hit]:
    """An output that a browser cannot read."""
    if subject.target.kind != WEB:
        return
    makers = {output: placed for placed in subject.nodes for output in placed.node.output}
    for info in subject.proto.graph.output:
        which = info.type.WhichOneof("value")
        if which in ("tensor_type", None):
            continue
        maker = makers.get(info.name)
        zipmap = maker is not None and maker.node.op_type == "ZipMap"
        yield Hit(
            f"The output is {type_text(info.type)}; onnxruntime-web cannot read what is no tensor, so the page leaves "
            "it out.",
            maker.name if maker else None,
            info.name,
            "Export it without ZipMap (skl2onnx: options={'zipmap': False}), so that it is a [N, classes] tensor."
            if zipmap
            else "Make each of its tensors an output of its own.",
        )


@rule("string-tensor", "note")
def string_tensor(subject: Subject) -> Iterator[Hit]:
    """Text goes in or comes out."""
    if subject.target.kind != WEB:
        return
    for info in (*subject.proto.graph.input, *subject.proto.graph.output):
        if type_text(info.type) == "tensor(string)":
            yield Hit(
                "It is a tensor of strings: these are copied one by one, never lie on a GPU, and golden cases keep "
                "them as JSON.",
                tensor=info.name,
            )
