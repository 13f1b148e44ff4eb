"""``edgekit build``: the options of the runtime, refused before the work, and what is said of each variant."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from models_text import LINEAR, write

from edgekit.bundle.sizes import FileSizes
from edgekit.cli import build as cli_build
from edgekit.cli.main import run
from edgekit.pipeline import BuildResult
from edgekit.records import run_record
from edgekit.records.run_record import Environment, Hashes, Miss, RunRecord, Timings
from edgekit.runtime import pins
from edgekit.runtime_trim import RuntimeSize


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    return ["build", str(write(LINEAR, tmp_path)), "-t", "wasm", "-o", str(tmp_path / "bundle")]


def record(folder: Path, *misses: Miss, version: str = pins.load().version) -> str:
    environment = Environment("page", "ort", version, "wasm", "wasm", "wasm", 1, True, None, None, None)
    made = RunRecord("r", Hashes(None, "0" * 64, None), environment, (), Timings(), (), misses=misses)
    document, tensors = run_record.to_files(made)
    folder.mkdir()
    (folder / "record.json").write_text(json.dumps(document))
    (folder / "record.safetensors").write_bytes(tensors)
    return str(folder)


def miss(variant: str, *functions: int) -> Miss:
    return Miss(variant, functions, "run", "wasm", "trap", "unreachable")


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must end with exit code 2, and return what it said."""
    assert run(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def test_an_unknown_net_names_those_there_are(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "'cpu', 'same', 'none'" in refused([*command, "--net", "gpu"], capsys)


@pytest.mark.parametrize("option", [["--net", "cpu"], ["--add-profile", "run"]])
def test_options_of_a_cut_runtime_and_the_published_one_contradict_each_other(
    option: list[str], command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused([*command, "--no-trim-runtime", *option], capsys)
    assert f"{option[0]} is about a runtime that is cut" in said and "hint: " in said


def test_a_record_of_misses_that_cannot_be_used_is_refused_before_the_work(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert nowhere in refused([*command, "--add-profile", nowhere], capsys)
    none = record(tmp_path / "none")
    said = refused([*command, "--add-profile", none], capsys)
    assert f"{none} tells of no function that a trimmed runtime missed" in said and "--output" in said
    other = record(tmp_path / "other", miss("jspi", 3), miss("asyncify", 4))
    said = refused([*command, "--add-profile", other], capsys)
    assert f"{other} tells of misses of variant jspi, asyncify, which target 'wasm' does not use" in said
    older = record(tmp_path / "older", miss("wasm", 3), version="1.29.0")
    said = refused([*command, "--add-profile", older], capsys)
    assert f"{older} tells of misses of onnxruntime-web 1.29.0, not {pins.load().version}" in said
    text = tmp_path / "text"
    text.write_text("not a record")
    assert str(text) in refused([*command, "--add-profile", str(text)], capsys)
    assert not (tmp_path / "bundle").exists()


def test_a_miss_of_a_function_that_the_runtime_never_had_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = record(tmp_path / "wrong", miss("wasm", 10_000_000))
    said = refused([*command, "--add-profile", wrong], capsys)
    assert "No function of the runtime has the number 10000001: a miss of another runtime?" in said
    assert not (tmp_path / "bundle").exists()


def test_a_browser_that_is_named_and_not_there_is_a_mistake_and_not_a_machine_without_one(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--browser-path", str(tmp_path / "none")]) == 4
    assert "--browser-path names is not there" in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()


def test_without_trimming_the_runtime_nothing_is_said_of_it(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--no-trim-runtime", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runtimes"] == []
    assert not (tmp_path / "bundle" / "runtime-trim.json").exists()
    assert not (tmp_path / "bundle" / "runtime" / "stock").exists()


def size(variant: str, **values: object) -> RuntimeSize:
    arguments = {
        "stock_bytes": 14_000_000,
        "stock_brotli_bytes": 2_000_000,
        "bytes": 4_000_000,
        "brotli_bytes": 500_000,
        "kept": 3_500,
        "functions": 17_000,
        "sources": ("profile", "recording"),
        "proven": (1, 4),
        "reported": 0,
        "reason": "",
        "note": "",
    }
    return RuntimeSize(variant, **{**arguments, **values})  # type: ignore[arg-type]


def test_the_table_says_of_each_variant_what_a_visitor_saves_or_why_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = {"kept": 0, "functions": 0, "proven": (), "brotli_bytes": 2_000_000}
    rows = (
        size("wasm"),
        size("jspi", proven=(), sources=("profile",), note="not proven here: there is no browser", reported=1200),
        size("asyncify", **published, reason="cut, it does not answer the same"),
        size("other", stock_brotli_bytes=None),
    )
    cli_build.print_runtimes(BuildResult(tmp_path, "t", "0", (), (), (), (), runtimes=rows))
    out, err = capsys.readouterr()
    lines = {line.split()[0]: line.split(None, 1)[1] for line in out.splitlines() if line.strip() and line[0] != "─"}
    assert lines["wasm"].split()[:3] == ["2,000,000", "500,000", "0.25"]
    assert "3,500 of 17,000" in lines["wasm"] and "1 and 4 threads" in lines["wasm"]
    assert "not proven here" in lines["jspi"]
    assert "as published" in lines["asyncify"]
    assert lines["other"].split()[:3] == ["–", "500,000", "–"]
    assert "runtime jspi: not proven here: there is no browser" in err
    assert "runtime jspi: told by its profile alone, so kept with a margin" in err
    assert "runtime jspi: 1,200 functions are kept for what devices missed" in err
    assert "runtime wasm:" not in err
    assert "runtime asyncify: shipped as published: cut, it does not answer the same" in err
    cli_build.print_runtimes(BuildResult(tmp_path, "t", "0", (), (), (), ()))
    assert capsys.readouterr() == ("", "")


def files(*sizes: tuple[str, int, int | None]) -> SimpleNamespace:
    return SimpleNamespace(
        files=[FileSizes(path, raw, packed, packed) for path, raw, packed in sizes], folder="bundle", target="here"
    )


def test_a_folder_of_many_files_is_one_line_and_what_weighs_is_told_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    cli_build.print_files(files(("app/a.js", 1000, 300), ("app/demo/b.js", 500, None), ("cases/c.json", 7, None),
                            ("index.html", 9, None), ("model/m.onnx", 60, 50), ("model/w", 90, 80)))  # fmt: skip
    lines = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert {"app/ (2 files) 1,500 800 800", "cases/c.json 7 – –", "index.html 9 – –"} <= lines
    assert {"model/m.onnx 60 50 50", "model/w 90 80 80", "all 1,666 946 946"} <= lines


def test_without_compressed_copies_there_is_one_column_of_bytes_that_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    wheels = [(f"wheels/{'x' * 70}{k}.whl", 15_000_000, None) for k in range(4)]
    weights = [(f"model/weight-{k}", 10, None) for k in range(300)]
    cli_build.print_files(files(("install.sh", 5, None), *weights, *wheels))
    out = capsys.readouterr().out
    assert out.splitlines()[2].split() == ["file", "bytes"]
    assert "wheels/ (4 files)   60,000,000" in out and "model/ (300 files)       3,000" in out
    assert all(len(line) <= 60 for line in out.splitlines())


def test_measuring_a_runtime_refuses_what_is_no_variant_or_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'wasmm'" in refused(["runtime", "profile", "--variant", "wasmm"], capsys)
    said = refused(["runtime", "profile", "--runtime", str(tmp_path / "none")], capsys)
    assert f"The runtime folder {tmp_path / 'none'} does not exist" in said
