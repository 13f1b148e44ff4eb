from pathlib import Path

import pytest
import tiny_bundle

from edgekit.cli.main import run


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = run(["diagnose", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert not out
    return code, err


def test_a_browser_that_trials_do_not_run_in_is_a_mistake_of_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_bundle.make(tmp_path / "bundle")
    code, err = said(capsys, tmp_path / "bundle", "--browser", "webkit")
    assert code == 2
    assert "has no trials for the browser 'webkit'" in err and "chromium, firefox" in err


def test_what_is_no_bundle_is_a_mistake_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = said(capsys, tmp_path / "nothing")
    assert code == 2 and "does not exist" in err


def test_a_repro_does_not_go_into_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_bundle.make(tmp_path / "bundle")
    code, err = said(capsys, tmp_path / "bundle", "-o", tmp_path / "bundle" / "repro")
    assert code == 2 and "bundle" in err
