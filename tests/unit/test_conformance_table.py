"""Tables of operator support: what a look-up answers, and that the tables in the package are whole and canonical."""

import dataclasses
import json
from importlib import metadata
from pathlib import Path

import pytest

from edgekit import conformance_run
from edgekit.conformance import table as tables
from edgekit.conformance.table import OperatorSupport, Runtime, Table
from edgekit.errors import UsageError
from edgekit.runtime import pins

FILES = sorted(tables.TABLES.glob("*.json"))

ADD = OperatorSupport(
    "", "Add", 14, ("T",),
    passes=frozenset({("float32",), ("int32",)}),
    wrong=frozenset({("int16",)}),
    loads=frozenset({("uint8",)}),
    refused=frozenset({("bfloat16",)}),
    on_cpu=frozenset({("int32",)}),
    cases={"test_add_bcast": "wrong: another value"},
)  # fmt: skip
CAST = OperatorSupport(
    "", "Cast", 13, ("T1", "T2"),
    passes=frozenset({("float32", "int64")}),
    refused=frozenset({("float32", "string")}),
)  # fmt: skip
CLIP = OperatorSupport("", "Clip", 13, ("T",), passes=frozenset({("float32",)}))
FUSED = OperatorSupport(
    "com.microsoft", "FusedMatMul", 1, ("T",), signature=("T", "T"),
    passes=frozenset({("float32",)}), refused=frozenset({("float16",)}),
)  # fmt: skip
TABLE = Table(
    Runtime("onnxruntime-web", "0.0.1", "jspi", "webgpu", "0" * 64, "Chromium 1", "google swiftshader", ("subgroups",)),
    "1.23.2",
    13,
    {"": 26, "com.microsoft": 1},
    {(one.domain, one.op_type, one.since_version): one for one in (ADD, CAST, CLIP, FUSED)},
    {"test_add": ("passes", None), "test_add_bcast": ("wrong", "another value"), "test_x": ("refused", "no kernel")},
)


@pytest.mark.parametrize(
    ("dtypes", "answer"),
    [
        (["float32", "float32"], "passes"),
        (["int16", "int16"], "wrong"),
        (["bfloat16", "bfloat16"], "refused"),
        (["uint8", "uint8"], "unknown"),  # it loads, and nobody knows what it answers
        (["int64", "int64"], "unknown"),  # not measured
        (["float32", None], "passes"),  # one argument tells the type of both
        ([None, None], "unknown"),  # what was measured differs by dtype
        (["float32", "int32"], "unknown"),  # no valid node
        (["float32", "float32", "float32"], "unknown"),
    ],
)
def test_a_look_up_answers_by_dtype(dtypes: list[str | None], answer: str) -> None:
    assert TABLE.look("", "Add", 17, dtypes) == answer


@pytest.mark.parametrize(
    ("opset", "answer"), [(14, "passes"), (26, "passes"), (27, "refused"), (13, "unknown"), (7, "unknown")]
)
def test_a_look_up_uses_the_schema_in_force_and_the_highest_opset(opset: int, answer: str) -> None:
    assert TABLE.look("", "Add", opset, ["float32", "float32"]) == answer


def test_the_standard_domain_has_two_names() -> None:
    assert TABLE.look("ai.onnx", "Add", 17, ["float32", "float32"]) == "passes"
    assert TABLE.look("ai.onnx", "Add", 27, ["float32", "float32"]) == "refused"


@pytest.mark.parametrize(("output", "answer"), [("int64", "passes"), ("string", "refused"), (None, "unknown")])
def test_the_dtype_of_an_output_counts_where_only_it_tells(output: str | None, answer: str) -> None:
    assert TABLE.look("", "Cast", 17, ["float32"], [output]) == answer


def test_an_input_that_is_left_out_tells_nothing() -> None:
    assert TABLE.look("", "Clip", 17, ["float32", "", None]) == "passes"
    assert TABLE.look("", "Clip", 17, ["float64", "", None]) == "unknown"


@pytest.mark.parametrize(("dtype", "answer"), [("float32", "passes"), ("float16", "refused"), ("float64", "unknown")])
def test_an_operator_that_onnx_does_not_have_is_looked_up_by_its_own_signature(dtype: str, answer: str) -> None:
    assert TABLE.look("com.microsoft", "FusedMatMul", 1, [dtype, dtype]) == answer


def test_an_optional_input_that_no_measured_node_has_changes_nothing() -> None:
    resize = OperatorSupport("", "Resize", 13, ("T1", "T2"), passes=frozenset({("float32", "-")}))
    table = dataclasses.replace(TABLE, operators={("", "Resize", 13): resize})
    assert table.look("", "Resize", 13, ["float32", None, "float32"]) == "passes"
    assert table.look("", "Resize", 13, ["float32", "float64", "float32"]) == "passes"
    assert table.look("", "Resize", 13, ["int8", "float32", "float32"]) == "unknown"


def test_what_only_loads_can_be_told_from_what_was_never_tried() -> None:
    assert TABLE.measured("", "Add", 17, ["uint8", "uint8"]) == {"loads"}
    assert TABLE.measured("", "Add", 17, ["int64", "int64"]) == frozenset()
    assert TABLE.measured("", "Add", 17, [None, None]) == {"passes", "wrong", "loads", "refused"}
    assert TABLE.measured("my.company", "Frobnicate", 1, ["float32"]) == frozenset()


def test_an_operator_that_nobody_has_is_unknown() -> None:
    assert TABLE.look("", "NoSuchOperator", 17, ["float32"]) == "unknown"
    assert TABLE.look("my.company", "Frobnicate", 1, ["float32"]) == "unknown"
    assert TABLE.support("my.company", "Frobnicate", 1) is None


@pytest.mark.parametrize(
    ("dtype", "place"), [("int32", "cpu"), ("float32", "accelerator"), ("bfloat16", "unknown"), (None, "unknown")]
)
def test_the_place_of_a_node_that_works(dtype: str | None, place: str) -> None:
    assert TABLE.place("", "Add", 17, [dtype, dtype]) == place
    assert TABLE.place("", "Sub", 17, [dtype, dtype]) == "unknown"


def test_a_table_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(tables.to_bytes(TABLE))
    assert tables.read(path) == TABLE
    assert tables.read(path).support("", "Add", 14) == ADD


def test_a_file_of_another_format_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"format": 0}))
    with pytest.raises(UsageError, match=r"other\.json is no conformance table of format 1"):
        tables.read(path)


def test_a_runtime_that_was_not_measured_is_an_error_that_lists_the_tables() -> None:
    with pytest.raises(UsageError, match=r"Nothing was measured of onnxruntime-web 9\.9\.9") as caught:
        tables.load("onnxruntime-web", "9.9.9", "wasm")
    assert all(path.stem in (caught.value.hint or "") for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_table_in_the_package_is_what_its_own_content_gives(path: Path) -> None:
    table = tables.read(path)
    assert tables.to_bytes(table) == path.read_bytes(), "run: python -m edgekit.conformance_run"
    assert path.name == tables.file_name(table.runtime.package, table.runtime.version, table.runtime.variant)
    assert path.stat().st_size < 600_000
    for support in table.operators.values():
        found = [dtypes for kind in tables.KINDS for dtypes in getattr(support, kind)]
        assert len(found) == len(set(found)), f"{support.op_type}: a combination stands in two places"
        assert all(len(dtypes) == len(support.variables) for dtypes in found)


def test_the_twin_a_changed_table_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / FILES[0].name
    path.write_bytes(FILES[0].read_bytes() + b"\n")
    assert tables.to_bytes(tables.read(path)) != path.read_bytes()


def test_every_runtime_that_is_pinned_was_measured() -> None:
    pinned = pins.load()
    for variant in pinned.variants:
        runtime = tables.load(pinned.package, pinned.version, variant.id).runtime
        assert runtime.wasm_sha256 == pinned.files[variant.wasm].sha256
        assert runtime.execution_provider == variant.execution_provider
    desktop = tables.load("onnxruntime", metadata.version("onnxruntime"), conformance_run.DESKTOP)
    assert desktop.look("", "Relu", 17, ["float32"]) == "passes"


def test_what_is_known_of_the_pinned_runtimes_stands_in_their_tables() -> None:
    """Facts found by hand, before there were tables."""
    pinned = pins.load()
    wasm = tables.load(pinned.package, pinned.version, "wasm")
    jspi = tables.load(pinned.package, pinned.version, "jspi")
    assert wasm.look("", "Conv", 17, ["float32", "float32", "float32"]) == "passes"
    assert wasm.look("", "Relu", 27, ["float32"]) == "refused"
    assert wasm.look("", "ImageDecoder", 20, ["uint8"]) == "refused"
    assert (wasm.cases["test_add_int16"][0], jspi.cases["test_add_int16"][0]) == ("passes", "refused")
    assert jspi.place("", "Conv", 17, ["float32", "float32", "float32"]) == "accelerator"
    for one in (wasm, jspi):
        assert one.cases["test_maxunpool_export_with_output_shape"][0] == "wrong"
        assert one.cases["test_resize_downsample_scales_cubic_align_corners"][0] == "wrong"


def test_a_table_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TABLE.onnx_version = "2"  # type: ignore[misc]
