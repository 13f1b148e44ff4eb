"""``edgekit inspect``: what it prints, and what it says of files that are no model."""

import json
from pathlib import Path

import pytest
from models_text import EMBEDDING, LINEAR, LOCAL_FUNCTION, NESTED_IF, PRIVATE_DOMAIN, parse, write
from onnx import TensorProto, helper

from edgekit.cli import main
from edgekit.model import io as model

HOSTILE = "<script>alert('x')</script>\x1b[2J\n\"quoted\" [red]/../größe\u202e"


def inspect(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main.run(["inspect", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def lines(text: str) -> list[str]:
    """The lines of a table, with runs of spaces as one."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_tables_show_what_a_model_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = inspect(capsys, write(LINEAR, tmp_path))
    assert (code, err) == (0, "")
    for line in (
        "model.onnx",
        "IR version 8",
        "opsets ai.onnx 17",
        "producer by hand 1",
        "graph linear",
        "nodes 2",
        "parameters 6",
        "x float32 [N, 2]",
        "y float32 [N, 3]",
        "MatMul 13 1 100.0 % float32",
        "work 6 multiply-accumulates for N=1 (estimate)",
        "peak of values 32 bytes for N=1 (estimate)",
        "- The estimates assume N=1; --dim gives another size.",
        "float32 1 6 24",
    ):
        assert line in lines(out)
    assert "External data" not in out


def test_nested_graphs_functions_and_domains_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nodes 7 (with those of 4 nested graphs)" in lines(inspect(capsys, write(NESTED_IF, tmp_path))[1])
    shown = lines(inspect(capsys, write(LOCAL_FUNCTION, tmp_path))[1])
    assert "nodes 4 (with those of 1 local function, each counted once)" in shown
    assert "Twice mine (local function) 2" in shown
    assert "Frobnicate my.company 1 float32 → unknown" in lines(inspect(capsys, write(PRIVATE_DOMAIN, tmp_path))[1])


def test_external_files_unused_opsets_and_unknown_shapes_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = parse(LINEAR)
    weights = proto.graph.initializer[0]
    del weights.float_data[:]
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(b"\0" * 24)
    proto.opset_import.add(domain="ai.onnx.ml", version=3)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    helper.set_model_props(proto, {"names": "long " * 100})
    model.save(proto, tmp_path / "model.onnx")
    shown = lines(inspect(capsys, tmp_path / "model.onnx")[1])
    assert "opsets ai.onnx 17, ai.onnx.ml 3 (unused)" in shown
    assert "y float32 unknown" in shown
    assert "w.bin 24 1" in shown
    assert any("24 of them in external data" in line for line in shown)
    assert any(line.endswith("… (500 characters)") for line in shown)


def test_json_holds_the_facts_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = inspect(capsys, write(EMBEDDING, tmp_path), "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["inputs"] == [{"name": "ids", "type": "tensor(int32)", "dtype": "int32", "shape": ["N"]}]
    assert document["operators"][0] == {
        "domain": "ai.onnx",
        "op_type": "Cast",
        "count": 1,
        "local": False,
        "opset": 17,
        "since": 13,
        "dtypes": [{"inputs": ["int32"], "outputs": ["int64"], "nodes": 1}],
    }
    assert document["weights"]["parameters"] == 21


def test_hostile_names_cannot_drive_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parse(LINEAR)
    proto.graph.name = proto.graph.node[0].op_type = proto.producer_name = HOSTILE
    proto.graph.input[0].name = proto.graph.node[0].input[0] = HOSTILE
    model.save(proto, tmp_path / "model.onnx")
    code, out, _ = inspect(capsys, tmp_path / "model.onnx")
    assert code == 0
    assert all(c.isprintable() or c == "\n" for c in out)
    assert out.count("<script>alert('x')</script>\\x1b[2J\\n\"quoted\" [red]/../größe\\u202e") == 5
    code, out, _ = inspect(capsys, tmp_path / "model.onnx", "--json")
    assert json.loads(out)["graph_name"] == HOSTILE


def test_a_hostile_name_in_an_error_cannot_drive_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = parse(LINEAR)
    weights = proto.graph.initializer[0]
    weights.name, weights.data_location = HOSTILE, TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=f"../{HOSTILE}")
    path = tmp_path / "a\x1b[2Jb.onnx"
    model.save(proto, path)
    code, out, err = inspect(capsys, path)
    assert (code, out) == (3, "")
    assert "must lie inside the model's folder" in err
    assert all(c.isprintable() or c == "\n" for c in err)


def test_a_file_name_that_is_not_text_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(LINEAR, tmp_path, "a\udcffb.onnx")
    assert inspect(capsys, path)[0] == 0
    code, out, _ = inspect(capsys, path, "--json")
    assert (code, json.loads(out)["file"]) == (0, "a\ufffdb.onnx")


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (None, 2, "There is no file"),
        (b"", 3, "is empty"),
        (b"Not a model.\n", 3, "it is a text file"),
        (b"\x1c\0\0\0TFL3" + b"\0" * 64, 3, "it is a TensorFlow Lite model"),
    ],
)
def test_a_users_mistake_gives_a_message_a_hint_and_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes | None, code: int, message: str
) -> None:
    path = tmp_path / "m.onnx"
    if data is not None:
        path.write_bytes(data)
    found, out, err = inspect(capsys, path)
    assert (found, out) == (code, "")
    assert message in err
    assert "hint: " in err
    assert "Traceback" not in err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = inspect(capsys, "--help")
    assert code == 0
    assert "edgekit inspect model.onnx --json" in out


def test_given_sizes_change_the_estimate_and_unknown_ones_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(LINEAR, tmp_path)
    assert "work 60 multiply-accumulates for N=10 (estimate)" in lines(inspect(capsys, path, "--dim", "N=10")[1])
    code, out, err = inspect(capsys, path, "--dim", "M=10")
    assert (code, out) == (2, "")
    assert "no free dimension 'M'" in err
    text = LINEAR.replace("float[N, 2] x", "float[3, T] x")
    assert "work needs sizes: --dim T=N" in lines(inspect(capsys, write(text, tmp_path))[1])


def test_all_shows_what_the_essentials_leave_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(NESTED_IF, tmp_path)
    essential, everything = inspect(capsys, path)[1], inspect(capsys, path, "--all")[1]
    for title in ("Control flow", "Domains", "Largest weights", "Largest values between nodes"):
        assert title not in essential
        assert title in everything
    assert "If → y data" in lines(everything)
    assert "If → t y.then_branch data" in lines(everything)


def test_many_operators_are_shown_whole_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parse(LINEAR)
    for op_type in ("Abs", "Acos", "Asin", "Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "Log", "Neg", "Round", "Sign",
                    "Sin", "Sqrt", "Tan"):  # fmt: skip
        proto.graph.node.append(helper.make_node(op_type, ["y"], [op_type.lower()]))
    model.save(proto, tmp_path / "model.onnx")
    assert "3 more 3" in lines(inspect(capsys, tmp_path / "model.onnx")[1])
    assert "Tan 7 1 float32" in lines(inspect(capsys, tmp_path / "model.onnx", "--all")[1])


def test_a_version_that_is_too_new_for_targets_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parse(LINEAR)
    proto.ir_version = 99
    model.save(proto, tmp_path / "model.onnx")
    assert "IR version 99 is too new: " in inspect(capsys, tmp_path / "model.onnx")[1]
    assert "too new" not in inspect(capsys, write(LINEAR, tmp_path))[1]


def test_missing_weights_do_not_hide_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parse(LINEAR)
    weights = proto.graph.initializer[0]
    del weights.float_data[:]
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="gone.bin")
    model.save(proto, tmp_path / "model.onnx")
    code, out, _ = inspect(capsys, tmp_path / "model.onnx")
    assert code == 0
    assert "gone.bin missing 1" in lines(out)
    assert "Files of weights are missing: gone.bin. Copy them beside the model." in out
    assert "work 6 multiply-accumulates for N=1 (estimate)" in lines(out)


def test_a_graph_is_drawn_beside_the_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    code, out, err = inspect(capsys, write(LINEAR, tmp_path), "--graph", page, "--json")
    assert (code, err) == (0, f"Wrote {page}.\n")
    assert json.loads(out)["nodes"] == 2
    assert "MatMul" in page.read_text(encoding="utf-8")


def test_a_record_without_a_graph_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = inspect(capsys, write(LINEAR, tmp_path), "--record", tmp_path)
    assert (code, out) == (2, "")
    assert "hint: Say --graph FILE as well." in err
