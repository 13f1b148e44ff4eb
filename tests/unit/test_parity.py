"""Parity on a tiny bundle in a real browser; whole bundles with real runtimes are tested end to end elsewhere."""

import textwrap
from pathlib import Path

import pytest
import tiny_bundle

from edgekit import parity
from edgekit.cli import main
from edgekit.errors import BundleError, MissingToolError, UsageError
from edgekit.parity import ParityOptions
from edgekit.records import store
from edgekit.records.cases import Tolerance
from edgekit.targets import load as targets

browser = pytest.mark.browser
NO_BROWSER = ParityOptions(browser_path=Path("/nowhere/chrome"))


def bundle(folder: Path, *, target: str = "wasm", **page: str) -> Path:
    return tiny_bundle.make(folder / "bundle", {"page.js": tiny_bundle.script(**page)}, target=target).folder


@browser
def test_right_outputs_pass_with_times_beside_the_desktop_s(tmp_path: Path) -> None:
    said: list[str] = []
    result = parity.verify(bundle(tmp_path), progress=lambda message, done=None: said.append(message))
    assert result.verdict.status == "passed"
    assert (result.verdict.compared, result.verdict.expected) == (1, 1)
    rows = {row.name: row for row in result.timings}
    assert rows["later run (median)"].browser_ms == 1.5
    assert (rows["create session"].desktop_ms or 0) > 0 and (rows["first run"].ratio or 0) > 0
    assert result.desktop is not None and result.desktop.environment.runner == "local"
    assert said[0] == "Checking the bundle's files" and "Timing the desktop" in said


@browser
def test_a_shifted_output_fails_and_is_named(tmp_path: Path) -> None:
    result = parity.verify(bundle(tmp_path, output="[1, -2.1]"))
    assert result.verdict.status == "failed"
    assert [(output.output, output.status) for output in result.verdict.outputs] == [("y", "mismatch")]


@browser
def test_a_tolerance_for_the_output_lets_the_shift_pass(tmp_path: Path) -> None:
    options = ParityOptions(tolerance={"y": Tolerance(0.1, 0.0)})
    assert parity.verify(bundle(tmp_path, output="[1, -2.1]"), options).verdict.status == "passed"


@browser
def test_a_forced_variant_passes_for_itself_and_its_kept_run_still_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variants = ("jspi", "wasm")
    folder = tiny_bundle.make(
        tmp_path / "bundle", {"page.js": tiny_bundle.script()}, target="webgpu", variants=variants
    ).folder
    verdict = parity.verify(folder, ParityOptions(variant="wasm", output=tmp_path / "run")).verdict
    assert verdict.passed and verdict.variant == "wasm" and "webgpu was not tried" in " ".join(verdict.warnings)
    assert main.run(["report", str(tmp_path / "run"), "-o", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    assert "Passed for webgpu's variant wasm" in out and "webgpu was not tried" in out


def test_a_bundle_of_an_unknown_runtime_has_no_known_first_provider(tmp_path: Path) -> None:
    manifest = tiny_bundle.make(tmp_path / "bundle", variants=("odd", "wasm")).manifest
    assert parity.first_execution_provider(manifest) is None


@browser
def test_a_page_that_does_not_answer_gives_a_verdict_that_is_not_run(tmp_path: Path) -> None:
    folder = bundle(tmp_path, before="await new Promise(() => {});")
    result = parity.verify(folder, ParityOptions(timeout_seconds=5, output=tmp_path / "run"))
    assert result.verdict.status == "not_run" and not result.verdict.passed
    assert "did not answer within 5 s" in result.verdict.reasons[0] and "asked:" in result.verdict.reasons[0]
    assert (result.record, result.desktop, result.timings) == (None, None, ())
    assert "--timeout" in (result.hint or "")
    kept = store.load_run(tmp_path / "run")
    assert kept.record is None and kept.conditions is not None
    assert "did not answer" in (kept.conditions.no_record or "")


@browser
def test_the_run_is_kept_when_a_folder_is_named(tmp_path: Path) -> None:
    options = ParityOptions(cases=("only",), output=tmp_path / "run", command=("edgekit", "parity"))
    result = parity.verify(bundle(tmp_path), options)
    kept = store.load_run(tmp_path / "run")
    assert kept.record is not None and result.record is not None and kept.record.run == result.record.run
    assert kept.desktop is not None and kept.case_set is not None and kept.conditions is not None
    assert kept.conditions.cases == ("only",) and kept.conditions.command == ("edgekit", "parity")
    assert kept.conditions.manifest_sha256


@browser
def test_a_model_that_the_desktop_refuses_is_a_warning_since_only_its_times_are_missing(tmp_path: Path) -> None:
    made = tiny_bundle.make(tmp_path / "bundle", {"model/model.onnx": b"not a model"})
    result = parity.verify(made.folder)
    assert result.verdict.status == "passed"
    assert any("could not be timed" in warning for warning in result.verdict.warnings)
    assert all(row.desktop_ms is None for row in result.timings)


def test_a_changed_bundle_is_refused_by_the_file_s_name(tmp_path: Path) -> None:
    folder = bundle(tmp_path)
    with (folder / "model" / "model.onnx").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(BundleError, match=r"changed: model/model\.onnx"):
        parity.verify(folder, NO_BROWSER)


def test_a_missing_browser_is_not_a_verdict(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="/nowhere/chrome"):
        parity.verify(bundle(tmp_path), NO_BROWSER)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (ParityOptions(cases=("onyl",)), "no case 'onyl'"),
        (ParityOptions(tolerance={"z": Tolerance(1, 1)}), "'z', which is not an output"),
        (ParityOptions(variant="<script>"), "no variant '<script>'"),
        (ParityOptions(runner="netscape"), "no browser 'netscape'"),
        (ParityOptions(runner="local"), "no browser 'local'"),
        (ParityOptions(runner="../../evil"), "no browser '../../evil'"),
        (ParityOptions(runner="os"), "no browser 'os'"),
        (ParityOptions(runner=""), "no browser ''"),
    ],
)
def test_a_wrong_option_is_refused_before_a_browser_is_looked_for(
    tmp_path: Path, options: ParityOptions, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parity.verify(bundle(tmp_path), options)
    assert says in caught.value.message
    assert caught.value.hint


def test_the_browsers_are_the_runners_in_the_folder() -> None:
    assert "chromium" in parity.runner_names()
    assert not {"local", "browsers", "__init__"} & set(parity.runner_names())
    assert parity.load_runner("chromium").BROWSER == "Chromium"


def test_a_target_of_the_user_s_own_is_found_in_their_folder_or_replaced_by_a_browser(tmp_path: Path) -> None:
    folder = bundle(tmp_path, target="mine")
    with pytest.raises(UsageError, match="target is not known here") as caught:
        parity.verify(folder, NO_BROWSER)
    assert "--targets-dir" in (caught.value.hint or "") and "--browser" in (caught.value.hint or "")
    own = tmp_path / "targets"
    own.mkdir()
    (own / "mine.toml").write_text(
        textwrap.dedent("""
            title = "mine"
            kind = "web"
            [runtime]
            package = "onnxruntime-web"
            variants = ["wasm"]
            [limits]
            file_bytes = 1000
            ir_version = 13
            opset = 26
            [parity]
            runner = "netscape"
        """)
    )
    with pytest.raises(UsageError, match="no browser 'netscape'"):
        parity.verify(folder, ParityOptions(targets_dir=own))
    with pytest.raises(UsageError, match=r"'parity.runner' is 'netscape', and there is no such runner"):
        parity.check_runner(targets.load("mine", own))
    parity.check_runner(targets.load("wasm"))
    parity.check_runner(targets.load("linux-arm64"))
    with pytest.raises(MissingToolError):  # it got as far as the browser
        parity.verify(folder, ParityOptions(runner="chromium", browser_path=Path("/nowhere/chrome")))
