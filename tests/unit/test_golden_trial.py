"""The experiments that grade a case, with the real desktop runtime."""

from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from models_text import loaded
from onnx import TensorProto, helper

from edgekit.child.process import DEFAULT_LIMITS
from edgekit.desktop.run import Feed
from edgekit.golden import trial
from edgekit.golden.grade import Judge
from edgekit.golden.trial import Trial
from edgekit.model import io as models
from edgekit.progress import silent
from edgekit.records.tensors import Array, value_of

JUDGE = Judge({}, {})


def forest(votes: Array) -> onnx.ModelProto:
    """A forest of stumps: each gives the first two classes its row of ``votes``, swapped where x is above zero."""
    nodes = [(tree, node) for tree in range(len(votes)) for node in range(3)]
    leaves = [(tree, leaf, label) for tree in range(len(votes)) for leaf in (1, 2) for label in range(3)]
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        nodes_treeids=[tree for tree, _ in nodes],
        nodes_nodeids=[node for _, node in nodes],
        nodes_modes=["LEAF" if node else "BRANCH_LEQ" for _, node in nodes],
        nodes_featureids=[0 for _ in nodes],
        nodes_values=[0.0 for _ in nodes],
        nodes_truenodeids=[0 if node else 1 for _, node in nodes],
        nodes_falsenodeids=[0 if node else 2 for _, node in nodes],
        class_treeids=[tree for tree, _, _ in leaves],
        class_nodeids=[leaf for _, leaf, _ in leaves],
        class_ids=[label for _, _, label in leaves],
        class_weights=[0.0 if label == 2 else float(votes[tree][(leaf + label) % 2]) for tree, leaf, label in leaves],
        classlabels_int64s=[0, 1, 2],
    )
    graph = helper.make_graph(
        [node],
        "forest",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["N"])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def ties(seed: int) -> Array:
    """Twenty trees, each class with the same votes in another order: a tie, but for the order of the sums."""
    rng = np.random.default_rng(seed)
    votes = (rng.integers(1, 10, 20) / 200).astype(np.float32)
    return np.stack([votes, votes[rng.permutation(20)]], axis=1)


def tried(votes: Array, folder: Path) -> Trial:
    models.save(forest(votes), folder / "model.onnx")
    x = np.resize(np.array([[-1], [1]], np.float32), (64, 1))
    model = models.load(folder / "model.onnx")
    with trial.bench(model, seed=0, limits=DEFAULT_LIMITS, progress=silent) as bench:
        (one,) = bench.tried([Feed((value_of("x", x),))], frozenset())
    return one


WIDENED = """
<ir_version: 10, opset_import: ["" : 21]>
brain (bfloat16[3] x) => (float[3] y, READ z)
<bfloat16[3] w = {1, 2, 3}>
{ a = Cast <to = 1> (x)  b = Cast <to = 1> (w)  y = Mul(a, b)  z = USE }
"""


@pytest.mark.parametrize(
    ("read", "use", "moves"), [("float[3]", "Neg(a)", False), ("bfloat16[3]", "Identity(x)", True)]
)
def test_what_is_widened_before_it_is_computed_with_moves_by_no_unit_of_16_bits(
    read: str, use: str, moves: bool, tmp_path: Path
) -> None:
    model = loaded(WIDENED.replace("READ", read).replace("USE", use), tmp_path)
    x = np.array([1, 2, 3], ml_dtypes.bfloat16)
    with trial.bench(model, seed=0, limits=DEFAULT_LIMITS, progress=silent) as bench:
        (one,) = bench.tried([Feed((value_of("x", x),))], frozenset())
    assert one.error is None and None not in one.rounded.values()
    assert one.graded([], JUDGE).chaotic is moves


@pytest.mark.parametrize(("seed", "threads"), [(0, 2), (6, 4)])
def test_a_forest_whose_votes_tie_is_chaotic_by_its_threads_alone(seed: int, threads: int, tmp_path: Path) -> None:
    one = tried(ties(seed), tmp_path)
    alone = replace(one, rounded={"threads": one.rounded[f"{threads} threads"]})
    assert alone.graded([], JUDGE).chaotic
    assert one.graded([], JUDGE).chaotic


def test_a_forest_whose_votes_differ_is_not(tmp_path: Path) -> None:
    one = tried(ties(0) * np.array([2, 1], np.float32), tmp_path)
    assert set(one.rounded) == {"one ulp in inputs and weights", "2 threads", "4 threads"}
    assert None not in one.rounded.values()
    assert not one.graded([], JUDGE).chaotic
