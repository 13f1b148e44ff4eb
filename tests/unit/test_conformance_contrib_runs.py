"""onnxruntime's own operators, run: which of them have a case."""

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as native

from edgekit.conformance import contrib_attention, contrib_runs

# With a reason each: what takes subgraphs of a language model, sparse tensors, buffers that are shared between input
# and output, or is so new that no published onnxruntime-web has it.
SUBGRAPHS = {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"}
NO_PLAIN_TENSORS = {"SparseToDenseMatMul", "SparseAttention"}
OTHERS = {"AttnLSTM"}
NEWER = {
    "BranchwiseRMSNorm", "GatedDeltaNet", "GatherPacked", "HyperConnectionPostMix", "HyperConnectionPreMix",
    "MoEGroupRouter", "NGramHashMapping", "ScaledSiLU", "VarlenCausalConvWithState", "VarlenNGramHashMapping",
}  # fmt: skip


def operators() -> set[str]:
    cases = (*contrib_runs.cases(), *contrib_attention.cases())
    return {node.op_type for case in cases for node in onnx.load_from_string(case.model).graph.node}


def test_every_operator_of_the_desktop_is_run_but_for_those_that_cannot_be() -> None:
    kernels = {k.op_name for k in native.get_all_opkernel_def() if k.domain == "com.microsoft"}
    assert kernels - operators() == SUBGRAPHS | NO_PLAIN_TENSORS | OTHERS | NEWER
    assert operators() <= kernels | {"Gelu"}


def test_each_case_is_one_node_whose_operator_and_dtypes_are_known() -> None:
    for case in (*contrib_runs.cases(), *contrib_attention.cases()):
        assert case.operator is not None, case.name
        assert case.operator.domain == "com.microsoft"
        assert case.operator.dtypes
    (product,) = (case for case in contrib_runs.cases() if case.name == "contrib QLinearAdd uint8 4")
    assert product.operator is not None
    assert product.operator.dtypes == ("uint8",)
