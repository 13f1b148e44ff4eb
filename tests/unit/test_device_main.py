"""``edgekit-run`` in this process: one input, the golden cases, a measurement, and a user's mistakes."""

import json
from pathlib import Path

import linux_bundle
import numpy as np
import pytest

from edgekit import compare
from edgekit.bundle.open import load_cases
from edgekit.device import main
from edgekit.files import json_bytes
from edgekit.records import run_record, tensors, validate
from edgekit.records.run_record import RunRecord


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linux_bundle.make(tmp_path_factory.mktemp("device")).folder


def run(folder: Path, *words: object) -> int:
    return main.main(["--bundle", str(folder), *map(str, words)])


def record_of(folder: Path) -> RunRecord:
    document = json.loads((folder / "record.json").read_bytes())
    return run_record.from_files(document, (folder / "record.safetensors").read_bytes())


def test_parity_writes_a_record_that_passes(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "parity", "-o", tmp_path, "--run", "abc", "--soak", 4, "--threads", 1) == 0
    assert "2 of 2 golden cases done" in capsys.readouterr().err
    record, bundle = record_of(tmp_path), linux_bundle.open_bundle(folder)
    verdict = compare.judge(
        load_cases(bundle), record, title="", target=None, manifest_sha256=bundle.manifest_sha256,
        execution_provider="cpu",
    )  # fmt: skip
    assert verdict.passed and verdict.compared == 4
    assert (record.run, record.environment.threads, record.environment.execution_provider) == ("abc", 1, "cpu")
    assert record.timings.create_ms and len(record.timings.later_run_ms) == 5
    assert [again.equal for again in record.again] == [True, True]
    assert record.soak and (record.soak.different, len(record.soak.run_ms)) == (0, 4)
    assert record.soak.memory[-1].heap_bytes


def test_the_twin_a_case_that_is_off_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = linux_bundle.make(tmp_path, shift=0.01)
    assert run(bundle.folder, "parity", "-o", tmp_path / "record", "--case", "once") == 0
    verdict = compare.judge(load_cases(bundle), record_of(tmp_path / "record"), title="", target=None, cases=["once"])
    assert verdict.status == "failed"
    assert "1 of 2" in capsys.readouterr().err


def test_one_input_gives_its_outputs(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.json").write_text('{"inputs": {"x": [[1, 2]], "n": [3]}}')
    assert run(folder, "run", tmp_path / "in.json") == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["z"]["data"] == [4]
    np.savez(tmp_path / "in.npz", x=np.float32([[5, 6]]), n=np.int64([1]))
    assert run(folder, "run", tmp_path / "in.npz", "-o", tmp_path / "out.safetensors") == 0
    assert tensors.decode((tmp_path / "out.safetensors").read_bytes(), "it")["y"].tolist() == [[5, -6]]
    assert run(folder, "run", tmp_path / "out.safetensors") == 2
    assert "the model has no input" in capsys.readouterr().err


def test_bench_measures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "bench", "--runs", 30, "--seconds", 5) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 30 and 0 < told["p50_ms"] <= told["p95_ms"] <= told["p99_ms"]
    assert told["peak_bytes"] > 1e6 and told["cold_start_ms"] > 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["parity", "-o", "x", "--case", "none"], 2, "no golden case 'none'"),
        (["parity", "-o", "x", "--soak", "-1"], 2, "0 or more"),
        (["run", "gone.json"], 2, "cannot be read"),
        (["run", __file__], 2, "none of .json"),
        (["run", "gone.json", "-o", "out.txt"], 2, "neither .json nor"),
        (["--config", "gone.toml", "bench"], 2, "gone.toml cannot be read"),
        (["serve", "--port", "99999"], 2, "The command line: 'server.port' is no port: 99999"),
        (["serve", "--host", "a\0b"], 2, "The command line: 'server.host' is no address"),
        (["serve", "--host", ""], 2, "The command line: 'server.host' is no address"),
    ],
)
def test_a_mistake_is_said_in_words(
    folder: Path, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, *words) == code
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err


def test_cores_that_the_machine_does_not_give_are_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[session]\ncores = [100000]\n")
    assert run(folder, "--config", config, "bench", "--runs", 1) == 2
    assert "session.cores: this machine does not give 100000; it gives " in capsys.readouterr().err
    # Its golden cases are replayed all the same: on whatever core, the answers are to be the same.
    assert run(folder, "--config", config, "parity", "-o", tmp_path / "record", "--repeats", 0) == 0
    assert "does not give 100000" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["model/model.onnx", "cases/cases.safetensors"])
def test_a_file_that_was_changed_is_not_run(tmp_path: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = linux_bundle.make(tmp_path)
    with (bundle.folder / path).open("ab") as stream:
        stream.write(b"\0")
    assert run(bundle.folder, "parity", "-o", tmp_path / "record") == 2
    assert f"{path} is missing, or is not the bundle's" in capsys.readouterr().err
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("damage", [{}, {"files": 1}, []])
def test_a_damaged_manifest_is_said_in_words(
    tmp_path: Path, damage: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "SCHEMAS", tmp_path / "none")  # as on a device, where no schemas travel
    bundle = linux_bundle.make(tmp_path)
    (bundle.folder / "manifest.json").write_bytes(json_bytes(damage))
    assert run(bundle.folder, "bench") == 2
    assert "manifest" in capsys.readouterr().err


def test_a_model_that_the_runtime_refuses_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = linux_bundle.make(tmp_path, model=linux_bundle.MODEL.replace("Mul(x, w)", "no.such.Operator(x, w)"))
    assert run(bundle.folder, "parity", "-o", tmp_path / "record") == 3
    assert "refuses the model" in capsys.readouterr().err
