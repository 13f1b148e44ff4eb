"""Values of 16 bits that a model does not compute with, but reads into a wider dtype first."""

import onnx

from edgekit.model import walk

NARROW = ("float16", "bfloat16")
_WIDE = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


def widened(proto: onnx.ModelProto) -> frozenset[str]:
    """Return the names that nothing but Casts to float32 or float64 reads.

    What has 16 bits under such a name reaches the arithmetic as it is, on every device, so nothing rounds by its unit
    in the last place: 0.4 % of a bfloat16, which no tolerance of float32 forgives.
    """
    cast: set[str] = set()
    read = {output.name for graph in walk.all_graphs(proto) for output in graph.output}
    for node in walk.all_nodes(proto):
        wide = node.op_type == "Cast" and any(a.name == "to" and a.i in _WIDE for a in node.attribute)
        (cast if wide else read).update(node.input)
    return frozenset(cast - read)
