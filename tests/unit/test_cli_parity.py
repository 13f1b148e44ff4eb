import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tiny_bundle

from edgekit.cli.main import run

browser = pytest.mark.browser


def bundle(folder: Path, **page: str) -> str:
    made = tiny_bundle.make(folder / "bundle", {"page.js": tiny_bundle.script(**page)}, title="tiny \x1b[31m<b>")
    return str(made.folder)


@browser
def test_a_verdict_that_passed_is_exit_code_0_with_tables_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: str(tmp_path / name) for name in ("junit.xml", "report.html", "run")}
    asked = ["--junit", files["junit.xml"], "--report", files["report.html"], "-o", files["run"]]
    assert run(["parity", bundle(tmp_path), *asked]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"Wrote {files['report.html']}.\nWrote {files['junit.xml']}.\n"
    assert "Passed" in captured.out and "match" in captured.out
    assert "later run (median)" in captured.out and "1.50 ms" in captured.out
    assert "\x1b" not in captured.out
    assert ElementTree.parse(files["junit.xml"]).getroot().findall(".//failure") == []  # noqa: S314
    page = (tmp_path / "report.html").read_text()
    assert "<b>" not in page.split("<body", 1)[1].split("<b>tiny", 1)[0] or "&lt;b&gt;" in page
    assert (tmp_path / "run" / "verdict.json").is_file()


@browser
def test_a_shifted_output_is_exit_code_6_and_a_failure_in_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bundle(tmp_path, output="[1, -2.5]")
    assert run(["parity", folder, "--json", "--junit", str(tmp_path / "j.xml")]) == 6
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["status"] == "failed"
    assert document["verdict"]["outputs"][0]["metrics"]["max_abs"] == 0.5
    assert {row["name"] for row in document["timings"]} >= {"create session", "first run"}
    assert len(ElementTree.parse(tmp_path / "j.xml").getroot().findall(".//failure")) >= 1  # noqa: S314


@browser
def test_a_tolerance_is_given_by_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parity", bundle(tmp_path, output="[1, -2.5]"), "--tolerance", "y=0.1,0.4"]) == 0
    assert "rel 0.1, abs 0.4" in capsys.readouterr().out


@browser
def test_a_page_that_never_answers_is_exit_code_6_with_its_console_and_a_junit_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bundle(tmp_path, before="await new Promise(() => {});")
    assert run(["parity", folder, "--timeout", "5", "--junit", str(tmp_path / "j.xml")]) == 6
    captured = capsys.readouterr()
    assert "Not run" in captured.out and "did not answer within 5 s" in captured.out
    assert "[log] asked: parity=1" in captured.out
    assert "hint:" in captured.err and "--timeout" in captured.err
    assert len(ElementTree.parse(tmp_path / "j.xml").getroot().findall(".//error")) >= 1  # noqa: S314


def test_a_missing_browser_is_exit_code_4_with_the_line_that_installs_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["parity", bundle(tmp_path), "--browser-path", "/nowhere/<chrome>"]) == 4
    captured = capsys.readouterr()
    assert "/nowhere/<chrome>" in captured.err and "playwright install chromium" in captured.err
    assert "Traceback" not in captured.err and captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--case", "onyl"], "'onyl'. Did you mean 'only'?\n"),
        (["--variant", "jspi"], "Its variants: wasm"),
        (["--browser", "netscape"], "Browsers: chromium"),
        (["--tolerance", "y"], "such as scores=1e-3"),
        (["--tolerance", "y=0.1", "--tolerance", "y=0.2"], "two values"),
        (["--tolerance", "z=0.1"], "not an output"),
        (["--threads", "0"], "--threads"),
        (["--timeout", "0"], "--timeout"),
        (["--repeats", "-1"], "--repeats"),
        (["--gpu", "quantum"], "--gpu"),
    ],
)
def test_a_mistake_is_exit_code_2_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(["parity", bundle(tmp_path), *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and "Traceback" not in captured.err and captured.out == ""


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_a_folder_that_is_no_bundle_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["parity", place]) == 2
    assert "hint:" in capsys.readouterr().err
