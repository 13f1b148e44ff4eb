"""The child process of ``edgekit.facts.shapes``: onnx's own code on a user's model.

It reads ``model.onnx`` (without weights) from its folder, and writes ``inferred.onnx``, with a type for every value
whose type can be inferred, and ``problem.txt`` when strict inference objects to something.
"""

import sys
import time
from pathlib import Path

import onnx
import onnx.inliner
import onnx.shape_inference

from edgekit.facts.fold import all_known, fold
from edgekit.model import walk

# Each round computes what the one before made known. Real models need one or two.
_MOST_ROUNDS = 8
_SECONDS = 4.0


def main(folder: Path) -> None:
    """Inline local functions, then infer and fold in turns, as long as that makes more known and time is left."""
    started = time.monotonic()
    proto = onnx.load_model(folder / "model.onnx")
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    inferred = _first(proto, folder)
    work = onnx.ModelProto()
    work.CopyFrom(proto)
    for _ in range(_MOST_ROUNDS):
        if all_known(inferred.graph) or time.monotonic() - started > _SECONDS:
            break
        if not fold(work.graph, inferred.graph, work.opset_import):
            break
        inferred = onnx.shape_inference.infer_shapes(work, data_prop=True)
    declare(proto.graph, inferred.graph)
    (folder / "inferred.onnx").write_bytes(proto.SerializeToString())


def _first(proto: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Infer strictly, to hear what is wrong, then leniently: what one node does not tell, another may."""
    try:
        return onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    except Exception as error:
        (folder / "problem.txt").write_text(str(error)[:4000], encoding="utf-8")
    return onnx.shape_inference.infer_shapes(proto, data_prop=True)


def declare(graph: onnx.GraphProto, inferred: onnx.GraphProto) -> None:
    """Write the types of ``inferred`` into ``graph``, which holds the same graphs in the same order."""
    own = {info.name for info in (*graph.input, *graph.output)}
    types = {info.name: info.type for info in (*inferred.value_info, *inferred.input, *inferred.output)}
    for node in inferred.node:  # folded ones
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.name == "value" and node.output[0] not in types:
                tensor = attribute.t
                types[node.output[0]] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    for info in (*graph.input, *graph.output):
        if info.name in types:
            info.type.CopyFrom(types[info.name])
    del graph.value_info[:]
    graph.value_info.extend(
        onnx.ValueInfoProto(name=name, type=kind) for name, kind in types.items() if name not in own
    )
    inner = [subgraph for node in graph.node for subgraph in walk.subgraphs(node)]
    inner_inferred = [subgraph for node in inferred.node for subgraph in walk.subgraphs(node)]
    for subgraph, subgraph_inferred in zip(inner, inner_inferred, strict=True):
        declare(subgraph, subgraph_inferred)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
