import json
from itertools import combinations
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


@browser
def test_several_combinations_are_one_table_with_runs_kept_and_exit_code_6_unless_all_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bundle(tmp_path)
    files = ["--junit", str(tmp_path / "j.xml"), "--report", str(tmp_path / "r.html")]
    assert run(["parity", folder, "--browser", "chromium", "--threads", "1,2", *files]) == 0
    captured = capsys.readouterr()
    assert "2 of 2 combinations passed" in captured.out and "\x1b" not in captured.out
    assert "chromium 1" in captured.out and f"kept in {folder}.parity" in captured.err
    assert (tmp_path / "bundle.parity" / "chromium-2" / "record.json").is_file()
    suites = [suite.get("name") for suite in ElementTree.parse(tmp_path / "j.xml").getroot()]  # noqa: S314
    assert len(suites) == 2 and "· chromium 1" in (suites[0] or "") and "· chromium 2" in (suites[1] or "")
    assert "chromium 2" in (tmp_path / "r.html").read_text()
    # A second time over the first, and one combination that cannot run.
    monkeypatch.setenv("EDGEKIT_FIREFOX", "/nowhere/firefox")
    assert run(["parity", folder, "--browser", "chromium,firefox", "--threads", "1", "--json"]) == 6
    document = json.loads(capsys.readouterr().out)
    chromium, firefox = document["combinations"]
    assert (document["passed"], chromium["verdict"]["status"]) == (False, "passed")
    assert firefox["verdict"]["status"] == "not_run" and "/nowhere/firefox" in firefox["note"]
    assert "playwright install firefox" in firefox["hint"] and firefox["folder"].endswith("firefox-1")


def test_an_inbox_shows_the_address_the_drawing_and_what_plain_http_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["parity", bundle(tmp_path), "--inbox", "--timeout", "1"]) == 6
    captured = capsys.readouterr()
    assert "Open this address" in captured.err and "/?parity=1&run=" in captured.err and "█" in captured.err
    assert "listens to the network" in captured.err and "neither WebGPU nor threads" in captured.err
    assert "No record came within 1 s" in captured.out and "firewall" in captured.err


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
        (["--browser", "netscape"], "Browsers: chromium, firefox, webkit"),
        (["--tolerance", "y"], "such as scores=1e-3"),
        (["--tolerance", "y=0.1", "--tolerance", "y=0.2"], "two values"),
        (["--tolerance", "z=0.1"], "not an output"),
        (["--threads", "0"], "--threads"),
        (["--timeout", "0"], "--timeout"),
        (["--repeats", "-1"], "--repeats"),
        (["--gpu", "quantum"], "--gpu"),
        (["--browser", "chromium,netscape"], "no browser 'netscape'"),
        (["--browser", "chromium,,firefox"], "an empty part"),
        (["--variant", "wasm,wasn"], "Did you mean 'wasm'?"),
        (["--threads", "1,0"], "--threads"),
        (["--threads", "1,two"], "--threads"),
        (["--inbox", "--threads", "1,2"], "waits for one record"),
        (["--inbox", "--cdp", "http://127.0.0.1:1"], "cannot be used together"),
        (["--cdp", "chrome"], "--cdp: 'chrome'"),
        (["--remote", "http://x"], "--remote: 'http://x'"),
        (["--port", "80"], "--host and --port belong to"),
        (["--browser", "chromium,firefox", "--browser-path", "x"], "EDGEKIT_FIREFOX"),
    ],
)
def test_a_mistake_is_exit_code_2_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(["parity", bundle(tmp_path), *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and "Traceback" not in captured.err and captured.out == ""


PLACES = {
    "--cdp": ["http://127.0.0.1:1"], "--remote": ["ws://127.0.0.1:1/"], "--inbox": [], "--device": ["emulated"],
    "--browser": ["chromium"], "--browser-path": ["/nowhere/chrome"],
}  # fmt: skip
TOGETHER = [{"--remote", "--browser"}, {"--browser", "--browser-path"}]


@pytest.mark.parametrize("pair", list(combinations(PLACES, 2)), ids=" ".join)
def test_two_options_that_name_where_it_runs_are_a_mistake_and_none_is_left_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pair: tuple[str, str]
) -> None:
    code = run(["parity", bundle(tmp_path), *(word for option in pair for word in (option, *PLACES[option]))])
    said = capsys.readouterr()
    refused = f"{pair[0]} and {pair[1]} cannot be used together" in said.err
    assert refused == (set(pair) not in TOGETHER), said.err
    assert code == 2 if refused else code in (4, 6)  # there is no such server, and no such program


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_a_folder_that_is_no_bundle_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["parity", place]) == 2
    assert "hint:" in capsys.readouterr().err
