"""``edgekit targets``: the list, and one target whole, of edgekit's own files or of the user's."""

from pathlib import Path

import pytest

from edgekit.cli.main import run
from edgekit.targets import load as targets

MINE = 'extends = "webgpu"\n[runtime]\nvariants = ["jspi", "wasm"]\n'


@pytest.mark.parametrize("before", [True, False])
def test_the_folder_may_be_named_before_or_after_show(
    before: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lean.toml").write_text(MINE)
    option = ["--targets-dir", str(tmp_path)]
    assert run(["targets", *option, "show", "lean"] if before else ["targets", "show", "lean", *option]) == 0
    out = capsys.readouterr().out
    assert "jspi, wasm" in out and "asyncify" not in out


def test_tolerances_read_as_they_do_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["targets", "show", "webgpu"]) == 0
    out = capsys.readouterr().out
    assert "rel 1e-06, abs 1e-09" in out and "{" not in out


def test_a_base_that_is_not_there_is_named_with_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lean.toml").write_text(MINE.replace("webgpu", "webgppu"))
    assert run(["targets", "show", "lean", "--targets-dir", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "lean.toml extends 'webgppu', which is no target. Did you mean 'webgpu'?\n" in err


@pytest.mark.parametrize("target_id", targets.ids())
def test_every_target_that_edgekit_has_can_be_shown(target_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["targets", "show", target_id]) == 0
    assert f"Target {target_id}" in capsys.readouterr().out
