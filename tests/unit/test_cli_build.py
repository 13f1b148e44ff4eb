"""``edgekit build``: the options of the runtime, refused before the work, and what is said of each variant."""

import json
from pathlib import Path

import pytest
from models_text import LINEAR, write

from edgekit.cli import build as cli_build
from edgekit.cli.main import run
from edgekit.pipeline import BuildResult
from edgekit.records import run_record
from edgekit.records.run_record import Environment, Hashes, Miss, RunRecord, Timings
from edgekit.runtime_trim import RuntimeSize


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    return ["build", str(write(LINEAR, tmp_path)), "-t", "wasm", "-o", str(tmp_path / "bundle")]


def record(folder: Path, *misses: Miss) -> str:
    environment = Environment("page", "ort", "0", "wasm", "wasm", "wasm", 1, True, None, None, None)
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
    text = tmp_path / "text"
    text.write_text("not a record")
    assert str(text) in refused([*command, "--add-profile", str(text)], capsys)
    assert not (tmp_path / "bundle").exists()


@pytest.mark.browser
def test_a_miss_of_a_function_that_the_runtime_never_had_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = record(tmp_path / "wrong", miss("wasm", 10_000_000))
    said = refused([*command, "--add-profile", wrong, "--browser-path", str(tmp_path / "none")], capsys)
    assert "No function of the runtime has the number 10000001: a miss of another runtime?" in said
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
        size("jspi", proven=(), note="not proven here: there is no browser"),
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
    assert "runtime asyncify: shipped as published: cut, it does not answer the same" in err
    cli_build.print_runtimes(BuildResult(tmp_path, "t", "0", (), (), (), ()))
    assert capsys.readouterr() == ("", "")


def test_measuring_a_runtime_refuses_what_is_no_variant_or_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'wasmm'" in refused(["runtime", "profile", "--variant", "wasmm"], capsys)
    said = refused(["runtime", "profile", "--runtime", str(tmp_path / "none")], capsys)
    assert f"The runtime folder {tmp_path / 'none'} does not exist" in said
