"""A sample of the malformed corpus through inspect, check and trim: clean answers within 10 s and 1 GB each."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import malformed
import malformed_models
import pytest
from models_text import LINEAR, write

from edgekit.cli.main import run

ROOT = Path(__file__).resolve().parent.parent.parent
SWEEP = ROOT / "benchmarks" / "malformed_sweep.py"
# One file of every ninety of each kind, and one at least; those of gigabytes have tests of their own (test_model_wire).
SAMPLE = ["--every", "90", "--workers", "2"]
MOST_IN_SAMPLE = 50


def sweep(*arguments: str, output: Path) -> tuple[int, dict[str, object]]:
    """Run the sweep; return its exit code and what it wrote."""
    command = [sys.executable, str(SWEEP), *arguments, "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert output.is_file(), done.stdout + done.stderr
    return done.returncode, json.loads(output.read_text())


def test_the_corpus_is_as_large_and_as_varied_as_it_should_be() -> None:
    files = list(malformed.corpus())
    kinds = Counter(each.kind for each in files)
    assert len(files) >= 2000
    assert len({(each.kind, each.name) for each in files}) == len(files)
    assert {"cut short", "flipped bits", "huge shapes", "deep nesting", "circles", "billions"} <= set(kinds)
    assert kinds["cut short"] < len(files) / 2


@pytest.mark.parametrize("kind", ["cut short", "flipped bits", "moved blocks", "wrong lengths", "extreme fields"])
def test_damage_is_the_same_each_time(kind: str, tmp_path: Path) -> None:
    made = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        sample = [each for each in malformed.corpus() if each.kind == kind][17]
        made.append(sample.make(tmp_path / place).read_bytes())
    assert made[0] == made[1]
    assert made[0] not in malformed.bases().values()


def test_a_sample_of_malformed_files_gets_clean_answers(tmp_path: Path) -> None:
    kinds = {each.kind for each in malformed.corpus()} - {"billions", "valid and large", "many of a thing"}
    chosen = [word for kind in sorted(kinds) for word in ("--kind", kind)]
    code, result = sweep(*SAMPLE, *chosen, output=tmp_path / "result.json")
    assert result["faults"] == []
    assert code == 0
    assert set(result["kinds"]) == kinds  # type: ignore[call-overload]  # a document
    assert 28 <= result["files"] <= MOST_IN_SAMPLE  # type: ignore[operator]  # a whole number
    assert result["runs"] == 3 * result["files"]  # type: ignore[operator]


def test_the_sweep_itself_finds_faults(tmp_path: Path) -> None:
    """Its twin: with no time at all, every command is at fault, and the sweep says so."""
    source = SWEEP.read_text().replace("MOST_SECONDS = 10.0", "MOST_SECONDS = -1.0")
    source = source.replace("Path(__file__).resolve().parent.parent", f"Path({str(ROOT)!r})")
    (tmp_path / "sweep.py").write_text(source)
    command = [sys.executable, str(tmp_path / "sweep.py"), "--kind", "no models", "--every", "100"]
    done = subprocess.run([*command, "--output", str(tmp_path / "r.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    faults = json.loads((tmp_path / "r.json").read_text())["faults"]
    assert {row["command"] for row in faults} == {"inspect", "check", "trim"}
    assert all("s of computing" in row["faults"][0] for row in faults)


def test_an_input_of_no_elements_and_an_impossible_shape_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shape in ([0, 1 << 62], [1] * 70):
        proto = malformed_models.made([malformed_models.node("Relu", "x", "y")], x=shape)
        (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
        assert run(["trim", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o.onnx")]) == 3
        assert "'x' has a shape that no tensor can have" in capsys.readouterr().err
        assert not (tmp_path / "o.onnx").exists()


def test_a_loop_without_end_is_stopped_after_seconds_of_computing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(malformed_models.loop(1 << 62, "Relu").SerializeToString())
    code = run(["trim", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o.onnx")])
    assert code in (3, 5)
    said = capsys.readouterr().err
    assert "s of computing" in said or "did not end within" in said


def test_an_opset_beyond_32_bits_is_no_bug_of_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = malformed_models.made([malformed_models.node("Relu", "x", "y")])
    proto.opset_import[0].version = 1 << 62
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert run(["check", str(tmp_path / "m.onnx"), "-t", "wasm"]) == 3
    assert "4611686018427387904" in capsys.readouterr().out


def test_the_twin_is_trimmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trim", str(write(LINEAR, tmp_path)), "-o", str(tmp_path / "o.onnx")]) == 0
    assert "Wrote" in capsys.readouterr().err
