import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result
from trimming import parse

from edgekit.cli.main import cli, run

NET = """g (float[N, 4] x) => (float[N, 4] y) <float[4] w = {1, 2, 3, 4}, float[3] never = {1, 2, 3}> {
    a = Identity(x) b = Mul(a, w) y = Relu(b)
}"""


def write(folder: Path, text: str = NET) -> str:
    path = folder / "model.onnx"
    path.write_bytes(parse(text).SerializeToString())
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["trim", *arguments])


def test_the_table_says_what_each_pass_did_and_how_it_was_proven(tmp_path: Path) -> None:
    done = call(write(tmp_path), "-o", str(tmp_path / "out.onnx"))

    assert done.exit_code == 0
    assert "no-op nodes" in done.stdout and "bit-identical on" in done.stdout
    assert "3 → 2" in done.stdout
    assert "Wrote" in done.stderr


def test_json_is_the_plan_that_is_saved(tmp_path: Path) -> None:
    done = call(write(tmp_path), "-o", str(tmp_path / "out.onnx"), "--json", "--plan", str(tmp_path / "why.json"))

    plan = json.loads(done.stdout)
    assert plan == json.loads((tmp_path / "why.json").read_text())
    assert plan["files"][0]["bytes"] == (tmp_path / "out.onnx").stat().st_size == plan["bytes_after"]
    assert {"name", "nodes_before", "nodes_after", "bytes_before", "bytes_after", "proof"} <= set(plan["passes"][0])


def test_weights_are_split_and_merged_without_a_run(tmp_path: Path) -> None:
    proto = parse("g (float[1, 64] x) => (float[1, 64] y) { a = Mul(x, w) y = Add(a, v) }")
    for name in ("w", "v"):
        proto.graph.initializer.append(onnx.helper.make_tensor(name, 1, [64, 64], bytes(16384), raw=True))
    source = tmp_path / "model.onnx"
    source.write_bytes(proto.SerializeToString())

    split = call(str(source), "-o", str(tmp_path / "cut" / "m.onnx"), "--no-passes", "--split-weights", "20kB")
    merged = call(str(tmp_path / "cut" / "m.onnx"), "-o", str(tmp_path / "one.onnx"), "--no-passes", "--merge-weights")

    assert (split.exit_code, merged.exit_code) == (0, 0)
    names = sorted(path.name for path in (tmp_path / "cut").iterdir())
    assert names == ["m.onnx", "m.onnx.data", "m.onnx.data_1", "m.plan.json"]
    assert onnx.load(tmp_path / "one.onnx").graph.initializer[0].raw_data == bytes(16384)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dim", "N=0"], "is not NAME=N or NAME=LOW:HIGH"),
        (["--dim", "N=8:1"], "is not NAME=N or NAME=LOW:HIGH"),
        (["--split-weights", "much"], "is not a size"),
        (["--split-weights", "1MB", "--merge-weights"], "exclude each other"),
        (["--keep-metadata", "--drop-metadata"], "exclude each other"),
        (["--no-passes", "--opset", "17"], "leaves the graph as it is"),
        (["--skip", "everything"], "no pass 'everything'"),
        (["--dim", "M=1"], "no free dimension 'M'"),
        (["--outputs", "z"], "no value 'z'"),
    ],
)
def test_a_wrong_option_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code = run(["trim", write(tmp_path), "-o", str(tmp_path / "out.onnx"), *arguments])

    assert code == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_a_model_that_cannot_be_run_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17, "my" : 1]> g (float[4] x) => (float[4] y) { y = my.Own(x) }'

    code = run(["trim", write(tmp_path, text), "-o", str(tmp_path / "out.onnx")])

    assert code == 3
    assert "nothing can be proven" in capsys.readouterr().err


def test_a_tensor_over_the_size_is_exit_code_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parse("g (float[1, 64] x) => (float[1, 64] y) { y = Mul(x, w) }")
    proto.graph.initializer.append(onnx.helper.make_tensor("w", 1, [64, 64], bytes(16384), raw=True))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())

    code = run(
        ["trim", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o.onnx"), "--no-passes", "--split-weights", "9kB"]
    )

    assert code == 5
    assert "'w' has 16,384 bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trim", "m.onnx", "-o", "o.onnx", "--plan", "m.onnx"], "m.onnx would replace the model that is read"),
        (["trim", "m.onnx", "-o", "o.onnx", "--plan", "o.onnx"], "The plan would replace the model in o.onnx"),
        (["trim", "m.onnx", "-o", "m.onnx"], "m.onnx would replace the model that is read"),
        (["check", "m.onnx", "-t", "wasm", "--sarif", "m.onnx"], "m.onnx would replace the model that is read"),
        (["inspect", "m.onnx", "--graph", "link.html"], "link.html would replace the model that is read"),
        (["trim", "m.onnx", "-o", "o.onnx", "--outputs", ""], "need the name of a value"),
        (["trim", "m.onnx", "-o", "o.onnx", "--outputs", "x"], "'x' is an input of the model: nothing computes it"),
    ],
)
def test_no_file_that_is_written_replaces_the_model_and_no_output_is_an_input(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = next(tmp_path.glob("*.onnx")).rename(tmp_path / "m.onnx")
    (tmp_path / "link.html").symlink_to(model)
    before = model.read_bytes()
    assert run(arguments) == 2
    assert said in capsys.readouterr().err
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "m.onnx"]


def test_an_older_ir_version_is_judged_by_the_opset_that_the_model_then_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, small = (
        write(tmp_path, "g (float[N, 4] x) => (float[N, N] y) { t = Transpose <perm = [1, 0]> (x) y = MatMul(x, t) }"),
        tmp_path / "small.onnx",
    )
    assert call(model, "-o", str(small), "--opset", "13", "--ir", "7").exit_code == 0
    assert onnx.load(small).ir_version == 7
    assert run(["trim", model, "-o", str(tmp_path / "no.onnx"), "--opset", "15", "--ir", "4"]) == 2
    assert "needs IR version 8 or newer" in capsys.readouterr().err


def test_a_file_that_every_pass_would_only_make_larger_does_not_grow(tmp_path: Path) -> None:
    model = write(
        tmp_path,
        "g (float[N] x) => (float[M] y, float[0] q) <float[0] z = {}> { y = Concat <axis = 0> (x, z) q = Identity(z) }",
    )
    small = tmp_path / "small.onnx"
    assert call(model, "-o", str(small)).exit_code == 0
    assert small.stat().st_size <= Path(model).stat().st_size
