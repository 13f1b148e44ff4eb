import json
from pathlib import Path

import pytest

from edgekit.cli.main import run
from edgekit.runtime import pins


def test_an_empty_cache_is_shown_as_such_with_what_to_do(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runtime"]) == 0
    out, err = capsys.readouterr()
    assert f"onnxruntime-web {pins.load().version} in {own_cache}" in out
    assert out.count("missing") == len(pins.load().files)
    assert err == "Nothing is cached yet. 'edgekit runtime fetch' gets it; 'edgekit build' does so when it needs it.\n"


def test_json_says_the_same(own_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runtime", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert (document["version"], document["verified"]) == (pins.load().version, False)
    assert {file["name"]: file["sha256"] for file in document["files"]} == {
        name: file.sha256 for name, file in pins.load().files.items()
    }
    assert {file["state"] for file in document["files"]} == {"missing"}


def test_fetch_fills_the_cache_and_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runtime", "fetch"]) == 0
    out, err = capsys.readouterr()
    assert out.count("verified") == len(pins.load().files)
    assert err == ""
    assert run(["runtime", "fetch", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["verified"] is True


def test_fetch_without_a_network_is_a_missing_tool_and_no_traceback(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("npm_config_offline", "true")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
    assert run(["runtime", "fetch"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: npm could not fetch onnxruntime-web. Its last words:\n")
    assert "\nhint: Run 'edgekit runtime fetch' once while online" in err
    assert "Traceback" not in err
