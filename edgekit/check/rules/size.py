"""Rules on size: files, memory, number of nodes."""

from collections.abc import Iterator

import onnx

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Subject, stored_bytes
from edgekit.errors import ModelError
from edgekit.facts import work
from edgekit.model import external_data, walk


@rule("file-bytes", "warning")
def file_bytes(subject: Subject) -> Iterator[Hit]:
    """A file larger than the target's hosts serve."""
    limit = subject.target.limits.file_bytes
    files = [(subject.path.name, subject.path.stat().st_size)]
    files += [(file.location, file.bytes) for file in subject.model.external_files]
    for name, count in files:
        if count > limit:
            yield Hit(
                f"{name} has {count:,} bytes; target '{subject.target.id}' counts with hosts that take {limit:,} bytes "
                f"({limit / 2**20:g} MiB) a file.",
                fix=f"'edgekit trim MODEL -o OUT --split-weights {limit}' cuts the weights into files that fit.",
            )


def _weight_bytes(subject: Subject) -> int:
    return sum(stored_bytes(tensor) for tensor in walk.all_tensors(subject.proto))


@rule("memory", "warning")
def memory(subject: Subject) -> Iterator[Hit]:
    """More memory than the target has.

    A session holds the weights twice while it is created: the file as fetched, and its own copy.
    """
    limit, weights = subject.target.limits.memory_bytes, _weight_bytes(subject)
    values = 0 if subject.evidence.shapes is None else work.estimate(subject.evidence.shapes).peak_bytes
    if not limit or max(2 * weights, weights + values) <= limit:
        return
    yield Hit(
        f"The weights take {weights:,} bytes, and twice that while the session is created; a run adds at least "
        f"{values:,} bytes of values (an estimate). Target '{subject.target.id}' has {limit:,} bytes.",
        fix="Quantize the weights, or cut the model into parts ('edgekit trim MODEL -o OUT --outputs NAME').",
        severity=None if weights + values <= limit else "error",
    )


@rule("stored-tensor", "error")
def stored_tensor(subject: Subject) -> Iterator[Hit]:
    """A stored tensor that cannot be."""
    for tensor in walk.all_tensors(subject.proto):
        if tensor.data_type == onnx.TensorProto.STRING or external_data.is_external(tensor):
            continue
        try:
            needed = external_data.tensor_bytes(tensor)
        except ModelError as error:
            yield Hit(error.message, tensor=tensor.name, fix=error.hint)
            continue
        if tensor.HasField("raw_data") and len(tensor.raw_data) != needed:
            yield Hit(
                f"The tensor's type and shape {list(tensor.dims)[:8]} make {needed:,} bytes, and "
                f"{len(tensor.raw_data):,} are stored.",
                tensor=tensor.name,
                fix="The file is damaged, or its exporter is broken. Export the model again.",
            )


@rule("many-nodes", "note")
def many_nodes(subject: Subject) -> Iterator[Hit]:
    """So many nodes that a session is slow to create."""
    limit, count = subject.target.limits.nodes, sum(1 for _ in walk.all_nodes(subject.proto))
    if limit and count > limit:
        yield Hit(
            f"The model has {count:,} nodes: creating a session of more than {limit:,} takes seconds (measured: 20,000 "
            "nodes, 3 s in Chromium on a laptop's two cores).",
            fix="'edgekit trim MODEL -o OUT' folds and removes nodes.",
        )
