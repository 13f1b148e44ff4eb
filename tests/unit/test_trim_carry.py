from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import pytest
from trimming import kept, parse, passes, run

from edgekit.errors import ModelError
from edgekit.trim import carry

X = np.array([1, -2, 3], np.float32)


def sparse(name: str) -> onnx.SparseTensorProto:
    values = onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [2], [5.0, 7.0])
    indices = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [2], [0, 2])
    return onnx.helper.make_sparse_tensor(values, indices, [3])


def test_sparse_initializers_survive() -> None:
    proto = parse("g (float[3] x) => (float[3] y) { a = Identity(x) y = Add(a, w) }")
    proto.graph.sparse_initializer.append(sparse("w"))

    done = kept(proto, {"x": X})

    assert done.operators == ["Add"]
    assert [each.values.name for each in done.proto.graph.sparse_initializer] == ["w"]


def test_sparse_initializers_that_nothing_uses_go() -> None:
    proto = parse("g (float[3] x) => (float[3] y) { y = Neg(x) }")
    proto.graph.sparse_initializer.append(sparse("w"))

    assert not passes(proto).proto.graph.sparse_initializer


def test_sparse_constants_survive() -> None:
    proto = parse("g (float[3] x) => (float[3] y) { y = Add(x, w) }")
    constant = onnx.helper.make_node("Constant", [], ["w"], sparse_value=sparse("w"))
    proto.graph.node.insert(0, constant)

    assert kept(proto, {"x": X}).operators == ["Constant", "Add"]


def test_strings_that_are_not_text_survive(tmp_path: Path) -> None:
    proto = parse(
        '<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]> g (float[3] x) => (float[3] y) { y = my.own.Do(x) }'
    )
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("table", [b"\xff\xfe", b"a"]))
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("blob", b"\xff\x00"))

    again = carry.to_proto(carry.to_ir(proto, tmp_path))

    assert {a.name: (list(a.strings), a.s) for a in again.graph.node[0].attribute} == {
        "table": ([b"\xff\xfe", b"a"], b""),
        "blob": ([], b"\xff\x00"),
    }


def test_the_default_domain_has_two_spellings() -> None:
    proto = parse("g (float[3] x) => (float[3] y) { a = Identity(x) y = Neg(a) }")
    proto.opset_import[0].domain = "ai.onnx"
    proto.graph.node[0].domain = "ai.onnx"
    right = run(parse("g (float[3] x) => (float[3] y) { y = Neg(x) }"), {"x": X})

    done = passes(proto)

    assert done.operators == ["Neg"]
    np.testing.assert_array_equal(run(done.proto, {"x": X})[0], right[0])


def test_attributes_without_a_type_get_theirs(tmp_path: Path) -> None:
    proto = parse("g (float[3, 1] x) => (float[1, 3] y) { y = Transpose <perm = [1, 0]> (x) }")
    proto.graph.node[0].attribute[0].ClearField("type")

    again = carry.to_proto(carry.to_ir(proto, tmp_path))

    assert again.graph.node[0].attribute[0].type == onnx.AttributeProto.INTS


def test_a_value_made_twice_is_a_clear_error(tmp_path: Path) -> None:
    proto = parse("g (float[3] x) => (float[3] y) { a = Neg(x) y = Abs(a) }")
    proto.graph.node[1].output[0] = "a"

    with pytest.raises(ModelError, match=r"makes no sense.*'a'"):
        carry.to_ir(proto, tmp_path)


def test_sequences_and_optionals_survive() -> None:
    model = """g (float[3] x) => (float[3] y, bool z) {
        a = Identity(x) s = SequenceConstruct(a, x) i = Constant <value_int = 1> () y = SequenceAt(s, i)
        o = Optional(y) z = OptionalHasElement(o)
    }"""

    done = kept(model, {"x": X})

    assert "SequenceConstruct" in done.operators


def test_empty_and_scalar_tensors_survive() -> None:
    model = """g (float[N, 3] x, float s) => (float[M, 3] y) <float[0, 3] nothing = {}> {
        a = Concat <axis = 0> (x, nothing) y = Mul(a, s)
    }"""

    for rows in (0, 2):
        kept(model, {"x": np.ones((rows, 3), np.float32), "s": np.float32(2)})


def test_an_attribute_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    proto = parse("g (float[3] x) => (float[3] y) { y = Neg(x) }")
    proto.graph.node[0].attribute.add(name="nothing")
    with pytest.raises(ModelError, match="makes no sense"):
        carry.to_proto(carry.to_ir(proto, tmp_path))


def test_long_lists_are_carried_past_the_passes_unchanged(tmp_path: Path) -> None:
    proto = parse("g (float[3] x) => (float[3] y) { y = Neg(x) }")
    proto.graph.node[0].attribute.add(name="table", type=onnx.AttributeProto.INTS, ints=range(5000))
    carried = carry.to_ir(proto, tmp_path)
    assert "table" not in next(iter(carried.model.graph)).attributes
    assert list(carry.to_proto(carried).graph.node[0].attribute[0].ints) == list(range(5000))


def test_a_model_with_long_lists_is_the_same_after_all_that_is_put_aside(tmp_path: Path) -> None:
    """What stands beside the lists, and a list whose attribute does not say its type, as in IR version 1."""
    proto = parse(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x, bool c) => (float[3] y) <float[3] w = {1, 2, 3}> {
            n = Neg(x)
            y = If (c) <then_branch = t () => (float[3] a) { a = Add(n, w) },
                        else_branch = e () => (float[3] b) { b = Identity(n) }>
        }"""
    )
    proto.doc_string = proto.graph.doc_string = proto.graph.node[0].doc_string = "kept"
    short = onnx.AttributeProto(name="short", type=onnx.AttributeProto.INTS, ints=[1, 2])
    proto.graph.node[0].attribute.extend([short, onnx.AttributeProto(name="table", floats=[0.5] * 5000)])
    inner = proto.graph.node[1].attribute[0].g.node[0].attribute
    inner.add(name="texts", type=onnx.AttributeProto.STRINGS, strings=[b"\xff"] * 5000)

    again = carry.to_proto(carry.to_ir(proto, tmp_path))

    attributes = again.graph.node[0].attribute
    assert [(a.name, a.type) for a in attributes] == [("short", 7), ("table", onnx.AttributeProto.FLOATS)]
    assert list(attributes[0].ints) == [1, 2]
    assert list(attributes[1].floats) == [0.5] * 5000
    assert list(again.graph.node[1].attribute[0].g.node[0].attribute[0].strings) == [b"\xff"] * 5000
    assert again.doc_string == again.graph.doc_string == again.graph.node[0].doc_string == "kept"
    assert again.graph.initializer == proto.graph.initializer
    assert len(proto.graph.node[0].attribute[1].floats) == 5000
