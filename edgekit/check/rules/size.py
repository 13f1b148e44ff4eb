"""Rules on size: files, memory, number of nodes."""

from collections.abc import Iterator

from edgekit.check.rule import Hit, rule
from edgekit.check.subject import Subject
from edgekit.model import external_data, walk


@rule("file-bytes", "warning", "A file larger than the target's hosts serve")
def file_bytes(subject: Subject) -> Iterator[Hit]:
    limit = subject.target.limits.file_bytes
    files = [(subject.path.name, subject.path.stat().st_size)]
    files += [(file.location, file.bytes) for file in subject.model.external_files]
    for name, count in files:
        if count > limit:
            yield Hit(
                f"{name} has {count:,} bytes; target '{subject.target.id}' counts with hosts that take {limit:,} bytes "
                f"({limit / 2**20:g} MiB) a file.",
                fix="'edgekit trim MODEL -o OUT --split-weights' cuts the weights into files that fit.",
            )


def _weight_bytes(subject: Subject) -> int:
    return sum(
        external_data.tensor_bytes(tensor)
        for tensor in walk.all_tensors(subject.proto)
        if tensor.data_type in external_data.BITS
    )


@rule("memory", "warning", "More memory than the target has")
def memory(subject: Subject) -> Iterator[Hit]:
    """A session holds the weights twice while it is created: the file as fetched, and its own copy."""
    limit, weights = subject.target.limits.memory_bytes, _weight_bytes(subject)
    if not limit or 2 * weights <= limit:
        return
    fits = weights <= limit
    yield Hit(
        f"The weights take {weights:,} bytes, and twice that while the session is created; target "
        f"'{subject.target.id}' has {limit:,} bytes.",
        fix="Quantize the weights, or cut the model into parts ('edgekit trim MODEL -o OUT --outputs NAME').",
        severity=None if fits else "error",
    )


@rule("many-nodes", "note", "So many nodes that a session is slow to create")
def many_nodes(subject: Subject) -> Iterator[Hit]:
    limit, count = subject.target.limits.nodes, sum(1 for _ in walk.all_nodes(subject.proto))
    if limit and count > limit:
        yield Hit(
            f"The model has {count:,} nodes: creating a session of more than {limit:,} takes seconds (measured: 20,000 "
            "nodes, 3 s in Chromium on a laptop's two cores).",
            fix="'edgekit trim MODEL -o OUT' folds and removes nodes.",
        )
