"""``edgekit report``: what it writes and says, and what it says of records that cannot be reported."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_samples import EVERY, HOSTILE, failed, hostile, not_run, passed, refused

from edgekit.cli import main
from edgekit.files import json_bytes, sha256_bytes
from edgekit.records import cases, manifest
from edgekit.records.cases import CaseSet
from edgekit.records.manifest import FileEntry, Manifest, ModelEntry, RuntimeEntry
from edgekit.records.store import Conditions, save_run
from edgekit.records.validate import validated
from edgekit.report.entry import Entry


def saved(entry: Entry, folder: Path) -> Path:
    assert entry.case_set is not None
    save_run(
        folder,
        conditions=Conditions(entry.verdict.title, entry.verdict.target, command=entry.command),
        case_set=entry.case_set,
        record=entry.record,
        verdict=entry.verdict,
        desktop=entry.desktop,
    )
    return folder


def bundle_of(case_set: CaseSet, folder: Path, model: bytes = b"model") -> Path:
    """Write a bundle of a model and its cases: all that a report reads of one."""
    document, tensors = cases.to_files(case_set)
    files = {"cases/cases.json": json_bytes(document), "cases/cases.safetensors": tensors, "model/model.onnx": model}
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    entries = tuple(FileEntry(path, sha256_bytes(data), len(data)) for path, data in sorted(files.items()))
    entry = ModelEntry("model/model.onnx", sha256_bytes(model))
    runtime = RuntimeEntry("ort", "1.30.0", ("jspi", "wasm"))
    made = Manifest("0.1.0", "web", "webgpu", "bundled.onnx", entry, runtime, entries)
    (folder / "manifest.json").write_bytes(json_bytes(manifest.to_json(made)))
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main.run(["report", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("name", EVERY)
def test_a_run_folder_becomes_a_page_with_the_same_verdict(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = EVERY[name]()
    code, out, err = run(capsys, saved(entry, tmp_path / "run"), "-o", tmp_path / "page.html", "--json")
    assert (code, err) == (0, "")
    (verdict,) = json.loads(out)["verdicts"]
    assert validated(verdict, "verdict", "verdict.json")["status"] == entry.verdict.status
    page = (tmp_path / "page.html").read_text()
    assert page.count("<script") <= 1 and ("Passed" in page) == (name == "passed")


def test_the_summary_is_data_and_where_the_page_went_is_talk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, saved(failed(), tmp_path / "run"), "-o", tmp_path / "page.html")
    assert code == 0 and "✗ Failed for webgpu: 3 of 6 outputs match" in out and "page.html" in err


def test_several_records_share_a_page_and_a_junit_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [saved(entry(), tmp_path / entry.__name__) for entry in (passed, refused, not_run)]
    code, out, _ = run(capsys, *folders, "-o", tmp_path / "page.html", "--junit", tmp_path / "junit.xml", "--json")
    assert code == 0 and [v["status"] for v in json.loads(out)["verdicts"]] == ["passed", "refused", "not_run"]
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()  # noqa: S314  written a line above
    assert [suite.get("errors") for suite in suites] == ["0", "3", "3"]
    assert "Side by side" in (tmp_path / "page.html").read_text()


def test_several_summaries_say_which_is_which_and_every_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [saved(entry(), tmp_path / entry.__name__) for entry in (passed, failed)]
    page, suites = tmp_path / "page.html", tmp_path / "junit.xml"
    _, out, err = run(capsys, *folders, "-o", page, "--junit", suites)
    assert "✓ model.onnx: Passed for webgpu" in out and "✗ model.onnx: Failed for webgpu" in out
    assert err == f"Wrote {page}.\nWrote {suites}.\n"


def test_why_no_record_came_back_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(not_run(), tmp_path / "run")
    document = json.loads((folder / "conditions.json").read_text())
    (folder / "conditions.json").write_text(json.dumps({**document, "no_record": "The page never answered."}))
    _, out, _ = run(capsys, folder, "-o", tmp_path / "page.html")
    assert "The page never answered." in out


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, saved(hostile(), tmp_path / "run"), "-o", tmp_path / "page.html")
    assert code == 0
    assert all(character not in out + err for character in "\x1b\x00\u202e")
    assert "\\x1b[31m" in out and HOSTILE not in out


def test_the_verdict_is_reached_again_and_never_read_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(failed(), tmp_path / "run")
    text = (folder / "verdict.json").read_text().replace('"status": "failed"', '"status": "passed"')
    (folder / "verdict.json").write_text(text)
    _, out, _ = run(capsys, folder, "-o", tmp_path / "page.html", "--json")
    assert json.loads(out)["verdicts"][0]["status"] == "failed"


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    """A record alone, as a phone posts it, of the model whose bytes are b"model"."""
    entry = passed()
    assert entry.record is not None
    hashes = replace(entry.record.hashes, model=sha256_bytes(b"model"))
    folder = saved(replace(entry, record=replace(entry.record, hashes=hashes)), tmp_path / "phone")
    for path in folder.iterdir():
        if not path.name.startswith("record."):
            path.unlink()
    return folder


def test_a_record_alone_is_judged_by_the_bundle_that_is_named(
    phone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, case_set = tmp_path / "page.html", passed().case_set
    assert case_set is not None
    folder = bundle_of(replace(case_set, model_sha256=sha256_bytes(b"model")), tmp_path / "bundle")
    manifest_sha256 = sha256_bytes((folder / "manifest.json").read_bytes())
    code, out, _ = run(capsys, phone / "record.json", "--bundle", folder, "-o", page, "--json")
    (verdict,) = json.loads(out)["verdicts"]
    assert code == 0 and verdict["status"] == "failed" and "another bundle" in verdict["reasons"][0]

    document = json.loads((phone / "record.json").read_text())
    document["hashes"]["manifest"] = manifest_sha256
    (phone / "record.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, phone, "--bundle", folder, "-o", page, "--json")
    (verdict,) = json.loads(out)["verdicts"]
    assert (code, verdict["status"], verdict["title"], verdict["target"]) == (0, "passed", "bundled.onnx", "webgpu")


def test_a_posted_record_that_its_address_forced_is_of_that_variant_alone(
    phone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case_set = passed().case_set
    assert case_set is not None
    folder = bundle_of(replace(case_set, model_sha256=sha256_bytes(b"model")), tmp_path / "bundle")
    document = json.loads((phone / "record.json").read_text())
    document["hashes"]["manifest"] = sha256_bytes((folder / "manifest.json").read_bytes())
    for asked, said in (("wasm", "Passed for webgpu's variant wasm:"), ("webgpu", "Passed for webgpu:")):
        variant = "wasm" if asked == "wasm" else "jspi"
        ran = {"variant": variant, "execution_provider_asked": asked, "execution_provider": asked}
        document["environment"] |= ran
        (phone / "record.json").write_text(json.dumps(document))
        _, out, _ = run(capsys, phone, "--bundle", folder, "-o", tmp_path / "page.html")
        assert said in out and ("webgpu was not tried" in out) == (asked == "wasm")


def test_a_record_of_another_model_than_the_named_bundle_is_the_users_mistake(
    phone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case_set = passed().case_set
    assert case_set is not None
    other = bundle_of(replace(case_set, model_sha256=sha256_bytes(b"other")), tmp_path / "bundle", b"other")
    code, out, err = run(capsys, phone, "--bundle", other, "-o", tmp_path / "page.html")
    assert (code, out) == (2, "") and "is a record of another model" in err and "hint:" in err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 2, "There is no record at nowhere."),
        (["empty"], 2, "empty holds no run record"),
        (["phone"], 2, "has no golden cases beside it to be judged by."),
        (["phone", "--bundle", "empty"], 2, "is not a bundle"),
        (["broken"], 2, "record.json is not a JSON file"),
        (["run", "-o", "empty"], 2, "there is a folder of that name"),
        (["run", "-o", "text.txt/page.html"], 2, "a part of that path is a file"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_reported_is_said_without_a_traceback(
    arguments: list[str],
    code: int,
    said: str,
    phone: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("")
    saved(passed(), tmp_path / "run")
    saved(passed(), tmp_path / "broken")
    (tmp_path / "broken" / "record.json").write_text("not json")
    got, out, err = run(capsys, *arguments)
    assert (got, out) == (code, "") and said in err and "Traceback" not in err and "bug in edgekit" not in err
    assert not (tmp_path / "report.html").exists() and not any((tmp_path / "empty").iterdir())
