"""A look at the wire format tells what a file would become in memory, before a parser makes it so."""

import io
from pathlib import Path

import malformed_files
import malformed_models
import onnx
import pytest
from malformed import bases
from malformed_files import Field, Filler, attribute_list
from models_text import LINEAR, parse

from edgekit.errors import LimitError, ModelError
from edgekit.model import io as model
from edgekit.model import walk, wire
from edgekit.model.wire import BrokenError, TooDeepError, TooMuchError

INTS, FLOATS, STRINGS = b"\x40\x01", b"\x3d\0\0\0\1", b"\x4a\x01s"


def weigh(data: bytes) -> None:
    wire.weigh(io.BytesIO(data), len(data))


def graph_of(*fields: bytes | Field | Filler) -> bytes:
    """A model whose graph holds these fields, one after another."""
    stream = io.BytesIO(b"\x08\x08")
    stream.seek(2)
    Field(7, *fields).write(stream)  # type: ignore[arg-type]  # a stream in memory will do
    return stream.getvalue()


@pytest.mark.parametrize("name", bases())
def test_a_sound_model_passes(name: str) -> None:
    weigh(bases()[name])


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (attribute_list(Filler(INTS, 3_000_000)), "of AttributeProto.ints"),
        (attribute_list(Field(8, Filler(b"\1", 3_000_000))), "of AttributeProto.ints"),
        (attribute_list(Filler(FLOATS, 5_000_000)), "of AttributeProto.floats"),
        (attribute_list(Field(7, Filler(FLOATS[1:], 5_000_000))), "of AttributeProto.floats"),
        (attribute_list(Filler(STRINGS, 500_000)), "of AttributeProto.strings"),
        (Field(5, Field(1, Filler(b"\1", 3_000_000))), "of TensorProto.dims"),
        (Field(1, Filler(b"\x0a\0", 400_000)), "of NodeProto.input"),
        (Filler(b"\x2a\0", 400_000), "of GraphProto.initializer"),
        (Filler(b"\x0a\0", 1001), "1,001 of GraphProto.node"),
        (Filler(b"\xb8\x3e\x01", 400_000), "of the unknown field 999"),
        (Field(1, Field(3, Filler(b"n", 20_000_000))), "a text of 20,000,000 bytes as NodeProto.name"),
    ],
)  # fmt: skip
def test_what_would_fill_the_memory_is_refused_by_name(
    field: Field | Filler, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_BUDGET_BYTES", 16 << 20)
    monkeypatch.setattr(wire, "_MOST_FIELDS", 300_000)
    monkeypatch.setattr(walk, "MOST_NODES", 1000)
    with pytest.raises(TooMuchError, match=said):
        weigh(graph_of(field))


@pytest.mark.parametrize(
    "field",
    [
        Field(5, Field(9, Filler(b"\1", 300_000_000)), b"\x42\x01w"),
        Field(5, Field(4, Filler(FLOATS[1:], 70_000_000)), b"\x42\x01w"),
        attribute_list(Filler(INTS, 5_000_000)),
        attribute_list(Filler(FLOATS, 5_000_000)),
        attribute_list(Filler(STRINGS, 300_000)),
        Filler(b"\x0a\0", walk.MOST_NODES),
    ],
)
def test_values_of_tensors_and_long_lists_pass(field: Field | Filler) -> None:
    weigh(graph_of(field))


def forest(count: int, entry: bytes, name: bytes = b"nodes_featureids") -> bytes:
    """A node with one long list in an attribute of that name."""
    listed = Field(5, b"\x0a" + bytes([len(name)]) + name, Filler(b"\x40" + entry, count))
    return graph_of(Field(1, b"\x22\x15TreeEnsembleRegressor", listed, Field(5, b"\x0a\1b\x18\1")))


def test_lists_of_a_decision_forest_may_be_as_long_as_a_file_of_their_size_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "_BUDGET_BYTES", 16 << 20)
    weigh(forest(3_000_000, b"\x80\x80\1"))  # 60 MB from 12 MB
    for data in (
        forest(3_000_000, b"\x80\x80\1", b"axes"),  # no list of a forest
        forest(6_000_000, b"\1"),  # 120 MB from 12 MB: no forest has such small numbers only
    ):
        with pytest.raises(TooMuchError, match=r"of AttributeProto\.ints"):
            weigh(data)
    monkeypatch.setattr(wire, "_FOREST_BYTES", 50_000_000)
    with pytest.raises(TooMuchError, match=r"of AttributeProto\.ints"):
        weigh(forest(3_000_000, b"\x80\x80\1"))


def test_texts_of_a_decision_forest_have_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = Field(5, b"\x0a\x0bnodes_modes", Filler(b"\x4a\x04LEAF", 200_000))
    monkeypatch.setattr(wire, "_MOST_FIELDS", 100_000)
    weigh(graph_of(Field(1, modes)))
    monkeypatch.setattr(wire, "_MOST_FOREST_FIELDS", 100_000)
    with pytest.raises(TooMuchError, match=r"of AttributeProto\.strings"):
        weigh(graph_of(Field(1, modes)))


def test_lists_are_counted_right_where_windows_of_the_file_meet() -> None:
    """Numbers of one to ten bytes, so that some lie across the ends of the windows of a megabyte."""
    values = [1 << (7 * (index % 9)) for index in range(500_000)]
    proto = onnx.NodeProto(attribute=[onnx.AttributeProto(name="a", ints=values, type=onnx.AttributeProto.INTS)])
    data = graph_of(Field(1, proto.SerializeToString()))
    reader = wire._Reader(io.BytesIO(data), len(data))
    reader.read()
    assert reader.lists["AttributeProto.ints"] == len(values)


def test_broken_bytes_and_deep_messages_are_told_apart() -> None:
    for data in (
        b"\x3a\x7f",
        b"\x0b",
        b"\x3a\x02\x0a\x7f",
        b"\0\1",
        b"\xff" * 20,
        parse(LINEAR).SerializeToString()[:-1],
    ):
        with pytest.raises(BrokenError) as caught:
            weigh(data)
        assert not isinstance(caught.value, TooDeepError)
    with pytest.raises(TooDeepError):
        weigh(malformed_models.deep_bytes(60).SerializeToString())


def test_a_file_that_is_shorter_than_it_was_is_broken_not_endless() -> None:
    data = graph_of(attribute_list(Field(8, Filler(b"\1", 3_000_000))))
    with pytest.raises(BrokenError):
        wire.weigh(io.BytesIO(data[:2_000_000]), len(data))


def test_a_billion_entries_are_refused_without_reading_them(tmp_path: Path) -> None:
    path = malformed_files._large(attribute_list(Field(8, Filler(b"\0", 1_000_000_000))))(tmp_path)
    with pytest.raises(LimitError, match=r"m\.onnx is more than can be read: .* of AttributeProto\.ints"):
        model.read(path)


def test_a_large_damaged_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = malformed_files._cut_large(tmp_path)
    with pytest.raises(ModelError, match="cut short: at least 5"):
        model.read(path)
    with path.open("r+b") as stream:
        stream.truncate(1 << 30)
        stream.write(b"\0\0")
    with pytest.raises(ModelError, match="damaged: its bytes do not parse"):
        model.read(path)


def test_a_large_valid_file_is_read(tmp_path: Path) -> None:
    weights = Field(
        5,
        b"\x08" + malformed_models.varint(50_000_000),
        b"\x10\x01",
        b"\x42\x01w",
        Field(9, Filler(b"\0", 200_000_000)),
    )
    read = model.read(malformed_files._large(weights)(tmp_path))
    assert len(read.graph.initializer[0].raw_data) == 200_000_000


def test_functions_and_opsets_count_as_nodes(tmp_path: Path) -> None:
    for name, count in (("functions", 10_001), ("opset_import", 1001)):
        proto = parse(LINEAR)
        for _ in range(count):
            getattr(proto, name).add()
        (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
        with pytest.raises(LimitError, match="too many"):
            model.read(tmp_path / "m.onnx")


def test_nodes_in_graphs_in_graphs_count_more(tmp_path: Path) -> None:
    for depth, wide, fits in ((4, 4, True), (5, 8, False)):
        proto = malformed_models.made([malformed_models.nested(depth, wide)], output=f"y{depth}")
        (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
        if fits:
            model.read(tmp_path / "m.onnx")
            continue
        with pytest.raises(LimitError, match="too many nodes, or too many graphs in graphs"):
            model.read(tmp_path / "m.onnx")
