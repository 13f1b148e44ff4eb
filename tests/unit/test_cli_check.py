"""``edgekit check``: what it prints, its exit codes, and that ``build`` asks it first."""

import json
from pathlib import Path

import pytest
from check_samples import in_this_process, page, without_sessions
from models_text import LINEAR, PRIVATE_DOMAIN, parse, write

from edgekit import pipeline
from edgekit.check.finding import Finding
from edgekit.cli import main
from edgekit.errors import ModelError
from edgekit.kinds.config import BuildConfig
from edgekit.targets import load as targets

HOSTILE = "<script>alert('x')</script>\x1b[2J\n\u202e"
MINE = 'extends = "{own}"\ntitle = "Mine"\n[runtime]\nvariants = ["jspi"]\n'


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch)
    without_sessions(monkeypatch)


def check(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main.run(["check", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def gpu_target() -> str:
    """The id of a target of edgekit's own that tries a GPU first."""
    return next(name for name in targets.ids() if len(targets.load(name).runtime.variants) > 2)


def test_what_cannot_run_is_said_with_node_reason_and_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, write(PRIVATE_DOMAIN, tmp_path), "-t", targets.ids()[0])
    assert (code, err) == (3, "")
    lines = out.splitlines()
    assert "cannot run (1 error" in lines[0]
    assert lines[1] == "  ✗ error custom-operator: node 'a'"
    assert "my.company::Frobnicate" in lines[2]
    assert lines[3].startswith("      fix: Export the model without custom operators")


def test_a_sound_model_can_run_on_several_targets_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [word for name in targets.ids() for word in ("-t", name)]
    code, out, _ = check(capsys, write(LINEAR, tmp_path), *chosen)
    assert code == 0
    assert out.count(": can run") == len(targets.ids())


def test_warnings_fail_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(page("conv-channels-of-three").found, tmp_path)
    code, out, _ = check(capsys, path, "-t", gpu_target())
    assert code == 0
    assert "! warning conv-channels-of-three: node 'y', tensor 'w'" in out
    assert check(capsys, path, "-t", gpu_target(), "--strict")[0] == 3
    twin = write(page("conv-channels-of-three").not_found, tmp_path, "twin.onnx")
    assert check(capsys, twin, "-t", gpu_target(), "--strict")[0] == 0


def test_json_and_sarif_hold_the_same_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "findings.sarif"
    code, out, err = check(capsys, write(PRIVATE_DOMAIN, tmp_path), "-t", targets.ids()[0], "--json", "--sarif", log)
    assert (code, err) == (3, "")
    (found,) = json.loads(out)["targets"]
    assert found["runs"] is False
    results = json.loads(log.read_text(encoding="utf-8"))["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == [each["rule"] for each in found["findings"]]


def test_hostile_names_cannot_drive_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = parse(LINEAR)
    proto.graph.node[0].name = proto.graph.node[1].name = HOSTILE
    proto.graph.node[0].input[1] = HOSTILE
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    code, out, _ = check(capsys, tmp_path / "m.onnx", "-t", targets.ids()[0], "--sarif", tmp_path / "s.sarif")
    assert code == 3
    assert all(c.isprintable() or c == "\n" for c in out)
    assert json.loads((tmp_path / "s.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.onnx", "-t", targets.ids()[0]], "There is no file"),
        (["gone.onnx", "-t", "gone"], "There is no target 'gone'"),
        (["gone.onnx"], "Missing option '--target'"),
    ],
)
def test_a_users_mistake_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_users_target_without_a_fallback_turns_warnings_into_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(MINE.format(own=gpu_target()), encoding="utf-8")
    path = write(page("shader-f16").found, tmp_path)
    code, out, _ = check(capsys, path, "-t", gpu_target())
    assert code == 0
    assert "The page then falls back to" in out
    code, out, _ = check(capsys, path, "-t", "mine", "--targets-dir", tmp_path)
    assert code == 3
    assert "falls back" not in out


def test_build_refuses_what_cannot_run_before_it_works(tmp_path: Path) -> None:
    config = BuildConfig(write(PRIVATE_DOMAIN, tmp_path), targets.ids()[0], tmp_path / "bundle")
    with pytest.raises(
        ModelError, match=r"node 'a': The operator 'my.company::Frobnicate'.*\[custom-operator\]"
    ) as told:
        pipeline.build(config)
    assert told.value.hint is not None
    assert not (tmp_path / "bundle").exists()


def test_build_shows_warnings_and_leaves_notes_out() -> None:
    found = [
        Finding("a", "warning", "Slow.", "n"),
        Finding("b", "note", "Well."),
        Finding("file-bytes", "warning", "Big."),
    ]
    assert pipeline._check_warnings(found) == ["node 'n': Slow. [a]"]


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert "edgekit check model.onnx --target webgpu" in check(capsys, "--help")[1]
