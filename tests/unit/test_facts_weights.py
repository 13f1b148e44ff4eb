"""What is stored: copies, what nothing reads, what lies elsewhere."""

from pathlib import Path

import onnx
import pytest
from models_text import INITIALIZER_AS_INPUT, LINEAR, NESTED_IF, parse
from onnx import TensorProto, helper

from edgekit.errors import ModelError
from edgekit.facts.weights import Duplicate, ExternalTensor, Stored, WeightFacts, weigh
from edgekit.model import io as model

BYTES = bytes(range(96))


def weighed(proto: onnx.ModelProto, folder: Path, *, complete: bool = True) -> WeightFacts:
    model.save(proto, folder / "model.onnx")
    return weigh(model.load(folder / "model.onnx", complete=complete))


def with_stored(*tensors: onnx.TensorProto) -> onnx.ModelProto:
    proto = parse(LINEAR)
    proto.graph.initializer.extend(tensors)
    return proto


def tensor(name: str, data: bytes = BYTES, dims: tuple[int, ...] = (24,)) -> onnx.TensorProto:
    return onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, raw_data=data)


def external(name: str, location: str, offset: int = 0) -> onnx.TensorProto:
    made = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[24], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", str(offset)), ("length", "96")):
        made.external_data.add(key=key, value=value)
    return made


def test_copies_are_found_however_they_are_stored(tmp_path: Path) -> None:
    numbers = onnx.numpy_helper.to_array(tensor("a"))
    as_list = helper.make_tensor("b", TensorProto.FLOAT, [24], numbers)
    constant = helper.make_node("Constant", [], ["c"], value=tensor("", BYTES))
    (tmp_path / "w.bin").write_bytes(b"\0" * 8 + BYTES)
    proto = with_stored(
        tensor("a"), as_list, external("d", "w.bin", 8), tensor("e", BYTES[::-1]), tensor("f", dims=(4, 6))
    )
    proto.graph.node.insert(0, constant)
    assert weighed(proto, tmp_path).duplicates == (Duplicate(("a", "b", "d", "c"), 96, 3 * 96),)


def test_small_copies_and_one_byte_of_difference_are_no_duplicates(tmp_path: Path) -> None:
    other = bytearray(BYTES)
    other[95] ^= 1
    small = [tensor(name, b"\0" * 8, (2,)) for name in "xz"]
    assert weighed(with_stored(tensor("a"), tensor("b", bytes(other)), *small), tmp_path).duplicates == ()


def test_what_nothing_reads_is_listed_and_what_a_branch_reads_is_not(tmp_path: Path) -> None:
    assert weighed(parse(LINEAR), tmp_path).unused == ()
    unused = weighed(with_stored(tensor("never")), tmp_path).unused
    assert unused == (Stored("never", "", "initializer", "float32", (24,), 24, 96),)
    proto = parse(NESTED_IF)
    proto.graph.initializer.append(helper.make_tensor("outer", TensorProto.FLOAT, [2], [1.0, 2.0]))
    inner = proto.graph.node[0].attribute[0].g.node[0].attribute[0].g
    assert [each.name for each in weighed(proto, tmp_path).unused] == ["outer"]
    inner.node[0].input[0] = "outer"
    assert weighed(proto, tmp_path).unused == ()


def test_an_initializer_that_is_an_output_is_used(tmp_path: Path) -> None:
    proto = with_stored(tensor("a"))
    proto.graph.output.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [24]))
    assert weighed(proto, tmp_path).unused == ()


def test_initializers_that_are_inputs_too_are_listed(tmp_path: Path) -> None:
    assert weighed(parse(INITIALIZER_AS_INPUT), tmp_path).also_inputs == ("w",)
    assert weighed(parse(LINEAR), tmp_path).also_inputs == ()


def test_constant_nodes_are_counted(tmp_path: Path) -> None:
    found = weighed(parse(NESTED_IF), tmp_path)
    assert (found.constant_nodes, found.constant_bytes) == (2, 12)
    assert [(each.name, each.graph, each.kind) for each in found.largest] == [
        ("c", "y.then_branch/t.else_branch", "constant"),
        ("d", "y.else_branch", "constant"),
    ]


def test_the_largest_come_first_and_are_ten_at_most(tmp_path: Path) -> None:
    tensors = [tensor(f"t{size}", b"\1" * 4 * size, (size,)) for size in range(30, 50)]
    assert [each.name for each in weighed(with_stored(*tensors), tmp_path).largest] == [
        f"t{n}" for n in range(49, 39, -1)
    ]


def test_external_data_says_where_each_tensor_lies(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 8 + BYTES)
    found = weighed(with_stored(external("d", "w.bin", 8)), tmp_path)
    assert found.external == (ExternalTensor("d", "w.bin", 8, 96, 96),)
    assert found.largest[0].external == "w.bin"


def test_a_model_whose_external_data_is_missing_can_be_surveyed_when_asked(tmp_path: Path) -> None:
    proto = with_stored(external("d", "gone.bin"), external("e", "gone.bin"))
    with pytest.raises(ModelError, match="is missing"):
        weighed(proto, tmp_path)
    found = weighed(proto, tmp_path, complete=False)
    assert [each.name for each in found.external] == ["d", "e"]
    assert found.duplicates == ()


def test_external_data_outside_the_folder_is_refused_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="must lie inside the model's folder"):
        weighed(with_stored(external("d", "../w.bin")), tmp_path, complete=False)


def test_external_data_that_is_too_short_is_no_copy_of_anything(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(BYTES[:50])
    proto = with_stored(external("d", "w.bin"), external("e", "w.bin"))
    assert weighed(proto, tmp_path, complete=False).duplicates == ()
