"""Operators of classical machine learning (ai.onnx.ml), run with real inputs: each dtype, each way to score."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import NodeProto, TypeProto, helper

from edgekit.conformance.authoring import ML, case, floats, integers, of_model
from edgekit.conformance.cases import Case
from edgekit.conformance.schemas import DTYPES
from edgekit.records.tensors import Array

_POST = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_NUMBERS = ("float32", "float64", "int64", "int32")
_BASE = 21
_CLASSES = {"label": ("int64", 1), "y": ("float32", 2)}
_NAMED_CLASSES = {"label": ("string", 1), "y": ("float32", 2)}


def cases() -> tuple[Case, ...]:
    """Return the cases, about 330."""
    return (*_linear(), *_support_vectors(), *_trees(), *_tree_ensemble(), *_features(), *_labels(), *_maps())


def _case(
    name: str,
    op_type: str,
    inputs: dict[str, Array],
    outputs: dict[str, tuple[str, int]],
    version: int,
    **attributes: Any,
) -> Case:
    """Return the case of one node; ``outputs``: dtype and rank by name."""
    node = helper.make_node(op_type, list(inputs), list(outputs), domain=ML, **attributes)
    return _of_nodes(f"ml {op_type} {version} {name}".strip(), [node], inputs, outputs, version)


def _twice(
    name: str,
    op_type: str,
    inputs: dict[str, Array],
    outputs: dict[str, tuple[str, int]],
    version: int,
    **attributes: Any,
) -> Iterator[Case]:
    """Yield the case of one node, and the one of the first row alone."""
    yield _case(name, op_type, inputs, outputs, version, **attributes)
    fewer = inputs | {"x": inputs["x"][:1]}
    yield _case(f"{name} one row", op_type, fewer, outputs, version, **attributes)


def _of_nodes(
    name: str, nodes: list[NodeProto], inputs: dict[str, Array], outputs: dict[str, tuple[str, int]], version: int
) -> Case:
    given = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for key, array in inputs.items()
    ]
    got = [helper.make_tensor_value_info(key, DTYPES[t], [None] * rank) for key, (t, rank) in outputs.items()]
    graph = helper.make_graph(nodes, "case", given, got)
    imports = [helper.make_opsetid("", _BASE), helper.make_opsetid(ML, version)]
    made = helper.make_model(graph, opset_imports=imports)
    made.ir_version = helper.find_min_ir_version_for(imports)
    return of_model(name, made, inputs)


def _numbers(dtype: str, *shape: int) -> Array:
    return (floats(*shape, scale=3)).astype(dtype)


def _linear() -> Iterator[Case]:
    for dtype in _NUMBERS:
        x = {"x": _numbers(dtype, 3, 4)}
        for post in _POST:
            if post != "PROBIT":
                for classes in (2, 3) if dtype == "float32" else (3,):
                    yield _case(
                        f"{post} {classes} {dtype}", "LinearClassifier", x, _CLASSES, 1,
                        coefficients=floats(classes * 4).tolist(), intercepts=floats(classes).tolist(),
                        classlabels_ints=list(range(classes)), post_transform=post, multi_class=int(classes > 2),
                    )  # fmt: skip
            if dtype == "float32":
                for targets in (1, 2) if post != "PROBIT" else (1,):
                    coefficients, intercepts = floats(targets * 4).tolist(), floats(targets).tolist()
                    if post == "PROBIT":
                        coefficients, intercepts = [0.01] * 4, [0.5]
                    yield _case(
                        f"{post} {targets}", "LinearRegressor", x, {"y": ("float32", 2)}, 1, coefficients=coefficients,
                        intercepts=intercepts, targets=targets, post_transform=post,
                    )  # fmt: skip
    for labels, coefficients in ((["no", "yes"], 8), (["a", "b", "c"], 12), (["no", "yes"], 4)):
        yield _case(
            f"words {len(labels)} of {coefficients}", "LinearClassifier", {"x": _numbers("float32", 3, 4)},
            _NAMED_CLASSES, 1, coefficients=floats(coefficients).tolist(),
            intercepts=floats(coefficients // 4).tolist(), classlabels_strings=labels, post_transform="LOGISTIC",
        )  # fmt: skip


def _support_vectors() -> Iterator[Case]:
    kernels = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.5, 1.0, 2.0], "RBF": [0.3, 0.0, 0.0], "SIGMOID": [0.1, 0.2, 0.0]}
    for kernel, parameters in kernels.items():
        for dtype in _NUMBERS if kernel == "LINEAR" else ("float32", "float64"):
            x = {"x": _numbers(dtype, 3, 4)}
            for probability in (True, False):
                further = {"prob_a": [-1.0], "prob_b": [0.1]} if probability else {}
                yield _case(
                    f"{kernel} {dtype}{' probabilities' if probability else ''}", "SVMClassifier", x,
                    _CLASSES, 1, kernel_type=kernel, kernel_params=parameters,
                    support_vectors=floats(5 * 4).tolist(), vectors_per_class=[2, 3], coefficients=floats(5).tolist(),
                    rho=[0.1], classlabels_ints=[0, 1], **further,
                )  # fmt: skip
        x = {"x": _numbers("float32", 3, 4)}
        for one_class in (0, 1):
            yield _case(
                f"{kernel}{' one class' if one_class else ''}", "SVMRegressor", x, {"y": ("float32", 2)}, 1,
                kernel_type=kernel, kernel_params=parameters, support_vectors=floats(5 * 4).tolist(), n_supports=5,
                coefficients=floats(5).tolist(), rho=[0.1], one_class=one_class,
            )  # fmt: skip
        yield _case(
            f"{kernel} words", "SVMClassifier", x, _NAMED_CLASSES, 1, kernel_type=kernel,
            kernel_params=parameters, support_vectors=floats(6 * 4).tolist(), vectors_per_class=[2, 2, 2],
            coefficients=floats(12).tolist(), rho=[0.1, 0.2, 0.3], classlabels_strings=["a", "b", "c"],
            prob_a=[-1.0] * 3, prob_b=[0.1] * 3, post_transform="SOFTMAX",
        )  # fmt: skip
    for kind in ("classifier", "regressor"):  # without support vectors: the coefficients are of a plane
        node = {
            "coefficients": floats(4).tolist(),
            "rho": [0.1],
            "kernel_type": "LINEAR",
            "kernel_params": [0.0, 0.0, 0.0],
        }
        if kind == "regressor":
            yield _case("linear, no vectors", "SVMRegressor", x, {"y": ("float32", 2)}, 1, **node)
        else:
            outputs = _CLASSES
            node |= {"coefficients": floats(8).tolist(), "classlabels_ints": [0, 1]}
            yield _case("linear, no vectors", "SVMClassifier", x, outputs, 1, **node)


def _nodes(prefix: str, mode: str, trees: int, targets: int, values: str = "floats") -> dict[str, Any]:
    """Return the attributes of ``trees`` trees of three branches and four leaves."""
    kind = {"double": "_as_tensor"}.get(values, "")
    thresholds, weights = [0.1, -0.5, 0.7, 0, 0, 0, 0] * trees, floats(4 * trees, scale=1).tolist()
    leaves = [3, 4, 5, 6] * trees
    found: dict[str, Any] = {
        "nodes_treeids": [t for t in range(trees) for _ in range(7)],
        "nodes_nodeids": list(range(7)) * trees,
        "nodes_featureids": [0, 1, 2, 0, 0, 0, 0] * trees,
        "nodes_modes": [mode, mode, mode, "LEAF", "LEAF", "LEAF", "LEAF"] * trees,
        "nodes_truenodeids": [1, 3, 5, 0, 0, 0, 0] * trees,
        "nodes_falsenodeids": [2, 4, 6, 0, 0, 0, 0] * trees,
        "nodes_missing_value_tracks_true": [1, 0, 1, 0, 0, 0, 0] * trees,
        f"{prefix}_treeids": [t for t in range(trees) for _ in range(4)],
        f"{prefix}_nodeids": leaves,
        f"{prefix}_ids": [n % targets for n in range(4 * trees)],
    }
    name = f"{prefix}_weights"
    if kind:
        double = DTYPES["float64"]
        found[f"nodes_values{kind}"] = helper.make_tensor("values", double, [len(thresholds)], thresholds)
        found[f"{name}{kind}"] = helper.make_tensor("weights", double, [len(weights)], weights)
    else:
        found |= {"nodes_values": [float(v) for v in thresholds], name: weights}
    return found


def _trees() -> Iterator[Case]:
    modes = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    for mode in modes:
        for rows in (1,):
            x = {"x": floats(rows, 4)}
            yield _case(
                f"{mode} {rows}", "TreeEnsembleRegressor", x, {"y": ("float32", 2)}, 3,
                **_nodes("target", mode, 2, 1), n_targets=1,
            )  # fmt: skip
    for version, dtype in ((1, "float32"), (3, "float32"), (3, "float64"), (1, "int64"), (3, "int32"), (1, "float64")):
        for rows, trees in ((1, 1), (60, 30)) if dtype != "float32" else ((1, 1), (3, 2), (60, 30), (1, 30)):
            x = {"x": _numbers(dtype, rows, 4)}
            values = "double" if version == 3 and dtype == "float64" else "floats"
            post = _POST[(rows + trees) % 4]
            for classes in (2, 3):
                yield _case(
                    f"{post} {classes} classes {rows}x{trees} {dtype}", "TreeEnsembleClassifier", x,
                    _CLASSES, version, classlabels_int64s=list(range(classes)),
                    post_transform=post, **_nodes("class", "BRANCH_LEQ", trees, classes, values),
                )  # fmt: skip
            if dtype[0] == "f":
                for targets, how in ((1, "SUM"), (2, "SUM"), (1, "AVERAGE"), (2, "MIN"), (1, "MAX"))[
                    : 2 if version == 1 else 5
                ]:
                    yield _case(
                        f"{how} {targets} {rows}x{trees} {dtype}", "TreeEnsembleRegressor", x, {"y": ("float32", 2)},
                        version, n_targets=targets, aggregate_function=how,
                        **_nodes("target", "BRANCH_LEQ", trees, targets, values),
                    )  # fmt: skip
    for post in _POST[:4]:
        yield _case(
            f"words {post}", "TreeEnsembleClassifier", {"x": floats(3, 4)}, _NAMED_CLASSES, 3,
            classlabels_strings=["a", "b"], post_transform=post, **_nodes("class", "BRANCH_LEQ", 2, 2),
        )  # fmt: skip
        yield _case(
            f"binary {post}", "TreeEnsembleClassifier", {"x": floats(3, 4)}, _CLASSES, 3,
            classlabels_int64s=[0, 1], post_transform=post, **_nodes("class", "BRANCH_LEQ", 2, 1),
        )  # fmt: skip


def _tree_ensemble() -> Iterator[Case]:
    """Yield the operator of opset 5, which takes the place of both others."""
    for dtype in ("float32", "float64"):
        kind = DTYPES[dtype]
        for mode in range(6):
            for how in range(4) if mode == 0 else (1,):
                splits, weights = [0.1, -0.5, 0.7], floats(4, scale=1).tolist()
                yield from _twice(
                    f"{mode} {how} {dtype}", "TreeEnsemble", {"x": floats(3, 4).astype(dtype)}, {"y": (dtype, 2)}, 5,
                    n_targets=2, aggregate_function=how, post_transform=0, tree_roots=[0],
                    nodes_modes=helper.make_tensor("modes", DTYPES["uint8"], [3], [mode] * 3),
                    nodes_featureids=[0, 1, 2], nodes_splits=helper.make_tensor("splits", kind, [3], splits),
                    nodes_truenodeids=[1, 0, 2], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 3],
                    nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 0, 1],
                    leaf_weights=helper.make_tensor("weights", kind, [4], weights),
                )  # fmt: skip


def _features() -> Iterator[Case]:
    for dtype in _NUMBERS:
        x = {"x": _numbers(dtype, 3, 4)}
        for norm in ("MAX", "L1", "L2"):
            yield _case(f"{norm} {dtype}", "Normalizer", x, {"y": ("float32", 2)}, 1, norm=norm)
        for count in (1, 4):
            yield from _twice(
                f"{count} {dtype}", "Scaler", x, {"y": ("float32", 2)}, 1, offset=floats(count).tolist(),
                scale=floats(count).tolist(),
            )  # fmt: skip
        yield _case(dtype, "FeatureVectorizer", x | {"x2": _numbers(dtype, 3, 2)}, {"y": ("float32", 2)}, 1,
                    inputdimensions=[4, 2])  # fmt: skip
        codes = {"x": integers(5, high=4).astype(dtype)}
        if dtype != "int32":
            yield from _twice(
                dtype, "OneHotEncoder", codes, {"y": ("float32", 2)}, 1, cats_int64s=[0, 1, 2, 3], zeros=1
            )
    for threshold in (0.0, 0.5):
        x = {"x": floats(3, 4)}
        yield from _twice(str(threshold), "Binarizer", x, {"y": ("float32", 2)}, 1, threshold=threshold)
    words = np.array(["a", "b", "c", "b"], dtype=object)
    yield from _twice(
        "words", "OneHotEncoder", {"x": words}, {"y": ("float32", 2)}, 1, cats_strings=["a", "b", "c"], zeros=1
    )
    for dtype in ("float32", "float64", "int64", "int32"):
        x = {"x": _numbers(dtype, 3, 4), "at": np.array([0, 2])}
        yield from _twice(dtype, "ArrayFeatureExtractor", x, {"y": (dtype, 2)}, 1)
    taken = {"x": np.array([["a", "b", "c"]], dtype=object), "at": np.array([1, 2])}
    yield from _twice("words", "ArrayFeatureExtractor", taken, {"y": ("string", 2)}, 1)
    for count in (1, 4):
        holes = floats(3, 4)
        holes[0, 1] = np.nan
        yield from _twice(f"NaN {count}", "Imputer", {"x": holes}, {"y": ("float32", 2)}, 1,
                    imputed_value_floats=floats(count).tolist(), replaced_value_float=float("nan"))  # fmt: skip
        yield from _twice(f"int64 {count}", "Imputer", {"x": integers(3, 4)}, {"y": ("int64", 2)}, 1,
                    imputed_value_int64s=list(range(count)), replaced_value_int64=5)  # fmt: skip


def _labels() -> Iterator[Case]:
    words = np.array([["a", "b"], ["c", "?"]], dtype=object)
    samples: dict[str, tuple[Array, list[Any], str]] = {
        "string": (words, ["a", "b", "c"], "strings"),
        "int64": (np.array([[1, 2], [3, 9]]), [1, 2, 3], "int64s"),
        "float32": (np.array([[1, 2], [3, 9]], dtype=np.float32), [1.0, 2.0, 3.0], "floats"),
    }
    for given, (x, keys, plural) in samples.items():
        for wanted, (_, values, other) in samples.items():
            for version in (2, 4):
                attributes: dict[str, Any] = {f"keys_{plural}": keys, f"values_{other}": values}
                default = {"string": "?", "int64": -1, "float32": -1.0}[wanted]
                attributes[f"default_{ {'string': 'string', 'int64': 'int64', 'float32': 'float'}[wanted] }"] = default
                yield from _twice(
                    f"{given} {wanted}", "LabelEncoder", {"x": x}, {"y": (wanted, 2)}, version, **attributes
                )
    tensors = ("float64", "int64", "float32", "string", "int16")
    for given in tensors:
        for wanted in tensors:
            known = {("float64", "float64"), ("string", "int16"), ("int64", "int64"), ("float32", "float32"),
                     ("int64", "string"), ("string", "int64"), ("string", "float64"), ("float64", "string"),
                     ("string", "string")}  # fmt: skip
            if (given, wanted) not in known:
                continue
            yield from _twice(
                f"tensors {given} {wanted}", "LabelEncoder", {"x": _coded(given, [1, 2, 3])}, {"y": (wanted, 1)}, 4,
                keys_tensor=_tensor("keys", given, [1, 2]), values_tensor=_tensor("values", wanted, [3, 4]),
                default_tensor=_tensor("default", wanted, [0]),
            )  # fmt: skip
    for back in (True, False):
        x = words.ravel() if back else np.array([0, 2, 7])
        yield from _twice(
            "words" if back else "int64", "CategoryMapper", {"x": x}, {"y": ("int64" if back else "string", 1)}, 1,
            cats_strings=["a", "b", "c"], cats_int64s=[0, 1, 2], default_int64=-1, default_string="?",
        )  # fmt: skip
    yield from _twice("classes int64", "LabelEncoder", {"x": words}, {"y": ("int64", 2)}, 1, classes_strings=["a", "b"])
    yield from _twice("classes words", "LabelEncoder", {"x": np.array([0, 1, 7])}, {"y": ("string", 1)}, 1,
                classes_strings=["a", "b"])  # fmt: skip
    # Two in a row become one.
    for third in ("strings", "int64s"):
        text = (
            'a = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "b"], values_int64s = [1, 2], default_int64 = 0>(x)'
            " y = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1, 2], values_{} = {}>(a)"
        )
        listed, dtype = {"strings": ('["n", "o", "p"]', "string"), "int64s": ("[5, 6, 7]", "int64")}[third]
        for rows in (1, 2):
            name = f"ml LabelEncoder twice {third} {rows}"
            yield case(name, text.format(third, listed), {"x": words[:rows]}, outputs=f"y:{dtype}:2", versions={ML: 4})


def _coded(dtype: str, values: list[int]) -> Array:
    return np.array([str(v) for v in values], dtype=object) if dtype == "string" else np.array(values).astype(dtype)


def _tensor(name: str, dtype: str, values: list[int]) -> Any:
    held: list[Any] = [str(v).encode() for v in values] if dtype == "string" else list(values)
    return helper.make_tensor(name, DTYPES[dtype], [len(values)], held)


def _maps() -> Iterator[Case]:
    """Yield the operators of maps. No device returns a map: what can be made of it is, or it is only loaded."""
    scores = helper.make_tensor_value_info("x", DTYPES["float32"], [2, 2])
    for kind, key, labels in (("int64s", "int64", [0, 1]), ("strings", "string", ["no", "yes"])):
        for known in (True, False):
            attributes: dict[str, Any] = {f"classlabels_{kind}": labels}
            node = helper.make_node("ZipMap", ["s"], ["m"], domain=ML, **attributes)
            normalize = helper.make_node("Normalizer", ["x"], ["s"], domain=ML, norm="L1")
            outputs = [helper.make_value_info("m", _map(DTYPES[key], True))]
            if known:
                outputs.append(helper.make_tensor_value_info("s", DTYPES["float32"], [2, 2]))
            yield _mapped(f"ml ZipMap {key}{' with scores' if known else ''}", [normalize, node], [scores], outputs)
    for op_type, given, attributes in (
        ("DictVectorizer", _map(DTYPES["string"], False), {"string_vocabulary": ["a", "b"]}),
        ("DictVectorizer", _map(DTYPES["int64"], False), {"int64_vocabulary": [1, 2]}),
        ("CastMap", _map(DTYPES["int64"], False), {"cast_to": "TO_FLOAT", "map_form": "DENSE"}),
        ("CastMap", _map(DTYPES["int64"], False), {"cast_to": "TO_FLOAT", "map_form": "SPARSE", "max_map": 4}),
    ):
        node = helper.make_node(op_type, ["x"], ["y"], domain=ML, **attributes)
        got = [helper.make_tensor_value_info("y", DTYPES["float32"], [None, None])]
        key = "string" if "string_vocabulary" in attributes else "int64"
        name = " ".join(["ml", op_type, key, str(attributes.get("map_form", ""))]).strip()
        yield _mapped(name, [node], [helper.make_value_info("x", given)], got)


def _map(key: int, sequence: bool) -> TypeProto:
    value = helper.make_tensor_type_proto(DTYPES["float32"], None)
    made = helper.make_map_type_proto(key, value)
    return helper.make_sequence_type_proto(made) if sequence else made


def _mapped(name: str, made: list[NodeProto], given: list[Any], got: list[Any]) -> Case:
    graph = helper.make_graph(made, "case", given, got)
    imports = [helper.make_opsetid("", _BASE), helper.make_opsetid(ML, 1)]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = helper.find_min_ir_version_for(imports)
    run = any(info.type.HasField("tensor_type") for info in got) and given[0].type.HasField("tensor_type")
    return of_model(name, model, {"x": np.abs(floats(2, 2))} if run else {}, run=run)
